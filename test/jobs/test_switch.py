# SPDX-License-Identifier: BSD-3-Clause
"""mlx5sim-switch, between sockets in place of TAP interfaces."""

import json
import os
import signal
import socket
import subprocess
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
SWITCH = os.path.join(os.environ.get("SEP_BUILD_DIR", TOP),
                      "bin/mlx5sim-switch")
BROADCAST = b"\xff" * 6
BTH = 42
PACKETS = 100               # less than a socket holds


def mac(node):
    return bytes([2, 0, 0, 0, 0, node])


def frame(to, source, number=0, port=4791):
    """A datagram of RoCE v2, or to another port."""
    header = bytearray(BTH)
    header[:14] = to + mac(source) + b"\x08\x00"
    header[14], header[23] = 0x45, 17
    header[36:38] = port.to_bytes(2, "big")
    return bytes(header) + number.to_bytes(4, "big") + bytes(60)


def number_of(data):
    return int.from_bytes(data[BTH:BTH + 4], "big")


class Switch(unittest.TestCase):

    def start(self, num, *options):
        """Ports node1, node2, ..., and their sockets here."""
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = os.path.join(directory.name, "switch")
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                 for _ in range(num)]
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(self.path)
            listener.listen(8)
            ports = [word for i, (_, end) in enumerate(pairs) for word in
                     ("--port", f"node{i + 1}:eth0={end.fileno()}")]
            self.popen = subprocess.Popen(
                [SWITCH, *options, "--listen", str(listener.fileno()), *ports],
                pass_fds=[listener.fileno(),
                          *(end.fileno() for _, end in pairs)],
                stderr=subprocess.PIPE, text=True)
        for here, end in pairs:
            here.settimeout(10)
            self.addCleanup(here.close)
            end.close()
        self.addCleanup(self.stop)
        self.nodes = [here for here, _ in pairs]
        for i, here in enumerate(self.nodes):   # where everybody is
            here.send(frame(BROADCAST, i, port=1))
            for other in self.nodes[:i] + self.nodes[i + 1:]:
                other.recv(2000)

    def stop(self):
        if self.popen.poll() is None:
            self.popen.terminate()
            self.popen.wait(10)
        self.popen.stderr.close()

    def control(self, *words):
        result = subprocess.run([SWITCH, "--control", self.path, *words],
                                text=True, check=False, timeout=10,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return result.returncode, result.stdout, result.stderr

    def ports(self):
        status, text, _ = self.control("stat")
        self.assertEqual(status, 0)
        return json.loads(text)["ports"]

    def send(self, source, to, count=PACKETS):
        """RoCE packets, and a frame that has no faults behind them.
        @return numbers of what came before that."""
        for number in range(count):
            self.nodes[source].send(frame(mac(to), source, number))
        return self.come(source, to)

    def come(self, source, to):
        self.nodes[source].send(frame(mac(to), source, 99, port=1))
        found = []
        while True:
            data = self.nodes[to].recv(2000)
            if data[36:38] == b"\x00\x01":
                return found
            found.append(number_of(data))

    def test_frames_go_to_whom_they_are_for(self):
        self.start(3)
        self.assertEqual(self.send(0, 1), list(range(PACKETS)))
        self.assertEqual(self.come(0, 2), [])
        self.nodes[0].send(frame(mac(77), 0, port=1))   # nobody knows where
        for node in self.nodes[1:]:
            node.recv(2000)
        self.assertEqual(self.ports()["node2:eth0"]["lost"], 0)

    def test_loss_is_the_same_again(self):
        came = []
        for seed in ("3", "3", "4"):
            self.start(2, "--loss", "200", "--seed", seed)
            came.append(self.send(0, 1))
            self.assertEqual(self.ports()["node2:eth0"]["lost"],
                             PACKETS - len(came[-1]))
            self.stop()
        self.assertEqual(came[0], came[1])
        self.assertNotEqual(came[0], came[2])
        self.assertLess(len(came[0]), PACKETS)

    def test_duplicates_and_another_order(self):
        self.start(2, "--duplicate", "100")
        came = self.send(0, 1)
        self.assertEqual(sorted(set(came)), list(range(PACKETS)))
        self.assertEqual(self.ports()["node2:eth0"]["duplicated"],
                         len(came) - PACKETS)
        self.assertGreater(len(came), PACKETS)
        self.assertEqual(self.control("duplicate", "0")[0], 0)
        self.assertEqual(self.control("reorder", "100")[0], 0)
        # The switch finds all at a time, as it does when it had no processor
        count = 60              # it is stopped, and reads none of them
        self.popen.send_signal(signal.SIGSTOP)
        for number in range(count):
            self.nodes[0].send(frame(mac(1), 0, number))
        self.popen.send_signal(signal.SIGCONT)
        came = [number_of(self.nodes[1].recv(2000)) for _ in range(count)]
        self.assertNotEqual(came, sorted(came))
        self.assertEqual(sorted(came), list(range(count)))
        # 4 overtake one, which may be more if some of them wait as well
        self.assertLess(max(abs(n - i) for i, n in enumerate(came)), 20)

    def test_one_bit_behind_the_udp_header_changes(self):
        self.start(2, "--corrupt", "1000")
        for number in range(PACKETS):
            sent = frame(mac(1), 0, number)
            self.nodes[0].send(sent)
            came = self.nodes[1].recv(2000)
            self.assertEqual(came[:BTH], sent[:BTH])
            self.assertEqual(sum(bin(a ^ b).count("1")
                                 for a, b in zip(came, sent)), 1)

    def test_links_and_partitions(self):
        self.start(4)
        for down, up in (("link node2 down", "link node2:eth0 up"),
                         ("partition node1,node3 node2,node4", "heal"),
                         ("partition node1", "heal")):
            self.assertEqual(self.control(*down.split())[0], 0)
            self.nodes[0].send(frame(mac(1), 0, 5))
            self.assertEqual(self.come(2, 3) if "," not in down else [], [])
            self.assertEqual(self.control(*up.split())[0], 0)
            self.assertEqual(self.send(0, 1, 3), [0, 1, 2])
        ports = self.ports()["node2:eth0"]
        self.assertEqual((ports["down"], ports["partitioned"]), (1, 2))
        self.popen.terminate()
        self.assertIn('"partitioned": 2', self.popen.stderr.read())

    def test_what_is_wrong_is_said(self):
        self.start(2)
        for words, reason in (("loss 1001", "from 0 to 1000"),
                              ("delay 5", "200us"),
                              ("link node7 down", "no node has the name node7"),
                              ("partition node1 x", "no node has the name x"),
                              ("link node1 sideways", "no such command"),
                              ("lose 1", "no such command")):
            status, _, error = self.control(*words.split())
            self.assertEqual(status, 2, words)
            self.assertIn(reason, error)
        self.stop()
        self.assertIn("a switch that runs is needed", self.control("stat")[2])


if __name__ == "__main__":
    unittest.main()
