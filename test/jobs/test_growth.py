# SPDX-License-Identifier: BSD-3-Clause
"""What contrib/bench-growth.sh reads and prints of peers, processes and heaps."""

import contextlib
import io
import json
import os
import subprocess
import tempfile
import unittest

from mainjob import growth, growth_cli

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
BUILD = os.environ.get("SEP_BUILD_DIR", TOP)

MASSIF = """desc: --time-unit=i
cmd: ./growth
time_unit: i
#-----------
snapshot=0
#-----------
time=0
mem_heap_B=0
mem_heap_extra_B=0
mem_stacks_B=0
heap_tree=empty
#-----------
snapshot=1
#-----------
time=400
mem_heap_B=1000
mem_heap_extra_B=24
mem_stacks_B=0
heap_tree=peak
n1: 1000 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
 n0: 1000 0x109151: main (x.c=5)
#-----------
snapshot=2
#-----------
time=1000
mem_heap_B=300
mem_heap_extra_B=8
mem_stacks_B=0
heap_tree=empty
"""


class Massif(unittest.TestCase):

    def test_snapshots_are_read(self):
        self.assertEqual([growth.Snapshot(0, 0, False),
                          growth.Snapshot(400, 1024, True),
                          growth.Snapshot(1000, 308, False)],
                         growth.read_massif(MASSIF))

    def test_peak_and_heap_over_time(self):
        snapshots = growth.read_massif(MASSIF)
        self.assertEqual(1024, growth.highest(snapshots))
        self.assertEqual([(0, 0), (20, 0), (40, 1024), (60, 1024), (80, 1024),
                          (100, 308)], growth.over_time(snapshots, 5))

    def test_what_is_not_complete_is_refused(self):
        for text in ("", "desc: x\n", MASSIF.replace("mem_heap_B=300\n", ""),
                     MASSIF.replace("time=400", "time=x"),
                     MASSIF[:MASSIF.rindex("heap_tree")]):
            with self.assertRaises(growth.GrowthError, msg=text):
                growth.read_massif(text)


class Stages(unittest.TestCase):

    def test_lines_are_read(self):
        pid, stages = growth.read_stages("pid 7\nopen 0 10 20 30\n"
                                         "use 4 11 21 31\n")
        self.assertEqual(7, pid)
        self.assertEqual(growth.Stage("use", 4, 11, 21, 31), stages[1])

    def test_others_are_refused(self):
        for text in ("", "open 0 1 2 3\n", "pid 7\n", "pid 7\nuse 1 1 2 3\n",
                     "pid 7\nopen 0 1 2\n", "pid 7\nopen 0 1 2 x\n", "pid\n"):
            with self.assertRaises(growth.GrowthError, msg=text):
                growth.read_stages(text)

    def test_control_messages_are_those_of_ud(self):
        mine = {"pid": 7, "qps": 3, "cqs": 2, "uars": 1, "qp_list": [
            {"type": "UD", "wqes": 5}, {"type": "RC", "wqes": 90},
            {"type": "UD", "wqes": 1}]}
        text = json.dumps({"processes": [{"pid": 8}, mine]})
        self.assertEqual({"qps": 3, "cqs": 2, "uars": 1, "control": 6},
                         growth.read_resources(text, 7))
        with self.assertRaises(growth.GrowthError):
            growth.read_resources(text, 9)

    def test_slope_is_that_of_large_numbers(self):
        self.assertEqual(2, growth.slope({1: 90, 64: 228, 128: 356}, 64))
        with self.assertRaises(growth.GrowthError):
            growth.slope({1: 90, 64: 228}, 64)


class CommandLine(unittest.TestCase):

    def refused(self, *options):
        said = io.StringIO()
        with self.assertRaises(SystemExit) as end, \
                contextlib.redirect_stderr(said):
            growth_cli.parse_arguments(options)
        self.assertEqual(2, end.exception.code)
        return said.getvalue()

    def test_one_thing_at_a_time(self):
        self.assertIn("required", self.refused())
        self.assertIn("not allowed", self.refused("--peers", "--heap"))

    def test_nonsense_is_refused(self):
        self.assertIn("no number from 1 to 4096",
                      self.refused("--peers", "--count", "0"))
        self.assertIn("no number from 2 to 200",
                      self.refused("--heap", "--ranks", "2,x"))
        self.assertIn("invalid choice", self.refused("--peers", "--only", "tcp"))
        self.assertIn("'lam'", self.refused("--init", "--library", "lam"))

    def test_what_has_no_effect_is_refused(self):
        self.assertIn("of no use", self.refused("--peers", "--ranks", "2"))
        self.assertIn("of no use", self.refused("--heap", "--count", "2"))
        self.assertIn("of no use", self.refused("--init", "--ucp"))
        self.assertIn("of no use", self.refused("--heap", "--repeat", "2"))

    def test_transports_keep_their_order(self):
        options = growth_cli.parse_arguments(
            ["--peers", "--only", "rc_mlx5", "--only", "sep_mlx5"])
        self.assertEqual(["sep_mlx5", "rc_mlx5"], options.transports)


def run_script(*options):
    """Rows that the script prints of the build that is here, whatever it was
    optimised for."""
    # Not in the build, which "make distclean" has to leave empty
    with tempfile.TemporaryDirectory() as logs:
        run = subprocess.run(
            [os.path.join(TOP, "contrib/bench-growth.sh"), "--tsv", "--build",
             BUILD, "--logs", logs, *options], capture_output=True, text=True,
            timeout=300, check=False)
    if run.returncode != 0:
        raise AssertionError(run.stderr)
    lines = [line.split("\t") for line in run.stdout.splitlines()]
    return [dict(zip(lines[0], line)) for line in lines[1:]]


def make(*targets):
    subprocess.run(["make", "-C", BUILD, *targets], check=True,
                   capture_output=True, timeout=300)


@unittest.skipUnless(os.access(os.path.join(BUILD, "bin/sep_info"), os.X_OK),
                     "the transport is not built")
class Peers(unittest.TestCase):
    """One interface, up to 128 peers."""

    @classmethod
    def setUpClass(cls):
        make("bench/uct_peers")
        cls.rows = {}
        for row in run_script("--peers", "--quick", "--only", "sep_mlx5",
                              "--only", "rc_mlx5"):
            name = row.pop("transport")
            instructions = row.pop("instructions")
            key = int(row.pop("endpoints")), int(row.pop("used"))
            cls.rows[name, key] = {column: int(cell) for column, cell in
                                   row.items()}
            cls.rows[name, key]["instructions"] = \
                0 if instructions == "-" else int(instructions)

    def row(self, endpoints, used=0, transport="sep_mlx5"):
        return self.rows[transport, (endpoints, used)]

    def test_an_endpoint_that_is_not_used_costs_no_queue_pair(self):
        start = self.row(0)
        for endpoints in (1, 2, 64, 128):
            for name in ("qps", "cqs", "uars", "control"):
                self.assertEqual(start[name], self.row(endpoints)[name],
                                 f"{name}, {endpoints} endpoints")
        self.assertEqual(128, self.row(128, 0, "rc_mlx5")["qps"])

    def test_one_that_is_used_costs_one_and_two_messages(self):
        for used in (1, 8, 128):
            row = self.row(128, used)
            self.assertEqual(self.row(0)["qps"] + used, row["qps"])
            self.assertEqual(self.row(0)["cqs"], row["cqs"])
            # More where a busy machine has made it ask again
            self.assertGreaterEqual(row["control"], 2 * used)

    def test_memory_of_a_peer_does_not_depend_on_their_number(self):
        for key, tolerance in ((lambda n: (n, 0), 0.25),
                               (lambda n: (128, n), 0.05)):
            heap = {number: self.row(*key(number))["heap"] for number in
                    (32, 64, 128)}
            first = (heap[64] - heap[32]) / 32
            second = (heap[128] - heap[64]) / 64
            self.assertGreater(first, 0)
            self.assertLessEqual(abs(second - first), tolerance * first, heap)

    def test_an_unused_endpoint_is_small(self):
        self.assertLess(self.row(128)["heap"], 128 * 1024)
        self.assertGreater(self.row(128, 128)["heap"], 128 * 16384)

    def test_connecting_does_not_become_more_work(self):
        work = {number: self.row(128, number)["instructions"] for number in
                (16, 128)}
        self.assertGreater(work[16], 1000)
        self.assertLess(work[128], 1.5 * work[16])


@unittest.skipUnless(os.access(os.path.join(BUILD, "bin/sep_info"), os.X_OK),
                     "the transport is not built")
class UcpPeers(unittest.TestCase):
    """A worker of UCP with 8 peers."""

    def test_an_endpoint_that_is_not_used_costs_no_queue_pair(self):
        make("bench/ucp_peers")
        rows = {(int(row["endpoints"]), int(row["used"])): row for row in
                run_script("--peers", "--ucp", "--count", "8", "--only",
                           "sep_mlx5")}
        self.assertEqual(rows[0, 0]["qps"], rows[8, 0]["qps"])
        self.assertEqual("0", rows[8, 0]["control"])
        self.assertEqual(int(rows[0, 0]["qps"]) + 8, int(rows[8, 8]["qps"]))
        self.assertGreater(int(rows[8, 8]["heap"]), int(rows[8, 0]["heap"]))


@unittest.skipUnless(os.access(os.path.join(BUILD, "bin/sep_info"), os.X_OK),
                     "the transport is not built")
class Heap(unittest.TestCase):
    """A job of MPICH under massif."""

    def test_heap_is_there_and_goes(self):
        make("test/mpi/growth.mpich")
        rows = {row["when"]: int(row["heap"]) for row in
                run_script("--heap", "--quick", "--ranks", "2", "--only",
                           "sep_mlx5")}
        self.assertGreater(rows["init"], 0)
        # A connection, unless MPI_Init() has made it as MPICH 4.2 does
        self.assertGreaterEqual(rows["ring"], rows["init"])
        self.assertGreaterEqual(rows["peak"], rows["all"])
        self.assertLess(rows["finalized"], rows["all"])
        self.assertIn("50 %", rows)


if __name__ == "__main__":
    unittest.main()
