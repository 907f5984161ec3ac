# SPDX-License-Identifier: BSD-3-Clause
"""bench/run: the list of what can be measured, and its options."""

import contextlib
import io
import os
import re
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
sys.path.append(os.path.join(TOP, "bench"))

from measure import builds, cli, insn_table, options, rows, ucp  # noqa: E402
from measure.job import Job  # noqa: E402


def read(*path):
    with open(os.path.join(TOP, *path), encoding="utf-8") as file:
        return file.read()


def run(*words):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = cli.main(list(words))
        except SystemExit as end:
            status = end.code
    return status, out.getvalue(), err.getvalue()


class Rows(unittest.TestCase):

    def test_names_are_unique(self):
        self.assertEqual(len(rows.ROWS), len(rows.BY_NAME))

    def test_each_has_a_script_of_one_call(self):
        for row in rows.ROWS:
            script = read("contrib", row.script)
            self.assertEqual(
                f'exec "$(dirname "$0")/../bench/run" {row.name} "$@"',
                script.splitlines()[-1])
            self.assertEqual(3, script.count("\n"), row.script)

    def test_the_guide_has_them(self):
        for row in rows.ROWS:
            line = rf"(?m)^contrib/{re.escape(row.script)}.* # {row.about}$"
            self.assertTrue(re.search(line, read("CONTRIBUTING.md")), line)

    def test_help_says_which_options_there_are(self):
        for row in rows.ROWS:
            said = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*",
                                  cli.help_of(row)))
            ours = {name for name in row.options if name.startswith("-")}
            if not row.driver:
                # --stock of another script is named in a sentence
                self.assertLessEqual(said - {"--stock"}, ours, row.name)
            self.assertLessEqual(ours - {"--newer"}, said | {"--tsv"}, row.name)

    def test_columns_that_are_printed_are_those_of_the_help(self):
        for name in ("memory", "ucp", "layers", "matrix", "eager"):
            row = rows.BY_NAME[name]
            said = re.sub(r"\s+", " ", cli.help_of(row))
            self.assertIn(", ".join(row.columns[:4]).replace(
                "ratio", "ring/send_receive" if name == "eager" else "ratio"),
                          said)


class CommandLine(unittest.TestCase):

    def parse(self, name, *words):
        return options.Parser(rows.BY_NAME[name], "").read(words)

    def test_the_list(self):
        for words in ((), ("--list",), ("--help",)):
            status, out, _ = run(*words)
            self.assertEqual(0, status)
            for row in rows.ROWS:
                self.assertIn(row.about, out)

    def test_nonsense(self):
        for words, status, text in (
                (("everything",), 2, "there is no 'everything'"),
                (("insn", "--fast"), 2, "contrib/bench-insn.sh --tsv"),
                (("matrix", "--fast"), 2, "arguments: --fast; see --help"),
                (("insn", "--count"), 1, "--count: expected one argument"),
                (("insn", "--count", ""), 1, "--count: expected one argument"),
                (("insn", "--ucx", "/nowhere"), 1, "/nowhere"),
                (("insn", "--check", "--apis"), 1, "two transports"),
                (("layers", "--count", "many"), 1, "is no number of calls"),
                (("matrix", "--part", "tests"), 2, "invalid choice: 'tests'"),
                (("growth", "--tsv"), 2, "--peers --init --start --heap"),
                (("eager", "--only", "x"), 2, "invalid choice"),
                (("book", "--only", "x"), 2, "invalid choice")):
            found = run(*words)
            self.assertEqual((status, ""), found[:2], words)
            self.assertIn(text, found[2])

    def test_help_comes_before_what_is_behind_it(self):
        for name in ("insn", "matrix"):
            self.assertEqual((0, cli.help_of(rows.BY_NAME[name]), ""),
                             run(name, "--help", "--nonsense"))

    def test_lists_and_what_is_for_a_driver(self):
        given, rest = self.parse("perf", "-s", "a", "--tsv", "-s", "b")
        self.assertEqual((["a", "b"], True, "512"),
                         (given.s, given.tsv, given.count))
        self.assertEqual([], self.parse("perf")[0].s)
        given, rest = self.parse("endpoints", "--ranks", "2,4", "--mpich", "",
                                 "--two-sided")
        self.assertEqual(("", ["--ranks", "2,4", "--two-sided"]),
                         (given.mpich, rest))
        self.assertFalse(self.parse("matrix", "--quick", "--whole")[0].quick)
        given, _ = self.parse("ucx-opt", "a", "b", "--asan")
        self.assertEqual(("a", "b", True),
                         (given.patched, given.stock, given.asan))


class Steps(unittest.TestCase):

    def job(self, name, *words):
        row = rows.BY_NAME[name]
        return Job(row, *options.Parser(row, "").read(words))

    def test_names_of_sources(self):
        for path, name in (("/a/ucx-1.18.1.tar.xz", "1.18.1"),
                           ("/a/ucx-1.18.1", "1.18.1"), ("mine", "mine")):
            self.assertEqual(name, builds.source_name(path))

    def test_functions_of_the_shell(self):
        job = self.job("insn")
        self.assertEqual("0:01:05", job.ask("sep_duration", "65"))

    def test_a_pair_is_called_by_its_release(self):
        with tempfile.TemporaryDirectory() as tree:
            os.makedirs(os.path.join(tree, "src/uct/base"))
            for name, text in (("src/uct/base/uct_iface.h", ""),
                               ("configure.ac", "define([ucx_ver_major], 1)\n"
                                "define([ucx_ver_minor], 22)\n"
                                "define([ucx_ver_patch], 0)\n")):
                with open(os.path.join(tree, name), "w",
                          encoding="utf-8") as file:
                    file.write(text)
            both = builds.pair(self.job("ucp", "--ucx-source", tree))
            self.assertEqual(("1.22.0", "-1.22.0", os.path.realpath(tree)),
                             (both.release, both.suffix, both.source))
            self.assertTrue(both.stock.endswith("build/ucx-stock-1.22.0"))
        self.assertTrue(builds.pair(self.job("ucp")).patched.endswith(
            "build/ucx-opt"))

    def test_lines(self):
        self.assertEqual(
            f"put{' ' * 11}heap{' ' * 6}{' ' * 17}1",
            self.job("memory").line(["put", "heap", "1"]))
        self.assertEqual("put\theap\t1", self.job("memory", "--tsv").line(
            ["put", "heap", 1]))


class Ucp(unittest.TestCase):

    def test_a_row_has_the_sum_of_its_libraries(self):
        found = [["put_8", "libucp.so.0.0.0", "30.0"],
                 ["put_8", "libuct_sep.so", "12.5"]]
        self.assertEqual([["put_8", "42.5", "30.0"],
                          ["ucp_put_above_uct", "30.0", "30.0"]],
                         ucp.by_operation(found))
        found = [["progress_idle", "libucs.so", "7.0"]]
        self.assertEqual([["progress_idle_2", "7.0", "0.0"]],
                         ucp.by_operation(found, "progress_idle_2"))

    def test_ratios(self):
        stock = [["put_8", "100.0", "50.0"], ["wireup_idle", "0.0", ""],
                 ["get_8", "-", ""]]
        patched = [["put_8", "75.0", "25.0"], ["wireup_idle", "0.0", ""],
                   ["get_8", "-", ""]]
        self.assertEqual([["row", "stock", "patched", "ratio"],
                          ["put_8", "100.0", "75.0", "0.75"],
                          ["wireup_idle", "0.0", "0.0", "1.00"],
                          ["get_8", "-", "-", "-"]],
                         list(ucp.table(stock, patched)))
        self.assertEqual([["row", "stock", "patched", "ratio", "stock_ucp",
                           "patched_ucp"],
                          ["put_8", "100.0", "75.0", "0.75", "50.0", "25.0"],
                          ["wireup_idle", "0.0", "0.0", "1.00", "-", "-"],
                          ["get_8", "-", "-", "-", "-", "-"]],
                         list(ucp.table(stock, patched, True)))
        self.assertEqual([["put_8", "stock", "100.0", "50.0", "50.0"],
                          ["put_8", "patched", "75.0", "25.0", "50.0"]],
                         list(ucp.breakdown({"stock": stock,
                                             "patched": patched}))[1:])

    def test_what_a_release_has_not(self):
        for release, proto, name, there in (
                ("1.22.0", "n", "put_8", False),
                ("1.22.0", "n", "worker_flush_one_put", False),
                ("1.22.0", "n", "rkey_unpack", False),
                ("1.22.0", "n", "fadd", True), ("1.22.0", "y", "get_8", True),
                ("1.13.1", "n", "put_rate", True)):
            self.assertEqual(there, ucp.is_there(release, proto, name), name)


class Tables(unittest.TestCase):
    """Of instructions."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.dir = directory.name

    def write(self, transport, **texts):
        os.mkdir(os.path.join(self.dir, transport))
        for name, text in texts.items():
            with open(os.path.join(self.dir, transport, name), "w",
                      encoding="utf-8") as file:
                file.write(text)

    def rows(self):
        return list(insn_table.rows_of(self.dir, ["ours", "theirs"]))

    def test_instructions_come_first(self):
        self.write("ours", insn="put\t50.0\n", lines="put\t1\t2\n",
                   device="put\t3\t4\t5\n")
        self.write("theirs", insn="put\t100.0\nget\t7.0\n",
                   lines="put\t6\t7\nget\t1\t1\n",
                   device="put\t8\t9\t9\nget\t1\t1\t1\n")
        self.assertEqual([
            "op\tours\ttheirs\tratio\tlines ours\tlines theirs\tcode ours\t"
            "code theirs\treads ours\treads theirs\twrites ours\t"
            "writes theirs\tmmio ours\tmmio theirs",
            "put\t50.0\t100.0\t0.50\t1\t6\t2\t7\t3\t8\t4\t9\t5\t9",
            "get\tn/a\t7.0\tn/a" + "\tn/a\t1" * 5],
                         ["\t".join(row) for row in self.rows()])
        self.assertEqual([], list(insn_table.worse(self.rows())))
        *_, last = insn_table.for_people(self.rows(), ["ours", "theirs"])
        self.assertEqual(["put", "1 / 6", "2 / 7", "3 / 8", "4 / 9", "5 / 9"],
                         last[0])
        self.assertEqual([["op", "ours", "theirs"], ["put", "50.0", "100.0"]],
                         list(insn_table.side_by_side(self.dir,
                                                      ["ours", "theirs"])))

    def test_what_is_worse_is_named(self):
        self.write("ours", insn="put\t5.0\n", lines="put\t2.1\t2\n",
                   device="put\t3\t4\t6\n")
        self.write("theirs", insn="put\t5.0\n", lines="put\t2.0\t7\n",
                   device="put\t8\t9\t5\n")
        self.assertEqual(["put, lines: 2.1, not 2.0", "put, mmio: 6, not 5"],
                         list(insn_table.worse(self.rows())))


if __name__ == "__main__":
    unittest.main()
