# SPDX-License-Identifier: BSD-3-Clause
"""contrib/demo.sh: its last line is what a user has to know."""

import os
import shutil
import subprocess
import tempfile
import unittest

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
CONFIGURE = os.path.join(TOP, "configure")

NO_SOURCE = "configure: error: no source of UCX 1.13.1: set SEP_UCX_SOURCE"
# What configure prints of the transport
BUILT = "    transport          ucx-1.13/libuct_sep.so.0"
NOT_BUILT = "    transport          not built (apt cannot provide it)"
MAKEFILE = "all job-programs:\n\t@true\n"


class Demo(unittest.TestCase):
    """The script itself, in a tree whose tools are stand-ins."""

    def setUp(self):
        # pylint: disable-next=consider-using-with
        self.directory = tempfile.TemporaryDirectory(prefix="sep-demo.")
        self.addCleanup(self.directory.cleanup)
        self.top = self.directory.name
        os.makedirs(f"{self.top}/contrib")
        for name in ("demo.sh", "lib.sh"):
            shutil.copy(f"{TOP}/contrib/{name}", f"{self.top}/contrib")
        self.write("contrib/deps.txt", "")
        self.write("configure.ac", "")
        self.script("configure", "exit 9")
        self.script("build/demo/bin/mlx5sim-run", "echo as planned")
        self.main_job("echo '1 passed, 0 failed'")

    def write(self, name, text):
        path = f"{self.top}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def script(self, name, text):
        os.chmod(self.write(name, f"#!/bin/sh\n{text}\n"), 0o755)

    def configure(self, summary):
        self.write("Makefile.made", MAKEFILE)
        self.script("contrib/configure-release",
                    f"cp '{self.top}/Makefile.made' Makefile\n"
                    f"echo =====\necho '{summary}'")

    def main_job(self, text):
        self.script("test/jobs/main_job",
                    f"echo \"$@\" > '{self.top}/said'\n{text}")

    def run_demo(self, **env):
        environ = {name: value for name, value in os.environ.items()
                   if not name.startswith(("SEP_", "MAKE"))}
        done = subprocess.run([f"{self.top}/contrib/demo.sh", "--quick"],
                              capture_output=True, text=True, timeout=300,
                              check=False, env={**environ, **env})
        text = done.stderr if "demo.sh: error" in done.stderr else done.stdout
        return done, text.splitlines()[-1]

    def test_without_the_source_of_ucx_it_fails(self):
        self.script("contrib/configure-release",
                    f"echo '{NO_SOURCE}' >&2\nexit 1")
        done, last = self.run_demo()
        self.assertEqual(1, done.returncode)
        self.assertIn(NO_SOURCE.partition("error: ")[2], last)
        self.assertFalse(os.path.exists(f"{self.top}/said"))

    def test_it_does_not_ask_for_less_by_itself(self):
        self.script("contrib/configure-release", 'echo "=$SEP_UCX="; exit 1')
        done, _ = self.run_demo()
        self.assertIn("==", done.stderr)

    def test_warnings_are_errors_only_if_that_is_asked_for(self):
        shutil.copy(f"{TOP}/contrib/configure-release", f"{self.top}/contrib")
        self.script("configure", 'echo "=$*=" >&2; exit 1')
        for env, last in (({}, "--disable-werror"),
                          ({"SEP_DEMO_CONFIGURE": "--enable-werror"},
                           "--enable-werror")):
            done, _ = self.run_demo(**env)
            said = [word for word in done.stderr.replace("=", " ").split()
                    if word.endswith("able-werror")]
            self.assertTrue(said, done.stderr)
            self.assertEqual(last, said[-1], done.stderr)

    def test_device_alone_if_that_is_asked_for(self):
        self.configure(NOT_BUILT)
        done, last = self.run_demo(SEP_UCX="auto")
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn("rc_mlx5 alone", last)
        self.assertIn("not built (apt cannot provide it)", last)
        self.assertIn("SEP_UCX_SOURCE", last)
        with open(f"{self.top}/said", encoding="utf-8") as file:
            self.assertIn("--transport rc_mlx5", file.read())

    def test_all_is_well(self):
        self.configure(BUILT)
        done, last = self.run_demo()
        self.assertEqual((0, "==> The main job passed"),
                         (done.returncode, last), done.stderr)

    def test_first_row_that_failed_is_named(self):
        self.configure(BUILT)
        self.main_job("echo '    FAIL sep_mlx5: byte 3 is wrong'\n"
                      "echo '    FAIL rc_mlx5: and another'\nexit 1")
        done, last = self.run_demo()
        self.assertEqual(1, done.returncode)
        self.assertIn("exit status 1): sep_mlx5: byte 3 is wrong", last)

    def test_plan_that_is_not_kept(self):
        self.configure(BUILT)
        self.script("build/demo/bin/mlx5sim-run", "exit 1")
        done, last = self.run_demo()
        self.assertEqual(1, done.returncode)
        self.assertIn("16 workers", last)


@unittest.skipUnless(os.access(CONFIGURE, os.X_OK) and
                     shutil.which("ucx_info") and shutil.which("dpkg-query"),
                     "no configure, or no UCX of Debian")
@unittest.skipIf(os.path.exists(os.path.join(TOP, "config.status")),
                 "the source tree is configured itself")
class Configure(unittest.TestCase):
    """With an apt that offers nothing."""

    def test_first_cause_and_the_variable(self):
        with tempfile.TemporaryDirectory() as top:
            for name in ("apt-get", "apt-cache"):
                with open(f"{top}/{name}", "w", encoding="utf-8") as file:
                    file.write("#!/bin/sh\nexit 100\n")
                os.chmod(f"{top}/{name}", 0o755)
            os.mkdir(f"{top}/build")
            done = subprocess.run(
                [CONFIGURE, "--disable-gtest", "--with-ucx",
                 "--with-ucx-source"], cwd=f"{top}/build",
                capture_output=True, text=True, timeout=300, check=False,
                env={**os.environ, "SEP_CACHE_DIR": f"{top}/cache",
                     "PATH": f"{top}:{os.environ['PATH']}"})
        self.assertNotEqual(0, done.returncode)
        last = done.stderr.splitlines()[-1]
        self.assertIn("apt offers no source of ucx", last)
        self.assertIn("SEP_UCX_SOURCE", last)


if __name__ == "__main__":
    unittest.main()
