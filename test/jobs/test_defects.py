# SPDX-License-Identifier: BSD-3-Clause
"""Which failures are UCX's, and that no others are."""

import unittest

from mainjob import defects, perftest

FLUSH = """\
[vm:1:0] ib_mlx5_log.c:179  Remote access error on mlx5_0:1/IB (synd 0x13 vend 0)
[vm:1:0] ib_mlx5_log.c:179  RC QP 0x10048 wqe[19]: RDMA_READ s-- [rva 0x0 rkey 0xff]
"""


class Defects(unittest.TestCase):

    def test_version_of_ucx(self):
        self.assertEqual(defects.version("# Version 1.13.1\n"), (1, 13))
        self.assertEqual(defects.version("# Library version: 1.18.1\n"
                                         "# API headers version: 1.19.0\n"),
                         (1, 18))
        self.assertEqual(defects.version("nothing"), (0, 0))

    def test_atomics_of_rc_mlx5_in_newer_versions(self):
        fadd = perftest.Test("uct", "fadd", 8, 10)
        self.assertIn("DevX", defects.of_test(fadd, "rc_mlx5", (1, 18)))
        for test, transport, version in (
                (fadd, "rc_mlx5", (1, 13)), (fadd, "sep_mlx5", (1, 18)),
                (perftest.Test("ucp", "ucp_fadd", 8, 10), "rc_mlx5", (1, 18)),
                (perftest.Test("uct", "get", 8, 10), "rc_mlx5", (1, 18))):
            self.assertIsNone(defects.of_test(test, transport, version))

    def test_flush_of_rc_mlx5_in_newer_versions(self):
        self.assertIn("DevX", defects.in_output("rc_mlx5", (1, 22), FLUSH))
        for transport, version, text in (
                ("sep_mlx5", (1, 22), FLUSH), ("rc_mlx5", (1, 13), FLUSH),
                ("rc_mlx5", (1, 22), FLUSH.replace("rkey 0xff", "rkey 0xff00")),
                ("rc_mlx5", (1, 22), FLUSH.replace("READ", "WRITE"))):
            self.assertIsNone(defects.in_output(transport, version, text))


if __name__ == "__main__":
    unittest.main()
