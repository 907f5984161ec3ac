# SPDX-License-Identifier: BSD-3-Clause
"""Processes that die or stop, and servers of the wire that can't be had."""

import unittest

import nodes
from test_jobs import Row
from test_verbs import IPV4, PORT

PINGPONG = ("ibv_rc_pingpong", "-c", "-n", "50", "-g", IPV4)
WRITES = ("ib_write_bw", "-F", "-s", "4096", "-x", IPV4, "--run_infinitely")
NO_WIRE = "no mlx5sim-wire runs here"
# The device's library is not for this program
PLAIN = ("env", "-u", "LD_PRELOAD")


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

    def test_killed_server_ends_a_connection_of_the_other_node(self):
        server, pid = self.cluster.listen(1, PORT, *WRITES)
        client = self.cluster.start(2, *WRITES, "node1")
        before = self.cluster.counters(2)["wqes"]
        self.cluster.until(lambda: self.cluster.counters(2)["wqes"] >=
                           before + 1000, client)
        self.wire_ended(1)
        result = client.wait(nodes.PATIENCE)
        self.assertFalse(result.timed_out)
        self.assertRegex(result.stdout + result.stderr, r"[sS]tatus 12\b")
        self.cluster.run(1, "kill", "-KILL", str(pid))  # if it has not ended
        server.wait(nodes.PATIENCE)
        self.start_wire(1)
        self.good_pair()

    def test_roce_v1_is_refused(self):
        self.refused("reached by RoCE v2 only", "ibv_rc_pingpong", "-g", "2")

    def test_unreliable_connection_is_refused(self):
        self.refused("there are no UC queue pairs", "ibv_uc_pingpong", "-g",
                     IPV4)


if __name__ == "__main__":
    unittest.main()
