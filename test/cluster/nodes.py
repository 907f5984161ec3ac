# SPDX-License-Identifier: BSD-3-Clause
"""Nodes of mlx5sim-cluster, and what tests do in them."""

import os
import re
import signal
import subprocess
import tempfile
import time
import unittest

from mainjob import device, process

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.path.realpath(os.environ.get("SEP_BUILD_DIR", TOP))
HERE = os.path.dirname(os.path.realpath(__file__))
WIRE_PID = "/dev/shm/mlx5sim-wire.pid"
PATIENCE = process.PATIENCE

# Nothing of the variables by which a device is made another one
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if not name.startswith(("MLX5SIM_", "UCX_"))}

# As main_job has them; sep-run sets the rest
ENVIRONMENT.update({
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_opal_common_ucx_opal_mem_hooks": "0"})

# Starts a server, and says when it listens, and its process
_LISTEN = r"""
port=$1; shift
"$@" &
pid=$!
until grep -q ":$port 0*:0000 0A" /proc/net/tcp /proc/net/tcp6 2> /dev/null
do kill -0 $pid || exit 1; sleep 0.02; done
echo "listens $pid"
wait $pid
"""

# Until it is killed; not if it is rejected, as nobody listens yet
_PING = r"""
while :; do
    rping -c -v -a $1 &
    echo "pid $!"
    wait $!
    [ $? != 137 ] || exit 1
done
"""


def program(name):
    return os.path.join(BUILD, "bin", name)


def why_not():
    """Why nodes can't be made on this machine; empty if they can."""
    result = subprocess.run(
        [program("mlx5sim-cluster"), "--nodes", "1", "true"], text=True,
        env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, check=False)
    # Without a reason of this kind, tests say what is wrong
    return result.stderr.strip() if "no cluster here" in result.stderr or \
        "no bridge here" in result.stderr else ""


def _said(file):
    # Not by its offset, which the process has, too
    return os.pread(file.fileno(), 1 << 20, 0).decode(errors="replace")


def output(running):
    """What a process has said up to now."""
    return _said(running.stdout_file)


def errors(running):
    """The same, of its errors."""
    return _said(running.stderr_file)


class Cluster:
    """From its making to down(). The processes in it end with it."""

    def __init__(self, nodes, *options, environment=()):
        self.parent = tempfile.TemporaryDirectory(prefix="cluster")
        self.dir = os.path.join(self.parent.name, "c")
        self.environment = dict(ENVIRONMENT,
                                **dict(each.split("=", 1) for each in
                                       environment))
        self.result = None
        up = os.path.join(self.parent.name, "up")
        self.running = process.Process(
            [program("mlx5sim-cluster"), "--nodes", nodes, "--dir", self.dir,
             *options, "sh", "-c", "trap 'exit 0' TERM; > $0; while :; do "
             "sleep 3600 & wait; done", up], self.environment)
        try:
            self.until(lambda: os.path.exists(up))
        except AssertionError:
            raise AssertionError(self.down().stderr) from None

    def until(self, condition, running=None):
        """Wait, unless a process ends."""
        running = running or self.running
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if running.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"{running.argv[-4:]} has ended, or hangs")
            time.sleep(0.01)

    def argv(self, node, *argv):
        return [program("mlx5sim-cluster"), "exec", "--dir", self.dir,
                f"node{node}", *argv]

    def start(self, node, *argv, environment=()):
        added = dict(each.split("=", 1) for each in environment)
        return process.Process(self.argv(node, *argv),
                               dict(self.environment, **added))

    def run(self, node, *argv, environment=(), timeout=PATIENCE):
        return self.start(node, *argv, environment=environment).wait(timeout)

    def listen(self, node, port, *argv, environment=()):
        """Start a server. @return it, and its process in the node."""
        running = self.start(node, "sh", "-c", _LISTEN, "sh", f"{port:04X}",
                             *argv, environment=environment)
        try:
            self.until(lambda: "listens " in output(running), running)
        except AssertionError:
            result = running.finish()
            raise AssertionError(result.stdout + result.stderr) from None
        return running, int(re.search(r"listens (\d+)", output(running))[1])

    def pair(self, port, *argv, options=(), environment=()):
        """A server in the first node, and a client in the second one."""
        server, _ = self.listen(1, port, *argv, environment=environment)
        try:
            client = self.run(2, *argv, *options, "node1",
                              environment=environment)
        except BaseException:
            server.finish()
            raise
        # A client that could not start leaves it waiting for ever
        return client, server.wait(PATIENCE if client.ok else 0)

    def pair_by_cm(self, server_argv, client_argv, environment=()):
        """The same of programs on librdmacm. Who comes before the server
        listens is rejected, and comes again."""
        server = self.start(1, *server_argv, environment=environment)
        deadline = time.monotonic() + PATIENCE
        try:
            while True:
                client = self.run(2, *client_argv, environment=environment)
                if client.ok or time.monotonic() > deadline:
                    break
                ended = server.poll() is not None
                if ended and "REJECTED, error: 8" not in client.stdout:
                    break
                # Only the last of its connections met a listener; or the
                # second of perftest's came too early, which 4.5 does not
                # survive and its server waits for
                if ended or "Failed to connect RDMA CM events" in client.stderr:
                    server.finish()
                    server = self.start(1, *server_argv,
                                        environment=environment)
        except BaseException:
            server.finish()
            raise
        return client, server.wait(PATIENCE if client.ok else 0)

    def ping_by_cm(self, node, address):
        """Have rping talk to the one at an address, for ever.
        @return what runs until it is killed, and its process in the node"""
        running = self.start(node, "sh", "-c", _PING, "sh", address)
        self.until(lambda: "ping-9:" in output(running), running)
        return running, int(re.findall(r"pid (\d+)", output(running))[-1])

    def counters(self, node):
        """What the device of a node has counted."""
        result = self.run(node, program("mlx5sim-stat"), "--json", "--all")
        return device.parse_counters(result.stdout)

    def wire_pid(self, node):
        result = self.run(node, "cat", WIRE_PID)
        return int(result.stdout) if result.ok else 0

    def leaks(self, node):
        """What is wrong with a node when all its programs have ended."""
        result = self.run(node, program("mlx5sim-stat"), "--check-leaks")
        return "" if result.ok else result.stdout + result.stderr

    def down(self):
        """@return the result, with the messages of the servers of the wire;
        its status says whether devices have complained."""
        if self.result is None:
            if self.running.poll() is None:
                os.kill(self.running.pid, signal.SIGTERM)
            self.result = self.running.wait(PATIENCE)
            self.parent.cleanup()
        return self.result


class Test(unittest.TestCase):
    """Tests that share a cluster."""
    NODES = 2
    OPTIONS = ()
    ENVIRONMENT = ()

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(cls.NODES, *cls.OPTIONS,
                              environment=cls.ENVIRONMENT)

    @classmethod
    def tearDownClass(cls):
        leaks = "".join(cls.cluster.leaks(node + 1)
                        for node in range(cls.NODES))
        result = cls.cluster.down()
        if leaks:
            raise AssertionError(leaks)
        if result.returncode != 0:
            raise AssertionError(result.stdout + result.stderr)

    def good(self, *results):
        for result in results:
            self.assertTrue(result.ok, f"{result.argv}\n{result.why()}\n"
                            f"{result.stdout}\n{result.stderr}")


class SwitchTest(Test):
    """Those whose OPTIONS have --switch, which not all machines can have."""

    @classmethod
    def setUpClass(cls):
        try:
            super().setUpClass()
        except AssertionError as error:
            if "no --switch here" not in str(error):
                raise
            raise unittest.SkipTest(str(error)) from None
