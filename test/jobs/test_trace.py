# SPDX-License-Identifier: BSD-3-Clause
"""Watching a device: MLX5SIM_TRACE beside the counters, mlx5sim-stat --watch."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

from mainjob import device

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
BUILD = os.path.realpath(os.environ.get("SEP_BUILD_DIR", TOP))
SIM_RUN = os.path.join(BUILD, "bin/mlx5sim-run")

# Three messages each way, two of them of more than one packet
PINGPONG = (f"ibv_rc_pingpong -m 1024 -s 3000 -n 3 -p "
            f"{20000 + os.getpid() % 10000}")
COMMAND = (f"{PINGPONG} & while kill -0 $! && ! {PINGPONG} localhost; "
           f"do sleep 0.01; done; wait; {BUILD}/bin/mlx5sim-stat --json --all")


@unittest.skipUnless(os.access(SIM_RUN, os.X_OK) and
                     shutil.which("ibv_rc_pingpong"),
                     "the device is not built, or no ibv_rc_pingpong")
class Trace(unittest.TestCase):

    def setUp(self):
        # pylint: disable=consider-using-with
        parent = tempfile.TemporaryDirectory()
        self.addCleanup(parent.cleanup)
        self.file = os.path.join(parent.name, "t.json")

    @staticmethod
    def run_it(*options, command=COMMAND, **environment):
        return subprocess.run(
            [SIM_RUN, "--private", *options, "--", "bash", "-c", command],
            capture_output=True, text=True, timeout=300, check=False,
            env=dict(os.environ, **environment))

    def events(self, **environment):
        """All of them, and what the device has counted."""
        result = self.run_it("--trace", self.file, **environment)
        self.assertEqual(0, result.returncode, result.stderr)
        with open(self.file, encoding="ascii") as file:
            # Viewers do without the end
            events = json.loads(file.read().removesuffix(",\n") + "]")
        counters = device.parse_counters(
            result.stdout[result.stdout.index('{\n  "processes"'):])
        return events, counters

    @staticmethod
    def count(events, phase, *names):
        return sum(event["ph"] == phase and event["name"] in names
                   for event in events)

    def check_rows(self, events):
        """Each queue has a name, and is of one process."""
        named = {(event["pid"], event["tid"]): event["args"]["name"]
                 for event in events if event["ph"] == "M"}
        used = {(event["pid"], event["tid"]) for event in events
                if event["ph"] != "M" and event["tid"] >= 1 << 24}
        self.assertEqual(used, set(named))
        self.assertEqual(2, sum(name.startswith("QP") for name in
                                named.values()))
        self.assertEqual(2, len({pid for pid, _ in named}))

    def test_what_is_rung_executed_and_completed_is_in_it(self):
        events, counters = self.events(MLX5SIM_EXEC="sync")
        self.check_rows(events)
        self.assertEqual(counters["doorbells"] + counters["blueflames"],
                         self.count(events, "i", "doorbell", "BlueFlame"))
        self.assertEqual(6, self.count(events, "X", "SEND"))
        self.assertEqual(counters["wqes"], self.count(events, "X", "SEND"))
        self.assertEqual(6, self.count(events, "i", "SEND"))
        self.assertEqual(6, self.count(events, "i", "receive"))
        # and what the program does without the device
        self.assertEqual(6, self.count(events, "i", "post SEND"))
        self.assertEqual(12, sum(event["args"]["count"] for event in events
                                 if event["name"] == "polled"))
        self.assertEqual({3}, {event["args"]["packets"] for event in events
                               if event["ph"] == "X"})

    def test_packets_are_in_it_and_which_are_lost(self):
        events, _ = self.events(MLX5SIM_EXEC="deferred", MLX5SIM_SEED="3",
                                MLX5SIM_LOSS="300")
        self.check_rows(events)
        self.assertLess(0, self.count(events, "i", "packet lost"))
        self.assertLessEqual(6 * 3, self.count(events, "i", "packet"))
        self.assertEqual(6, self.count(events, "i", "receive"))

    def test_a_file_that_can_not_be_written_is_refused(self):
        self.file = "/nowhere/t.json"
        result = self.run_it("--trace", self.file)
        self.assertEqual(2, result.returncode)
        self.assertIn("--trace: /nowhere/t.json can't be written",
                      result.stderr)
        result = self.run_it(command="ibv_devinfo", MLX5SIM_TRACE=self.file)
        self.assertNotEqual(0, result.returncode)
        self.assertIn("MLX5SIM_TRACE=/nowhere/t.json: No such file",
                      result.stderr)


@unittest.skipUnless(os.access(SIM_RUN, os.X_OK) and shutil.which("rdma") and
                     shutil.which("ibv_rc_pingpong"),
                     "the device is not built, or no rdma or ibv_rc_pingpong")
class Rdma(unittest.TestCase):
    """What iproute2's rdma asks by netlink is what sysfs says."""

    FILES = "/sys/class/infiniband/mlx5_0"

    def run_it(self, command, status=0, **environment):
        result = subprocess.run(
            [SIM_RUN, "--private", "bash", "-c", command],
            capture_output=True, text=True, timeout=100, check=False,
            env=dict(os.environ, **environment))
        self.assertEqual(status, result.returncode, result.stderr)
        return result

    def values(self, command, **environment):
        """JSON that a command prints, and a list of what it prints then."""
        text      = self.run_it(command, **environment).stdout
        tree, end = json.JSONDecoder().raw_decode(text)
        return tree, text[end:].split()

    def test_counters_are_those_of_the_files(self):
        link, lines = self.values(
            f"{PINGPONG} > /dev/null & until {PINGPONG} localhost > /dev/null "
            f"2>&1; do sleep 0.01; done; wait; "
            f"rdma -j statistic show link mlx5_0/1; "
            f"cd {self.FILES}/ports/1/hw_counters; "
            f"for f in *; do echo $f=$(cat $f); done")
        files = dict(line.split("=") for line in lines)
        del files["lifespan"]
        self.assertEqual("mlx5_0", link[0].pop("ifname"))
        self.assertEqual(1, link[0].pop("port"))
        self.assertEqual(files, {name: str(value) for name, value in
                                 link[0].items()})
        self.assertGreater(len(files), 10)

    def test_something_is_counted(self):
        link, _ = self.values(
            "P=$((20000 + $$ % 10000)); ib_write_lat -p $P -n 10 > /dev/null & "
            "until ib_write_lat -p $P -n 10 localhost > /dev/null 2>&1; do "
            "sleep 0.01; done; wait; rdma -j statistic show link mlx5_0/1")
        self.assertLess(0, link[0]["rx_write_requests"])

    def test_devices_and_ports(self):
        for kind in ("ib", "roce"):
            with self.subTest(link=kind):
                devices, lines = self.values(
                    "rdma -j dev; for d in mlx5_0 mlx5_1; do "
                    "cat /sys/class/infiniband/$d/node_guid; done",
                    MLX5SIM_DEVICES="2", MLX5SIM_LINK=kind)
                self.assertEqual([0, 1], [each["ifindex"] for each in devices])
                self.assertEqual(["mlx5_0", "mlx5_1"],
                                 [each["ifname"] for each in devices])
                self.assertEqual(lines, [each["node_guid"]
                                         for each in devices])
                links, _ = self.values("rdma -j link", MLX5SIM_PORTS="2",
                                       MLX5SIM_LINK=kind)
                self.assertEqual([1, 2], [each["port"] for each in links])
                self.assertEqual({"ACTIVE"}, {each["state"] for each in links})
                self.assertEqual(kind == "ib", "lid" in links[0])
        self.assertEqual("netns shared copy-on-fork on",
                         self.run_it("rdma system").stdout.strip())

    def test_what_is_not_there_is_an_error(self):
        for command in ("rdma link show mlx5_7/1", "rdma link show mlx5_0/3",
                        "rdma dev set mlx5_0 name other",
                        "rdma statistic qp show"):
            result = self.run_it(f"{command}; [ $? != 0 ]")
            self.assertNotEqual("", result.stderr)


@unittest.skipUnless(os.access(SIM_RUN, os.X_OK) and
                     shutil.which("ibv_devinfo"),
                     "the device is not built, or no ibv_devinfo")
class Watch(unittest.TestCase):

    def run_it(self, command):
        result = subprocess.run(
            [SIM_RUN, "--private", "bash", "-c", f"ibv_devinfo > /dev/null; "
             f"PATH={BUILD}/bin:$PATH; {command}"], capture_output=True,
            text=True, timeout=100, check=False)
        return result

    def test_tables_follow_each_other_until_nobody_reads(self):
        result = self.run_it("mlx5sim-stat --all --watch 0.01 | head -n 10")
        self.assertEqual(0, result.returncode, result.stderr)
        lines = result.stdout.splitlines()
        self.assertEqual(lines[:5], lines[5:])
        self.assertEqual(["process", "ibv_devinfo", "total", "since", "+"],
                         [line.split()[0] for line in lines[:5]])
        self.assertEqual(1, len({len(line) for line in lines[:4]}))

    def test_the_end_of_the_instance_is_the_end(self):
        result = self.run_it("f=$(mktemp); mlx5sim-stat --watch 0.01 > $f & "
                             "until [ -s $f ]; do sleep 0.01; done; "
                             "rm -r $f $MLX5SIM_DIR; wait $!")
        self.assertEqual(0, result.returncode, result.stderr)

    def test_no_time_is_refused(self):
        for text in ("0", "-1", "x", "1e9", "nan"):
            result = self.run_it(f"mlx5sim-stat --watch {text}")
            self.assertEqual(2, result.returncode)
            self.assertIn(f"--watch {text}: it must be", result.stderr)


if __name__ == "__main__":
    unittest.main()
