# SPDX-License-Identifier: BSD-3-Clause
"""Every program that is installed has a page, which has all of its options."""

import glob
import os
import re
import shutil
import subprocess
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
BUILD = os.environ.get("SEP_BUILD_DIR", TOP)
PAGES = sorted(glob.glob(os.path.join(TOP, "docs/man/*.1")))

# Its options are those of ssh(1)
WITHOUT_HELP = {"mlx5sim-ssh"}

OPTION = r"--?[a-zA-Z][a-z-]*"


def make(*args, **more):
    return subprocess.run(
        ["make", "-C", BUILD, "-s", *args], check=True, timeout=300,
        capture_output=True, text=True, **more).stdout


def programs():
    """Names that make installs as programs."""
    return {os.path.basename(word) for word in make(
        "-f", "-", "print-programs",
        input="include Makefile\n"
              "print-programs:\n"
              "\t@echo $(bin_PROGRAMS) $(bin_SCRIPTS)\n").split()}


def explained_in_help(text):
    """Options that a help text explains, at the beginnings of its lines."""
    found = set()
    for line in text.splitlines():
        match = re.match(rf"  {OPTION}(, {OPTION})*", line)
        if match:
            found |= set(match[0].strip().split(", "))
    return found


def explained_in_page(text):
    """Options in the lists of a page."""
    return {f"-{name}" for line in re.findall(r"^\.It (Fl .*)$", text, re.M)
            for name in re.findall(r"\bFl (-?[a-zA-Z][a-z-]*)", line)}


class Man(unittest.TestCase):

    @unittest.skipUnless(os.path.exists(os.path.join(BUILD, "Makefile")),
                         "no Makefile")
    def test_each_program_has_a_page(self):
        with tempfile.TemporaryDirectory(prefix="sep-man.") as top:
            make("install-man", f"DESTDIR={top}")
            pages = {name for _, _, names in os.walk(top) for name in names}
        self.assertIn("mlx5sim-run.1", pages)
        self.assertEqual({f"{name}.1" for name in programs()}, pages)

    def test_pages_have_the_options_of_help(self):
        compared = 0
        for page in PAGES:
            name = os.path.basename(page)[:-len(".1")]
            program = os.path.join(BUILD, "bin", name)
            if name in WITHOUT_HELP or not os.access(program, os.X_OK):
                continue
            with self.subTest(name), open(page, encoding="utf-8") as file:
                text = subprocess.run(
                    [program, "--help"], capture_output=True, text=True,
                    timeout=60, check=True).stdout
                in_page = explained_in_page(file.read())
                self.assertEqual(set(), explained_in_help(text) - in_page,
                                 "not in the page")
                self.assertEqual(set(), in_page - set(re.findall(
                    rf"(?<![\w-]){OPTION}", text)), "not in --help")
                compared += 1
        if not compared:
            self.skipTest("no program is built")

    @unittest.skipUnless(shutil.which("mandoc"), "no mandoc")
    def test_pages_are_without_mistakes(self):
        result = subprocess.run(
            ["mandoc", "-T", "lint", "-W", "warning", *PAGES], text=True,
            capture_output=True, timeout=60, check=False)
        self.assertTrue(PAGES)
        self.assertEqual("", result.stdout + result.stderr)


if __name__ == "__main__":
    unittest.main()
