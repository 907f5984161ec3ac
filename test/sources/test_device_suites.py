# SPDX-License-Identifier: BSD-3-Clause
"""What contrib/device-suites.sh says if packages of Python can't be had."""

import os
import subprocess
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))

# The programs of a virtual environment, which MISSING and FAILING are about
PYTHON = """#!/bin/sh
case "$*" in
*"-m venv"*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
*"-m pip"*)  ! echo "$*" | grep -q "${MISSING:-nothing}" ||
             { echo "ERROR: there is no such thing"; exit 1; } ;;
*)           [ -z "$FAILING" ] ;;
esac
"""
TOOLS = {
    "tools/python3": PYTHON,
    "tools/dpkg-query": '#!/bin/sh\nfor name; do echo "$name installed"; done\n',
    "build/bin/mlx5sim-run": '#!/bin/sh\nshift\nexec "$@"\n',
}


class PackagesOfPython(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        for name, text in TOOLS.items():
            path = os.path.join(self.directory, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(path, 0o755)

    def run_it(self, **environment):
        path = f"{self.directory}/tools:{os.environ['PATH']}"
        return subprocess.run(
            [os.path.join(TOP, "contrib/device-suites.sh"), "--tsv", "--quick",
             "--build", os.path.join(self.directory, "build"), "nixl",
             "mooncake"], env={**os.environ, "PATH": path, **environment},
            check=False, capture_output=True, text=True)

    def test_all_are_there(self):
        child = self.run_it()
        self.assertEqual("nixl\t1\t0\t0\nmooncake\t3\t0\t0\n", child.stdout)
        self.assertEqual(0, child.returncode, child.stderr)

    def test_one_is_missing(self):
        child = self.run_it(MISSING="nixl")
        self.assertEqual("mooncake\t3\t0\t0\n", child.stdout)
        self.assertIn("\nSKIPPED nixl: its packages can't be had: "
                      "ERROR: there is no such thing\n", child.stderr)
        self.assertEqual(0, child.returncode)

    def test_all_are_missing(self):
        child = self.run_it(MISSING="nixl\\|mooncake")
        self.assertEqual("", child.stdout)
        # The last line is what the runner of tests gives as the reason
        self.assertRegex(child.stderr, "\nmooncake: its packages can't be had: "
                                       "ERROR: there is no such thing\n$")
        self.assertEqual(77, child.returncode)

    def test_what_fails_is_no_skip(self):
        child = self.run_it(MISSING="nixl", FAILING="y")
        self.assertEqual("mooncake\t0\t3\t0\n", child.stdout)
        self.assertEqual(1, child.returncode)


if __name__ == "__main__":
    unittest.main()
