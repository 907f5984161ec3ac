# SPDX-License-Identifier: BSD-3-Clause
"""contrib/on-adapter.sh on the software device: it finds no difference, and each
thing that the device can do wrong is named by its step."""

import os
import random
import re
import shutil
import socket
import subprocess
import tarfile
import tempfile
import unittest

import nodes

SCRIPT = os.path.join(nodes.TOP, "contrib/on-adapter.sh")
OPTIONS = ("--messages", "128", "--prefix", nodes.BUILD)

# Variables of the device, options, and the step that has to name it
FAULTS = {
    "no_gid": (("MLX5SIM_LINK=roce", "MLX5SIM_GIDLESS=mlx5_0:1"), (), "port"),
    "empty_gids": (("MLX5SIM_LINK=roce", "MLX5SIM_EMPTY_GIDS=mlx5_0:1"), (),
                   "port"),
    "no_domain": (("MLX5SIM_FAIL=pd:1+",), (), "verbs"),
    "receives_fail": (("MLX5SIM_RECV_ERROR=1+:0x22:0x1",), (), "verbs"),
    "no_write_combining": (("MLX5SIM_BF=n",), (), "write-combining"),
    "few_pages": (("MLX5SIM_UARS=24",), ("--from", "inline"), "categories"),
    "few_queue_pairs": (("MLX5SIM_MAX_QP=30",), ("--from", "blueflame"),
                        "categories"),
    "no_masked_atomics": (("MLX5SIM_MASKED_ATOMICS=n",),
                          ("--from", "threads"), "atomics-4"),
    "writes_out_of_order": (("MLX5SIM_DEVX=y", "MLX5SIM_DATA_IN_ORDER=n"),
                            ("--from", "relaxed"), "rings"),
    "adaptive_routing": (("MLX5SIM_DEVX=y", "MLX5SIM_OOO_SL_MASK=65535"),
                         ("--from", "relaxed"), "rings"),
}
# Most messages are well even then: who polls has to look at a slot between two
# pieces of what is written to it
OUT_OF_ORDER = (("MLX5SIM_EXEC=deferred",
                 "MLX5SIM_PCI_WR_ORDERING=force_relax"),
                ("--from", "eager", "--messages", "100"))


def free_port():
    """A TCP port that the kernel gives to nobody who does not ask for it."""
    with open("/proc/sys/net/ipv4/ip_local_port_range",
              encoding="ascii") as file:
        first = int(file.read().split()[0])
    while True:
        port = random.randrange(1024, first)
        with socket.socket() as trial:
            try:
                trial.bind(("", port))
            except OSError:
                continue
        return port


class Adapter(unittest.TestCase):

    def names(self, step, done, archive):
        """A step is the first one to differ."""
        if f"First difference: {step}. " not in done.stdout:
            self.fail(f"not {step}: {self.why(done, archive)}")
        self.assertEqual(done.returncode, 1)

    @staticmethod
    def why(done, archive):
        """What a run has said, and the log of its last step."""
        log = ""
        found = re.findall(r"(?m)^(\S+) +(?:agrees|DIFFERS)$", done.stdout)
        if found and os.path.exists(archive):
            with tarfile.open(archive) as tar:
                log = tar.extractfile(f"on-adapter/{found[-1]}.log").read()
                log = log.decode(errors="replace")
        return f"{done.returncode}\n{done.stdout}\n{done.stderr}\n{log}"


class OneNode(Adapter):
    """A port that talks to itself."""

    def setUp(self):
        parent = tempfile.TemporaryDirectory(prefix="sep-adapter.")
        self.addCleanup(parent.cleanup)
        self.archive = f"{parent.name}/a.tar.gz"
        self.library = f"{parent.name}/libadapter.so"

    def script(self, *options, environment=(), inner=()):
        return subprocess.run(
            ["env", *environment, nodes.program("mlx5sim-run"), "--private",
             "env", *inner, SCRIPT, *OPTIONS, "--tcp", str(free_port()),
             "--output", self.archive, *options], capture_output=True,
            text=True, env=nodes.ENVIRONMENT, check=False)

    def files(self):
        with tarfile.open(self.archive) as tar:
            return tar.getnames()

    def differs(self, environment, options, step):
        done = self.script(*options, environment=environment)
        self.names(step, done, self.archive)
        self.assertIn(f"on-adapter/{step}.log", self.files())

    def test_bytes_out_of_order(self):
        """With one seed after another: on a busy machine none of the messages
        of a run may be seen half written."""
        environment, options = OUT_OF_ORDER
        for seed in range(1, 100):
            done = self.script(*options, environment=(
                *environment, f"MLX5SIM_SEED={seed}"))
            if done.returncode != 0:
                break
        self.names("eager", done, self.archive)

    @unittest.skipIf(os.environ.get("SEP_SANITIZERS"),
                     "a sanitizer wants to be loaded first")
    def test_rates(self):
        """Under another name the device is taken for an adapter."""
        shutil.copy(os.path.join(nodes.BUILD, "lib/sep/libmlx5sim.so"),
                    self.library)
        done = self.script("--from", "rings", "--messages", "10", "--rates",
                           "cx6", inner=("LD_PRELOAD=" + self.library,))
        self.assertEqual(done.returncode, 0, self.why(done, self.archive))
        for operation in ("write", "read"):
            for policy in ("per-qp", "dynamic", "mpi_threads"):
                self.assertRegex(done.stdout,
                                 rf"(?m)^  {operation} {policy} +6 ")
            self.assertIn(f"on-adapter/{operation}.tsv", self.files())


def add_tests():
    for name, row in FAULTS.items():
        setattr(OneNode, f"test_{name}",
                lambda self, row=row: self.differs(*row))


add_tests()


class TwoNodes(nodes.SwitchTest, Adapter):
    OPTIONS = ("--switch",)

    def script(self, *options):
        self.archive = os.path.join(self.cluster.parent.name, "a.tar.gz")
        return self.cluster.run(
            1, SCRIPT, *OPTIONS, "--host", "node2", "--shell",
            nodes.program("mlx5sim-ssh"), "--output", self.archive, *options,
            timeout=None)

    def switch(self, *words):
        return " ".join((nodes.program("mlx5sim-switch"), *words))

    def test_nothing_differs(self):
        done = self.script("--down", self.switch("link", "node2", "down"),
                           "--up", self.switch("link", "node2", "up"))
        self.assertTrue(done.ok, self.why(done, self.archive))
        self.assertIn("No difference", done.stdout)
        self.assertNotIn("not asked for", done.stdout)

    def test_packets_that_are_lost_on_the_way(self):
        self.good(self.cluster.run(1, "sh", "-c", self.switch("loss", "1000")))
        try:
            done = self.script("--from", "pages")
        finally:
            self.good(self.cluster.run(1, "sh", "-c", self.switch("loss", "0")))
        self.names("two-verbs", done, self.archive)

    def test_port_that_does_not_come_back(self):
        done = self.script("--down", self.switch("loss", "1000"), "--up",
                           "true", "--from", "down")
        self.good(self.cluster.run(1, "sh", "-c", self.switch("loss", "0")))
        self.names("down", done, self.archive)


if __name__ == "__main__":
    unittest.main()
