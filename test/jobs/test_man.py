# SPDX-License-Identifier: BSD-3-Clause
"""Every program that is installed has a page, which has all of its options, and a
completion in bash."""

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

COMPLETION = os.path.join(TOP, "src/tools/completion.bash")

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


def complete(name, *words, first=""):
    """What bash offers in place of the last word."""
    line = [os.path.join(BUILD, "bin", name), *words]
    return set(subprocess.run(
        ["bash", "-c", f"""
            {first}
            . '{COMPLETION}'
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
            _sep_complete "$1" "${{@: -1}}" "${{@: -2:1}}"
            printf '%s\\n' "${{COMPREPLY[@]}}" """, "bash", *line],
        capture_output=True, text=True, timeout=60,
        check=True).stdout.split())


@unittest.skipUnless(os.access(os.path.join(BUILD, "bin/mlx5sim-run"), os.X_OK),
                     "no program is built")
class Completion(unittest.TestCase):

    def test_options_are_those_of_help(self):
        for page in PAGES:
            name = os.path.basename(page)[:-len(".1")]
            program = os.path.join(BUILD, "bin", name)
            if name in WITHOUT_HELP or not os.access(program, os.X_OK):
                continue
            with self.subTest(name):
                text = subprocess.run([program, "--help"], capture_output=True,
                                      text=True, timeout=60, check=True).stdout
                offered = complete(name, "-")
                self.assertTrue(offered)
                self.assertEqual(set(), explained_in_help(text) - offered)
                self.assertEqual(set(), offered - set(re.findall(
                    rf"(?<![\w-]){OPTION}", text)))

    def test_begun_option(self):
        self.assertEqual({"--link", "--log"},
                         complete("mlx5sim-run", "--l"))

    def test_values(self):
        self.assertEqual({"ib", "roce"},
                         complete("mlx5sim-run", "--link", ""))
        self.assertEqual(set(), complete("mlx5sim-run", "--devices", ""))

    def test_words_of_the_command_are_not_ours(self):
        command = 'compopt() { :; }; _command_offset() { COMPREPLY=("at$1"); }'
        for words, at in ((["ech"], 1), (["--strict", "ech"], 2),
                          (["--dir", "x", "ech"], 3), (["--", "ech"], 2),
                          (["--strict", "echo", "--l"], 2)):
            self.assertEqual({f"at{at}"}, complete(
                "mlx5sim-run", *words, first=command), words)

    @unittest.skipUnless(os.path.exists(os.path.join(BUILD, "Makefile")),
                         "no Makefile")
    def test_installed_for_each_program(self):
        with tempfile.TemporaryDirectory(prefix="sep-man.") as top:
            make("install-bashcompDATA", f"DESTDIR={top}")
            names = {name for _, _, names in os.walk(top) for name in names}
        with open(COMPLETION, encoding="utf-8") as file:
            last = file.read().rpartition("complete -F _sep_complete")[2]
        self.assertEqual(programs() - WITHOUT_HELP, names)
        self.assertLessEqual(names, set(last.split()))


if __name__ == "__main__":
    unittest.main()
