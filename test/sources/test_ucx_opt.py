# SPDX-License-Identifier: BSD-3-Clause
"""What contrib/ucx.sh says of sources and builds of UCX that the optimisations are
not for, and which of them a release has. SEP_DEBIAN13_UCX_SOURCE and
SEP_NEWEST_UCX_SOURCE name sources of two of the releases."""

import glob
import os
import re
import subprocess
import tempfile
import unittest

TOP     = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
CONTRIB = os.path.join(TOP, "contrib")


class BadInput(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = folder.name

    def write(self, name, text):
        path = os.path.join(self.top, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def source(self, release):
        """Of a UCX's source what says which release it is."""
        self.write("ucx/src/uct/base/uct_iface.h", "")
        self.write("ucx/configure.ac", "".join(
            f"define([ucx_ver_{part}], {value})\n" for part, value in
            zip(("major", "minor", "patch"), release.split("."))))
        return os.path.join(self.top, "ucx")

    def refused(self, *words):
        """What is said when a command of the scripts, or a script, fails."""
        result = subprocess.run(
            ["/bin/bash", "-euc",
             f'. {CONTRIB}/lib.sh; . {CONTRIB}/ucx.sh; "$@"', "it", *words],
            capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL)
        self.assertNotEqual(0, result.returncode, result.stdout)
        return result.stderr

    def patch(self, release, source):
        return self.refused("sep_ucx_patch", source, release, "all",
                            os.path.join(self.top, "log"))

    def test_another_release_is_named_with_what_is_supported(self):
        said = self.refused(f"{CONTRIB}/build-ucx-opt.sh", "--ucx-source",
                            self.source("1.20.1"), f"{self.top}/prefix")
        self.assertIn("there are no optimisations for UCX 1.20.1, only for "
                      "1.13.1, 1.18.1, 1.22.0", said)

    def test_a_source_without_the_file_of_a_patch(self):
        said = self.patch("1.22.0", self.source("1.22.0"))
        self.assertIn("0001-sep-transport.patch, which is for UCX 1.22.0, does "
                      f"not apply to {self.top}/ucx: ", said)

    def test_the_hunk_is_named_that_does_not_apply(self):
        source = self.source("1.18.1")
        self.write("ucx/src/ucp/core/ucp_context.c", "not what it was\n")
        self.assertRegex(self.patch("1.18.1", source),
                         r"does not apply to .*hunk 1 of src/ucp/core/"
                         r"ucp_context\.c \(line \d+\)")

    def test_a_release_that_is_patched_already(self):
        source = self.source("1.22.0")
        for name in ("Makefile.am", "configure.m4"):
            self.write(f"ucx/src/uct/ib/{name}", "")
        self.write("ucx/src/ucp/core/ucp_context.c",
                   '  { "dc_x",  { "dc_mlx5", UCP_TL_AUX("ud_mlx5"), NULL } },\n'
                   '  { "sep",   { "sep_mlx5", NULL } },\n'
                   '  { "ugni",  { "ugni_smsg", UCP_TL_AUX("ugni_udt"), '
                   '"ugni_rdma", NULL } },\n')
        self.assertIn("src/ucp/core/ucp_context.c is patched already",
                      self.patch("1.22.0", source))

    def test_no_source_of_ucx(self):
        os.mkdir(f"{self.top}/none")
        for what, words in (("none", "is no source of UCX"),
                            ("missing", "no such directory or archive")):
            self.assertIn(words, self.refused(
                f"{CONTRIB}/build-ucx-opt.sh", "--ucx-source",
                f"{self.top}/{what}", f"{self.top}/prefix"))

    def test_a_build_of_one_release_for_the_source_of_another(self):
        self.write("prefix/include/uct/api/version.h",
                   '#define UCT_VERNO_STRING    "1.18.1"\n')
        for prefix, words in (("prefix", "has UCX 1.18.1, but 1.22.0 is wanted"),
                              ("none", "has UCX of an unknown release, but")):
            self.assertIn(words, self.refused(
                "sep_ucx_expect_release", f"{self.top}/{prefix}", "1.22.0"))


class Series(unittest.TestCase):
    """The patches of a release."""

    OPT = os.path.join(TOP, "src/ucp/opt")

    def text(self, pattern):
        found = sorted(glob.glob(os.path.join(self.OPT, pattern)))
        self.assertNotEqual([], found, pattern)
        result = ""
        for name in found:
            with open(name, encoding="utf-8") as file:
                result += file.read()
        return result

    def variables(self, minor):
        """The variables that UCX 1.MINOR reads, of the tables in the sources."""
        names = set()
        for table in re.findall(r"_opt_config_table\[\] = \{\n(.*?)\{NULL\}",
                                self.text("tree/src/ucp/opt/ucp_opt.c") +
                                self.text("tree/src/uct/ib/opt/ib_opt.c"), re.S):
            table = re.sub(
                r"^#if UCX_OPT_SINCE\((\d+)\)\n(.*?)^#endif\n",
                lambda match: match[2] if minor >= int(match[1]) else "", table,
                flags=re.M | re.S)
            self.assertNotIn("#", table)
            names.update(re.findall(r'^    \{"(\w+)"', table, re.M))
        return names

    def test_a_release_reads_the_variables_of_its_patches_and_no_others(self):
        # UCX warns of others, as nobody has read them
        for release in ("1.13.1", "1.18.1", "1.22.0"):
            switches = re.findall(r"^Switch: UCX_OPT_(\w+)=", self.text(
                f"patches/{release}/*.patch"), re.M)
            self.assertEqual(set(switches),
                             self.variables(int(release.split(".")[1])), release)

    def applies(self, variable, release):
        source = os.environ.get(variable, "")
        if not source:
            self.skipTest(f"{variable} is not set")
        with tempfile.TemporaryDirectory() as folder:
            result = subprocess.run(
                ["/bin/bash", "-euc", f". {CONTRIB}/lib.sh; . {CONTRIB}/ucx.sh\n"
                 'tree=$(sep_ucx_tree "$1")\n'
                 'sep_ucx_release "$tree"\n'
                 'sep_ucx_copy "$tree" "$2/ucx"\n'
                 'sep_ucx_patch "$2/ucx" "$3" all "$2/log"', "it", source,
                 folder, release], capture_output=True, text=True, check=False,
                stdin=subprocess.DEVNULL)
            self.assertEqual((0, release + "\n"),
                             (result.returncode, result.stdout), result.stderr)

    def test_that_of_1_18_1_applies(self):
        self.applies("SEP_DEBIAN13_UCX_SOURCE", "1.18.1")

    def test_that_of_1_22_0_applies(self):
        self.applies("SEP_NEWEST_UCX_SOURCE", "1.22.0")


if __name__ == "__main__":
    unittest.main()
