# SPDX-License-Identifier: BSD-3-Clause
"""contrib/on-adapter.sh with programs that only say how they were called. Of each
thing that an adapter might not do, the first step that uses it has to be the one
that names it. What the software device can do wrong is tried in
test/cluster/test_adapter.py."""

import os
import re
import socket
import subprocess
import tarfile
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
SCRIPT = os.path.join(TOP, "contrib/on-adapter.sh")

# What stands in for sep_perf, sep_info and ibv_devinfo
PROGRAM = r"""#!/bin/sh
# Variables, and the words of the command, each between blanks
said=" ${0##*/} $(env | grep ^UCX_SEP_ | sort | tr '\n' ' ')$* "
case $said in
*' --listen '*)
    exec python3 -c 'import socket, sys
with socket.create_server(("", int(sys.argv[1]))) as server:
    while True:
        server.accept()' "$2" ;;
esac
echo "${SEP_STEP-}:$said" >> "$SAID"
case $said in
*" $BREAKS "*)       exit 1 ;;
*' -n 1000000000 '*) exit 3 ;;
' ibv_devinfo '*)    echo "PORT_ACTIVE GID[  0]: fe80::1 of $(hostname) 10.1.2.3" ;;
' sep_info '*)       printf 'ring_sent  12\nBlueFlame register: 512\natomics, 32 bits:   add\n' ;;
esac
"""

NO = "^$"                       # nothing
OURS = "--level uct"
THEIRS = "API=|rc_mlx5"

# What is broken, what is not though it looks like that, and the step to say so
BROKEN = (
    ("ibv_devinfo", NO, "port"),
    ("--level verbs", NO, "verbs"),
    ("--tl rc_mlx5", NO, "rc_mlx5"),
    ("API=verbs", NO, "connect"),
    ("API=verbs.* -b (4000|200000) ", NO, "sep-verbs"),
    ("API=wr", NO, "sep-wr"),
    (OURS, THEIRS, "doorbell"),
    (OURS, THEIRS + "|TX_MAX_INLINE=0", "inline"),
    (OURS, THEIRS + "|no-postlist", "lists"),
    ("TX_INLINE_RESP=32", NO, "inline-receive"),
    (OURS, THEIRS + "|TX_INLINE_RESP=0", "inline-receive"),
    ("RX_INLINE=64", NO, "inline-receive-64"),
    ("sep_info -d", NO, "write-combining"),
    ("TX_POST=bf", NO, "blueflame"),
    (OURS, THEIRS + "|TX_POST=db", "blueflame"),
    ("TX_POST=bf.* -b (120|200) ", NO, "blueflame-long"),
    ("sep_info.* -w 16", NO, "categories"),
    ("sep_perf.* -s [a-z_0-9]*dynamic", NO, "pages"),
    ("--level verbs.* --host ", NO, "two-verbs"),
    ("--host ", "--level verbs", "two-sep"),
    (" -t 4 ", NO, "threads"),
    ("mpi_threads", NO, "mpi_threads"),
    (" -n 1000000000 ", NO, "killed"),
    ("RELAXED_ORDERING=on", NO, "relaxed"),
    ("sep_info.*EAGER=y|EAGER=y.*sep_info", NO, "rings"),
    ("sep_perf.*EAGER=y", NO, "eager"),
)


class OnAdapter(unittest.TestCase):

    def setUp(self):
        parent = tempfile.TemporaryDirectory(prefix="sep-adapter.")
        self.addCleanup(parent.cleanup)
        self.top = parent.name
        os.mkdir(os.path.join(self.top, "bin"))
        for name in ("sep_perf", "sep_info", "ibv_devinfo"):
            path = os.path.join(self.top, "bin", name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(PROGRAM)
            os.chmod(path, 0o755)

    def run_script(self, *options, breaks="nothing"):
        with socket.socket() as free:
            free.bind(("", 0))
            port = free.getsockname()[1]
        path = os.path.join(self.top, "bin") + ":" + os.environ["PATH"]
        return subprocess.run(
            [SCRIPT, "--prefix", self.top, "--tcp", str(port), "--output",
             os.path.join(self.top, "archive.tar.gz"), *options],
            capture_output=True, text=True, timeout=300, check=False,
            env=dict(os.environ, PATH=path, BREAKS=breaks,
                     SAID=os.path.join(self.top, "said")))

    def said(self):
        """(step, how a program was called), in order."""
        with open(os.path.join(self.top, "said"), encoding="utf-8") as file:
            lines = [line.rstrip("\n").split(":", 1) for line in file]
        return [(step, call) for step, call in lines if step]

    def test_each_thing_is_named_by_the_step_that_adds_it(self):
        done = self.run_script("--peer", "mlx5_1:1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        said = self.said()
        for breaks, but, step in BROKEN:
            with self.subTest(breaks=breaks, but=but):
                first = next(each for each, call in said
                             if re.search(breaks, call) and
                             not re.search(but, call))
                self.assertEqual(first, step)

    def test_what_fails_is_named_and_nothing_comes_behind_it(self):
        done = self.run_script(breaks="UCX_SEP_API=wr")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"(?m)^sep-wr +DIFFERS$")
        self.assertIn("First difference: sep-wr. Suspect: libibverbs' ext",
                      done.stdout)
        self.assertEqual(self.said()[-1][0], "sep-wr")

    def test_no_step_is_left_out_of_that(self):
        steps = self.run_script("--list").stdout.splitlines()
        self.assertGreater(len(steps), 20)
        self.assertEqual({line.split(":")[0] for line in steps} -
                         # Not here; asks what was asked for another one
                         {"down", "atomics-4"},
                         {step for _, _, step in BROKEN})
        for line in steps:
            self.assertRegex(line, r"^\S+: \S.{20}")

    def test_one_port(self):
        done = self.run_script()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("No difference", done.stdout)
        for name in ("two-verbs", "two-sep", "down"):
            self.assertRegex(done.stdout, rf"(?m)^{name} +not asked for$")

    def test_all_of_them_if_asked(self):
        done = self.run_script("--all", breaks="UCX_SEP_API=wr")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"(?m)^sep-wr +DIFFERS$")
        self.assertRegex(done.stdout, r"(?m)^eager +agrees$")
        self.assertIn("First difference: sep-wr. ", done.stdout)

    def test_archive_names_nobody(self):
        def text():
            with tarfile.open(os.path.join(self.top, "archive.tar.gz")) as tar:
                names = {os.path.basename(name): name
                         for name in tar.getnames()}
                self.assertLessEqual({"inventory.txt", "summary.txt",
                                      "port.log", "eager.log"}, set(names))
                return tar.extractfile(names["port.log"]).read().decode()
        self.assertEqual(self.run_script().returncode, 0)
        self.assertIn("PORT_ACTIVE GID[  0]: ADDRESS of NAME ADDRESS", text())
        self.assertEqual(self.run_script("--names").returncode, 0)
        self.assertIn("fe80::1 of " + socket.gethostname() + " 10.1.2.3",
                      text())

    def test_port_is_cut_off_only_if_asked(self):
        mark = os.path.join(self.top, "mark")
        done = self.run_script("--down", f"echo down >> {mark}", "--up",
                               f"echo up >> {mark}")
        self.assertEqual(done.returncode, 0, done.stdout)
        with open(mark, encoding="utf-8") as file:
            self.assertEqual(file.read(), "down\nup\n")

    def test_nonsense(self):
        for options in (("--port", "mlx5_0"), ("--from", "none"),
                        ("--nothing",), ("--tcp",),
                        ("--down", "true"), ("--prefix", "/nowhere")):
            done = self.run_script(*options)
            self.assertEqual(done.returncode, 2, options)
            self.assertTrue(done.stderr.startswith("on-adapter.sh: "),
                            done.stderr)


if __name__ == "__main__":
    unittest.main()
