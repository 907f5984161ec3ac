# SPDX-License-Identifier: BSD-3-Clause
"""What is on the wire, by the word of others: tshark's dissector, and a second
computation of ICRCs."""

import os
import re
import shutil
import struct
import subprocess
import unittest

import nodes
import roce
from mainjob import process
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


class Capture(unittest.TestCase):

    def captured(self, *commands, environment=()):
        """Run commands in two nodes, what the first one sends and receives
        being captured. @return the file, and its server's counters"""
        cluster = nodes.Cluster(2, environment=(
            "MLX5SIM_LOG=info", *environment))
        self.addCleanup(cluster.down)
        name = os.path.join(cluster.parent.name, "capture.pcap")
        capture = cluster.start(1, os.path.join(nodes.HERE, "capture"), "eth0",
                                name)
        try:
            cluster.until(lambda: "ready" in nodes.output(capture), capture)
            for command in commands:
                for result in cluster.pair(PORT, *command):
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
        result = process.run(
            ["tshark", "-n", "-r", name, "-d", "udp.port==4791,infiniband",
             "-T", "fields", "-e", "infiniband.bth.opcode", "-e",
             "_ws.malformed"], nodes.PATIENCE)
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


if __name__ == "__main__":
    unittest.main()
