# SPDX-License-Identifier: BSD-3-Clause
"""What is printed and written of the results."""

import contextlib
import io
import os
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

from runner import junit, report
from runner.result import FAILED, PASSED, SKIPPED, Result

RESULTS = [
    Result("unit", "sim_gtest", "i/suite.good", PASSED, 0.5),
    Result("unit", "sim_gtest", "i/suite.bad", FAILED, 1.25, "<x> \x01 & \"y\"",
           "/top/build/log"),
    Result("unit", "sim_gtest", "i/suite.not", SKIPPED),
    Result("sources", "make distcheck", "make distcheck", PASSED, 9.0),
]


def closing(results, left_out=()):
    with contextlib.redirect_stdout(io.StringIO()) as text:
        status = report.Console("/top", lambda: ([], 0)).closing(
            results, [("unit", "sim_gtest", 2.0, 3.0),
                      ("unit", "sim_gtest", 4.0, 5.0)], left_out=left_out)
    return status, text.getvalue().splitlines()


class Closing(unittest.TestCase):

    def test_last_line_and_status(self):
        status, lines = closing(RESULTS)
        self.assertEqual((1, "2 passed, 1 failed"), (status, lines[-1]))
        status, lines = closing(RESULTS[:1])
        self.assertEqual((0, "1 passed, 0 failed"), (status, lines[-1]))
        status, lines = closing([])
        self.assertEqual((1, "0 passed, 0 failed"), (status, lines[-1]))

    def test_last_line_says_what_could_not_be_run_and_why(self):
        status, lines = closing(RESULTS[:1], [("debian13", "network: none")])
        self.assertEqual((0, "1 passed, 0 failed; debian13 skipped: network: "
                          "none"), (status, lines[-1]))

    def test_failures_are_listed_with_reason_and_log(self):
        _, lines = closing(RESULTS)
        line, = [line for line in lines if "suite.bad" in line]
        self.assertIn("<x>", line)
        self.assertTrue(line.endswith("(see build/log)"))

    def test_times_of_a_run_are_added(self):
        _, lines = closing(RESULTS)
        line, = [line for line in lines if line.startswith("unit sim_gtest")]
        self.assertEqual(["unit", "sim_gtest", "3", "6", "s", "8", "s"],
                         line.split())


class Junit(unittest.TestCase):

    def test_file_can_be_read(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "new", "junit.xml")
            junit.write(path, RESULTS)
            root = ElementTree.parse(path).getroot()
        self.assertEqual(["unit.sim_gtest", "sources"],
                         [suite.get("name") for suite in root])
        self.assertEqual(("4", "1", "1"), tuple(
            root.get(name) for name in ("tests", "failures", "skipped")))
        case = root[0][1]
        self.assertEqual(("unit.sim_gtest.i/suite", "bad", "1.250"), tuple(
            case.get(name) for name in ("classname", "name", "time")))
        self.assertEqual('<x> ? & "y"', case.find("failure").get("message"))
        self.assertIsNotNone(root[0][2].find("skipped"))


if __name__ == "__main__":
    unittest.main()
