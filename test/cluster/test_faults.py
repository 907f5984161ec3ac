# SPDX-License-Identifier: BSD-3-Clause
"""Processes that die or stop, and servers of the wire that can't be had."""

import shutil
import unittest

import nodes
from mainjob import jobs
from test_jobs import Row
from test_verbs import IPV4, PORT

PINGPONG = ("ibv_rc_pingpong", "-c", "-n", "50", "-g", IPV4)
WRITES = ("ib_write_bw", "-F", "-s", "4096", "-x", IPV4, "--run_infinitely")
NO_WIRE = "no mlx5sim-wire runs here"
# The device's library is not for this program
PLAIN = ("env", "-u", "LD_PRELOAD")
# Starts a server of the wire whenever it has been killed
KEEP_WIRE = r"""
until rm -f $1; env -u LD_PRELOAD $2 --pid-file $1; do :; done
"""


class Faults(nodes.Test):

    def good_pair(self):
        self.good(*self.cluster.pair(PORT, *PINGPONG))

    def kill(self, node, number, pid):
        self.good(self.cluster.run(node, "kill", f"-{number}", str(pid)))

    def wire_ended(self, node):
        """Kill a node's server of the wire."""
        pid = self.cluster.wire_pid(node)
        self.kill(node, "KILL", pid)
        self.cluster.until(lambda: not self.cluster.run(
            node, "kill", "-0", str(pid)).ok)

    def start_wire(self, node):
        """@return a new one, which ends with the test"""
        self.cluster.run(node, "rm", "-f", nodes.WIRE_PID)
        wire = self.cluster.start(node, *PLAIN, nodes.program("mlx5sim-wire"),
                                  "--pid-file", nodes.WIRE_PID)
        self.cluster.until(lambda: self.cluster.wire_pid(node), wire)
        return wire


class Deaths(Faults):

    def setUp(self):
        self.wires = [self.cluster.wire_pid(node) for node in (1, 2)]

    def tearDown(self):
        """Servers live, the next job passes, and nothing is left."""
        for node, pid in zip((1, 2), self.wires):
            self.good(self.cluster.run(node, "kill", "-0", str(pid)))
        self.good_pair()
        for node in (1, 2):
            self.assertEqual(self.cluster.leaks(node), "")

    def wait_writes(self, count):
        """Until the client has written so often."""
        before = self.cluster.counters(2)["wqes"]
        self.cluster.until(lambda: self.cluster.counters(2)["wqes"] >=
                           before + count, self.client)

    def start_writes(self):
        server, pid = self.cluster.listen(1, PORT, *WRITES)
        self.addCleanup(self.end, server)
        self.client = self.cluster.start(2, *WRITES, "node1")
        self.wait_writes(1000)
        return server, pid

    @staticmethod
    def end(running):
        if running.poll() is None:
            running.finish()

    def test_peer_of_a_killed_process_gets_an_error(self):
        server, pid = self.start_writes()
        self.kill(1, "KILL", pid)
        result = self.client.wait(nodes.PATIENCE)
        server.wait(nodes.PATIENCE)
        self.assertFalse(result.timed_out)
        # IBV_WC_RETRY_EXC_ERR
        self.assertRegex(result.stdout + result.stderr, r"[sS]tatus 12\b")

    def test_writes_to_a_stopped_process_complete(self):
        """A connection has fewer than 1000 under way."""
        server, pid = self.start_writes()
        self.kill(1, "STOP", pid)
        self.cluster.until(lambda: self.cluster.run(
            1, "grep", "-q", "State:.*T", f"/proc/{pid}/status").ok)
        self.wait_writes(2000)
        self.kill(1, "KILL", pid)
        self.client.wait(nodes.PATIENCE)
        server.wait(nodes.PATIENCE)

    def test_job_ends_with_a_rank(self):
        row = Row("mpich", "p2p", 2)
        job = self.cluster.start(1, *row.argv()[:-1])
        self.cluster.until(lambda: self.cluster.counters(2)["bytes"] >
                           (4 << 20), job)
        ranks = self.cluster.run(2, "pgrep", "-x", "p2p.mpich").stdout.split()
        self.kill(2, "KILL", ranks[0])
        result = job.wait(nodes.PATIENCE)
        self.assertFalse(result.ok or result.timed_out, result.stdout)


class Servers(Faults):

    def refused(self, words, *argv):
        """Whichever of both is first to connect says why it can't."""
        client, server = self.cluster.pair(PORT, *argv)
        self.assertFalse(client.ok or client.timed_out)
        self.assertIn(words, client.stderr + server.stderr)

    def test_a_second_server_is_refused(self):
        result = self.cluster.run(1, *PLAIN, nodes.program("mlx5sim-wire"))
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(f"process {self.cluster.wire_pid(1)} serves this "
                      "instance already", result.stderr)
        self.good_pair()

    def other_instance(self, *words):
        return self.cluster.run(
            1, *words, *PLAIN, "MLX5SIM_DIR=/dev/shm/other",
            nodes.program("mlx5sim-wire"))

    def test_port_is_taken(self):
        result = self.other_instance()
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertRegex(result.stderr, "4791.*another mlx5sim-wire")
        self.good_pair()

    def test_two_nodes_with_one_address_are_told(self):
        """Both, by the one that starts and by the one that runs."""
        self.wire_ended(1)
        first = self.start_wire(1)
        self.wire_ended(2)
        self.good(self.cluster.run(2, "sh", "-c", "ip address flush dev eth0; "
                                   "ip address add 10.77.0.1/24 dev eth0"))
        wire = self.cluster.start(2, *PLAIN, "MLX5SIM_DIR=/dev/shm/other",
                                  "MLX5SIM_WIRE=eth0", "MLX5SIM_LINK=roce",
                                  nodes.program("mlx5sim-wire"))
        says = "another host ({}) has the address 10.77.0.1, too"
        self.cluster.until(
            lambda: says.format("02:4d:4c:58:00:01") in nodes.errors(wire),
            wire)
        self.cluster.until(
            lambda: says.format("02:4d:4c:58:00:02") in nodes.errors(first),
            first)
        wire.finish()
        self.good(self.cluster.run(2, "sh", "-c", "ip address flush dev eth0; "
                                   "ip address add 10.77.0.2/24 dev eth0; "
                                   "rm -r /dev/shm/other"))
        self.start_wire(2)
        self.good_pair()

    def test_it_needs_raw_sockets(self):
        self.wire_ended(1)
        result = self.other_instance("setpriv", "--bounding-set=-net_raw",
                                     "--inh-caps=-net_raw")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("it needs CAP_NET_RAW", result.stderr)
        self.start_wire(1)
        self.good_pair()

    def test_no_server_is_an_error_for_new_connections(self):
        self.wire_ended(2)
        self.refused(f"{NO_WIRE}; start it with MLX5SIM_DIR=", *PINGPONG)
        self.start_wire(2)
        self.good_pair()

    def killed_server(self, node):
        """The client of a connection gets an error."""
        server, pid = self.cluster.listen(1, PORT, *WRITES)
        client = self.cluster.start(2, *WRITES, "node1")
        self.progress(client, 1000)
        self.wire_ended(node)
        result = client.wait(nodes.PATIENCE)
        self.assertFalse(result.timed_out)
        self.assertRegex(result.stdout + result.stderr, r"[sS]tatus 12\b")
        self.cluster.run(1, "kill", "-KILL", str(pid))  # if it has not ended
        server.wait(nodes.PATIENCE)
        self.start_wire(node)
        self.good_pair()

    def progress(self, running, count, name="wqes", node=2):
        """Until the device has counted so many more"""
        before = self.cluster.counters(node)[name]
        self.cluster.until(lambda: self.cluster.counters(node)[name] >=
                           before + count, running)

    def test_killed_server_ends_a_connection_of_the_other_node(self):
        self.killed_server(1)

    def test_killed_server_ends_a_connection_of_its_node(self):
        self.killed_server(2)

    def keep_wire(self, node):
        """Have a server of the wire in a node whenever one was killed."""
        self.wire_ended(node)
        self.cluster.run(node, "rm", "-f", nodes.WIRE_PID)
        keeper = self.cluster.start(
            node, "sh", "-c", KEEP_WIRE, "sh", nodes.WIRE_PID,
            nodes.program("mlx5sim-wire"))
        self.addCleanup(self.end_keeper, node, keeper)
        self.cluster.until(lambda: self.cluster.wire_pid(node), keeper)
        return keeper

    def end_keeper(self, node, keeper):
        """The cluster's end does so with its successor."""
        self.kill(node, "TERM", self.cluster.wire_pid(node))
        self.good(keeper.wait(nodes.PATIENCE))
        self.start_wire(node)

    def until_other(self, node, keeper, pid):
        """Wait for the server after a killed one."""
        self.cluster.until(lambda: self.cluster.wire_pid(node) not in (0, pid),
                           keeper)

    def job_goes_on(self, node, keeper):
        """Kill a node's server under a job. @return whether it was in time"""
        row = Row("mpich", "p2p", 2)
        # Retries for as long as a server may take to start
        job = self.cluster.start(1, *row.argv()[:-1], environment=(
            "UCX_SEP_TIMEOUT=1s",))
        pid = self.cluster.wire_pid(node)
        self.progress(job, 500000, "bytes", node)
        self.kill(node, "KILL", pid)
        in_time = job.poll() is None
        result = job.wait(nodes.PATIENCE)
        self.until_other(node, keeper, pid)
        status, text, _ = jobs.judge(jobs.Job("mpich", "p2p", 4), result)
        self.assertEqual(status, "pass", f"{text}\n{result.stdout}\n"
                         f"{result.stderr}")
        return in_time

    def test_job_goes_on_with_another_server(self):
        for node in (1, 2):
            keeper = self.keep_wire(node)
            self.assertTrue(any(self.job_goes_on(node, keeper)
                                for _ in range(5)))

    def test_datagrams_go_to_another_server(self):
        keeper = self.keep_wire(2)
        argv = ("ib_send_bw", "-F", "-c", "UD", "-s", "512", "-x", IPV4,
                "--run_infinitely")
        server, pid = self.cluster.listen(1, PORT, *argv)
        client = self.cluster.start(2, *argv, "node1")
        self.progress(client, 1000, "cqes", 1)
        wire = self.cluster.wire_pid(2)
        self.kill(2, "KILL", wire)
        self.until_other(2, keeper, wire)
        self.progress(client, 1000, "cqes", 1)
        client.finish()
        self.cluster.run(1, "kill", "-KILL", str(pid))
        server.wait(nodes.PATIENCE)
        self.good_pair()

    def test_connections_go_to_another_server(self):
        """It knows those that are there, and hears of their end."""
        if shutil.which("rping") is None:
            self.skipTest("there is no rping")
        keeper = self.keep_wire(1)
        server = self.cluster.start(1, "rping", "-s", "-a", "10.77.0.1")
        client, pid = self.cluster.ping_by_cm(2, "10.77.0.1")
        wire = self.cluster.wire_pid(1)
        self.kill(1, "KILL", wire)
        self.until_other(1, keeper, wire)
        self.kill(2, "KILL", pid)
        self.assertFalse(server.wait(nodes.PATIENCE).timed_out)
        client.wait(nodes.PATIENCE)
        self.good_pair()

    def test_roce_v1_is_refused(self):
        self.refused("reached by RoCE v2 only", "ibv_rc_pingpong", "-g", "2")


if __name__ == "__main__":
    unittest.main()
