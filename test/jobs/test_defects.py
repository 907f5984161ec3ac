# SPDX-License-Identifier: BSD-3-Clause
"""Which defects are UCX's, and that no others are."""

import unittest

from mainjob import defects, jobs, perftest


class Defects(unittest.TestCase):

    def test_version_of_ucx(self):
        self.assertEqual(defects.version("# Version 1.13.1\n"), (1, 13))
        self.assertEqual(defects.version("# Library version: 1.18.1\n"
                                         "# API headers version: 1.19.0\n"),
                         (1, 18))
        self.assertEqual(defects.version("nothing"), (0, 0))

    def test_atomics_of_rc_mlx5_in_newer_versions(self):
        fadd = perftest.Test("uct", "fadd", 8, 10)
        for version in (1, 16), (1, 22):
            self.assertIn("DevX", defects.of_test(fadd, "rc_mlx5", version))
        for test, transport, version in (
                (fadd, "rc_mlx5", (1, 15)), (fadd, "sep_mlx5", (1, 18)),
                (perftest.Test("ucp", "ucp_fadd", 8, 10), "rc_mlx5", (1, 18)),
                (perftest.Test("uct", "get", 8, 10), "rc_mlx5", (1, 18))):
            self.assertIsNone(defects.of_test(test, transport, version))

    def test_two_ports_of_rc_mlx5_in_newer_versions(self):
        for version in (1, 16), (1, 22):
            self.assertIn("one address", defects.of_ports("rc_mlx5", version))
        for transport, version in ("rc_mlx5", (1, 13)), ("sep_mlx5", (1, 18)):
            self.assertIsNone(defects.of_ports(transport, version))

    def test_entries_are_about_what_the_main_job_runs(self):
        of_ucx = {test.name for test in perftest.tests(False)
                  if defects.of_test(test, "rc_mlx5", (1, 16))}
        self.assertEqual({"fadd", "swap", "cswap", "add_lat", "add_mr"}, of_ucx)
        programs = {(job.library, job.program) for job in
                    jobs.jobs(False, jobs.LAUNCHERS)}
        for library, names in defects.THREADS.items():
            for name in names:
                self.assertIn((library, name), programs)

    def test_threads_of_open_mpi(self):
        output = ("ucp_worker.c:3029 Assertion `ucs_async_check_owner_thread("
                  "&(worker)->async)' failed\n")
        flush = ("flush.c:453 Assertion `ucs_async_check_owner_thread("
                 "&(ep->worker)->async)' failed\n")
        for library, program, text in (
                ("openmpi", "endpoints", output),
                ("openmpi", "app_kernels", flush),
                ("oshmem", "app_kernels", output)):
            self.assertIn("another thread", defects.of_job(
                jobs.Job(library, program, 2), text))
        for library, program, text in (
                ("openmpi", "endpoints", "Assertion `x' failed\n"),
                ("openmpi", "p2p", output), ("mpich", "endpoints", output),
                ("oshmem", "put_get", output)):
            self.assertIsNone(defects.of_job(jobs.Job(library, program, 2),
                                             text))

    def test_fence_of_rc_mlx5_in_newer_versions(self):
        self.assertEqual({"UCX_FENCE_MODE": "weak"},
                         defects.settings("rc_mlx5", (1, 16)))
        for transport, version in (("sep_mlx5", (1, 22)), ("rc_mlx5", (1, 15)),
                                   ("tcp", (1, 22))):
            self.assertEqual({}, defects.settings(transport, version))


if __name__ == "__main__":
    unittest.main()
