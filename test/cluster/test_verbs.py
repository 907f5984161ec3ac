# SPDX-License-Identifier: BSD-3-Clause
"""Programs on libibverbs alone, between two nodes."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

import nodes

PORT = 18515                    # that of pingpong and of perftest

# Indices of GIDs of RoCE v2
LINK_LOCAL, IPV4, IPV6 = "1", "3", "5"

# Name and command; pingpong checks the data
PROGRAMS = (
    ("rc_pingpong", ("ibv_rc_pingpong", "-c", "-n", "200", "-g", IPV4)),
    ("rc_pingpong_ipv6", ("ibv_rc_pingpong", "-c", "-n", "200", "-g", IPV6)),
    ("rc_pingpong_link_local", ("ibv_rc_pingpong", "-c", "-n", "200", "-g",
                                LINK_LOCAL)),
    ("rc_pingpong_events", ("ibv_rc_pingpong", "-c", "-e", "-n", "200", "-g",
                            IPV4)),
    ("rc_pingpong_1_MB", ("ibv_rc_pingpong", "-c", "-n", "3", "-s", "1000001",
                          "-g", IPV4)),
    ("ud_pingpong", ("ibv_ud_pingpong", "-n", "200", "-s", "1000", "-g",
                     IPV4)),
    ("ud_pingpong_ipv6", ("ibv_ud_pingpong", "-n", "200", "-s", "1000", "-g",
                          IPV6)),
    ("uc_pingpong", ("ibv_uc_pingpong", "-n", "200", "-g", IPV4)),
    ("uc_write_lat", ("ib_write_lat", "-F", "-n", "100", "-c", "UC", "-s",
                      "20000", "-x", IPV6)),
    ("uc_send_lat", ("ib_send_lat", "-F", "-n", "100", "-c", "UC", "-s",
                     "20000", "-x", IPV4)),
    ("write_bw", ("ib_write_bw", "-F", "-n", "100", "-x", IPV4)),
    ("write_lat", ("ib_write_lat", "-F", "-n", "100", "-x", IPV4)),
    ("write_bw_2_qps", ("ib_write_bw", "-F", "-n", "100", "-q", "2", "-b",
                        "-x", IPV6)),
    ("read_bw", ("ib_read_bw", "-F", "-n", "100", "-x", IPV4)),
    ("send_bw", ("ib_send_bw", "-F", "-n", "100", "-x", IPV4)),
    ("send_lat_ud", ("ib_send_lat", "-F", "-n", "100", "-c", "UD", "-s",
                     "512", "-x", IPV4)),
    ("atomic_add", ("ib_atomic_bw", "-F", "-n", "100", "-A", "FETCH_AND_ADD",
                    "-x", IPV4)),
    ("atomic_cswap", ("ib_atomic_lat", "-F", "-n", "100", "-A",
                      "CMP_AND_SWAP", "-x", IPV6)),
)

# By LID, or with a GRH besides
LID_PROGRAMS = (
    ("rc_pingpong", ("ibv_rc_pingpong", "-c", "-n", "200")),
    ("rc_pingpong_grh", ("ibv_rc_pingpong", "-c", "-n", "200", "-g", "0")),
    ("rc_pingpong_1_MB", ("ibv_rc_pingpong", "-c", "-n", "3", "-s",
                          "1000001")),
    ("ud_pingpong", ("ibv_ud_pingpong", "-n", "200", "-s", "1000")),
    ("ud_pingpong_grh", ("ibv_ud_pingpong", "-n", "200", "-s", "1000", "-g",
                         "0")),
    ("uc_pingpong", ("ibv_uc_pingpong", "-n", "200")),
    ("read_bw", ("ib_read_bw", "-F", "-n", "100")),
    ("atomic_add", ("ib_atomic_bw", "-F", "-n", "100", "-A",
                    "FETCH_AND_ADD")),
)


def add_tests(cls, names=None, programs=PROGRAMS):
    """A test for each program."""
    for name, argv in programs:
        if names is None or name in names:
            setattr(cls, f"test_{name}",
                    lambda self, argv=argv: self.pair(argv))


class Verbs(nodes.Test):

    def pair(self, argv):
        self.good(*self.cluster.pair(PORT, *argv))


class Mtu1500(Verbs):
    pass


class Mtu9000(Verbs):
    OPTIONS = ("--mtu", "9000")

    def test_path_mtu_is_4096(self):
        result = self.cluster.run(1, "ibv_devinfo")
        self.assertRegex(result.stdout, r"active_mtu:\s+4096")
        self.pair(("ibv_rc_pingpong", "-c", "-m", "4096", "-n", "20", "-s",
                   "100000", "-g", IPV4))


class Counters(nodes.Test):
    """Those of ports, of nodes that nobody else talks to."""

    def ports(self, node):
        said = self.cluster.run(
            node, "bash", "-c", "cd /sys/class/infiniband/mlx5_0/ports/1 && "
            "grep -H . counters/port_*_packets counters/port_*_data "
            "hw_counters/rx_*_requests")
        self.good(said)
        return {name.split("/")[1]: int(value) for name, value in
                (line.split(":") for line in said.stdout.split())}

    def test_what_one_sends_the_other_receives(self):
        for options in (("ibv_rc_pingpong", "-n", "100", "-s", "10000", "-m",
                         "1024", "-g", IPV4),
                        ("ibv_ud_pingpong", "-n", "100", "-s", "1000", "-g",
                         IPV6)):
            with self.subTest(" ".join(options)):
                before = [self.ports(node) for node in (1, 2)]
                self.good(*self.cluster.pair(PORT, *options))
                after = [self.ports(node) for node in (1, 2)]
                more = [{name: new[name] - old[name] for name in new}
                        for old, new in zip(before, after)]
                for what in ("packets", "data"):
                    for one, other in (more, more[::-1]):
                        self.assertGreaterEqual(one[f"port_xmit_{what}"], 100)
                        self.assertEqual(one[f"port_xmit_{what}"],
                                         other[f"port_rcv_{what}"])

    def test_requests_are_counted_where_they_arrive(self):
        before = self.ports(1), self.ports(2)
        self.good(*self.cluster.pair(PORT, "ib_write_bw", "-F", "-n", "100",
                                     "-x", IPV4))
        after = self.ports(1), self.ports(2)
        more = [new["rx_write_requests"] - old["rx_write_requests"]
                for old, new in zip(before, after)]
        self.assertEqual(0, min(more))
        self.assertGreaterEqual(max(more), 100)


class Compiled(Verbs):
    """A program that is compiled for the tests."""
    SOURCE = None
    LIBRARIES = ("-libverbs",)

    @classmethod
    def setUpClass(cls):
        if shutil.which("gcc") is None:
            raise unittest.SkipTest("there is no gcc")
        super().setUpClass()

    def setUp(self):
        # pylint: disable=consider-using-with
        parent = tempfile.TemporaryDirectory(prefix="compiled")
        self.addCleanup(parent.cleanup)
        self.program = os.path.join(parent.name, "program")
        subprocess.run(["gcc", "-O1", os.path.join(nodes.TOP, self.SOURCE),
                        *self.LIBRARIES, "-o", self.program], check=True)


class Patterns(Compiled):
    """All operations by all lengths, and what must be refused: wrong keys, more
    than there is room for. Each byte is compared, and those around."""
    OPTIONS = ("--mtu", "9000")
    SOURCE = "contrib/rxe/patterns.c"

    def patterns(self, *options):
        client, server = self.cluster.pair(PORT, self.program, "-p", str(PORT),
                                           *options)
        self.good(client, server)
        self.assertIn("write with a wrong rkey is refused 1 ok", client.stdout)

    def test_ipv4(self):
        self.patterns("-g", IPV4, "-m", "1024")

    def test_ipv6(self):
        self.patterns("-g", IPV6, "-m", "4096")

    def test_smallest_packets(self):
        self.patterns("-g", IPV4, "-m", "256")


class Layouts(Compiled):
    """Data in pieces on both sides: lists and strides by keys of libmlx5, and
    what has to be refused."""
    ENVIRONMENT = ("MLX5SIM_DEVX=y",)
    SOURCE = "test/cluster/layouts.c"
    LIBRARIES = ("-libverbs", "-lmlx5")

    def layouts(self, *options):
        client, server = self.cluster.pair(PORT, self.program, "-p", str(PORT),
                                           *options)
        self.good(client, server)
        self.assertIn("layouts 1 to 1, 200000 bytes at 0: ok", client.stdout)
        self.assertIn("signatures: ok", client.stdout)

    def test_ipv4(self):
        self.layouts("-g", IPV4, "-r", "behind")

    def test_ipv6(self):
        self.layouts("-g", IPV6, "-r", "nowhere")

    def test_smallest_packets(self):
        self.layouts("-g", IPV4, "-m", "256", "-r", "here")

    def test_a_key_is_freed(self):
        self.layouts("-g", IPV4, "-r", "free")

    def test_a_signature_is_wrong(self):
        self.layouts("-g", IPV4, "-m", "256", "-r", "wrong")


class DeviceMemory(Verbs):
    ENVIRONMENT = ("MLX5SIM_DM=y",)

    def test_pingpong(self):
        """Both sides send from there and receive there."""
        self.pair(("ibv_rc_pingpong", "-c", "-j", "-n", "100", "-s", "20000",
                   "-g", IPV4))


class Xrc(Verbs):

    def test_xrc_between_nodes_is_refused_by_name(self):
        for result in self.cluster.pair(PORT, "ibv_xsrq_pingpong", "-g", IPV4):
            self.assertFalse(result.ok)
            self.assertIn("not emulated: XRC between nodes", result.stderr)


class Adapters2(Verbs):
    OPTIONS = ("--adapters", "2")

    def test_each_reaches_all_of_the_others(self):
        """UCX takes it that they do."""
        for gid in (IPV4, IPV6):
            self.good(*self.cluster.pair(
                PORT, "ibv_rc_pingpong", "-c", "-n", "20", "-g", gid,
                options=("-d", "mlx5_1")))


class Loss(nodes.SwitchTest):
    """One in twenty packets is lost, of messages of one packet: seven retries
    are enough for all that a test sends."""
    OPTIONS = ("--switch=loss=50",)

    def lost(self):
        result = self.cluster.run(1, nodes.program("mlx5sim-switch"), "stat")
        self.good(result)
        return sum(port["lost"] for port in
                   json.loads(result.stdout)["ports"].values())

    def test_uc_goes_on(self):
        """Nobody is told, and messages behind lost ones arrive."""
        argv = ("ib_send_bw", "-F", "-c", "UC", "-s", "4096", "-x", IPV4,
                "--run_infinitely")
        lost = self.lost()
        server, pid = self.cluster.listen(1, PORT, *argv)
        client = self.cluster.start(2, *argv, "node1")
        self.cluster.until(lambda: self.lost() > lost + 100, client)
        received = self.cluster.counters(1)["cqes"]
        self.cluster.until(lambda: self.cluster.counters(1)["cqes"] >
                           received + 500, client)
        client.finish()
        self.cluster.run(1, "kill", "-KILL", str(pid))
        server.wait(nodes.PATIENCE)

    def test_rc_has_all_of_them(self):
        before = self.lost()
        self.good(*self.cluster.pair(PORT, "ibv_rc_pingpong", "-c", "-n", "100",
                                     "-s", "1024", "-g", IPV4))
        self.assertGreater(self.lost(), before)


class InfiniBand(Verbs):
    OPTIONS = ("--link", "ib")

    def test_lids_are_those_of_addresses(self):
        for node in (1, 2):
            result = self.cluster.run(node, "ibv_devinfo")
            self.assertRegex(result.stdout, rf"port_lid:\s+{node}\n")
            self.assertRegex(result.stdout, r"active_mtu:\s+1024")
            self.assertRegex(result.stdout, r"link_layer:\s+InfiniBand")


class InfiniBandPaths(Verbs):
    """With several LIDs for each port."""
    OPTIONS = ("--link", "ib", "--mtu", "9000")
    ENVIRONMENT = ("MLX5SIM_LMC=2",)

    def test_lids_are_those_of_addresses(self):
        for node in (1, 2):
            result = self.cluster.run(node, "ibv_devinfo")
            self.assertRegex(result.stdout, rf"port_lid:\s+{4 * node}\n")
            self.assertRegex(result.stdout, r"active_mtu:\s+4096")


add_tests(Mtu1500)
add_tests(InfiniBand, programs=LID_PROGRAMS)
add_tests(InfiniBandPaths, ("rc_pingpong", "ud_pingpong"), LID_PROGRAMS)
add_tests(Mtu9000, ("ud_pingpong_ipv6", "write_bw", "read_bw", "send_bw"))


if __name__ == "__main__":
    unittest.main()
