# SPDX-License-Identifier: BSD-3-Clause
"""Programs on librdmacm between two nodes."""

import json
import os
import re
import shutil
import time
import unittest

import nodes

PORT = "7471"
NODE1, NODE1_IPV6 = "10.77.0.1", "fd77:0:0:0::1"
NOBODY, PEER = "10.77.0.99", "10.77.0.33"  # of the nodes' network
NOBODYS_PORT, OTHER_PORT = "7999", "7480"


def rping(address, *options):
    return (("rping", "-s", "-a", address, "-C", "5", "-V", "-p", PORT,
             *options),
            ("rping", "-c", "-a", address, "-C", "5", "-V", "-v", "-p", PORT,
             *options))


# Name, what the server and the client run, what the client prints. All check
# their data, or at least that all of it has come.
PROGRAMS = (
    ("rping", *rping(NODE1), "rdma-ping-4"),
    ("rping_ipv6", *rping(NODE1_IPV6), "rdma-ping-4"),
    ("ucmatose", ("ucmatose", "-C", "5", "-p", PORT),
     ("ucmatose", "-s", NODE1, "-C", "5", "-p", PORT), "return status 0"),
    ("ucmatose_migrate", ("ucmatose", "-m", "-p", PORT),
     ("ucmatose", "-s", NODE1, "-m", "-p", PORT), "return status 0"),
    ("ucmatose_20", ("ucmatose", "-c", "20", "-p", PORT),
     ("ucmatose", "-s", NODE1, "-c", "20", "-p", PORT), "return status 0"),
    ("udaddy", ("udaddy",), ("udaddy", "-s", NODE1), "return status 0"),
    ("rstream", ("rstream", "-p", PORT, "-S", "4096", "-C", "50", "-T", "v"),
     ("rstream", "-s", NODE1, "-p", PORT, "-S", "4096", "-C", "50", "-T", "v"),
     "4k"),
    ("rdma_client", ("rdma_server", "-p", PORT),
     ("rdma_client", "-s", NODE1, "-p", PORT), "end 0"),
    ("write_bw", ("ib_write_bw", "-R", "-F", "-n", "100", "-p", PORT),
     ("ib_write_bw", "-R", "-F", "-n", "100", "-p", PORT, NODE1), "65536"),
    ("send_bw_ud",
     ("ib_send_bw", "-R", "-F", "-c", "UD", "-n", "100", "-s", "1024", "-p",
      PORT),
     ("ib_send_bw", "-R", "-F", "-c", "UD", "-n", "100", "-s", "1024", "-p",
      PORT, NODE1), "1024"),
)


class Cm(nodes.Test):

    def pair(self, server_argv, client_argv, wanted):
        if shutil.which(server_argv[0]) is None:
            self.skipTest(f"there is no {server_argv[0]}")
        client, server = self.cluster.pair_by_cm(server_argv, client_argv)
        self.good(client, server)
        self.assertIn(wanted, client.stdout)


class Rdmacm(Cm):

    def test_nobody_listens(self):
        result = self.cluster.run(2, *rping(NODE1, "-p", "99")[1])
        self.assertIn("RDMA_CM_EVENT_REJECTED, error 8", result.stdout +
                      result.stderr)

    def test_nobody_is_there(self):
        result = self.cluster.run(2, *rping(NOBODY)[1],
                                  environment=("MLX5SIM_CM_TIMEOUT=500",))
        self.assertIn("RDMA_CM_EVENT_UNREACHABLE, error -110", result.stdout +
                      result.stderr)

    def test_there_is_no_way(self):
        result = self.cluster.run(2, *rping("192.0.2.1")[1])
        self.assertIn("RDMA_CM_EVENT_ADDR_ERROR, error -101", result.stdout +
                      result.stderr)

    def test_a_killed_client_disconnects(self):
        """The server's program ends when its client has gone."""
        server = self.cluster.start(1, *rping(NODE1)[0][:4])
        client, pid = self.cluster.ping_by_cm(2, NODE1)
        self.good(self.cluster.run(2, "kill", "-KILL", str(pid)))
        self.assertFalse(server.wait(nodes.PATIENCE).timed_out)
        client.wait(nodes.PATIENCE)

    def test_ucp_listener(self):
        """UCX's clients and servers, on the transport; its server serves for
        ever, and its client tries again each 5 seconds."""
        if shutil.which("io_demo") is None:
            self.skipTest("there is no io_demo")
        argv = (nodes.program("sep-run"), "--only", "io_demo", "-p", PORT)
        environment = ("UCX_SOCKADDR_TLS_PRIORITY=rdmacm",)
        server = self.cluster.start(1, *argv, environment=environment)
        client = self.cluster.run(2, *argv, "-i", "20", NODE1,
                                  environment=environment)
        server.finish()
        self.good(client)
        self.assertIn("Client exit with status 'OK'", client.stdout)


class RdmacmLoss(Cm, nodes.SwitchTest):
    """One in twenty packets is lost, and messages are sent again."""
    OPTIONS = ("--switch=loss=50,seed=3",)
    ENVIRONMENT = ("MLX5SIM_CM_TIMEOUT=8000",)

    def test_connections(self):
        for _ in range(10):
            self.pair(("ucmatose", "-c", "5", "-p", PORT),
                      ("ucmatose", "-s", NODE1, "-c", "5", "-p", PORT),
                      "return status 0")
        result = self.cluster.run(1, nodes.program("mlx5sim-switch"), "stat")
        self.good(result)
        self.assertGreater(sum(port["lost"] for port in json.loads(
            result.stdout)["ports"].values()), 10)


class Peer(Cm):
    """A peer that does as it pleases, at an address of no device."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        result = cls.cluster.run(2, "ip", "address", "add", f"{PEER}/16", "dev",
                                 "eth0")
        if not result.ok:
            cls.cluster.down()
            raise AssertionError(result.stderr)

    def peer(self, case, port=PORT):
        return self.cluster.start(2, os.path.join(nodes.HERE, "cm_peer"), PEER,
                                  NODE1, port, case)


class RdmacmPeer(Peer):

    def tearDown(self):
        for node in (1, 2):
            pid = self.cluster.wire_pid(node)
            self.good(self.cluster.run(node, "kill", "-0", str(pid)))

    def with_server(self, case, timeout):
        server = self.cluster.start(1, *rping(NODE1)[0], environment=(
            f"MLX5SIM_CM_TIMEOUT={timeout}",))
        try:
            self.good(self.peer(case).wait(nodes.PATIENCE))
        except BaseException:
            server.finish()
            raise
        self.assertFalse(server.wait(nodes.PATIENCE).timed_out)

    def test_reasons(self):
        self.good(self.peer("reasons", NOBODYS_PORT).wait(nodes.PATIENCE))

    def test_again(self):
        self.with_server("again", 60000)

    def test_silent(self):
        self.with_server("silent", 4000)

    def test_flood(self):
        """Requests that never go on keep nobody else from connecting, neither
        while the program waits for the first of them nor afterwards."""
        server = self.cluster.start(1, *rping(NODE1)[0], environment=(
            "MLX5SIM_CM_TIMEOUT=8000",))
        try:
            self.good(self.peer("flood").wait(nodes.PATIENCE))
            self.pair(*rping(NODE1, "-p", OTHER_PORT), "rdma-ping-4")
        except BaseException:
            server.finish()
            raise
        self.assertFalse(server.wait(nodes.PATIENCE).timed_out)
        self.pair(*rping(NODE1), "rdma-ping-4")

    def with_client(self, case, timeout, wanted):
        peer = self.peer(case)
        self.cluster.until(lambda: "ready" in nodes.output(peer), peer)
        client = self.cluster.start(1, *rping(PEER)[1], environment=(
            f"MLX5SIM_CM_TIMEOUT={timeout}",))
        try:
            self.good(peer.wait(nodes.PATIENCE))
            deadline = time.monotonic() + nodes.PATIENCE
            while wanted not in nodes.output(client) + nodes.errors(client) \
                    and time.monotonic() < deadline:
                time.sleep(0.01)
        finally:
            # It hangs if it is disconnected before it has looked whether it is
            # connected
            result = client.finish()
        self.assertIn(wanted, result.stdout + result.stderr)

    def test_mute(self):
        self.with_client("mute", 4000, "RDMA_CM_EVENT_UNREACHABLE, error -110")

    def test_reject(self):
        self.with_client("reject", 60000, "RDMA_CM_EVENT_REJECTED, error 28")

    def test_accept(self):
        self.with_client("accept", 60000, "client DISCONNECT EVENT")

    def test_leave(self):
        self.with_client("leave", 60000, "RDMA_CM_EVENT_REJECTED, error 28")


class RdmacmMalformed(Peer):
    """In a cluster whose servers say at its end what they have refused."""
    ENVIRONMENT = ("MLX5SIM_LOG=info",)
    wrong = 0

    def test_malformed(self):
        result = self.peer("malformed", NOBODYS_PORT).wait(nodes.PATIENCE)
        self.good(result)
        type(self).wrong = int(re.search(r"refused (\d+)", result.stdout)[1])
        self.assertGreater(self.wrong, 20)

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        said = cls.cluster.down().stderr
        if f"received, {cls.wrong} of them refused" not in said:
            raise AssertionError(f"{cls.wrong} were wrong: {said}")


for NAME, *REST in PROGRAMS:
    setattr(Rdmacm, f"test_{NAME}", lambda self, rest=REST: self.pair(*rest))


class RdmacmIb(Rdmacm):
    """The same by packets of InfiniBand, where a LID is an IPv4 address."""
    OPTIONS = ("--link", "ib")

    def test_rping_ipv6(self):
        result = self.cluster.run(2, *rping(NODE1_IPV6)[1])
        self.assertIn("RDMA_CM_EVENT_ADDR_ERROR, error -19", result.stdout +
                      result.stderr)
        self.assertIn("connection manager between nodes", result.stderr)


class RdmacmIbPeer(Peer):
    OPTIONS = ("--link", "ib")

    def test_reasons(self):
        self.good(self.peer("ib_reasons", NOBODYS_PORT).wait(nodes.PATIENCE))


if __name__ == "__main__":
    unittest.main()
