# SPDX-License-Identifier: BSD-3-Clause
"""sep-run: what it says if there is nothing to run on."""

import os
import subprocess
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
BUILD = os.environ.get("SEP_BUILD_DIR", TOP)
SEP_RUN = os.path.join(BUILD, "bin/sep-run")
SIM_RUN = [os.path.join(BUILD, "bin/mlx5sim-run"), "--private", "--"]


def run(*args, launcher=(), env=None):
    return subprocess.run(
        [*launcher, SEP_RUN, *args], capture_output=True, text=True, timeout=60,
        check=False,
        env={**{name: value for name, value in os.environ.items()
                if not name.startswith(("UCX_", "MLX5"))}, **(env or {})})


@unittest.skipUnless(os.access(SEP_RUN, os.X_OK), "sep-run is not built")
class NoDevice(unittest.TestCase):

    def expect_warning(self, result):
        """It names the device that there could be, and goes on."""
        self.assertIn("no mlx5 device", result.stderr)
        self.assertIn("mlx5sim-run sep-run sh", result.stderr)
        self.assertEqual((result.stdout, result.returncode), ("ran\n", 3))

    def expect_nothing(self, result):
        self.assertEqual((result.stderr, result.stdout, result.returncode),
                         ("", "ran\n", 3))

    COMMAND = ("sh", "-c", "echo ran; exit 3")

    @unittest.skipIf(os.path.exists("/sys/class/infiniband"),
                     "there may be a device")
    def test_without_a_device(self):
        self.expect_warning(run(*self.COMMAND))
        for tls in ("tcp", "sep_mlx5,tcp", "all"):
            self.expect_nothing(run(*self.COMMAND, env={"UCX_TLS": tls}))
        self.expect_nothing(run("--keep-tls", *self.COMMAND,
                                env={"UCX_TLS": "tcp"}))
        self.expect_nothing(run("--keep-tls", *self.COMMAND))

    @unittest.skipIf(os.path.exists("/sys/class/infiniband"),
                     "there may be a device")
    def test_preload_of_the_software_device_is_lost(self):
        self.expect_warning(run(*self.COMMAND, launcher=[
            *SIM_RUN, "env", "-u", "LD_PRELOAD"]))
        self.expect_warning(run(*self.COMMAND, launcher=SIM_RUN,
                                env={"MLX5SIM_DISABLE": "y"}))

    def test_on_the_software_device(self):
        self.expect_nothing(run(*self.COMMAND, launcher=SIM_RUN))
        for link in ("ib", "roce"):
            self.expect_nothing(run(*self.COMMAND, launcher=SIM_RUN,
                                    env={"MLX5SIM_LINK": link,
                                         "MLX5SIM_DEVICES": "2"}))
