# SPDX-License-Identifier: BSD-3-Clause
"""What contrib/bench-apps.sh makes of its programs, and that it measures."""

import os
import shutil
import subprocess
import tempfile
import unittest

from mainjob import applications, apps, apps_cli

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
BUILD = os.environ.get("SEP_BUILD_DIR", TOP)

HPCC = """||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=  0.01 ...... PASSED
WALL    48    48  16  16   1   2     0.00 PASSED    0.519  0.00
Begin of Summary section.
VersionMajor=1
Language=C
Success=1
PTRANS_residual=0
MPIRandomAccess_LCG_Errors=0
MPIRandomAccess_Errors=0
MPIFFT_maxErr=6.86635e-16
MaxPingPongLatency_usec=5.6
End of Summary section.
"""

MELT = """Setting up Verlet run ...
Per MPI rank memory allocation (min/avg/max) = 3.2 | 3.2 | 3.2 Mbytes
Step Temp E_pair E_mol TotEng Press
       0          2.5   -5.5          0   -1.7     3.3
     200    1.2e+00   -3.5          0   -1.7     6.3
Loop time of 0.1 on 2 procs for 200 steps with 2048 atoms
"""


class Sweep(unittest.TestCase):

    def test_the_batch_with_the_fewest_counts(self):
        self.assertEqual(
            {("pingpong", 8): 90.0, ("barrier", 0): 7.0},
            apps.least({"pingpong:8:0": 91.0, "pingpong:8:1": 90.0,
                        "barrier:0:0": 7.0}))

    def test_calls_are_read_among_other_lines(self):
        self.assertEqual("pingpong:8:0 64\n", apps.calls_of(
            "metric x 1 2 us\ncalls pingpong:8:0 64\nPASS mpi_sweep: ...\n"))

    def test_sizes(self):
        sizes = apps.sizes_of(apps.COUNTED_SIZES, ["barrier", "pingpong"])
        self.assertEqual({"barrier", "pingpong"}, set(sizes))
        self.assertEqual("pingpong:1", apps.words_of(sizes)[0])
        quick = apps.sizes_of(apps.COUNTED_SIZES, quick=True)
        self.assertEqual(set(apps.OPERATIONS), set(quick))
        self.assertLess(len(apps.words_of(quick)),
                        len(apps.words_of(apps.COUNTED_SIZES)))

    def test_operations_are_those_of_the_program(self):
        with open(os.path.join(TOP, "bench/mpi_sweep.c"),
                  encoding="utf-8") as file:
            text = file.read()
        for name in apps.OPERATIONS:
            self.assertTrue(f'= "{name}"' in text or
                            f"SWEEP_COLLECTIVE({name})" in text, name)


class Rows(unittest.TestCase):

    def test_ratios(self):
        row = apps.Row("x", "us", {apps.DV: 1.0, apps.VERBS: 2.0,
                                   apps.RC_MLX5: 4.0})
        self.assertEqual(0.5, row.ratio("dv/verbs"))
        self.assertEqual(0.25, row.ratio("dv/rc_mlx5"))
        self.assertIsNone(row.ratio("rc_mlx5/rc_verbs"))
        self.assertEqual(["x", "us", "1.00", "n/a", "2.00", "4.00", "n/a",
                          "0.50", "n/a", "n/a", "0.25"],
                         apps_cli.cells_of(row))

    def test_medians(self):
        row, = apps.median_rows({"x": dict.fromkeys(apps.COLUMNS,
                                                    [3.0, 9.0, 1.0])}, "us")
        self.assertEqual(3.0, row.values[apps.DV])


class Netpipe(unittest.TestCase):

    def test_times_are_microseconds(self):
        self.assertEqual({1: 5.5, 8192: 12.0}, {
            size: round(time, 3) for size, time in applications.netpipe_times(
                "       1 1.3   0.0000055\n    8192 9.9 0.000012\n").items()})
        for text in ("", "1 2\n"):
            with self.assertRaises(applications.WrongResult):
                applications.netpipe_times(text)

    def test_data_that_were_compared(self):
        good = " 20:    1536 bytes     20 times -->  Integrity check passed\n"
        bad = good.replace("passed", "failed")
        self.assertEqual([1536], applications.netpipe_integrity(good))
        for text in ("", good + bad):
            with self.assertRaises(applications.WrongResult):
                applications.netpipe_integrity(text)


class Hpcc(unittest.TestCase):

    def test_a_right_result(self):
        self.assertEqual(5.6, applications.hpcc_result(HPCC)[
            "MaxPingPongLatency_usec"])

    def test_wrong_results(self):
        for right, wrong in (
                ("Success=1", "Success=0"), ("Success=1\n", ""),
                ("Access_Errors=0", "Access_Errors=1"),
                ("LCG_Errors=0\n", "\n"), ("residual=0", "residual=nan"),
                ("6.86635e-16", "1e-3"), ("...... PASSED", "...... FAILED"),
                ("0.00 PASSED", "0.00 FAILED"), ("||Ax-b", "x")):
            self.assertIn(right, HPCC)
            with self.assertRaises(applications.WrongResult, msg=wrong):
                applications.hpcc_result(HPCC.replace(right, wrong))

    def test_process_grids(self):
        for ranks, grid in ((2, ("1 Ps", "2 Qs")), (4, ("2 Ps", "2 Qs")),
                            (6, ("2 Ps", "3 Qs"))):
            lines = applications.hpcc_input(ranks, 96).splitlines()
            self.assertEqual(grid, (lines[10], lines[11]))
            self.assertEqual("96 Ns", lines[5])
            self.assertEqual("0", lines[32][0])


class Melt(unittest.TestCase):

    def test_thermodynamics(self):
        rows = applications.melt_result(MELT)
        self.assertEqual(["0", "200"], [row[0] for row in rows])
        self.assertEqual("6.3", rows[1][5])

    def test_a_run_that_ended_early(self):
        for text in ("", MELT.replace("     200 ", "     150 ")):
            with self.assertRaises(applications.WrongResult):
                applications.melt_result(text)


@unittest.skipUnless(os.access(os.path.join(BUILD, "bin/sep_info"), os.X_OK) and
                     shutil.which("mpirun.mpich") and shutil.which("valgrind"),
                     "the transport is not built, or no MPICH or valgrind")
class Tsv(unittest.TestCase):
    """A build that is here, whatever it was optimised for."""

    def test_a_collective_is_counted_and_timed(self):
        subprocess.run(["make", "-C", BUILD, "bench/mpi_sweep.mpich"],
                       check=True, capture_output=True, timeout=300)
        with tempfile.TemporaryDirectory() as logs:
            run = subprocess.run(
                [os.path.join(TOP, "contrib/bench-apps.sh"), "--tsv",
                 "--quick", "--sweep", "--build", BUILD, "--logs", logs,
                 "--only", "bcast"],
                capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(0, run.returncode, run.stderr)
        head, *rows = [line.split("\t") for line in run.stdout.splitlines()]
        self.assertEqual(["row", "unit", *apps.COLUMNS, *apps.RATIOS], head)
        self.assertEqual([("bcast 8", "instructions"),
                          ("bcast 1024", "instructions"),
                          ("bcast 8", "us"), ("bcast 8192", "us")],
                         [tuple(row[:2]) for row in rows])
        for row in rows:
            numbers = dict(zip(head[2:], map(float, row[2:])))
            self.assertTrue(all(number > 0 for number in numbers.values()))
            if row[1] == "instructions":
                # libibverbs takes some for the same work
                self.assertLess(numbers[apps.DV], numbers[apps.VERBS])
                self.assertTrue(300 < numbers[apps.DV] < 50000, row)


if __name__ == "__main__":
    unittest.main()
