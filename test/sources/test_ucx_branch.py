# SPDX-License-Identifier: BSD-3-Clause
"""Tests of contrib/ucx-branch.sh. Those that make a branch need the source of UCX
1.22.0, which SEP_NEWEST_UCX_SOURCE names."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
sys.path.insert(0, os.path.join(TOP, "contrib"))
import ucx_branch  # noqa: E402
import ucx_branch_check  # noqa: E402
from ucx_branch import Line  # noqa: E402

SCRIPT = os.path.join(TOP, "contrib/ucx-branch.sh")
SOURCE = os.environ.get("SEP_NEWEST_UCX_SOURCE", "")


def run(*words, **variables):
    return subprocess.run(["/bin/bash", SCRIPT, *words], capture_output=True,
                          text=True, check=False,
                          env={**os.environ, **variables})


class Folder(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = folder.name

    def tree(self, release):
        """Of a UCX's source what says which release it is."""
        path = os.path.join(self.top, "ucx")
        os.makedirs(os.path.join(path, "src/uct/base"))
        with open(os.path.join(path, "src/uct/base/uct_iface.h"), "w",
                  encoding="utf-8"):
            pass
        with open(os.path.join(path, "configure.ac"), "w",
                  encoding="utf-8") as file:
            for part, value in zip(("major", "minor", "patch"),
                                   release.split(".")):
                file.write(f"define([ucx_ver_{part}], {value})\n")
        return path


class BadInput(Folder):

    def assert_fails(self, result, *words):
        self.assertNotEqual(result.returncode, 0)
        for word in words:
            self.assertIn(word, result.stderr)

    def test_another_release_is_named_with_what_is_supported(self):
        result = run(self.tree("1.20.1"), self.top + "/new")
        self.assert_fails(result, "UCX 1.20.1", "of UCX 1.22.0 only")
        self.assertFalse(os.path.exists(self.top + "/new"))

    def test_a_directory_that_exists_is_left_alone(self):
        self.assert_fails(run(self.tree("1.22.0"), self.top),
                          f"{self.top} exists already")
        self.assertEqual(os.listdir(self.top), ["ucx"])

    def test_a_source_that_is_none(self):
        self.assert_fails(run(self.top + "/no", self.top + "/new"),
                          "no such directory or archive")

    def test_git_is_missing(self):
        os.symlink("/usr/bin/dirname", self.top + "/dirname")
        self.assert_fails(run("a", self.top + "/new", PATH=self.top),
                          "git is needed")


class Lines(unittest.TestCase):
    """Who adds and removes what."""

    def test_states_of_a_file_that_two_patches_change(self):
        base  = ["a\n", "b\n", "c\n"]
        first = ucx_branch.changed([Line(text) for text in base],
                                   ["a\n", "new\n", "c\n"], 0)
        both  = ucx_branch.changed(first, ["a\n", "new\n", "newer\n", "c\n"],
                                   1)
        for number, expected in ((-1, base), (0, ["a\n", "new\n", "c\n"]),
                                 (1, ["a\n", "new\n", "newer\n", "c\n"])):
            self.assertEqual(ucx_branch.state("file", both, number), expected)

    def test_a_hunk_that_no_commit_takes(self):
        lines = ucx_branch.changed([Line("a\n")], ["b\n"], "0001-patch")
        with self.assertRaises(SystemExit) as caught:
            ucx_branch.assign_patches({"file": lines}, [])
        self.assertIn("0 commits take this of file", str(caught.exception))

    def test_a_list_ends_without_a_backslash(self):
        self.assertEqual(ucx_branch.ended(["A = \\\n", "\ta \\\n", "\n"]),
                         ["A = \\\n", "\ta\n", "\n"])


    def test_a_test_of_ucx_is_a_function(self):
        lines = [Line(text) for text in (
            "class base {\n", "\n", "    /* It */\n", "    void wait()\n", "    {\n",
            "        do();\n", "    }\n", "\n", "};\n", "\n", "/* Why */\n",
            "UCS_TEST_P(base, first, \"A=1\")\n", "{\n", "    wait();\n",
            "}\n", "\n", "UCS_TEST_P(base, wait_for)\n", "{\n", "}\n")]
        for name, first, end in (("first", 10, 16), ("wait", 2, 8),
                                 ("wait_for", 16, 19)):
            self.assertEqual(ucx_branch.function_lines(lines, name),
                             lines[first:end], name)
        with self.assertRaises(SystemExit) as caught:
            ucx_branch.function_lines(lines, "second")
        self.assertIn("no function second", str(caught.exception))


class Tests(Folder):
    """Tests that are added to UCX's."""

    def test_each_is_listed_with_its_first_line_beside_what_it_is_like(self):
        lines = [Line(text) for text in
                 ("S = \\\n", "\tucp/ucp_test.cc \\\n", "\n", "T = \\\n",
                  "\tuct/ib/test_rc.cc\n", "H = \\\n", "\tucp/ucp_test.h\n")]
        ucx_branch.list_tests(lines, {
            "ucp/test_ucp_opt_it.cc": [Line("a", 4), Line("b", 3)],
            "ucp/test_ucp_opt.h": [Line("a", 3)],
            "uct/ib/test_rc_opt.cc": [Line("a", 9)]})
        for number, count in ((2, 7), (3, 9), (8, 9), (9, 10)):
            self.assertEqual(
                len(ucx_branch.state("Makefile.am", lines, number)), count)
        text = "".join(ucx_branch.state("Makefile.am", lines, 9))
        self.assertIn("\tucp/test_ucp_opt_it.cc \\\n\tucp/ucp_test.cc", text)
        self.assertIn("\tuct/ib/test_rc_opt.cc \\\n\tuct/ib/test_rc.cc\n", text)

    def test_one_without_a_place(self):
        with self.assertRaises(SystemExit) as caught:
            ucx_branch.list_tests([], {"uct/ib/test_dc_opt.cc": [Line("", 1)]})
        self.assertIn("has uct/ib/test_dc.cc 0 times", str(caught.exception))

    def test_an_optimisation_is_tested_with_it_switched_off_as_well(self):
        switches = set()
        for name in ucx_branch.tests():
            with open(os.path.join(ucx_branch.MESSAGES, "tests", name),
                      encoding="utf-8") as file:
                text = file.read()
            switches.update(re.findall(r'test_ucp_opt(?:_\w+)?\("([A-Z]+)"\)',
                                       text))
            switches.update(re.findall(r'std::string &name = "([A-Z]+)"', text))
            switches.update(re.findall(r'UCX_OPT_(\w+)", "n"', text))
        options = set()
        for commit in map(ucx_branch.Commit, ucx_branch.messages()):
            for names in commit.of("option"):
                options.update(" ".join(names).split())
        self.assertEqual(switches, options)


class Pieces(unittest.TestCase):
    """Files of more lines than a commit may add."""

    def pieces(self, *texts):
        return list(ucx_branch.pieces([Line(text) for text in texts]))

    def test_a_file_that_is_small_enough_comes_whole(self):
        size = ucx_branch.LIMIT - 1
        self.assertEqual(self.pieces(*["}\n"] * size), [size])

    def test_a_large_one_is_cut_behind_a_function(self):
        function = ["int f()\n", "{\n"] + 296 * ["x\n"] + ["}\n", "\n"]
        self.assertEqual(self.pieces(*3 * function), [299, 599, 900])

    def test_where_there_is_none_it_is_cut_all_the_same(self):
        limit = ucx_branch.LIMIT - 1
        self.assertEqual(self.pieces(*["x\n"] * 1200),
                         [limit, 2 * limit, 1200])


class Module(Folder):

    def test_lines_are_those_of_sources(self):
        for name, lines in (("base/a.h", 5), ("compat/b.c", 4), ("c.inl", 3),
                            ("module/sep_abi.c", 2), ("files.am", 1)):
            path = os.path.join(self.top, ucx_branch.SEP, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(lines * "x\n")
        self.assertEqual([14, 4, 2], ucx_branch.module_lines(self.top))


class Order(unittest.TestCase):
    """Files of a room, each behind those that it includes."""

    def test_a_source_waits_for_the_header_that_asked_for_its_own(self):
        texts = {"src/it/a.h": "#include <it/b.h>\n", "src/it/b.h": "",
                 "src/it/b.c": "#include <it/b.h>\n#include <it/a.h>\n"}
        self.assertEqual(["src/it/b.h", "src/it/a.h", "src/it/b.c"],
                         ucx_branch.in_order(list(texts), texts))


class Check(Folder):
    """What --check says of commits, in a tree that is nearly none."""

    def setUp(self):
        super().setUp()
        self.tree_of_commits = os.path.join(self.top, "branch")
        subprocess.run(["git", "init", "-q", self.tree_of_commits], check=True)
        self.write(".clang-format", "BasedOnStyle: LLVM\nNotAnOption: yes\n")
        self.write("autogen.sh", "#!/bin/sh\n", 0o755)
        self.write("configure", "#!/bin/sh\nmkdir -p src/ucp && echo"
                   " 'all:; grep -q right @/file.c' | sed \"s|@|$(dirname $0)|\""
                   " > src/ucp/Makefile && cp src/ucp/Makefile . && mkdir -p"
                   " test/gtest && { echo gtest_OBJECTS = ucp/gtest-it.o; echo"
                   " 'ucp/gtest-%.o:; grep -q right @/test/gtest/ucp/$*.cc' |"
                   " sed \"s|@|$(dirname $0)|\"; } > test/gtest/Makefile\n", 0o755)
        self.write("src/ucp/keep", "")
        self.commit("UCX as released")

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.tree_of_commits, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)

    def commit(self, title):
        for words in (["add", "-A"], ["-c", "user.name=x", "-c",
                      "user.email=x@y", "commit", "-q", "-m", title]):
            subprocess.run(["git", "-C", self.tree_of_commits, *words],
                           check=True)

    def test_what_is_right(self):
        self.write("file.c", "int right;\n")
        self.commit("UCP/CORE: Add a file")
        result = run("--check", self.tree_of_commits)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("1 commits, 0 with faults", result.stdout)
        self.assertRegex(result.stdout, r" 1 +\S+ +ok  UCP/CORE: Add a file")

    def test_each_fault_is_named(self):
        self.write("file.c", "int wrong; \n" + 500 * "int right;\n")
        self.write("AUTHORS", "me\n")
        self.commit("add a file")
        result = run("--check", self.tree_of_commits, "--no-build")
        self.assertEqual(result.returncode, 1)
        for words in ("title:", "502 added lines are more than 500",
                      "AUTHORS is changed", "blanks: file.c:1: trailing"):
            self.assertIn(words, result.stdout)

    def test_a_commit_that_does_not_build_is_named_and_the_next_is_not(self):
        self.write("file.c", "int left;\n")
        self.commit("UCP/CORE: Add a file")
        self.write("file.c", "int right;\n")
        self.commit("UCP/CORE: Fix a file")
        for _ in range(2):
            result = run("--check", self.tree_of_commits)
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stdout, "failed  UCP/CORE: Add a file\n"
                             " +does not build: .*log-")
            self.assertIn("ok  UCP/CORE: Fix a file\n", result.stdout)
            self.assertIn("2 commits, 1 with faults", result.stdout)

    def test_the_tests_of_a_commit_are_built_if_asked_for(self):
        self.write("file.c", "int right;\n")
        self.write("test/gtest/ucp/it.cc", "#include <ucp/it.h>\nwrong\n")
        self.commit("UCP/CORE: Add a file")
        self.assertEqual(run("--check", self.tree_of_commits).returncode, 0)
        result = run("--check", self.tree_of_commits, "--tests")
        self.assertEqual(result.returncode, 1)
        self.assertIn("does not build", result.stdout)

        self.write("test/gtest/ucp/it.cc", "#include <ucp/it.h>\nright\n")
        # Not in the list of sources, as what needs CUDA
        self.write("test/gtest/ucp/other.cc", "#include <ucp/it.h>\nwrong\n")
        self.commit("UCP/CORE: Fix a test")
        self.write("test/gtest/ucp/it.h", "\n")
        self.commit("UCP/CORE: Add a header")
        result = run("--check", self.tree_of_commits, "HEAD~2..HEAD", "--tests")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        for title in ("Fix a test", "Add a header"):
            self.assertIn(f"UCP/CORE: {title} (1 of tests)\n", result.stdout)

    def test_a_tree_that_is_none(self):
        os.mkdir(self.top + "/none")
        result = run("--check", self.top + "/none")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("has no commits: make it with", result.stderr)
        result = run("--check", self.tree_of_commits, "a..b")
        self.assertIn("has no commits a..b", result.stderr)

    def test_the_newest_clang_format_is_taken(self):
        for name, version in (("a/clang-format", "14.0.6"),
                              ("b/clang-format-9", "9.0.1"),
                              ("b/clang-format-18", "18.1.8"),
                              ("b/clang-format-diff", "99.0.0")):
            self.write(f"../{name}", f"#!/bin/sh\necho version {version}\n", 0o755)
        with unittest.mock.patch.dict(os.environ, PATH=f"{self.top}/a:{self.top}/b"):
            self.assertEqual(f"{self.top}/b/clang-format-18",
                             ucx_branch_check.newest_format())
        with unittest.mock.patch.dict(os.environ, PATH=self.top):
            self.assertIsNone(ucx_branch_check.newest_format())

    def test_settings_that_clang_format_does_not_know_are_left_out(self):
        style = ucx_branch_check.known_style(self.tree_of_commits)
        if style is None:
            self.skipTest("no clang-format")
        self.assertEqual(style, ("BasedOnStyle: LLVM\n", ["NotAnOption"]))


class Messages(Folder):

    def test_a_title_that_is_not_as_the_rules_ask(self):
        path = os.path.join(self.top, "01-bad")
        for title in ("Make it fast", "UCP/RKEY: make it fast",
                      "UCP/RKEY: Make it fast.", "UCP/RKEY: " + 80 * "M"):
            with open(path, "w", encoding="utf-8") as file:
                file.write(title + "\n\nbody\n--\n")
            with self.assertRaises(SystemExit):
                ucx_branch.Commit(path)

    def test_a_body_says_what_convinces(self):
        for name in ucx_branch.messages():
            commit = ucx_branch.Commit(name)
            for word in ("Change: ", "Measured", "May break: "):
                self.assertIn("\n" + word, commit.message, name)
            self.assertLessEqual(
                max(map(len, commit.message.split("\n"))), 80, name)

    def counted(self):
        """Cells of the tables of UCX 1.22.0: row, and before and after."""
        with open(os.path.join(TOP, "docs/ucp-optimisations.md"),
                  encoding="utf-8") as file:
            text = file.read().split("### UCX 1.22.0\n", 1)[1]
        return [(row, re.findall(r"(\d+) → (\d+)", cells)) for row, cells in
                re.findall(r"^\| `(\w+)` (.*)", text.split("\n### ", 1)[0], re.M)]

    def test_figures_are_those_of_the_tables(self):
        known = {pair for _, pairs in self.counted() for pair in pairs}
        for name in ucx_branch.messages():
            message = ucx_branch.Commit(name).message
            self.assertLessEqual(set(re.findall(r"(\d+)\s+->\s+(\d+)", message)),
                                 known, name)

    def test_the_cover_text_has_those_of_version_2(self):
        with open(ucx_branch.COVER, encoding="utf-8") as file:
            text = file.read()
        # The table of version 2 is the first one
        tables = dict(reversed(self.counted()))
        rows = re.findall(r"^\| .* -> .*", text, re.M)
        self.assertEqual(10, len(rows))
        for row, name in zip(rows, (
                "put_8", "put_1k", "get_8", "tag_send", "tag_send_1k",
                "tag_send_zcopy_1k", "tag_recv_progress", "am_send",
                "flush_one_put", "progress_idle_1")):
            rc, ucp, sep = tables[name][:3]
            self.assertEqual([rc, sep, ucp],
                             re.findall(r"(\d+) -> (\d+)", row), name)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)


@unittest.skipUnless(SOURCE, "SEP_NEWEST_UCX_SOURCE is not set")
class Branch(Folder):

    def git(self, *words):
        return subprocess.run(["git", "-C", self.top + "/new", *words],
                              capture_output=True, text=True, check=True).stdout

    def test_the_commits_are_as_the_rules_ask(self):
        # It compares the last commit with what contrib/build-ucx-opt.sh builds
        result = run(SOURCE, self.top + "/new")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.git("status", "--porcelain", "--ignored"), "")
        commits = self.git("log", "--reverse", "--format=%H %s").splitlines()
        self.assertIn("as released", commits[0])
        for line in commits[1:]:
            commit, title = line.split(" ", 1)
            rows = [row.split("\t") for row in self.git(
                "show", "--numstat", "--format=", commit).splitlines()]
            self.assertNotIn("AUTHORS", [row[2] for row in rows])
            self.assertRegex(
                title, r"^((UC[PST]|BUILD|CI)/[A-Z0-9]+|NEWS): [A-Z].*[^.]$")
            self.assertLessEqual(len(title), 72)
            self.assertEqual(self.git("show", "--check", "--format=", commit),
                             "", title)
            self.assertLessEqual(sum(int(row[0]) for row in rows),
                                 ucx_branch.LIMIT, title)
        with open(ucx_branch.COVER, encoding="utf-8") as file:
            self.assertEqual(file.read().strip(), self.git(
                "config", "branch.sep.description").strip())
        self.assert_has_tests()
        self.assert_documented(result.stdout)

    def assert_has_tests(self):
        """As they are in the project, and each in UCX's list since it began."""
        listed = self.git("show", f"HEAD:{ucx_branch.TEST_LIST}")
        for name in ucx_branch.tests():
            path = ucx_branch.TESTS + name
            with open(os.path.join(ucx_branch.MESSAGES, "tests", name),
                      encoding="utf-8") as file:
                self.assertEqual(self.git("show", f"HEAD:{path}"), file.read())
            self.assertEqual(listed.count(f"\t{name}"), 1, name)
            first = self.git("log", "--reverse", "--format=%H", "--",
                             path).split()[0]
            self.assertIn(f"\n+\t{name}", self.git("show", first, "--",
                                                 ucx_branch.TEST_LIST))

    def assert_documented(self, printed):
        rows = re.findall(r"^[0-9a-f]+ +(\d+) +(\d+)  (.*)$", printed, re.M)
        steps = [int(added) for added, _, title in rows
                 if title.startswith("UCT/SEP: ")]
        with open(os.path.join(TOP, "docs/upstream.md"),
                  encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(re.findall(r"^\| (?:UC[PST]/|BUILD/|CI/|NEWS:).*", text, re.M),
                         [f"| {title} | {added} | {removed} |"
                          for added, removed, title in rows
                          if not title.startswith("UCT/SEP: ")])
        module = ucx_branch.module_lines(self.top + "/new")
        for fact in ("It has {} lines. {} of them are `compat/` and {} the check of"
                     " the ABI,".format(*module),
                     f"without these it is {module[0] - sum(module[1:])} lines",
                     f"The transport has {len(steps)} commits.",
                     f"The largest adds {max(steps)} lines.",
                     f"of all {len(rows)} commits"):
            self.assertIn(fact, " ".join(text.split()))
