# SPDX-License-Identifier: BSD-3-Clause
"""Programs on librdmacm, pairs of processes on one device."""

import os
import shutil
import subprocess
import time
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
BUILD = os.path.realpath(os.environ.get("SEP_BUILD_DIR", TOP))
SIM_RUN = os.path.join(BUILD, "bin/mlx5sim-run")
SEP_RUN = os.path.join(BUILD, "bin/sep-run")
PATIENCE = float(os.environ.get("SEP_TEST_PATIENCE", "300"))
PORT = "7471"
HOST = "127.0.0.1"

# Name, server and client, what the client prints. All check their data, or at
# least that all of it has come.
PROGRAMS = (
    ("rping", ("rping", "-s", "-a", HOST, "-C", "5", "-V", "-p", PORT),
     ("rping", "-c", "-a", HOST, "-C", "5", "-V", "-v", "-p", PORT),
     "rdma-ping-4"),
    ("ucmatose", ("ucmatose", "-C", "5", "-p", PORT),
     ("ucmatose", "-s", HOST, "-C", "5", "-p", PORT),
     "return status 0"),
    ("ucmatose_migrate", ("ucmatose", "-m", "-p", PORT),
     ("ucmatose", "-s", HOST, "-m", "-p", PORT),
     "return status 0"),
    ("udaddy", ("udaddy",), ("udaddy", "-s", HOST),
     "return status 0"),
    ("rstream", ("rstream", "-p", PORT, "-S", "4096", "-C", "50", "-T", "v"),
     ("rstream", "-s", HOST, "-p", PORT, "-S", "4096", "-C", "50", "-T", "v"),
     "4k"),
    ("rstream_nonblocking",
     ("rstream", "-p", PORT, "-S", "4096", "-C", "50", "-T", "n"),
     ("rstream", "-s", HOST, "-p", PORT, "-S", "4096", "-C", "50", "-T", "n"),
     "4k"),
    ("rdma_client", ("rdma_server", "-p", PORT),
     ("rdma_client", "-s", HOST, "-p", PORT), "end 0"),
    ("write_bw", ("ib_write_bw", "-R", "-F", "-n", "100", "-p", PORT),
     ("ib_write_bw", "-R", "-F", "-n", "100", "-p", PORT, HOST), "65536"),
    ("send_bw_ud",
     ("ib_send_bw", "-R", "-F", "-c", "UD", "-n", "100", "-s", "1024", "-p",
      PORT),
     ("ib_send_bw", "-R", "-F", "-c", "UD", "-n", "100", "-s", "1024", "-p",
      PORT, HOST), "1024"),
)

# UCX's clients and servers, on the transport; its server serves for ever
LISTENER = (SEP_RUN, "--only", "io_demo", "-p", PORT)

# The same with the client's id in the connection request
WITH_ID = os.path.join(BUILD, "test/ucp/listener")


class Rdmacm(unittest.TestCase):
    """With InfiniBand."""

    link = "ib"

    def pair(self, server_argv, client_argv, wanted, is_endless=False,
             **settings):
        if not os.access(SIM_RUN, os.X_OK):
            self.skipTest("the device is not built")
        if shutil.which(server_argv[0]) is None:
            self.skipTest(f"there is no {server_argv[0]}")

        instance = subprocess.run(
            ["mktemp", "-d", "/dev/shm/mlx5sim.test.XXXXXX"], check=True,
            capture_output=True, text=True).stdout.strip()
        self.addCleanup(shutil.rmtree, instance)
        env = dict(os.environ, MLX5SIM_LINK=self.link,
                   UCX_SOCKADDR_TLS_PRIORITY="rdmacm", **settings)
        run = [SIM_RUN, "--dir", instance]

        def start():
            server = subprocess.Popen(run + list(server_argv), env=env,
                                      stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, text=True)
            self.addCleanup(server.stdout.close)
            self.addCleanup(server.wait)
            self.addCleanup(server.kill)
            return server

        # Who comes before the server listens is rejected. Of several
        # connections, the last could meet a server already: perftest makes two,
        # and if the second comes too early, version 4.5 does not survive and
        # its server waits for it.
        server = start()
        end = time.monotonic() + PATIENCE
        while True:
            client = subprocess.run(run + list(client_argv), env=env,
                                    stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True,
                                    timeout=PATIENCE, check=False)
            if client.returncode == 0 or server.poll() is not None or \
                    time.monotonic() > end:
                break
            if "Failed to connect RDMA CM events" in client.stdout:
                server.kill()
                server.communicate()
                server = start()

        if is_endless:
            server.kill()
        output, _ = server.communicate(timeout=PATIENCE)
        self.assertEqual(0, client.returncode, client.stdout + output)
        self.assertIn(wanted, client.stdout)
        if not is_endless:
            self.assertEqual(0, server.returncode, output)

    def check_listener(self, **settings):
        if shutil.which("io_demo") is None:
            self.skipTest("there is no io_demo")
        self.pair(LISTENER, LISTENER + ("-i", "20", HOST),
                  "Client exit with status 'OK'", is_endless=True, **settings)

    def test_ucp_listener(self):
        self.check_listener()

    def test_ucp_listener_on_hub(self):
        """Its address is longer."""
        self.check_listener(UCX_SEP_CATEGORY="mpi_threads")

    def check_client_id(self, **settings):
        if not os.access(WITH_ID, os.X_OK):
            self.skipTest(f"there is no {WITH_ID}")
        argv = (SEP_RUN, "--only", WITH_ID, PORT)
        self.pair(argv, argv + (HOST,), "OK listener: client", **settings)

    def test_ucp_listener_and_client_id(self):
        self.check_client_id()

    def test_ucp_listener_and_client_id_on_paths(self):
        """UCX says how many there are: another byte."""
        self.check_client_id(UCX_SEP_NUM_PATHS="2")

    def test_ucp_listener_and_client_id_on_hub(self):
        """Its address is longer."""
        self.check_client_id(UCX_SEP_CATEGORY="mpi_threads")


class RdmacmRoce(Rdmacm):
    """With RoCE."""

    link = "roce"


for NAME, *REST in PROGRAMS:
    setattr(Rdmacm, f"test_{NAME}", lambda self, rest=REST: self.pair(*rest))


if __name__ == "__main__":
    unittest.main()
