# SPDX-License-Identifier: BSD-3-Clause
"""The soak: what seeds decide, what is counted, and that a failure can be
repeated."""

import contextlib
import io
import os
import shlex
import subprocess
import sys
import tempfile
import unittest

from mainjob import jobs, process, soak

# A row that fails with some seeds, always with the same
FLAKY = (sys.executable, "-c",
         "import os, sys\n"
         "assert os.environ['MLX5SIM_EXEC'] == 'deferred'\n"
         "seed = int(os.environ['MLX5SIM_SEED'])\n"
         "print(seed, os.environ['MLX5SIM_DELAY'], os.environ['MLX5SIM_LOSS'])\n"
         "sys.exit('FAIL of a kind' if seed % 3 == 0 else 0)\n")

# A row that a transport can't do: main_job has skipped it
LACKING = soak.Row("lacking", (sys.executable, "-c",
                               f"import sys; sys.exit({jobs.SKIP_STATUS})"))


def parse(*words):
    return soak.parse_arguments(list(words))


def rejected(*words):
    output = io.StringIO()
    try:
        with contextlib.redirect_stderr(output):
            parse(*words)
    except SystemExit as error:
        return error.code, output.getvalue()
    return 0, output.getvalue()


class Arguments(unittest.TestCase):

    def test_defaults(self):
        options = parse()
        self.assertEqual(options.minutes, 60)
        self.assertIsNone(options.replay)
        self.assertGreater(options.seed, 0)
        self.assertNotEqual(options.seed, parse().seed)
        self.assertTrue(any(row.name.startswith("rc_mlx5: MPICH")
                            for row in options.rows))
        self.assertTrue(any(row.name.startswith("sep_gtest: ")
                            for row in options.rows))

    def test_seeds_are_numbers_in_any_base(self):
        self.assertEqual(parse("--seed", "0x10").seed, 16)
        self.assertEqual(parse("--replay", str((1 << 32) - 1)).replay,
                         (1 << 32) - 1)

    def test_bad_values_are_refused_with_what_is_allowed(self):
        for words, text in (
                (("--minutes", "0"), "no number above 0"),
                (("--minutes", "-3"), "no number above 0"),
                (("--minutes", "nan"), "no number above 0"),
                (("--minutes", "soon"), "no number above 0"),
                (("--seed", "-1"), "nor 'random'"),
                (("--seed", "dice"), "nor 'random'"),
                (("--replay", str(1 << 32)), "nor 'random'"),
                (("--row", "no such row"), "see --list"),
                (("--only", "no such row"), "see --list"),
                (("--transport", "tcp"), "choose from sep_mlx5, rc_mlx5"),
                (("--nonsense",), "unrecognized arguments")):
            code, output = rejected(*words)
            self.assertEqual(code, 2, words)
            self.assertIn(text, output)

    def test_rows_can_be_chosen(self):
        name = parse().rows[3].name
        self.assertEqual([row.name for row in parse("--row", name).rows],
                         [name])
        rows = parse("--only", "OpenSHMEM", "--transport", "rc_mlx5").rows
        self.assertTrue(rows)
        for row in rows:
            self.assertRegex(row.name, "^rc_mlx5: OpenSHMEM")


class Plan(unittest.TestCase):

    rows = [soak.Row(f"row {i}", ("true",)) for i in range(5)]

    def test_a_seed_stands_for_one_run(self):
        for seed in range(50):
            self.assertEqual(soak.plan(seed, self.rows),
                             soak.plan(seed, self.rows))

    def test_a_replay_of_one_row_has_the_same_settings(self):
        for seed in range(50):
            run = soak.plan(seed, self.rows)
            again = soak.plan(seed, [run.row])
            self.assertEqual(run.settings, again.settings)
            self.assertEqual(run.row, again.row)

    def test_all_rows_and_settings_come_up(self):
        runs = [soak.plan(seed, self.rows) for seed in range(500)]
        self.assertEqual({run.row for run in runs}, set(self.rows))
        for name, choices in soak.SETTINGS:
            self.assertEqual({run.settings[name] for run in runs},
                             {str(value) for value, _ in choices})
        for run in runs:
            self.assertEqual(run.settings["MLX5SIM_SEED"], str(run.seed))

    def test_the_eager_channel_comes_up_where_it_can_be(self):
        rows = [soak.Row(f"{kind}: something", ("true",))
                for kind in ("sep_mlx5", "rc_mlx5", "sep_gtest")]
        runs = [soak.plan(seed, rows) for seed in range(500)]
        wanted = {"sep_mlx5": [name for name, _ in soak.SEP_SETTINGS],
                  "rc_mlx5": [], "sep_gtest": [soak.EAGER]}
        for kind, names in wanted.items():
            settings = [run.settings for run in runs
                        if run.row.name.startswith(kind)]
            for name, choices in soak.SEP_SETTINGS:
                self.assertEqual(
                    {each.get(name) for each in settings},
                    {value for value, _ in choices} if name in names
                    else {None})

    def test_the_first_seed_decides_all(self):
        def some(first):
            return [seed for seed, _ in zip(soak.seeds(first), range(20))]
        self.assertEqual(some(7), some(7))
        self.assertNotEqual(some(7), some(8))
        self.assertEqual(len(set(some(7))), 20)


class Runs(unittest.TestCase):

    def setUp(self):
        self.results = tempfile.TemporaryDirectory()
        self.rows = [soak.Row("flaky", FLAKY), soak.Row("good", ("true",))]

    def tearDown(self):
        self.results.cleanup()

    def soak(self, *words, rows=None, ticks=60):
        """@return status, lines of output and the soak."""
        options = parse("--results", self.results.name, *words)
        output = io.StringIO()
        clock = iter(range(ticks + 1))
        driver = soak.Soak(options, rows or self.rows)
        with contextlib.redirect_stdout(output), \
                contextlib.redirect_stderr(output):
            status = driver.run(clock=lambda: next(clock))
        return status, output.getvalue(), driver

    def test_runs_until_the_time_is_over(self):
        # The clock of the test goes on by a second at each look
        status, output, driver = self.soak("--minutes", "0.25", "--seed", "3",
                                           rows=[self.rows[1]])
        self.assertEqual(status, 0)
        self.assertEqual(driver.tallies["good"].runs, 14)
        self.assertIn("14 seeds, 14 passed, 0 failed", output)

    def test_failures_are_counted_and_can_be_replayed(self):
        status, output, driver = self.soak("--minutes", "0.5", "--seed", "3",
                                           rows=[self.rows[0]])
        failed = driver.tallies["flaky"].failed
        self.assertEqual(status, 1)
        self.assertTrue(failed)
        self.assertLess(len(failed), driver.tallies["flaky"].runs)
        for run in failed:
            self.assertEqual(run.seed % 3, 0)
            self.assertEqual((run.status, run.again), ("fail", "fail"))
            self.assertIn("FAIL of a kind", run.reason)
            self.assertTrue(os.listdir(run.log))
            self.assertIn(f"contrib/soak.sh --replay {run.seed} --row flaky",
                          output)
        self.assertIn(f"{len(failed)} failed", output)

        # and with the seed alone, the same again
        first = failed[0]
        status, output, driver = self.soak("--replay", str(first.seed),
                                           rows=[first.row])
        self.assertEqual(status, 1)
        again = driver.tallies["flaky"].failed[0]
        self.assertEqual((again.seed, again.settings),
                         (first.seed, first.settings))
        self.assertIn("1 seeds, 0 passed, 1 failed", output)

    def test_a_seed_that_passed_passes_again(self):
        status, output, _ = self.soak("--replay", "4", rows=[self.rows[0]])
        self.assertEqual(status, 0)
        self.assertIn("1 seeds, 1 passed, 0 failed", output)

    def test_lines_for_programs(self):
        _, output, driver = self.soak("--replay", "3", "--tsv",
                                      rows=[self.rows[0]])
        seed, row, settings, status, again, seconds, reason = \
            output.splitlines()[0].split("\t")
        self.assertEqual((seed, row, status, again),
                         ("3", "flaky", "fail", "fail"))
        self.assertRegex(settings, r"DELAY=\d+ LOSS=\d+ WC=\d+")
        self.assertGreaterEqual(float(seconds), 0)
        self.assertIn("exit status 1", reason)

    def test_a_run_that_hangs_is_a_failure(self):
        def execute(argv, _limit, environment):
            return process.run(argv, 0.2, environment)
        options = parse("--results", self.results.name, "--replay", "1")
        driver = soak.Soak(options, [soak.Row("hang", ("sleep", "1000"))],
                           execute)
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(driver.run(), 1)
        self.assertIn("hung, killed after",
                      driver.tallies["hang"].failed[0].reason)

    def test_what_a_transport_lacks_is_no_failure(self):
        status, output, driver = self.soak("--minutes", "0.25", "--seed", "3",
                                           rows=[self.rows[1], LACKING])
        self.assertEqual(status, 0)
        skipped = driver.tallies["lacking"].skipped
        self.assertTrue(skipped)
        self.assertEqual(driver.tallies["lacking"].runs, skipped)
        self.assertEqual(driver.tallies["lacking"].failed, [])
        self.assertEqual(driver.tallies["good"].skipped, 0)
        self.assertIn(f"14 seeds, {14 - skipped} passed, 0 failed, "
                      f"{skipped} skipped", output)
        self.assertEqual(os.listdir(self.results.name), [])

    def test_nothing_but_skipped_rows_is_no_success(self):
        status, output, _ = self.soak("--replay", "3", "--tsv", rows=[LACKING])
        self.assertEqual(status, jobs.SKIP_STATUS)
        self.assertEqual(output.splitlines()[0].split("\t")[3:5], ["skip", ""])
        self.assertIn("1 seeds, 0 passed, 0 failed, 1 skipped", output)

    def test_a_failure_is_one_whatever_was_skipped(self):
        status, output, _ = self.soak("--minutes", "0.25", "--seed", "3",
                                      rows=[self.rows[0], LACKING])
        self.assertEqual(status, 1)
        self.assertRegex(output, r"[1-9]\d* failed, [1-9]\d* skipped")

    def test_nothing_run_is_no_success(self):
        options = parse("--results", self.results.name, "--minutes", "1")
        driver = soak.Soak(options, self.rows)
        clock = iter((0, 61))
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(driver.run(clock=lambda: next(clock)), 1)


class Script(unittest.TestCase):

    def test_bad_options_are_refused_before_anything_is_built(self):
        script = os.path.join(soak.TOP, "contrib/soak.sh")
        if not os.access(script, os.X_OK):
            self.skipTest("no contrib/soak.sh here")
        result = subprocess.run([script, "--minutes", "never"], timeout=300,
                                capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("'never' is no number", result.stderr)
        self.assertNotIn("Building", result.stderr)

    def test_the_replay_is_a_command_of_the_script(self):
        row = parse().rows[5]
        run = soak.plan(77, [row])
        words = shlex.split(soak.replay_command(run))
        self.assertEqual(words[0], "contrib/soak.sh")
        options = parse(*words[1:])
        self.assertEqual((options.replay, options.rows), (77, [row]))


if __name__ == "__main__":
    unittest.main()
