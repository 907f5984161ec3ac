# SPDX-License-Identifier: BSD-3-Clause
"""Where no other Debian can be made, that has a name and is no success."""

import os
import shutil
import subprocess
import tempfile
import time
import unittest
from unittest import mock

from runner import junit, roots
from runner.result import FAILED, PASSED, SKIPPED, Result

SCRIPT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..",
                      "contrib", "debian-root.sh")

# A machine on which all goes well as far as the script can tell
MACHINE = {
    "id": "echo 0",
    "unshare": """
while [[ $1 == --* ]]; do
    [[ $1 != --propagation ]] || shift
    shift
done
exec "$@\"""",
    "apt-config": "true",
    "apt-get": """
[[ $1 != indextargets ]] || echo "Debian main bookworm file:/nowhere\"""",
    "debootstrap": "true",
}


class Script(unittest.TestCase):

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.top = temporary.name
        os.mkdir(f"{self.top}/bin")

    def run_script(self, *options, suite="trixie", root="root", kept=(),
                   **changes):
        """Status and last line, on a machine with other programs."""
        for name, text in {**MACHINE, **changes}.items():
            path = f"{self.top}/bin/{name}"
            if text is None:
                continue
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/bash\n{text}\n")
            os.chmod(path, 0o755)
        done = subprocess.run(
            [SCRIPT, *options, "--suite", suite,
             f"{self.top}/{root}"],
            env={"PATH": f"{self.top}/bin:/usr/bin:/bin",
                 "SEP_CACHE_DIR": f"{self.top}/cache", "HOME": self.top,
                 **dict(kept)},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, check=False, timeout=300)
        log = f"{self.top}/log"
        with open(log, "w", encoding="utf-8") as file:
            file.write(done.stdout)
        return done.returncode, roots.skip_reason(log) or "", done.stdout

    def check_skipped(self, reason, **changes):
        status, said, output = self.run_script(**changes)
        self.assertEqual((77, reason), (status, said.partition(":")[0]),
                         output)

    def test_user_is_not_root(self):
        self.check_skipped("privilege", id="echo 1000")

    def test_root_of_a_container(self):
        self.check_skipped("privilege", unshare="exit 1")
        self.check_skipped("privilege", debootstrap=
                           "echo 'E: Cannot install into target mounted with "
                           "noexec or nodev'; exit 1")

    @unittest.skipIf(any(os.path.exists(f"{path}/debootstrap")
                         for path in ("/usr/bin", "/bin")), "it is there")
    def test_no_debootstrap(self):
        self.check_skipped("debootstrap", debootstrap=None)

    def test_no_mirror(self):
        self.check_skipped("network", **{"apt-get": "true"})
        self.check_skipped("network", **{"apt-get": "echo Other main bookworm "
                                         "file:/nowhere"})
        self.check_skipped("network", debootstrap="echo 'E: Failed getting "
                           "release file file:/nowhere'; exit 1")

    def test_suite_that_is_not_known(self):
        self.check_skipped("suite", suite="next",
                           debootstrap="echo 'E: No such script'; exit 1")

    def test_what_should_work_and_does_not_has_failed(self):
        status, said, output = self.run_script(
            debootstrap="echo 'E: Something else'; exit 1")
        self.assertEqual((1, ""), (status, said), output)
        self.assertIn("Something else", output)

    def test_directory_of_somebody_else_is_left_alone(self):
        os.mkdir(f"{self.top}/root")
        with open(f"{self.top}/root/mine", "w", encoding="utf-8"):
            pass
        status, said, output = self.run_script()
        self.assertEqual((1, ""), (status, said), output)
        self.assertEqual(["mine"], os.listdir(f"{self.top}/root"))

    def test_root_is_kept_for_two_weeks(self):
        machine = {
            "chroot": "true", "debootstrap": """
while [[ $1 == --* ]]; do shift; done
mkdir -p "$2"/{etc/apt/apt.conf.d,etc/dpkg/dpkg.cfg.d,usr/sbin}
touch "$2/made\"""",
            # Nothing is run in the root, which has no programs
            "unshare": """
[[ " $* " == *" debootstrap "* ]] || exit 0
while [[ $1 != debootstrap ]]; do shift; done
exec "$@\""""}
        kept = f"{self.top}/kept"

        def make(root, groups="", **changes):
            status, said, output = self.run_script(
                "--groups", groups, root=root, kept=[("SEP_KEPT_DIR", kept)],
                **{**machine, **changes})
            self.assertEqual((0, ""), (status, said), output)
            self.assertTrue(os.path.exists(f"{self.top}/{root}/made"))
            return "making Debian" in output

        self.assertTrue(make("first"))
        # Up to date, from where this machine has its packages now
        self.assertFalse(make("second", **{"apt-get": """
[[ $1 != indextargets ]] || echo "Debian main bookworm file:/elsewhere\""""}))
        with open(f"{self.top}/second/etc/apt/sources.list",
                  encoding="utf-8") as file:
            self.assertIn(" file:/elsewhere trixie main", file.read())
        old = time.time() - 15 * 24 * 3600
        os.utime(f"{kept}/debian-trixie/root-bare", (old, old))
        self.assertTrue(make("third"))
        self.assertFalse(make("fourth"))
        # One with packages begins as a bare one, which never has them
        self.assertFalse(make("fifth", groups="build"))
        shutil.rmtree(f"{kept}/debian-trixie/root-bare")
        self.assertTrue(make("sixth"))
        shutil.rmtree(f"{self.top}/fourth")
        kept = ""
        self.assertTrue(make("fourth"))

    def test_root_comes_from_the_mirror_with_the_suite_in_its_place(self):
        status, _, output = self.run_script(
            debootstrap="echo \"$@\"; exit 1", **{"apt-get": """
[[ $1 != indextargets ]] || cat << EOF
Debian main bookworm-security file:/security/
Debian contrib bookworm file:/contrib/
Other main bookworm file:/other/
Debian main bookworm file:/debian/
EOF"""})
        self.assertEqual(1, status, output)
        self.assertRegex(output, r" trixie \S+/root file:/debian/\n")


class Command(unittest.TestCase):

    def test_warnings_of_its_compiler_are_errors(self):
        session = mock.Mock(top="/top")
        session.directory.return_value = "/top/results"
        session.command.return_value = mock.Mock(killed=False), 1.0
        run = roots.Run(session, "debian13", mock.Mock(
            directory="root", source_variable="SEP_NO_SUCH", suite="trixie"))
        run._command("demo", 1, "contrib/demo.sh")
        self.assertIn("--enable-werror", dict(
            each.partition("=")[::2] for each in
            session.command.call_args.args[3])["SEP_DEMO_CONFIGURE"].split())


class Plan(unittest.TestCase):

    def planned(self, *wanted):
        """Names of tasks, with what they need and whether they are alone."""
        session = mock.Mock(top="/top")
        session.options.list = False
        session.wanted = lambda part, run, name: name in wanted
        session.builds.configure_script.return_value.title = "autogen"
        session.task = lambda part, run, name, action, needs, **how: mock.Mock(
            title=name.partition(" ")[2], needs=needs, how=how)
        tasks = []
        run = roots.Run(session, "debian13", mock.Mock(directory="root",
                                                       run="Debian"))
        task = run._task
        run._task = lambda *what, **how: tasks.append(task(*what, **how)) or \
            tasks[-1]
        run.plan()
        return [(each.title, [need.title for need in each.needs],
                 each.how.get("alone", False)) for each in tasks]

    def test_jobs_alone_are_alone(self):
        self.assertEqual([("root", ["autogen"], False),
                          ("build", ["root"], False),
                          ("tests", ["build"], False),
                          ("demo", ["build"], True)],
                         self.planned("demo", "tests"))
        self.assertEqual([], self.planned())


class Packages(unittest.TestCase):

    def outcome(self, *statuses, build=""):
        """What is said of packages when the commands end so."""
        with tempfile.TemporaryDirectory() as top:
            session = mock.Mock(top=top, **{
                "directory.return_value": top, "command.side_effect": [
                    (mock.Mock(killed=False, status=status, cpu=1.0), 1.0)
                    for status in statuses]})
            for name, text in (("build", build), ("deb", "deb-use"), (
                    "deb-use", "debian-root.sh: skipped: network: none")):
                with open(f"{top}/{name}.log", "w", encoding="utf-8") as file:
                    file.write(text)
            run = roots.Run(session, "debian13", mock.Mock(
                directory="root", source_variable="SEP_NO_SUCH", suite="sid",
                run="Debian"))
            run._packages()
            self.assertEqual(len(statuses), session.command.call_count)
            return [(result.test, result.status) for call in
                    session.add.call_args_list for result in call.args[0]]

    def test_are_made_and_then_used(self):
        made, used = "packages are made", "packages are used"
        self.assertEqual([(made, PASSED), (used, PASSED)], self.outcome(0, 0))
        self.assertEqual([(made, PASSED), (used, FAILED)], self.outcome(0, 1))
        self.assertEqual([(made, PASSED), (used, SKIPPED)],
                         self.outcome(0, 77))
        self.assertEqual([(made, FAILED)], self.outcome(1))
        self.assertEqual([(made, SKIPPED)], self.outcome(
            build="==> The transport was not built (no source): on rc\n"))


class Results(unittest.TestCase):

    def test_of_another_runner_are_read(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "junit.xml")
            self.assertEqual([], roots.results_of_junit("p", "r", path))
            junit.write(path, [
                Result("unit", "sim_gtest", "suite.good", PASSED, 0.5),
                Result("unit", "sim_gtest", "suite.bad", FAILED, 0.5, "why"),
                Result("unit", "sim_gtest", "suite.not", SKIPPED, 0.5, "no")])
            found = roots.results_of_junit("p", "r", path)
        self.assertEqual(
            [("unit.sim_gtest.suite.good", PASSED, ""),
             ("unit.sim_gtest.suite.bad", FAILED, "why"),
             ("unit.sim_gtest.suite.not", SKIPPED, "no")],
            [(each.test, each.status, each.reason) for each in found])

    def test_of_endpoint_jobs_have_their_reasons(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "log")
            with open(path, "w", encoding="utf-8") as file:
                file.write("\n".join("\t".join(words) for words in (
                    ("debian-root.sh: it is there",),
                    ("ranks", "library", "transport", "category", "threads",
                     "cq", "postlist", "result", "qps"),
                    ("2", "mpich", "sep_mlx5", "static", "4", "1", "8", "pass",
                     "8"),
                    ("2", "mpich", "sep_mlx5", "static", "1", "1", "8", "fail",
                     "-"),
                    ("    fail: it hung",), ("    and more",),
                    ("2", "mpich", "sep_mlx5", "dynamic", "1", "4", "1", "skip",
                     "-"),
                    ("    skip: it can't be",), ("1 passed, 1 failed",))))
            found = roots.results_of_endpoints("p", "r", path)
        name = "endpoints mpich sep_mlx5 "
        self.assertEqual(
            [(name + "static, 4 threads, CQ sharing 1, postlist 8", PASSED, ""),
             (name + "static, 1 threads, CQ sharing 1, postlist 8", FAILED,
              "fail: it hung"),
             (name + "dynamic, 1 threads, CQ sharing 4, postlist 1", SKIPPED,
              "skip: it can't be")],
            [(each.test, each.status, each.reason) for each in found])

    def test_transport_that_was_not_built_is_named(self):
        self.assertIsNone(roots.not_built("/nowhere/log"))
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
            file.write("==> Running\n")
            file.flush()
            self.assertIsNone(roots.not_built(file.name))
            file.write("==> The transport was not built (no source): on rc\n")
            file.flush()
            self.assertEqual("not built (no source)",
                             roots.not_built(file.name))


if __name__ == "__main__":
    unittest.main()
