# SPDX-License-Identifier: BSD-3-Clause
"""What is printed and written of the results."""

import contextlib
import io
import os
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

from runner import check, junit, report
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

    def test_what_failed_is_shown_with_the_end_of_its_logs(self):
        with tempfile.TemporaryDirectory() as directory:
            logs = os.path.join(directory, "logs")
            os.mkdir(logs)
            for name in "first", "second":
                with open(os.path.join(logs, name), "w",
                          encoding="utf-8") as file:
                    file.write("".join(f"{name} {i}\n" for i in range(100)))
            for log in logs, os.path.join(logs, "first"):
                _, lines = closing([Result("jobs", "job", "row", FAILED, 1.0,
                                           "crashed", log)])
                self.assertIn("    first 99", lines)
                self.assertNotIn("    first 9", lines)
                self.assertEqual(log == logs, "    second 99" in lines)
                self.assertEqual("0 passed, 1 failed", lines[-1])

    def test_of_a_test_that_failed_its_own_lines_are_shown(self):
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as log:
            log.write("[ RUN      ] a.b\nother\n[       OK ] a.b (1 ms)\n"
                      "[ RUN      ] a.bad\nrace\n" + "frame\n" * 100 +
                      "[  FAILED  ] a.bad (1 ms)\n" + "after\n" * 100)
            log.flush()
            _, lines = closing([Result("threads", "sep_gtest", "a.bad", FAILED,
                                       1.0, "exit", log.name)])
        self.assertIn("    race", lines)
        self.assertNotIn("    other", lines)
        self.assertNotIn("    after", lines)

    def test_times_of_a_run_are_added(self):
        _, lines = closing(RESULTS)
        line, = [line for line in lines if line.startswith("unit sim_gtest")]
        self.assertEqual(["unit", "sim_gtest", "3", "6", "s", "8", "s"],
                         line.split())


    def test_second_tries_are_named(self):
        again = Result("conformance", "UCX:", "uct_x.put/0", PASSED,
                       before="sep_mlx5 first: hung: killed after 300 s")
        status, lines = closing([RESULTS[0], again])
        self.assertEqual((0, "2 passed, 0 failed"), (status, lines[-1]))
        at = lines.index("Passed at the second try: 1")
        self.assertIn("uct_x.put/0: sep_mlx5 first: hung", lines[at + 1])
        _, lines = closing(RESULTS)
        self.assertNotIn("second try", "".join(lines))


class WithinChecks(unittest.TestCase):

    def test_skips_within_a_program_are_results(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("ok\nSKIPPED test_x.A.test_b: no gdb: none\n"
                       "SKIPPED test_x.A.test_c: no gdb: none\nSKIPPED\n")
            file.flush()
            results = check.skipped_within("unit", "own tests", file.name)
        self.assertEqual(
            [("test_x.A.test_b", SKIPPED, "no gdb: none"),
             ("test_x.A.test_c", SKIPPED, "no gdb: none")],
            [(each.test, each.status, each.reason) for each in results])
        self.assertEqual(["2: no gdb: none"], report.skips_by_reason(results))

    def test_programs_of_tests_say_what_they_skip(self):
        top = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..")
        for name in ("jobs", "conformance", "runner", "sources"):
            with open(os.path.join(top, name, "unit_tests"),
                      encoding="utf-8") as file:
                self.assertIn('print(f"SKIPPED {test.id()}: {reason}")',
                              file.read(), name)


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
