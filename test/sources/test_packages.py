# SPDX-License-Identifier: BSD-3-Clause
"""Recipes of packages are of one version: that of configure.ac. And what they are
built with is not only Debian's."""

import glob
import os
import py_compile
import re
import shutil
import subprocess
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))

# Where each recipe says it
PLACES = {
    "debian/changelog": (r"^sep \(([\d.]+)-\d+\)",),
    "rpm/sep.spec": (r"^Version: (.*)$", r"^\* .* - ([\d.]+)-\d+$"),
    "spack/ucx-sep/package.py": (r'^    version\("(.*)"\)$',
                                 r"/sep-([\d.]+)\.tar\.gz"),
    "easybuild/UCX-SEP-*.eb": (r"^version = '(.*)'$",),
    "conda/recipe.yaml": (r'^  version: "(.*)"$',),
}


def read(*path):
    with open(os.path.join(TOP, *path), encoding="utf-8") as file:
        return file.read()


def recipe(pattern):
    """The one path below packaging/ that fits."""
    path, = glob.glob(os.path.join(TOP, "packaging", pattern))
    return path


class Version(unittest.TestCase):

    def setUp(self):
        self.version, = re.findall(r"^AC_INIT\(\[sep\], \[(.*)\]\)$",
                                   read("configure.ac"), re.M)

    def test_is_that_of_configure(self):
        for pattern, places in PLACES.items():
            text = read(recipe(pattern))
            for place in places:
                with self.subTest(pattern, place=place):
                    found = re.findall(place, text, re.M)
                    self.assertTrue(found)
                    # What is new is on top
                    self.assertEqual(self.version, found[0])

    def test_name_of_the_easyconfig(self):
        path = recipe("easybuild/UCX-SEP-*.eb")
        self.assertTrue(os.path.basename(path).startswith(
            f"UCX-SEP-{self.version}-GCCcore-"))

    def test_no_recipe_is_forgotten(self):
        kinds = {name.split("/")[0] for name in PLACES}
        # These take what is installed, or the packages
        without = {"apptainer", "docker", "modules"}
        self.assertEqual(kinds | without, set(os.listdir(
            os.path.join(TOP, "packaging"))))
        for kind in without:
            for path in glob.glob(os.path.join(TOP, "packaging", kind, "*")):
                self.assertNotIn(self.version, read(path), path)

    def test_what_is_python_compiles(self):
        with tempfile.TemporaryDirectory(prefix="sep-packages.") as top:
            for pattern in ("spack/ucx-sep/package.py",
                            "easybuild/UCX-SEP-*.eb"):
                py_compile.compile(recipe(pattern), f"{top}/compiled",
                                   doraise=True)


class Dependencies(unittest.TestCase):
    """sep_install_deps, with few programs to be found."""

    def install(self, **programs):
        with tempfile.TemporaryDirectory(prefix="sep-deps.") as top:
            for name in ("awk", "dirname", "sort"):
                os.symlink(shutil.which(name), f"{top}/{name}")
            for name, text in programs.items():
                path = f"{top}/{name.replace('_', '-')}"
                with open(path, "w", encoding="utf-8") as file:
                    file.write(f"#!/bin/sh\n{text}\n")
                os.chmod(path, 0o755)
            return subprocess.run(
                [shutil.which("bash"), "-euc",
                 '. "$0/contrib/lib.sh"; sep_install_deps rpm; echo "goes on"',
                 TOP], env={"PATH": top}, capture_output=True, text=True,
                check=False, timeout=60)

    def test_without_dpkg_it_goes_on(self):
        done = self.install()
        self.assertEqual((0, "goes on\n"), (done.returncode, done.stdout),
                         done.stderr)
        self.assertIn("rpmlint", done.stderr)

    def test_without_apt_nothing_can_be_installed(self):
        done = self.install(dpkg_query="echo rpm installed; exit 1")
        self.assertEqual(1, done.returncode)
        self.assertNotIn("goes on", done.stdout)
        self.assertRegex(done.stderr, r"debugedit.* rpmlint$")


if __name__ == "__main__":
    unittest.main()
