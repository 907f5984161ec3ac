# SPDX-License-Identifier: BSD-3-Clause
"""contrib/fetch-source.sh: a cache in any directory, and nothing is left behind
if something goes wrong."""

import os
import shutil
import subprocess
import tarfile
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
SCRIPT = os.path.join(TOP, "contrib/fetch-source.sh")
HEADER = "src/uct/base/uct_iface.h"

# Says where apt's files would be, as it understands its configuration
APT_GET = """#!/bin/bash
options=()
while [[ $1 == -c || $1 == -o ]]; do
    options+=("$1" "$2")
    shift 2
done
apt-config "${options[@]}" dump >> "$FAKE_APT_LOG" 2>&1
exit 1
"""

INSTALLED = """#!/bin/sh
echo installed it 1.2-3
"""


class AnyPath(unittest.TestCase):
    """With what ends a word of a shell, or a string of apt's configuration."""

    def setUp(self):
        # pylint: disable-next=consider-using-with
        self.directory = tempfile.TemporaryDirectory(prefix="fetch-source.")
        self.addCleanup(self.directory.cleanup)
        self.top = os.path.realpath(self.directory.name)
        self.cache = os.path.join(self.top, "it's \"the\" cache")

    def path(self, name, text=None, mode=0o644):
        path = os.path.join(self.top, name)
        if text is not None:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(path, mode)
        return path

    def archive(self, *names):
        path = os.path.join(self.top, "some.tar")
        with tarfile.open(path, "w") as tar:
            for name in names:
                tar.add(self.path(name, "/* it */\n"), f"ucx/{name}")
        return path

    def fetch(self, *args, **env):
        return subprocess.run([SCRIPT, "--cache", self.cache, *args],
                              env={**os.environ, **env}, timeout=300,
                              capture_output=True, text=True, check=False)

    def expect_no_rest(self):
        self.assertEqual([name for name in os.listdir(self.cache)
                          if name.startswith(".fetch")], [])

    def test_an_archive_is_unpacked(self):
        result = self.fetch("--archive", self.archive(HEADER))
        self.assertEqual(result.returncode, 0, result.stderr)
        tree = result.stdout.rstrip("\n")
        self.assertEqual(os.path.dirname(tree), self.cache)
        self.assertTrue(os.path.exists(os.path.join(tree, HEADER)))
        self.expect_no_rest()

    def test_what_is_no_source_leaves_nothing(self):
        result = self.fetch("--archive", self.archive("README"))
        self.assertEqual((result.stdout, result.returncode), ("", 1))
        self.assertIn("is no source of UCX", result.stderr)
        self.expect_no_rest()

    @unittest.skipUnless(shutil.which("apt-config"), "this is no Debian")
    def test_apt_understands_where_its_files_are(self):
        log = self.path("log")
        self.path("bin/apt-get", APT_GET, 0o755)
        self.path("bin/apt-cache", "#!/bin/sh\n", 0o755)
        self.path("bin/dpkg-query", INSTALLED, 0o755)
        result = self.fetch(
            FAKE_APT_LOG=log,
            PATH=f"{self.path('bin')}:{os.environ['PATH']}")
        self.assertEqual((result.stdout, result.returncode), ("", 1))
        self.assertIn("apt offers no source of it 1.2-3", result.stderr)
        with open(log, encoding="utf-8") as file:
            dump = file.read()
        for name, place in (("Dir::State::lists", "lists"),
                            ("Dir::Etc::sourceparts", "sources"),
                            ("Dir::Cache", "cache")):
            self.assertRegex(dump, f'{name} "{self.cache}'
                             fr'/\.fetch\.\w+/{place}";')
        self.expect_no_rest()


if __name__ == "__main__":
    unittest.main()
