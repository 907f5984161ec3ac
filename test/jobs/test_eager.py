# SPDX-License-Identifier: BSD-3-Clause
"""What contrib/bench-eager.sh prints of the eager channel, beside send/receive."""

import os
import subprocess
import tempfile
import unittest

from mainjob import eager

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
BUILD = os.environ.get("SEP_BUILD_DIR", TOP)

COUNTS = ("am_short_send", "am_short_recv", "am_short_dma_reads",
          "poll_per_ring")


class Slope(unittest.TestCase):

    def test_is_that_of_large_numbers(self):
        costs = {0: 7, 1: 90, 8: 95, 16: 100, 64: 220, 128: 324}
        self.assertEqual(2, eager.slope(costs))

    def test_needs_two_of_them(self):
        with self.assertRaises(eager.EagerError):
            eager.slope({1: 1, 8: 8, 16: 16})


class Counters(unittest.TestCase):

    def test_those_of_all_interfaces_are_added(self):
        line = "sep_eager.c:1 UCX DEBUG mlx5_0:1: interface 0x1a2: by ring " \
            "{} sent, 2 received; by send/receive 3 sent, 4 received; 5 of " \
            "these sent despite a ring, 6 because it was full; 7 writes of " \
            "credits\n"
        self.assertEqual(
            {"ring_sent": 11, "ring_received": 4, "sent": 6, "received": 8,
             "fallbacks": 10, "ring_full": 12, "credit_writes": 14},
            eager.read_counters(line.format(1) + "other 9\n" +
                                line.format(10)))


class Rows(unittest.TestCase):

    def test_ratio_is_by_send_receive(self):
        row = eager.Row("am_lat", "us", {"send_receive": 4.0, "ring": 3.0})
        self.assertEqual(0.75, row.ratio)
        self.assertIsNone(eager.Row("am_lat", "us", {"ring": 3.0}).ratio)

    def test_those_that_are_promised_are_there(self):
        for name in ("am_short_send", "am_short_recv", "am_lat", "am_rate",
                     "poll_per_ring"):
            self.assertIn(name, eager.row_names())


@unittest.skipUnless(os.access(os.path.join(BUILD, "bin/sep_info"), os.X_OK),
                     "the transport is not built")
class Tsv(unittest.TestCase):
    """Counts of a build that is here, whatever it was optimised for."""

    @classmethod
    def setUpClass(cls):
        subprocess.run(["make", "-C", BUILD, "bench/uct_insn"], check=True,
                       capture_output=True, timeout=300)
        # Not in the build, which "make distclean" has to leave empty
        logs = tempfile.TemporaryDirectory()
        cls.addClassCleanup(logs.cleanup)
        only = [word for name in COUNTS for word in ("--only", name)]
        run = subprocess.run(
            [os.path.join(TOP, "contrib/bench-eager.sh"), "--tsv", "--quick",
             "--build", BUILD, "--logs", logs.name, "--count", "64", *only],
            capture_output=True, text=True, timeout=300, check=False)
        if run.returncode != 0:
            raise AssertionError(run.stderr)
        cls.lines = run.stdout.splitlines()
        cls.rows = {line.split("\t")[0]: [float(word) for word in
                                          line.split("\t")[1:]]
                    for line in cls.lines}

    def test_a_line_for_each_row_that_was_asked_for(self):
        self.assertEqual(list(COUNTS), [line.split("\t")[0] for line in
                                        self.lines])
        for line in self.lines:
            self.assertEqual(4, len(line.split("\t")), line)

    def test_ratios_fit(self):
        for name, (before, ring, ratio) in self.rows.items():
            self.assertAlmostEqual(ring / before, ratio, delta=0.02, msg=name)

    def test_calls_take_tens_to_thousands_of_instructions(self):
        for name in ("am_short_send", "am_short_recv"):
            for count in self.rows[name][:2]:
                self.assertTrue(20 < count < 5000, f"{name}: {count}")

    def test_a_message_in_a_ring_takes_no_receive(self):
        before, ring, _ = self.rows["am_short_dma_reads"]
        self.assertGreaterEqual(before, 0.9)
        self.assertLess(ring, 0.2)

    def test_each_ring_costs_something_to_poll(self):
        self.assertTrue(0.5 < self.rows["poll_per_ring"][1] < 100)


if __name__ == "__main__":
    unittest.main()
