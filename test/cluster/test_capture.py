# SPDX-License-Identifier: BSD-3-Clause
"""What is on the wire, by the word of others: tshark's dissector, and a second
computation of ICRCs."""

import os
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

import nodes
import roce
from mainjob import jobs, process
from test_jobs import RC, Row
from test_verbs import IPV4, IPV6, PORT

# In other nodes' /dev/null: discards what comes to it
MARK = ("import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)"
        ".sendto(b'', ('node2', 9))")


def frames(name):
    """Of a file in tcpdump's format."""
    with open(name, "rb") as file:
        file.read(24)
        while header := file.read(16):
            yield file.read(struct.unpack("<IIII", header)[2])


# What tshark takes payloads for whose first bytes happen to be like theirs
GUESSES = ("drbd", "fcoib", "infiniband.eoib", "infiniband_sdp", "iser", "lnet",
           "nvme-rdma", "rpcordma", "smb_direct", "smc")


def tshark(name, fields, *options):
    """@return how it went, with a line of these fields for each packet"""
    argv = ["tshark", "-n", "-r", name, "-d", "udp.port==4791,infiniband",
            "--disable-heuristic", "eth_over_ib", *options, "-T", "fields"]
    for guess in GUESSES:
        argv += ["--disable-protocol", guess]
    for field in fields:
        argv += ["-e", field]
    return process.run(argv, nodes.PATIENCE)


# Of messages of the connection manager, as tshark calls them
FIELDS = tuple("infiniband." + field for field in (
    "bth.destqp", "deth.q_key", "deth.srcqp", "mad.attributeid",
    "mad.mgmtclass", "mad.classversion", "mad.method", "cm.req.serviceid.dport",
    "cm.req.prim_localgid_ipv4", "cm.req.prim_remotegid_ipv4",
    "cm.req.ip_cm.sip4", "cm.req.ip_cm.dip4", "cm.req.pppmtu"))


class Capture(unittest.TestCase):

    def captured(self, *commands, by_cm=False, row=None, environment=()):
        """Run commands in two nodes, what the first one sends and receives
        being captured.
        @param by_cm  They are servers and clients on librdmacm.
        @param row    Of jobs: run this, too.
        @return the file, and its server's counters"""
        cluster = nodes.Cluster(2, environment=(
            "MLX5SIM_LOG=info", *environment))
        self.addCleanup(cluster.down)
        name = os.path.join(cluster.parent.name, "capture.pcap")
        capture = cluster.start(1, os.path.join(nodes.HERE, "capture"), "eth0",
                                name)
        try:
            cluster.until(lambda: "ready" in nodes.output(capture), capture)
            for command in commands:
                for result in (cluster.pair_by_cm(*command) if by_cm else
                               cluster.pair(PORT, *command)):
                    self.assertTrue(result.ok, result.stdout + result.stderr)
            if row is not None:
                result = cluster.run(1, *row.argv(),
                                     environment=row.variables())
                self.assertTrue(result.ok, result.stdout + result.stderr)
            self.assertTrue(cluster.run(1, "python3", "-c", MARK).ok)
        except BaseException:
            capture.finish()
            raise
        self.assertIn("dropped 0\n", capture.wait(nodes.PATIENCE).stdout)
        copy = f"{cluster.parent.name}.pcap"
        shutil.copy(name, copy)
        self.addCleanup(os.unlink, copy)
        pid = cluster.wire_pid(1)
        cluster.run(1, "kill", "-TERM", str(pid))
        said = cluster.down().stderr
        counts = re.findall(r"(\d+) packets sent, (\d+) not sent, (\d+) "
                            r"received, (\d+) of them refused", said)
        self.assertEqual(len(counts), 2, said)
        return copy, [[int(count) for count in each] for each in counts]

    def check(self, name, counts):
        packets = [frame[14:] for frame in frames(name)]
        self.assertGreater(len(packets), 100)
        wrong = [packet.hex() for packet in packets
                 if not roce.has_right_icrc(packet)]
        self.assertEqual(wrong[:1], [])
        # Those of the first node, which ended first
        self.assertEqual(counts[0][0] + counts[0][2], len(packets))
        self.assertEqual([count[1::2] for count in counts], [[0, 0]] * 2)
        # No packet is lost on this wire
        self.assertEqual((counts[0][0], counts[0][2]),
                         (counts[1][2], counts[1][0]))
        if shutil.which("tshark") is None:
            self.skipTest("there is no tshark")
        result = tshark(name, ("infiniband.bth.opcode", "_ws.malformed"))
        self.assertTrue(result.ok, result.stderr)
        lines = result.stdout.splitlines()
        self.assertEqual(len(lines), len(packets))
        for packet, line in zip(packets, lines):
            self.assertEqual(line.strip(), str(roce.Parsed(packet).opcode))

    def test_send_and_read_and_atomic(self):
        self.check(*self.captured(
            ("ibv_rc_pingpong", "-c", "-n", "100", "-g", IPV4),
            ("ib_read_bw", "-F", "-n", "20", "-x", IPV4),
            ("ib_atomic_bw", "-F", "-n", "20", "-x", IPV4),
            ("ib_send_lat", "-F", "-n", "20", "-c", "UD", "-s", "100", "-x",
             IPV4)))

    def test_ipv6(self):
        self.check(*self.captured(
            ("ibv_rc_pingpong", "-c", "-n", "50", "-g", IPV6),
            ("ib_write_bw", "-F", "-n", "20", "-x", IPV6)))

    def test_udp_source_ports(self):
        """What programs have set: requests and answers of a side come from its
        port."""
        if shutil.which("gcc") is None:
            self.skipTest("there is no gcc")
        with tempfile.TemporaryDirectory(prefix="compiled") as parent:
            program = os.path.join(parent, "program")
            subprocess.run(["gcc", "-O1", os.path.join(nodes.HERE, "layouts.c"),
                            "-libverbs", "-lmlx5", "-o", program], check=True)
            name, counts = self.captured(
                (program, "-p", str(PORT), "-g", IPV4, "-u", "50000"),
                environment=("MLX5SIM_DEVX=y",))
        ports = {(frame[26:30], struct.unpack(">H", frame[34:36])[0])
                 for frame in frames(name)}
        self.assertEqual(sorted(port for _, port in ports), [50000, 50001])
        self.assertEqual(len({address for address, _ in ports}), 2)
        self.check(name, counts)

    def test_jobs(self):
        """Of MPI, whose connections UCX makes by datagrams. The capture's
        buffer holds all of a job's packets, whoever gets the processors: p2p
        would have 166000 of them."""
        for row in (Row("mpich", "rma", 1), Row("mpich", "threads", 1),
                    Row("mpich", "rma", 1, transport=RC)):
            with self.subTest(row.name):
                if shutil.which(jobs.LAUNCHERS[row.library]) is None:
                    self.skipTest("there is no MPICH")
                self.check(*self.captured(row=row))

    def test_connection_manager(self):
        """From the request, with addresses in its private data, to the end."""
        address = "10.77.0.1"
        ping = ("rping", "-a", address, "-C", "40", "-V", "-p", "7471")
        name, counts = self.captured((ping + ("-s",), ping + ("-c",)),
                                     by_cm=True)
        self.check(name, counts)
        result = tshark(name, FIELDS, "-Y", "infiniband.mad")
        self.assertTrue(result.ok, result.stderr)
        lines = [line.split("\t") for line in result.stdout.splitlines()]
        attributes = [line[3] for line in lines]
        # Before there is a server, a request is rejected
        for attribute in ("0x0010", "0x0013", "0x0014", "0x0015", "0x0016"):
            self.assertIn(attribute, attributes)
        for line in lines:
            self.assertEqual([int(part, 16) for part in line[:3] + line[4:7]],
                             [1, 0x80010000, 1, 7, 2, 3])
            if line[3] == "0x0010":
                self.assertEqual(int(line[7], 16), 7471)
                self.assertEqual(line[8:12], ["10.77.0.2", address] * 2)
                self.assertEqual(int(line[12], 16), 3)  # 1024 bytes


if __name__ == "__main__":
    unittest.main()
