#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Check the commits that contrib/ucx-branch.sh has made, one by one, as UCX's
review rules and its CI (buildlib/pr/codestyle.yml) do: title, added lines, AUTHORS,
blanks, format, and that each builds, perhaps with the tests it has itself.

UCX formats with a clang-format of its own. No released one, of which the newest on
PATH is taken, knows all settings of UCX's .clang-format; those are left out, so what
it would change is a number to look at and no failure.

The tree to build in is beside the branch (-check), and is kept: a commit that is
known to build is not built again."""

import argparse
import dataclasses
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

LIMIT = 500
# Needs nothing that the commits do not touch. Without maintainer mode, make would
# not know the files that a commit adds to a list of sources.
CONFIGURE = ["--enable-maintainer-mode", "--disable-static", "--disable-doxygen-doc",
             "--without-go", "--without-java", "--enable-mt", "--with-verbs",
             "--enable-assertions", "--enable-params-check", "--enable-stats",
             "--enable-gtest", "CFLAGS=-O0 -g0", "CXXFLAGS=-O0 -g0"]
TESTS = "test/gtest"


@dataclasses.dataclass
class Commit:
    """What is known of a commit."""
    name: str
    title: str
    added: int
    faults: list = dataclasses.field(default_factory=list)
    hunks: int | None = None        # what clang-format would change
    built: str = "-"
    objects: int = 0                # of tests, built now

    def line(self):
        hunks = "-" if self.hunks is None else str(self.hunks)
        tests = f" ({self.objects} of tests)" if self.objects else ""
        return f"{self.name} {self.added:6} {hunks:>6} {self.built:>6}  " \
               f"{self.title}{tests}" + \
               "".join(f"\n    {each}" for each in self.faults)


def git(tree, *words, check=True):
    return subprocess.run(["git", "-C", tree, *words], check=check, text=True,
                          capture_output=True, errors="replace")


def look(tree, name):
    """All but format and build."""
    title = git(tree, "log", "-1", "--format=%s", name).stdout.strip()
    rows = [row.split("\t") for row in
            git(tree, "show", "--numstat", "--format=", name).stdout.splitlines()]
    commit = Commit(name, title, sum(int(row[0]) for row in rows if row[0] != "-"))
    if not re.match(r"Merge |[0-9A-Z/_\-]*: \w", title):
        commit.faults.append("title: not COMPONENT/SUBCOMPONENT: and what is done")
    if commit.added > LIMIT:
        commit.faults.append(f"{commit.added} added lines are more than {LIMIT}")
    if any(row[2] == "AUTHORS" for row in rows):
        commit.faults.append("AUTHORS is changed")
    blanks = git(tree, "show", "--check", "--format=", name, check=False)
    if blanks.returncode:
        commit.faults.append("blanks: " + blanks.stdout.splitlines()[0])
    return commit


def newest_format():
    """The newest of clang-format and clang-format-NUMBER on PATH, or None."""
    found = []
    for folder in os.get_exec_path():
        for path in glob.glob(os.path.join(glob.escape(folder), "clang-format*")):
            if re.fullmatch(r"clang-format(-\d+)?", os.path.basename(path)):
                version = re.search(r"version (\d+)\.(\d+)\.(\d+)", subprocess.run(
                    [path, "--version"], text=True, capture_output=True,
                    check=False).stdout)
                if version:
                    found.append((tuple(map(int, version.groups())), path))
    return max(found, default=(None, None))[1]


def known_style(tree):
    """UCX's .clang-format without what the installed clang-format does not know:
    text and what is left out. None if there is no clang-format."""
    program = newest_format()
    if not shutil.which("git-clang-format") or not program:
        return None
    with open(os.path.join(tree, ".clang-format"), encoding="utf-8") as file:
        lines = file.read().splitlines(keepends=True)
    left_out = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "style")
        while True:
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(lines)
            result = subprocess.run(
                [program, f"--style=file:{path}", "--dump-config"],
                text=True, capture_output=True, check=False)
            error = re.search(r":(\d+):\d+: error: ", result.stderr)
            if not error:
                return ("".join(lines), left_out) if not result.returncode \
                    else None
            number = int(error[1]) - 1
            left_out.append(lines.pop(number).partition(":")[0].strip())
            # The rest of a list
            while number < len(lines) and lines[number].startswith(" "):
                lines.pop(number)


def format_hunks(tree, name, style):
    """How many hunks of a commit clang-format would change."""
    result = git(tree, "clang-format", f"--binary={newest_format()}",
                 f"--style=file:{style}", "--extensions=c,h,inl,cc", "--diff", f"{name}^", name, check=False)
    return len(re.findall(r"^@@ ", result.stdout, re.M))


def test_objects(tree, name):
    """Objects of the test program that a commit adds or changes, by itself or by
    what they include, as below test/gtest."""
    def names(*words):
        return [path[len(TESTS) + 1:] for path in
                git(tree, *words, "--", TESTS).stdout.splitlines()]

    changed = names("show", "--name-only", "--diff-filter=AM", "--format=", name)
    sources = {path for path in changed if path.endswith(".cc")}
    for header in (path for path in changed if path.endswith(".h")):
        sources.update(path.partition(":")[2][len(TESTS) + 1:] for path in git(
            tree, "grep", "-l", f'# *include .*{os.path.basename(header)}[">]',
            name, "--", f"{TESTS}/*.cc", check=False).stdout.splitlines())
    return sorted(os.path.join(os.path.dirname(path), "gtest-" +
                               os.path.basename(path)[:-len("cc")] + "o")
                  for path in sources)


class Builder:
    """A tree that is taken from commit to commit."""

    def __init__(self, tree, parts, jobs, tests):
        self.tree, self.parts, self.jobs = tree, parts, jobs
        self.tests  = tests
        self.top    = os.path.realpath(tree) + "-check"
        self.source = os.path.join(self.top, "source")
        self.where  = os.path.join(self.top, "build")
        self.known  = os.path.join(self.top, "known")
        os.makedirs(self.top, exist_ok=True)

    def run(self, name, where, *words):
        with open(os.path.join(self.top, f"log-{name}.txt"), "a",
                  encoding="utf-8") as log:
            return subprocess.run(words, cwd=where, stdout=log,
                                  stdin=subprocess.DEVNULL, check=False,
                                  stderr=subprocess.STDOUT).returncode == 0

    def listed(self, objects):
        """Of these, what the test program has here: others may need CUDA."""
        result = subprocess.run(
            ["make", "-s", "--no-print-directory", "-C",
             os.path.join(self.where, TESTS), "-f", "-", "listed"],
            input="include Makefile\nlisted:\n\t@echo $(gtest_OBJECTS)\n",
            text=True, capture_output=True, check=False)
        names = result.stdout.split()
        return [each for each in objects if each in names]

    def build(self, commit):
        """Whether a commit builds, with its tests if these are asked for. What it
        is, not its name, is remembered."""
        what = git(self.tree, "rev-parse", f"{commit.name}^{{tree}}").stdout.strip()
        objects = test_objects(self.tree, commit.name) if self.tests else []
        what += " with tests" if objects else ""
        if os.path.exists(self.known):
            with open(self.known, encoding="utf-8") as file:
                if what in file.read().splitlines():
                    return True
        if not os.path.exists(self.source):
            git(self.top, "clone", "-q", "--no-checkout",
                os.path.realpath(self.tree), self.source)
        git(self.source, "fetch", "-q", "origin")
        git(self.source, "checkout", "-q", "-f", "--detach",
            git(self.tree, "rev-parse", commit.name).stdout.strip())
        configured = os.path.join(self.where, "configured")
        if not os.path.exists(configured):
            os.makedirs(self.where, exist_ok=True)
            if not (self.run(commit.name, self.source, "./autogen.sh") and
                    self.run(commit.name, self.where,
                             os.path.join(self.source, "configure"),
                             f"--prefix={self.top}/ucx", *CONFIGURE)):
                return False
            with open(configured, "w", encoding="utf-8"):
                pass
        for part in self.parts:
            if os.path.isdir(os.path.join(self.source, part)) and \
               not self.run(commit.name, self.where, "make", f"-j{self.jobs}",
                            "-C", part):
                return False
        objects = self.listed(objects) if objects else []
        if objects and not self.run(commit.name, self.where, "make",
                                    f"-j{self.jobs}", "-C", TESTS, *objects):
            return False
        commit.objects = len(objects)
        with open(self.known, "a", encoding="utf-8") as file:
            file.write(what + "\n")
        return True


def main():
    parser = argparse.ArgumentParser(prog="ucx-branch.sh --check")
    parser.add_argument("tree", metavar="DIR")
    parser.add_argument("range", nargs="?", metavar="FIRST..LAST")
    parser.add_argument("--no-build", action="store_true")
    parser.add_argument("--tests", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--parts", default="src/ucm src/ucs src/uct src/ucp")
    options = parser.parse_args()
    if git(options.tree, "rev-parse", "HEAD", check=False).returncode:
        sys.exit(f"{options.tree} has no commits: make it with"
                 " contrib/ucx-branch.sh ARCHIVE DIR")
    root = git(options.tree, "rev-list", "--max-parents=0",
               "HEAD").stdout.split()[0]
    names = git(options.tree, "rev-list", "--reverse", "--abbrev-commit",
                options.range or f"{root}..HEAD", check=False)
    if names.returncode or not names.stdout:
        sys.exit(f"{options.tree} has no commits {options.range}")

    style = known_style(options.tree)
    if style and style[1]:
        print("clang-format does not know " + ", ".join(style[1]), flush=True)
    builder = None if options.no_build else \
        Builder(options.tree, options.parts.split(), options.jobs, options.tests)
    faulty = 0
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
        file.write(style[0] if style else "")
        file.flush()
        for name in names.stdout.split():
            commit = look(options.tree, name)
            if style:
                commit.hunks = format_hunks(options.tree, name, file.name)
            if builder:
                commit.built = "ok" if builder.build(commit) else "failed"
                if commit.built == "failed":
                    commit.faults.append(
                        f"does not build: {builder.top}/log-{name}.txt")
            faulty += bool(commit.faults)
            print(commit.line(), flush=True)
    print(f"{len(names.stdout.split())} commits, {faulty} with faults")
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
