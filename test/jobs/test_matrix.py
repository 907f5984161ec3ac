#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What contrib/matrix.sh runs for which options, and what it makes of the results.

It drives other scripts: here they are replaced by some that only answer.
"""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

TOP = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")

CONFIGURE = """#!/bin/sh
echo "$@" > configured-with
printf 'all job-programs:\\n' > Makefile
printf '=====\\n  transport   %s\\n' "${FAKE_TRANSPORT:-built}"
"""
MAIN_JOB = """#!/bin/sh
while [ "$1" != --json ]; do shift; done
cp "$FAKE_JOBS" "$2"
echo "$LD_LIBRARY_PATH" > "$2.libraries"
exit ${FAKE_JOBS_STATUS:-0}
"""
UCX_GTEST = """#!/bin/sh
echo "$@" > "$FAKE_ASKED"
while [ "$1" != --results ]; do shift; done
mkdir -p "$2"
printf 'group\\tsuite\\ttest\\tsep_mlx5\\trc_mlx5\\tverdict\\n' > "$2/table.tsv"
for status in ok ok crashed skipped ok; do
    printf 'uct\\ta\\tb\\t%s\\thung\\tbetter\\n' $status >> "$2/table.tsv"
done
exit ${FAKE_GTEST_STATUS:-0}
"""
ROOT = """#!/bin/sh
echo "$@" > "$FAKE_ASKED"
[ -z "$FAKE_ROWS" ] || printf "$FAKE_ROWS"
[ -z "$FAKE_REASON" ] || echo "debian-root.sh: skipped: $FAKE_REASON" >&2
exit ${FAKE_ROOT_STATUS:-0}
"""


def jobs(*states):
    return {"rows": [{"cells": {"sep_mlx5": {"status": state},
                                "rc_mlx5": {"status": "pass"}}}
                     for state in states]}


class Matrix(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.top = directory.name
        for name in ("matrix.sh", "lib.sh", "ucx.sh"):
            os.makedirs(self.path("contrib"), exist_ok=True)
            shutil.copy(os.path.join(TOP, "contrib", name),
                        self.path("contrib", name))
        shutil.copytree(os.path.join(TOP, "bench/measure"),
                        self.path("bench", "measure"))
        shutil.copy(os.path.join(TOP, "bench/run"), self.path("bench"))
        for words, text in ((("contrib", "configure-release"), CONFIGURE),
                            (("contrib", "ucx-gtest.sh"), UCX_GTEST),
                            (("contrib", "debian-root.sh"), ROOT),
                            (("contrib", "fetch-source.sh"), "#!/bin/sh\n"),
                            (("contrib", "build-ucx-release.sh"),
                             "#!/bin/sh\nexit ${FAKE_UCX_STATUS:-0}\n"),
                            (("test", "jobs", "main_job"), MAIN_JOB),
                            (("configure",), "#!/bin/sh\n")):
            self.write(text, *words)
            os.chmod(self.path(*words), 0o755)
        self.write("", "contrib", "deps.txt")
        self.write("", "ucx-9.8.7", "autogen.sh")

    def path(self, *words):
        return os.path.join(self.top, *words)

    def write(self, text, *words):
        os.makedirs(os.path.dirname(self.path(*words)), exist_ok=True)
        with open(self.path(*words), "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, *words):
        with open(self.path(*words), encoding="utf-8") as file:
            return file.read()

    def matrix(self, *options, results=jobs("pass", "pass", "skip"), **fakes):
        self.write(json.dumps(results), "jobs.json")
        environment = dict(os.environ, FAKE_JOBS=self.path("jobs.json"),
                           FAKE_ASKED=self.path("asked"))
        environment.update({f"FAKE_{key.upper()}": value
                            for key, value in fakes.items()})
        return subprocess.run([self.path("contrib", "matrix.sh"), *options],
                              capture_output=True, text=True, timeout=300,
                              env=environment, check=False)

    def rows(self, *options, **fakes):
        run = self.matrix("--tsv", "--debian", "this", "--ucx",
                          self.path("ucx-9.8.7"), *options, **fakes)
        return run, [[line.split("\t")[0]] + line.split("\t")[2:]
                     for line in run.stdout.splitlines()]

    def test_wrong_options_run_nothing(self):
        for options in (["--ucx"], ["--ucx", "/nowhere"], ["--part", "tests"],
                        ["--debian", "13"], ["--fast"]):
            run = self.matrix(*options)
            self.assertEqual((2, ""), (run.returncode, run.stdout), options)
            self.assertIn("see --help", run.stderr)

    def test_parts_and_pairs_are_chosen(self):
        run = self.matrix("--list", "--ucx", "system", "--ucx",
                          self.path("ucx-9.8.7"), "--debian", "this",
                          "--debian", "forky", "--part", "jobs")
        lines = run.stdout.splitlines()
        self.assertEqual(4, len(lines), run.stderr)
        self.assertEqual(["9.8.7, Debian this: jobs",
                          "its own UCX, Debian forky: jobs",
                          "9.8.7, Debian forky: jobs"], lines[1:])
        self.assertFalse(os.path.exists(self.path("build")))

    def test_numbers_are_those_of_the_transport(self):
        run, rows = self.rows("--group", "uct", gtest_status="1")
        self.assertEqual([["9.8.7", "build", "1", "0", "0"],
                          ["9.8.7", "jobs", "2", "0", "1"],
                          ["9.8.7", "conformance", "3", "1", "1"]], rows)
        self.assertEqual(1, run.returncode)
        work = self.path("build", "matrix", "9.8.7")
        self.assertIn(f"--with-ucx={work}/ucx --with-ucx-source={work}/source",
                      self.read(work, "sep", "configured-with"))
        self.assertEqual(f"{work}/ucx/lib",
                         self.read(work, "jobs.json.libraries").strip())
        asked = self.read("asked")
        for word in ("--quick", "--group uct", f"--ucx-source {work}/source"):
            self.assertIn(word, asked)

    def test_numbers_of_rc_mlx5_stand_beside_if_asked_for(self):
        _, rows = self.rows("--rc")
        self.assertEqual(
            [["9.8.7", "build", "1", "0", "0", "-", "-", "-"],
             ["9.8.7", "jobs", "2", "0", "1", "3", "0", "0"],
             ["9.8.7", "conformance", "3", "1", "1", "0", "5", "0"]], rows)
        run = self.matrix("--rc", "--debian", "this", "--part", "jobs", "--ucx",
                          self.path("ucx-9.8.7"))
        heading, row = run.stdout.splitlines()
        self.assertTrue(heading.endswith("rc-skipped"), heading)
        self.assertEqual(["jobs", "2", "0", "1", "3", "0", "0"], row.split()[2:])
        self.matrix("--tsv", "--rc", "--debian", "forky")
        self.assertIn("--rc", self.read("asked"))

    def test_whole_is_not_quick(self):
        self.rows("--whole", "--part", "conformance")
        self.assertNotIn("--quick", self.read("asked"))

    def test_a_failed_row_is_a_failed_run(self):
        run, rows = self.rows("--part", "jobs", results=jobs("pass", "fail"),
                              jobs_status="1")
        self.assertEqual((1, [["9.8.7", "jobs", "1", "1", "0"]]),
                         (run.returncode, rows))

    def test_all_passed(self):
        run, rows = self.rows("--part", "jobs")
        self.assertEqual((0, [["9.8.7", "jobs", "2", "0", "1"]]),
                         (run.returncode, rows), run.stderr)

    def test_a_job_that_leaves_no_results_has_failed(self):
        run, rows = self.rows("--part", "jobs", results={}, jobs_status="1")
        self.assertEqual((1, [["9.8.7", "jobs", "0", "1", "0"]]),
                         (run.returncode, rows))

    def test_a_failed_build_is_told_once_and_nothing_is_run(self):
        run, rows = self.rows(ucx_status="1")
        self.assertEqual((1, [["9.8.7", "build", "0", "1", "0"]]),
                         (run.returncode, rows))

    def test_what_can_t_be_had_is_named_and_not_counted(self):
        run, rows = self.rows(transport="not built (no source of UCX)")
        self.assertEqual((77, []), (run.returncode, rows))
        for part in ("build", "jobs", "conformance"):
            self.assertIn(f"no {part}: the transport was not built (no source",
                          run.stderr)

    def test_a_root_that_can_t_be_made_is_named_and_not_counted(self):
        run = self.matrix("--tsv", "--debian", "forky", root_status="77",
                          reason="network: no mirror")
        self.assertEqual((77, ""), (run.returncode, run.stdout))
        self.assertIn("Debian forky: no build jobs conformance: debian-root.sh: "
                      "skipped: network: no mirror", run.stderr)

    def test_another_debian_runs_the_same_there(self):
        run = self.matrix("--tsv", "--debian", "forky", "--part", "jobs",
                          "--ucx", self.path("ucx-9.8.7"),
                          rows="9.8.7\\t14\\tjobs\\t2\\t0\\t1\\n")
        self.assertEqual((0, "9.8.7\t14\tjobs\t2\t0\t1\n"),
                         (run.returncode, run.stdout), run.stderr)
        asked = self.read("asked")
        self.assertIn("--suite forky", asked)
        self.assertIn(f"--bind {os.path.realpath(self.top)}", asked)
        self.assertIn("contrib/matrix.sh --debian this --tsv --ucx", asked)

    def test_failures_there_are_failures_here(self):
        run = self.matrix("--tsv", "--debian", "forky", root_status="1",
                          rows="9.8.7\\t14\\tjobs\\t2\\t1\\t0\\n")
        self.assertEqual(1, run.returncode)
        run = self.matrix("--tsv", "--debian", "forky", root_status="1")
        self.assertEqual((1, "any\tforky\tbuild\t0\t1\t0\n"),
                         (run.returncode, run.stdout))


if __name__ == "__main__":
    unittest.main()
