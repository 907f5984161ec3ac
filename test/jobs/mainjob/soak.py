# SPDX-License-Identifier: BSD-3-Clause
"""Jobs and tests on a device that takes its time, with one seed after another.

Each run has a seed of its own, from which follow the row and the settings of
device and transport, so that the seed repeats the run.
"""

import argparse
import os
import random
import shlex
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field

from . import cli, jobs, process

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.dirname(os.path.realpath(__file__)))))
# As many as SEP_TEST_SEED has
SEED_BITS = 32

# What the device may do, each with its weight
SETTINGS = (
    ("MLX5SIM_DELAY", ((8, 4), (0, 1), (2, 1), (64, 1))),
    ("MLX5SIM_LOSS", ((0, 4), (1, 1), (10, 1))),
    ("MLX5SIM_WC", ((0, 5), (40, 1))),
    ("MLX5SIM_SRQ_PREFETCH", ((0, 2), (8, 1))),
    ("MLX5SIM_CMD_DELAY", ((0, 3), (200, 1))),
)

# What the transport may do: the eager channel, and in jobs, with one ring that
# goes from peer to peer, or with rings that are soon full. Tests set that
# themselves.
EAGER = "UCX_SEP_EAGER"
SEP_SETTINGS = (
    (EAGER, (("n", 1), ("y", 1))),
    ("UCX_SEP_EAGER_POLL_SET", (("16", 3), ("1", 1))),
    ("UCX_SEP_EAGER_SLOTS", (("64", 3), ("5", 1))),
)

# Suites of sep_gtest that are about what reaches the peer
SUITES = ("*test_sep_uct_keys.*", "*test_sep_uct_flow.*",
          "*test_sep_uct_messages.*", "*test_sep_uct_mixed.*",
          "*test_sep_uct_threads.*", "test_sep_fc.*", "test_sep_hub.*",
          "*test_sep_workers.*", "*test_sep_uct_eager*",
          "test_sep_ucp_sleep.*", "*test_sep_uct_random.*")

# Of tests that go on as long as they are told, seconds
TEST_SECONDS = 300

# Seconds; main_job has limits of its own for what it runs, which are for a
# device that is in a hurry
LIMIT = 900
PATIENCE = 5


@dataclass(frozen=True)
class Row:
    """Something to run."""
    name: str
    command: tuple


@dataclass
class Run:
    """One run of a row."""
    seed: int
    row: Row
    settings: dict
    status: str = ""            # pass, fail, skip
    again: str = ""             # the same of a second try with the same seed
    seconds: float = 0.0
    reason: str = ""
    log: str = ""


@dataclass
class Tally:
    """What became of the runs of one kind."""
    runs: int = 0
    skipped: int = 0
    failed: list = field(default_factory=list)
    seconds: float = 0.0


def all_rows(build_dir, transports):
    """Everything that can be run, in an order that stays the same."""
    rows = []
    main_job = os.path.join(TOP, "test/jobs/main_job")
    names = cli.row_names(cli.parse_arguments(["--quick"]))
    for transport in transports:
        for name in names:
            if name != cli.INFO_ROW:
                rows.append(Row(f"{transport}: {name}", (
                    main_job, "--build-dir", build_dir, "--quick",
                    "--patience", str(PATIENCE), "--transport", transport,
                    "--row", name)))
    if "sep_mlx5" in transports:
        bin_dir = os.path.join(build_dir, "bin")
        for suite in SUITES:
            rows.append(Row(f"sep_gtest: {suite}", (
                os.path.join(bin_dir, "mlx5sim-run"), "--private",
                os.path.join(bin_dir, "sep-run"), "--only",
                os.path.join(build_dir, "test/gtest/sep_gtest"),
                "--gtest_brief=1", f"--gtest_filter={suite}")))
    return rows


def seeds(first):
    """Seeds of the runs, for ever."""
    source = random.Random(first)
    while True:
        yield source.getrandbits(SEED_BITS)


def plan(seed, rows):
    """The run that a seed stands for, among these rows."""
    source = random.Random(seed)
    settings = {"MLX5SIM_EXEC": "deferred", "MLX5SIM_SEED": str(seed)}
    of_transport = {}
    for drawn, table in ((settings, SETTINGS), (of_transport, SEP_SETTINGS)):
        for name, choices in table:
            values = [value for value, _ in choices]
            weights = [weight for _, weight in choices]
            drawn[name] = str(source.choices(values, weights)[0])

    # They are drawn for all rows, so that a row alone has the same
    row = source.choice(rows)
    if row.name.startswith("sep_mlx5:"):
        settings.update(of_transport)
    elif row.name.startswith("sep_gtest:"):
        settings[EAGER] = of_transport[EAGER]
    return Run(seed, row, settings)


def replay_command(run):
    """What repeats a run, for a shell; the row by name, as others may come
    and go."""
    return (f"contrib/soak.sh --replay {run.seed} --row "
            f"{shlex.quote(run.row.name)}")


def strip(name):
    """What tells a setting from others."""
    return name.removeprefix("MLX5SIM_").removeprefix("UCX_SEP_")


def last_words(result):
    """The line of a failed run that says most."""
    lines = (result.stdout + result.stderr).splitlines()
    for mark in ("FAIL ", "strict check", "[  FAILED  ]", "ailure"):
        for line in lines:
            if mark in line:
                return line.strip()
    return lines[-1].strip() if lines else ""


class Soak:
    """Runs what seeds stand for, prints and counts."""

    def __init__(self, options, rows, execute=process.run):
        self.options = options
        self.rows = rows
        self.execute = execute
        self.tallies = {}

    def attempt(self, run, directory):
        """Run once. @return pass, fail, or skip if the transport can't."""
        environment = dict(os.environ, **run.settings)
        environment["SEP_TEST_SEED"] = str(run.seed)
        environment["SEP_TEST_SECONDS"] = str(TEST_SECONDS)
        environment["TMPDIR"] = directory
        result = self.execute(list(run.row.command), LIMIT, environment)
        run.seconds += result.seconds
        if result.ok:
            return "pass"
        if result.returncode == jobs.SKIP_STATUS and not result.timed_out:
            return "skip"
        run.reason = run.reason or f"{result.why()}: {last_words(result)}"
        number = len(os.listdir(directory))
        with open(os.path.join(directory, f"output.{number}"), "w",
                  encoding="utf-8") as file:
            file.write(f"{result.stdout}\n{result.stderr}\n")
        return "fail"

    def perform(self, run):
        """Run, and again if that fails; keep the logs of a failure."""
        directory = tempfile.mkdtemp(prefix="sep-soak.")
        try:
            run.status = self.attempt(run, directory)
            if run.status == "fail":
                run.again = self.attempt(run, directory)
                run.log = os.path.join(self.options.results, str(run.seed))
                shutil.rmtree(run.log, ignore_errors=True)
                shutil.copytree(directory, run.log, ignore_dangling_symlinks=True)
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        tally = self.tallies.setdefault(run.row.name, Tally())
        tally.runs += 1
        tally.seconds += run.seconds
        if run.status == "fail":
            tally.failed.append(run)
        elif run.status == "skip":
            tally.skipped += 1
        self.show(run)

    def show(self, run):
        settings = " ".join(f"{strip(name)}={value}"
                            for name, value in run.settings.items()
                            if name not in ("MLX5SIM_EXEC", "MLX5SIM_SEED"))
        if self.options.tsv:
            print("\t".join((str(run.seed), run.row.name, settings, run.status,
                             run.again, f"{run.seconds:.1f}", run.reason)))
        else:
            print(f"{run.status:4}  {run.seconds:6.1f} s  {run.row.name}  "
                  f"{settings} SEED={run.seed}")
            if run.status == "fail":
                print(f"      {run.reason}\n"
                      f"      again with this seed: {run.again}, "
                      f"logs: {run.log}\n"
                      f"      replay: {replay_command(run)}")
        sys.stdout.flush()

    def summary(self, file):
        runs = sum(tally.runs for tally in self.tallies.values())
        skipped = sum(tally.skipped for tally in self.tallies.values())
        failed = [run for tally in self.tallies.values()
                  for run in tally.failed]
        print(f"\n{'runs':>6}{'failed':>8}{'skipped':>9}{'seconds':>9}  row",
              file=file)
        for name, tally in sorted(self.tallies.items()):
            print(f"{tally.runs:6}{len(tally.failed):8}{tally.skipped:9}"
                  f"{tally.seconds:9.0f}  {name}", file=file)
        for run in failed:
            print(f"replay: {replay_command(run)}", file=file)
        passed = runs - len(failed) - skipped
        print(f"{runs} seeds, {passed} passed, {len(failed)} failed" +
              (f", {skipped} skipped" if skipped else ""), file=file)
        if failed or not runs:
            return 1
        return 0 if passed else jobs.SKIP_STATUS

    def run(self, clock=time.monotonic):
        end = clock() + 60 * self.options.minutes
        if self.options.replay is not None:
            chosen = iter([self.options.replay])
        else:
            chosen = seeds(self.options.seed)
        # The summary is for people: with --tsv it must not be among the lines
        file = sys.stderr if self.options.tsv else sys.stdout
        try:
            for seed in chosen:
                if clock() >= end and self.options.replay is None:
                    break
                self.perform(plan(seed, self.rows))
        except (KeyboardInterrupt, SystemExit):
            self.summary(file)
            raise
        return self.summary(file)


def positive(text):
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(
            f"'{text}' is no number above 0 and below a million")
    return value


def seed_number(text):
    if text == "random":
        return random.SystemRandom().getrandbits(SEED_BITS)
    try:
        value = int(text, 0)
    except ValueError:
        value = -1
    if not 0 <= value < 1 << SEED_BITS:
        raise argparse.ArgumentTypeError(
            f"'{text}' is neither a number of up to {SEED_BITS} bits nor "
            "'random'")
    return value


def parse_arguments(argv):
    parser = argparse.ArgumentParser(
        prog="contrib/soak.sh",
        description="Run MPI, OpenSHMEM and ucx_perftest jobs and tests of the "
        "transport on a device that executes late, packet by packet, in an "
        "order that a seed decides, and loses packets; with one seed after "
        "another, until the time is over.")
    parser.add_argument("--minutes", type=positive, default=60.0, metavar="N",
                        help="for how long (default: 60)")
    parser.add_argument("--seed", type=seed_number, default="random",
                        metavar="N", help="decides the seeds of the runs "
                        "(default: random, which is printed)")
    parser.add_argument("--replay", type=seed_number, metavar="N",
                        help="only the run with this seed")
    parser.add_argument("--row", action="append", metavar="NAME",
                        help="only this row; may be repeated")
    parser.add_argument("--only", metavar="TEXT",
                        help="only rows whose names contain TEXT")
    parser.add_argument("--transport", default=["sep_mlx5", "rc_mlx5"],
                        type=cli.name_list(["sep_mlx5", "rc_mlx5"]),
                        metavar="LIST",
                        help="of sep_mlx5,rc_mlx5 (default: both)")
    parser.add_argument("--tsv", action="store_true",
                        help="one line per run: seed, row, settings, result, "
                        "result of a second try, seconds, reason; the summary "
                        "goes to standard error")
    parser.add_argument("--list", action="store_true",
                        help="print the names of the rows")
    parser.add_argument("--build-dir", default=os.path.join(TOP, "build/soak"),
                        metavar="DIR", type=os.path.abspath,
                        help="where the project is built (default: build/soak)")
    parser.add_argument("--results", default=os.path.join(TOP,
                                                          "build/soak-results"),
                        metavar="DIR", type=os.path.abspath,
                        help="where logs of failures go (default: "
                        "build/soak-results)")
    options = parser.parse_args(argv)
    rows = all_rows(options.build_dir, options.transport)
    names = [row.name for row in rows]
    for name in options.row or ():
        if name not in names:
            parser.error(f"there is no row '{name}': see --list")
    options.rows = [row for row in rows
                    if (not options.row or row.name in options.row) and
                    (not options.only or options.only in row.name)]
    if not options.rows:
        parser.error(f"no row has '{options.only}' in its name: see --list")
    return options


def main(argv=None):
    options = parse_arguments(argv)
    if options.list:
        print("\n".join(row.name for row in options.rows))
        return 0
    process.end_with_cleanup()
    os.makedirs(options.results, exist_ok=True)
    if options.replay is None:
        print(f"SEED={options.seed}", file=sys.stderr)
    return Soak(options, options.rows).run()
