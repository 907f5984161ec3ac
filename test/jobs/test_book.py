# SPDX-License-Identifier: BSD-3-Clause
"""The book of evidence: its tables are true, and its page is made of them."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
BUILD = os.environ.get("SEP_BUILD_DIR", TOP)
sys.path.append(os.path.join(TOP, "bench"))

from book import cli, figure, page  # noqa: E402
from book.table import Table, TableError, differences  # noqa: E402


class Tables(unittest.TestCase):

    def test_what_is_written_is_read(self):
        table = Table(["a", "b"], [["x", 1], ["y", 2.5]])
        self.assertEqual(table.rows, Table.parse(table.text()).rows)
        self.assertEqual([1.0, 2.5], table.numbers("b"))
        self.assertEqual([None, None], table.numbers("a"))

    def test_nonsense_is_refused(self):
        for text in ("", "a\tb\n1\n", "a\n1\t2\n"):
            with self.assertRaises(TableError):
                Table.parse(text)
        with self.assertRaises(TableError):
            Table.read("/nonexistent/table.tsv")
        with self.assertRaises(TableError):
            Table(["a"], []).column("b")

    def test_counts_may_differ_by_a_tenth(self):
        chapter, = (each for each in cli.CHAPTERS if
                    each.name == "instructions")
        before = Table(["op", "sep_mlx5", "lines sep_mlx5", "reads sep_mlx5"],
                       [["put", 66.3, 3.0, 1.0]])
        for row, count in ((["put", 72.0, 3.0, 1.0], 0),
                           (["put", 73.0, 3.0, 1.0], 1),
                           (["put", 66.3, 4.0, 1.0], 0),
                           (["put", 66.3, 3.0, 2.0], 1)):
            self.assertEqual(count, len(chapter.differences(
                before, Table(before.columns, [row]))), row)

    def test_differences(self):
        before = Table(["op", "n"], [["put", 100], ["get", "-"]])
        self.assertEqual([], differences(before, before))
        near = Table(["op", "n"], [["put", 104], ["get", "-"]])
        self.assertEqual(1, len(differences(before, near)))
        self.assertEqual([], differences(before, near, 0.05))
        self.assertEqual(1, len(differences(before, near, 0.03)))
        for other in (Table(["op", "m"], [["put", 100], ["get", "-"]]),
                      Table(["op", "n"], [["put", 100]]),
                      Table(["op", "n"], [["put", "-"], ["get", "-"]]),
                      Table(["op", "n"], [["put", 100], ["get", 0]])):
            self.assertEqual(1, len(differences(before, other, 0.5)))


class Page(unittest.TestCase):
    """docs/book.md"""

    @classmethod
    def setUpClass(cls):
        docs = os.path.join(TOP, "docs")
        cls.tables = [(chapter, Table.read(cli.tsv_path(docs, chapter)))
                      for chapter in cli.CHAPTERS]
        cls.figures = {chapter.name for chapter in cli.CHAPTERS
                       if os.path.exists(cli.svg_path(docs, chapter))}
        with open(os.path.join(docs, "book.md"), encoding="utf-8") as file:
            cls.text = file.read()

    def test_is_made_of_the_tables(self):
        self.assertEqual(self.text, page.text(self.tables, self.figures),
                         "run contrib/book.sh --draw")

    def test_every_chapter_has_its_figure(self):
        self.assertEqual({chapter.name for chapter in cli.CHAPTERS},
                         self.figures)
        # All rows of a release are in docs/ucp-optimisations.md alone
        names = {name for name in os.listdir(os.path.join(TOP, "docs/book"))
                 if not name.startswith("ucp-")}
        self.assertEqual({chapter.name + end for chapter in cli.CHAPTERS
                          for end in (".tsv", ".svg")}, names)

    def test_figures_are_of_the_numbers_that_are_written(self):
        for chapter, table in self.tables:
            with open(cli.svg_path(os.path.join(TOP, "docs"), chapter),
                      encoding="utf-8") as file:
                last = file.read().splitlines()[-1]
            self.assertEqual(figure.mark(table), last,
                             f"{chapter.name}: run contrib/book.sh --draw")

    def test_figures_say_what_they_show(self):
        """Text of figures stays text."""
        said = {}
        for name in self.figures:
            with open(os.path.join(TOP, "docs/book", f"{name}.svg"),
                      encoding="utf-8") as file:
                said[name] = re.findall(r"<text[^>]*>([^<]*)</text>",
                                        file.read())
            self.assertNotIn("theirs", said[name], name)
        self.assertLessEqual({"Zambre 2018", "model, fitted"},
                             set(said["rates"]))
        self.assertLessEqual({"16 x 1", "1 x 16"}, set(said["stencil"]))
        self.assertLessEqual({"2", "8", "32", "128", "512"},
                             set(said["connect"]))

    def test_a_rate_that_hangs_on_what_is_fitted_is_fitted(self):
        """dynamic, on page_adjacent."""
        table = next(table for chapter, table in self.tables
                     if chapter.name == "rates")
        fitted = {row["category"] for row in table.records()
                  if row["16 threads is"] == "fitted"}
        self.assertEqual({"2xdynamic", "dynamic", "shared_dynamic"}, fitted)

    def test_commands_are_ours(self):
        for chapter in cli.CHAPTERS:
            for script in re.findall(r"contrib/[\w.-]+", chapter.command):
                self.assertTrue(os.access(os.path.join(TOP, script), os.X_OK),
                                script)


@unittest.skipUnless(os.access(os.path.join(BUILD, "bin/sep_info"), os.X_OK),
                     "sep_info is not built")
class Check(unittest.TestCase):

    def run_book(self, *arguments):
        return subprocess.run(
            [sys.executable, "-B", os.path.join(TOP, "bench/book/main.py"),
             "--build", BUILD, *arguments], capture_output=True, text=True,
            timeout=300, check=False)

    def test_exact_numbers_have_not_changed(self):
        run = self.run_book("--check")
        self.assertEqual(0, run.returncode, run.stdout + run.stderr)

    def test_a_wrong_number_is_found(self):
        with tempfile.TemporaryDirectory() as out:
            shutil.copytree(os.path.join(TOP, "docs/book"),
                            os.path.join(out, "book"))
            path = os.path.join(out, "book", "categories.tsv")
            with open(path, encoding="utf-8") as file:
                text = file.read()
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace("\t48\t", "\t49\t", 1))
            run = self.run_book("--check", "--out", out, "--only",
                                "categories")
            self.assertEqual(1, run.returncode, run.stdout)
            self.assertIn("dynamic, uUARs theirs: 49 was, 48 is", run.stdout)

    def test_a_book_is_written(self):
        with tempfile.TemporaryDirectory() as out:
            run = self.run_book("--out", out, "--no-figures", "--only", "rates")
            self.assertEqual(0, run.returncode, run.stderr)
            with open(os.path.join(out, "book.md"), encoding="utf-8") as file:
                self.assertIn("predicted", file.read())
            self.assertEqual(["rates.tsv"],
                             os.listdir(os.path.join(out, "book")))

    def test_what_cannot_be_measured_is_said(self):
        with tempfile.TemporaryDirectory() as out:
            run = self.run_book("--build", out, "--out", out, "--no-figures",
                                "--only", "rates")
            self.assertEqual(1, run.returncode)
            self.assertIn("sep_info", run.stderr)
            run = self.run_book("--check", "--out", out)
            self.assertEqual(1, run.returncode)
            self.assertIn("categories.tsv", run.stderr)
        self.assertEqual(2, self.run_book("--only", "nonsense").returncode)
