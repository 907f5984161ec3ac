# SPDX-License-Identifier: BSD-3-Clause
"""Each block of commands in the documentation is run here, or says that it is not
and why. A comment in front of the block says which:

    <!-- run -->
    <!-- not run: REASON -->

Those that are run are run as they are written, on a device of their own, with
the programs of the build in PATH. A command may be called COMMAND. If a block
without a language follows that is marked as

    <!-- printed -->

its lines must be among what the commands print, but for the numbers of processes.
"""

import os
import re
import shutil
import socket
import subprocess
import unittest

from test_docs import PAGES, read

BUILD = os.path.realpath(os.environ.get("SEP_BUILD_DIR", "."))
MARK = re.compile(r"<!-- (run|not run: \S.+) -->")
PROGRAMS = ("ibv_devinfo", "ucx_info", "ucx_perftest")


def is_usable():
    """Whether the build has all programs, for the UCX that is in PATH."""
    tools = [os.path.join(BUILD, "bin", name) for name in
             ("mlx5sim-run", "mlx5sim-stat", "sep-run", "sep_info")]
    if not all(os.access(tool, os.X_OK) for tool in tools) or \
            not all(shutil.which(name) for name in PROGRAMS):
        return False
    return subprocess.run([tools[2], "--show", "ucx_info"], check=False,
                          capture_output=True, timeout=300).returncode == 0


def blocks():
    """(page, line, mark or None, text) of each block of shell."""
    found = []
    for page in PAGES:
        lines = read(page).split("\n")
        for number, line in enumerate(lines):
            if line.strip() != "```sh":
                continue
            indent = len(line) - len(line.lstrip())
            end = next(i for i in range(number + 1, len(lines))
                       if lines[i].strip() == "```")
            before = lines[number - 1].strip() if number else ""
            mark = MARK.fullmatch(before)
            found.append((page, number + 1, mark.group(1) if mark else None,
                          "\n".join(each[indent:] for each in
                                    lines[number + 1:end])))
    return found


def printed(page, line):
    """Lines that the block of commands at a line is said to print."""
    lines = read(page).split("\n")
    end = lines.index("```", line)
    if lines[end + 1:end + 4] != ["", "<!-- printed -->", "```"]:
        return []
    return lines[end + 4:lines.index("```", end + 4)]


def without_processes(line):
    """A line of mlx5sim-stat: the number of a process is as wide as its
    column."""
    return re.sub(r" +\d+\+", " N+", line.rstrip())


def free_port():
    with socket.socket() as free:
        free.bind(("", 0))
        return str(free.getsockname()[1])


class Commands(unittest.TestCase):

    def test_each_block_says_whether_it_is_run(self):
        found = blocks()
        self.assertGreater(len(found), 20)
        for page, line, mark, _ in found:
            self.assertIsNotNone(mark, f"{page}:{line}: is this run? see "
                                       "test/jobs/test_docs_commands.py")

    def test_shell_is_called_sh(self):
        """Under another name, a block would be seen by nobody."""
        for page in PAGES:
            for language in re.findall(r"(?m)^ *```(\w+)$", read(page)):
                self.assertNotIn(language, ("bash", "shell", "console"), page)

    @unittest.skipUnless(is_usable(), "not built for the UCX in PATH")
    def test_those_that_are_run_succeed(self):
        env = {name: value for name, value in os.environ.items()
               if not name.startswith(("UCX_", "MLX5"))}
        env["PATH"] = os.path.join(BUILD, "bin") + os.pathsep + env["PATH"]
        count = outputs = 0
        other_end, terminal = os.openpty()
        self.addCleanup(os.close, other_end)
        self.addCleanup(os.close, terminal)
        for page, line, mark, text in blocks():
            if mark != "run":
                continue
            text = re.sub(r"\bCOMMAND\b", "ibv_devinfo", text)
            text = re.sub(r"\b18515\b", free_port(), text)
            with self.subTest(page=page, line=line):
                # -e: each of them. At a terminal, as users are.
                done = subprocess.run(
                    ["mlx5sim-run", "--private", "bash", "-euo", "pipefail",
                     "-c", text], cwd=BUILD, env=env, stdin=terminal,
                    capture_output=True, text=True, timeout=300, check=False)
                self.assertEqual(0, done.returncode,
                                 f"{text}\n{done.stdout}\n{done.stderr}")
                count += 1
                out = {without_processes(each)
                       for each in done.stdout.splitlines()}
                for each in printed(page, line):
                    outputs += 1
                    self.assertIn(without_processes(each), out, done.stdout)
        self.assertGreater(count, 5)
        self.assertGreater(outputs, 3)


if __name__ == "__main__":
    unittest.main()
