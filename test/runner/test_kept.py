# SPDX-License-Identifier: BSD-3-Clause
"""What is built once for all checkouts is told by all that it is built from."""

import os
import shutil
import subprocess
import tempfile
import time
import unittest

CONTRIB = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..",
                       "contrib")


class Scripts(unittest.TestCase):

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.top = temporary.name
        self.kept = f"{self.top}/kept"
        self.programs(dpkg_query="echo gcc 12", cc="echo 12", **{"c++": "true"})

    def programs(self, **texts):
        for name, text in texts.items():
            self.write(f"bin/{name.replace('_', '-')}", f"#!/bin/sh\n{text}\n")

    def write(self, name, text):
        path = f"{self.top}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def read(self, name):
        with open(f"{self.top}/{name}", encoding="utf-8") as file:
            return file.read()

    def command(self, text, *words, **environment):
        """Of a shell that has read the scripts."""
        return ["env", "-i", f"PATH={self.top}/bin:/usr/bin:/bin",
                f"HOME={self.top}",
                *(f"{name}={value}" for name, value in environment.items()),
                "bash", "-euc",
                f". {CONTRIB}/lib.sh; . {CONTRIB}/ucx.sh; {text}", "it", *words]

    def shell(self, text, *words, **environment):
        return subprocess.run(self.command(text, *words, **environment),
                              stdin=subprocess.DEVNULL, check=True,
                              stdout=subprocess.PIPE, timeout=300,
                              text=True).stdout.strip()


class Kept(Scripts):

    def keep(self, stamp="it", **environment):
        """The directory, or an empty string if nothing is kept."""
        environment = {"SEP_KEPT_DIR": self.kept, **environment}
        return self.shell('! sep_ucx_keep it "$1" || echo "$sep_kept"', stamp,
                          **environment)

    def test_a_directory_for_each_thing_that_is_built(self):
        first = self.keep()
        self.assertEqual(self.kept, os.path.dirname(first))
        self.assertTrue(os.path.isdir(first))
        self.assertEqual(first, self.keep())
        others = {self.keep("more"), self.keep(CFLAGS="-O3"),
                  self.keep(CC=f"{self.top}/bin/c++")}
        self.programs(dpkg_query="echo gcc 13")
        others.add(self.keep())
        self.programs(dpkg_query="echo gcc 12; echo libit-dev:amd64 1")
        others.add(self.keep())
        self.assertEqual(5, len(others - {first}))

    def test_packages_that_no_build_sees_make_no_difference(self):
        query = '[ $# != 1 ] || {}; echo gcc 12'
        self.programs(dpkg_query=query.format("echo it 1"))
        first = self.keep()
        self.programs(dpkg_query=query.format("echo it 2"))
        self.assertEqual(first, self.keep())

    def test_nothing_is_kept_of_an_unknown_system(self):
        self.assertEqual("", self.keep(SEP_KEPT_DIR=""))
        self.programs(dpkg_query="exit 1")
        self.assertEqual("", self.keep())
        self.assertFalse(os.path.exists(self.kept))

    def test_what_nobody_asks_for_goes(self):
        old = time.time() - 20 * 24 * 3600
        mine, others = self.keep("mine"), self.keep("another")
        for path in mine, others:
            self.write(f"{os.path.relpath(path, self.top)}/file", "")
            os.utime(path, (old, old))
        self.assertEqual(mine, self.keep("mine"))
        self.assertTrue(os.path.exists(f"{mine}/file"))
        self.assertFalse(os.path.exists(others))

    def test_one_builds_at_a_time(self):
        text = 'sep_ucx_keep it it; echo has; read -r; echo did >> "$1"; ' \
            'sep_ucx_leave; echo left; read -r'
        with subprocess.Popen(
                self.command(text, f"{self.top}/log", SEP_KEPT_DIR=self.kept),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                text=True) as first:
            self.assertEqual("has\n", first.stdout.readline())
            with subprocess.Popen(self.command(
                    'sep_ucx_keep it it; echo second >> "$1"',
                    f"{self.top}/log", SEP_KEPT_DIR=self.kept)) as second:
                with self.assertRaises(subprocess.TimeoutExpired):
                    second.wait(0.5)
                first.stdin.write("\n")
                first.stdin.flush()
                self.assertEqual("left\n", first.stdout.readline())
                self.assertEqual(0, second.wait(60))
            first.communicate("\n", timeout=60)
        self.assertEqual("did\nsecond\n", self.read("log"))

    def test_only_with_ccache(self):
        text = 'sep_use_ccache; echo "${SEP_KEPT_DIR-}"'
        self.assertEqual(f"{self.top}/.cache/sep/kept", self.shell(text))
        self.assertEqual("", self.shell(text, SEP_CCACHE="n"))


class Tests(Scripts):
    """UCX's tests, as people run them: with no more than a home directory."""

    def test_are_built_in_what_is_kept(self):
        # All packages are there
        self.programs(dpkg_query='[ $# != 1 ] || exec echo gcc 12\n'
                      'printf "%s installed\\n" "$@"')
        self.write("ucx/configure.ac", "")
        subprocess.run([
            "env", "-i", f"PATH={self.top}/bin:/usr/bin:/bin",
            f"HOME={self.top}", f"{CONTRIB}/ucx-gtest.sh", "--build-only",
            "--ucx-source", f"{self.top}/ucx", "--build", f"{self.top}/build"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, timeout=300, check=False)
        kept = os.path.realpath(f"{self.top}/build/source/..")
        self.assertEqual(f"{self.top}/.cache/sep/kept", os.path.dirname(kept))

    def test_a_part_is_built_once(self):
        """With programs that build nothing and say that they were called."""
        for name in "ucx-gtest.sh", "lib.sh", "ucx.sh", "deps.txt":
            os.makedirs(f"{self.top}/sep/contrib", exist_ok=True)
            shutil.copy(f"{CONTRIB}/{name}", f"{self.top}/sep/contrib")
        called = f'#!/bin/sh\necho "${{0##*/}}" >> {self.top}/log\n'
        for name in ("sep/autogen.sh", "sep/configure",
                     "sep/test/conformance/ucx_gtest",
                     "sep/test/conformance/conformance/adapt.py"):
            self.write(name, "#!/bin/sh\n")
        self.write("ucx/autogen.sh", called)
        self.write("ucx/configure", "#!/bin/sh\nmkdir -p src/ucs test/gtest\n"
                   "echo '#define UCX_CONFIGURE_FLAGS \"\"' > config.h\n"
                   "touch src/ucs/Makefile\n")
        self.write("ucx/src/it.c", "UCX_MODULE_DIR\n")
        self.programs(make="exit 0", dpkg_query='[ $# != 1 ] || exec echo gcc\n'
                      'printf "%s installed\\n" "$@"')
        for group in "ucp", "uct":
            for build in "one", "another":
                subprocess.run([
                    "env", "-i", f"PATH={self.top}/bin:/usr/bin:/bin",
                    f"HOME={self.top}",
                    f"{self.top}/sep/contrib/ucx-gtest.sh", "--build-only",
                    "--group", group, "--ucx-source", f"{self.top}/ucx",
                    "--build", f"{self.top}/{group}-{build}"],
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL, timeout=300, check=True)
        self.assertEqual("autogen.sh\n" * 2, self.read("log"))


class Source(Scripts):

    def sum(self, path):
        return self.shell('sep_ucx_sum "$1"', f"{self.top}/{path}")

    def test_a_tree_is_told_by_what_is_in_it(self):
        self.write("a/src/file", "it")
        shutil.copytree(f"{self.top}/a", f"{self.top}/b")
        self.assertEqual(self.sum("a"), self.sum("b"))
        self.write("b/src/file", "another")
        self.assertNotEqual(self.sum("a"), self.sum("b"))
        os.rename(f"{self.top}/a/src/file", f"{self.top}/a/src/renamed")
        self.write("c/src/file", "it")
        self.assertNotEqual(self.sum("a"), self.sum("c"))

    def test_an_archive_too(self):
        self.write("a.tar", "it")
        self.write("elsewhere/b.tar", "it")
        self.assertEqual(self.sum("a.tar"), self.sum("elsewhere/b.tar"))
        self.write("a.tar", "another")
        self.assertNotEqual(self.sum("a.tar"), self.sum("elsewhere/b.tar"))


class Paths(Scripts):
    """Of a prefix, in a tree of UCX: where it is said, and nowhere else."""

    def test_only_who_says_so_knows(self):
        self.write("work/source/src/ucs/a.c", "puts(UCX_MODULE_DIR);\n")
        self.write("work/source/src/tools/b.c", "puts(UCX_CONFIGURE_FLAGS);\n")
        self.write("work/source/src/ucs/c.c", "puts(UCX_MODULE_DIRECTORY);\n")
        self.write("work/build/config.h", "#define UCX_CONFIGURE_FLAGS "
                   f'"--prefix={self.top}/ucx -O1"\n#define HAVE_IT 1\n')
        self.write("work/build/src/ucs/Makefile",
                   "libucs_la_CPPFLAGS = -DIT \\\n"
                   '\t-DUCX_MODULE_DIR=\\"$(moduledir)\\" \\\n'
                   '\t-DUCX_CONFIG_DIR=\\"$(ucx_config_dir)\\"\n\n'
                   "all:\n\t@echo $(libucs_la_CPPFLAGS)\n")
        self.shell('sep_ucx_hide_paths "$1" "$2"', f"{self.top}/work",
                   f"{self.top}/ucx")
        self.assertEqual("#define HAVE_IT 1\n", self.read("work/build/config.h"))
        self.assertEqual("-DIT", self.shell(
            'make -s -C "$1"', f"{self.top}/work/build/src/ucs"))
        said = {name: self.shell(
            'gcc -E -P -include "$1/config.h" "$2"', f"{self.top}/work/build",
            f"{self.top}/work/source/src/{name}")
            for name in ("ucs/a.c", "tools/b.c", "ucs/c.c")}
        self.assertEqual({
            "ucs/a.c": f'puts("{self.top}/ucx/lib/ucx");',
            "tools/b.c": f'puts("--prefix={self.top}/ucx -O1");',
            "ucs/c.c": "puts(UCX_MODULE_DIRECTORY);"}, said)


if __name__ == "__main__":
    unittest.main()
