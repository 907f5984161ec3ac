# SPDX-License-Identifier: BSD-3-Clause
"""Tests of jobs with a bounded number of queue pairs."""

import json
import os
import subprocess
import unittest

from mainjob import budget


def stat(*processes):
    """What mlx5sim-stat prints: a process is its number, the types of queue
    pairs in the list, and how many it had at one time."""
    return json.dumps({"processes": [
        {"pid": pid, "qps": count, "qp_list": [{"type": each} for each in
                                               types]}
        for pid, types, count in processes]})


class Budgets(unittest.TestCase):
    def test_ranks_take_values_in_turn(self):
        job = budget.Job("mpich", "p2p", 64, budgets=budget.budgets("2,3,inf"))
        argv = job.argv("/build", True, lambda name: name)
        where = argv.index(budget.RANK_ENV)
        self.assertEqual(["UCX_SEP_MAX_QPS", "2,3,inf", "/build/test/mpi/"
                          "p2p.mpich"], argv[where + 1:where + 4])
        for rank, value in enumerate(("2", "3", "inf", "2")):
            result = subprocess.run(
                [budget.RANK_ENV, "SOME_NAME", "2,3,inf", "printenv",
                 "SOME_NAME"], env={**os.environ, "PMI_RANK": str(rank)},
                capture_output=True, text=True, check=True)
            self.assertEqual(value, result.stdout.strip())

    def test_one_value_needs_no_wrapper(self):
        job = budget.Job("mpich", "p2p", 64, budgets=budget.budgets("8"))
        self.assertNotIn(budget.RANK_ENV,
                         job.argv("/build", True, lambda name: name))

    def test_bad_values_are_refused(self):
        for text in "1", "2,", "x", "2,1", "65537":
            with self.assertRaises(ValueError):
                budget.budgets(text)


class Watch(unittest.TestCase):
    def test_the_most_is_found_for_each_budget(self):
        device = budget.WatchedDevice("/build", 1.0)
        device.budgets = {11: "2", 12: "3", 13: "2"}
        device.take(stat((11, ["RC", "UD"], 2), (12, ["RC"] * 3, 3)))
        device.take(stat((11, ["RC"], 1), (12, ["RC"], 1),
                         (13, ["RC", "RC"], 2)))
        self.assertEqual("2 of 2, 3 of 3", device.most_text())

    def test_those_that_came_and_went_meanwhile_count_once(self):
        device = budget.WatchedDevice("/build", 1.0)
        device.budgets = {11: "3"}
        device.take(stat((11, ["UD"] + ["RC"] * 5, 4)))
        self.assertEqual("3 of 3", device.most_text())

    def test_the_budget_is_that_of_the_process(self):
        child = subprocess.Popen(
            ["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "UCX_SEP_MAX_QPS": "5"})
        try:
            # Its variables are there a moment after it has been started
            child.stdin.write(b"here\n")
            child.stdin.flush()
            self.assertEqual(b"here\n", child.stdout.readline())
            self.assertEqual("5", budget.budget_of(child.pid))
        finally:
            child.communicate(b"")
        self.assertEqual("", budget.budget_of(child.pid))


if __name__ == "__main__":
    unittest.main()
