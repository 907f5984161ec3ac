# SPDX-License-Identifier: BSD-3-Clause
"""What main_job makes of ucx_perftest."""

import os
import socket
import sys
import unittest

from mainjob import perftest

HEADER = ("iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,"
          "overall_bw,avg_mr,overall_mr\n")


class ParseOutput(unittest.TestCase):

    def test_last_line_is_the_result(self):
        figures = perftest.parse(HEADER +
                                 "500,9.0,9.0,9.0,9.00,9.00,9,9\n"
                                 "1000,2.304,2.518,2.611,3.03,2.92,"
                                 "397135,383009\n")
        self.assertEqual(figures["iterations"], 1000)
        self.assertEqual(figures["latency_typical"], 2.304)
        self.assertEqual(figures["bandwidth_overall"], 2.92)
        self.assertEqual(figures["rate_overall"], 383009)

    def test_leading_blank_of_the_first_column(self):
        figures = perftest.parse(HEADER + " 100,0.120,160.360,160.360,389.75,"
                                 "389.75,6236,6236\n")
        self.assertEqual(figures["iterations"], 100)

    def test_total_of_several_threads(self):
        figures = perftest.parse(HEADER + "3000,56.007,0.28,36048\n")
        self.assertEqual(figures["iterations"], 3000)
        self.assertEqual(figures["rate_overall"], 36048)

    def test_header_alone_is_no_result(self):
        with self.assertRaises(ValueError):
            perftest.parse(HEADER)

    def test_log_lines_are_no_result(self):
        with self.assertRaises(ValueError):
            perftest.parse("[1.2] [vm:1] a,b,c,d UCX ERROR\nx,y,z,w\n")

    def test_operation_the_transport_lacks(self):
        text = ("[1795249857.330948] [vm:2450 :0] libperf.c:513  UCX  ERROR "
                "rc_mlx5/mlx5_0:1 does not support required 64-bit atomic: "
                "swap\nmore\n")
        self.assertEqual(perftest.unsupported(text),
                         "rc_mlx5/mlx5_0:1 does not support required 64-bit "
                         "atomic: swap")
        self.assertIsNone(perftest.unsupported("all is well"))


class Rows(unittest.TestCase):

    def test_ping_pong_counts_both_directions(self):
        one = perftest.Test("uct", "put_lat", 8, 1000)
        way = perftest.Test("uct", "put_bw", 8, 1000)
        self.assertEqual(one.messages, 2000)
        self.assertEqual(way.messages, 1000)

    def test_labels_are_unique(self):
        for quick in (False, True):
            labels = [test.label for test in perftest.tests(quick)]
            self.assertEqual(len(labels), len(set(labels)))

    def test_quick_rows_are_a_subset(self):
        full = {test.label for test in perftest.tests(False)}
        quick = {test.label for test in perftest.tests(True)}
        self.assertTrue(quick < full)

    def test_every_operation_of_the_project_is_there(self):
        names = {(test.api, test.name) for test in perftest.tests(False)}
        for name in ("put_lat", "am_lat", "put_bw", "am_bw", "get", "fadd",
                     "cswap"):
            self.assertIn(("uct", name), names)
        for name in ("tag_lat", "tag_bw", "ucp_put_lat", "ucp_get", "ucp_fadd",
                     "ucp_cswap", "ucp_am_lat", "ucp_am_bw", "stream_lat",
                     "stream_bw"):
            self.assertIn(("ucp", name), names)
        sizes = {test.size for test in perftest.tests(False)}
        self.assertEqual((min(size for size in sizes if size > 4), max(sizes)),
                         (8, 4 << 20))

    def test_lanes_are_expected_where_they_are_always_logged(self):
        for api, name, expected in (("ucp", "tag_lat", True),
                                    ("ucp", "ucp_fadd", False),
                                    ("ucp", "ucp_add", False),
                                    ("uct", "am_lat", False)):
            self.assertEqual(expected,
                             perftest.Test(api, name, 8, 1).names_lanes)

    def test_value_and_unit(self):
        figures = {"latency_typical": 2.5, "bandwidth_overall": 7.0,
                   "rate_overall": 3e6}
        cases = ((("ucp", "tag_lat", 8), (2.5, "us")),
                 (("uct", "fadd", 8), (2.5, "us")),
                 (("uct", "get", 1024), (2.5, "us")),
                 (("uct", "get", 1 << 20), (7.0, "MB/s")),
                 (("ucp", "tag_bw", 4096), (7.0, "MB/s")),
                 (("ucp", "tag_bw", 8), (3.0, "Mmsg/s")))
        for (api, name, size), expected in cases:
            test = perftest.Test(api, name, size, 10)
            self.assertEqual((test.value(figures), test.unit), expected)

    def test_scatter_gather_list_is_passed_on(self):
        test = perftest.Test("ucp", "tag_lat", 1024, 10, "iov,iov",
                             segments=(16, 496, 512))
        argv = test.arguments()
        self.assertEqual(argv[argv.index("-s") + 1], "16,496,512")
        self.assertEqual(sum(test.segments), test.size)


class Ports(unittest.TestCase):

    def test_listener_is_seen_without_connecting(self):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
            self.assertFalse(perftest.is_listening(port))
            listener.listen()
            self.assertTrue(perftest.is_listening(port))
            listener.setblocking(False)
            with self.assertRaises(BlockingIOError):
                listener.accept()


# Listens if it is not told where the server is, and wants a terminal as one that
# was built with MPI does
FAKE = """
import os, socket, sys
assert os.isatty(0), "This test should be run with exactly 2 processes"
if "127.0.0.1" not in sys.argv:
    with socket.create_server(("127.0.0.1", int(sys.argv[2]))) as server:
        server.accept()[0].recv(1)
else:
    socket.create_connection(("127.0.0.1", int(sys.argv[2]))).close()
    print("1000,2.304,2.518,2.611,3.03,2.92,397135,383009")
"""


class Pair(unittest.TestCase):

    def test_takes_part_in_no_mpi_job(self):
        test = perftest.Test("ucp", "tag_lat", 8, 1000)
        client, server = perftest.run_pair([sys.executable, "-c", FAKE], test,
                                           dict(os.environ), 30)
        self.assertTrue(client.ok and server.ok, client.stderr + server.stderr)
        self.assertEqual(perftest.parse(client.stdout)["iterations"], 1000)


if __name__ == "__main__":
    unittest.main()
