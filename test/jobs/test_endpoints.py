# SPDX-License-Identifier: BSD-3-Clause
"""Tests of the proof that each thread has an endpoint."""

import contextlib
import io
import json
import os
import tempfile
import unittest

from mainjob import endpoints, endpoints_cli

PLAN = {"contexts": 1, "uars": 3, "uuars_in_use": 4, "qps": 4, "cqs": 4,
        "srqs": 2}


def qp(qpn, dest, uar, register, count, kind="RC"):
    return {"qpn": qpn, "dest_qpn": dest, "type": kind, "uar": uar,
            "uuar_register": register, "doorbells": 0, "blueflames": count}


def snapshot(*processes):
    """As mlx5sim-stat prints it; more or other counters than PLAN's."""
    found = []
    for changes, qps in processes:
        each = {"name": "endpoints.mpich", "live": True, "wqes": 10,
                "contexts": 1, "uars": 3, "uuars_used": 4, "qps": 4, "cqs": 4,
                "srqs": 2, "qp_list": qps}
        each.update(changes)
        found.append(each)
    return json.dumps({"processes": found})


TWO = [qp(1, 0, 7, 1, 5, "UD"), qp(2, 12, 7, 0, 100), qp(3, 0, 8, 1, 5, "UD"),
       qp(4, 14, 8, 0, 120)]


class ReadSnapshot(unittest.TestCase):
    def read(self, *processes):
        return endpoints.read_snapshot(snapshot(*processes), "endpoints")

    def test_counts_queue_pairs_to_others_and_to_itself_apart(self):
        mine, = self.read(({}, TWO + [qp(5, 5, 8, 0, 7)]))
        self.assertEqual(2, mine.remote)
        self.assertEqual(1, mine.to_self)

    def test_adds_doorbells_of_queue_pairs_on_one_uuar(self):
        mine, = self.read(({}, TWO + [qp(6, 16, 8, 0, 80)]))
        self.assertEqual({(7, 0): 100, (8, 0): 200}, mine.rung)
        self.assertEqual(2.0, mine.unevenness())

    def test_ignores_other_programs_and_processes_that_have_ended(self):
        self.assertEqual([], self.read(({"name": "hydra_pmi_proxy"}, TWO),
                                       ({"live": False}, TWO)))


class Complaints(unittest.TestCase):
    setting = endpoints.Setting("mpich", 2)

    def complaints(self, *processes):
        found = endpoints.read_snapshot(snapshot(*processes), "endpoints")
        return endpoints.complaints(self.setting, found, PLAN)

    def test_none_if_all_is_as_planned(self):
        self.assertEqual([], self.complaints(({}, TWO), ({}, TWO)))

    def test_a_process_that_does_not_use_the_device(self):
        self.assertIn("1 processes use the device", self.complaints(
            ({}, TWO))[0])

    def test_each_resource_that_is_not_as_planned(self):
        for name, counter in (("contexts", "contexts"), ("uars", "uars"),
                              ("uuars_in_use", "uuars_used"), ("qps", "qps"),
                              ("cqs", "cqs"), ("srqs", "srqs")):
            words = self.complaints(({}, TWO), ({counter: 9}, TWO))
            self.assertEqual([f"process 1: {name}: 9 instead of {PLAN[name]}"],
                             words)

    def test_uuars_of_queue_pairs_that_only_receive_are_not_seen(self):
        silent = TWO + [qp(5, 15, 9, None, 0)]
        self.assertEqual([], self.complaints(({"uuars_used": 3}, silent),
                                             ({}, TWO)))
        self.assertEqual(["process 0: uuars_in_use: 2 instead of 4"],
                         self.complaints(({"uuars_used": 2}, silent),
                                         ({}, TWO)))

    def test_threads_that_share_one_endpoint(self):
        uneven = [qp(2, 12, 7, 0, 100), qp(4, 14, 8, 0, 1)]
        self.assertIn("differ by 100.0 times",
                      self.complaints(({}, uneven), ({}, TWO))[0])


WARNING = ('[1700000000.123456] [host:42   :0]     sep_channel.c:166  UCX  WARN  '
           'mlx5_0:1: there is no UAR page left for a worker of sharing category '
           '"dynamic", using "static" (said once)\n')
INFO = ("[1700000000.123456] [host:42   :0]     ucp_worker.c:1  UCX  INFO  "
        "ucp_context_0\n")


class Shortage(unittest.TestCase):
    setting = endpoints.Setting("mpich", 8, category="default", pages=6)

    def complaints(self, *logs):
        """Of processes that have logged this, a file for each."""
        with tempfile.TemporaryDirectory() as directory:
            for number, text in enumerate(logs):
                name = endpoints.LOG_FILE.replace("%p", str(number))
                with open(os.path.join(directory, name), "w",
                          encoding="utf-8") as file:
                    file.write(text)
            return endpoints.complaints_of_shortage(
                self.setting, endpoints.read_logs(directory))

    def test_each_process_says_so_once(self):
        self.assertEqual([], self.complaints(WARNING, INFO + WARNING, INFO))
        self.assertEqual(["2 messages instead of one"],
                         self.complaints(WARNING, WARNING * 2))

    def test_nobody_says_nothing(self):
        self.assertIn("1 processes have said", self.complaints(WARNING)[0])

    def test_the_message_is_true(self):
        self.assertIn("no category takes fewer", self.complaints(
            WARNING, WARNING.replace('using "static" (said once)',
                                     "no category takes fewer"))[0])

    def test_what_there_is_is_not_planned(self):
        self.assertFalse(self.setting.is_planned())


class Settings(unittest.TestCase):
    def test_mpich_gets_an_interface_per_thread(self):
        env = endpoints.Setting("mpich", 8).environment()
        self.assertEqual("8", env["MPIR_CVAR_CH4_NUM_VCIS"])

    def test_streams_have_interfaces_besides_the_common_one(self):
        streams = endpoints.Setting("mpich", 4, program="streams")
        env = streams.environment()
        self.assertEqual("4", env["MPIR_CVAR_CH4_RESERVE_VCIS"])
        self.assertNotIn("MPIR_CVAR_CH4_NUM_VCIS", env)
        self.assertEqual((5, 1), (streams.workers(), streams.peers()))
        self.assertEqual(4, endpoints.Setting("mpich", 4).workers())

    def test_with_windows_a_worker_talks_to_itself_as_well(self):
        self.assertEqual(2, endpoints.Setting("mpich", 8).peers())
        self.assertEqual(1, endpoints.Setting("mpich", 8,
                                              two_sided=True).peers())
        self.assertEqual(1, endpoints.Setting("mpich", 8,
                                              program="connect").peers())

    def test_nothing_is_planned_where_the_library_decides(self):
        self.assertTrue(endpoints.Setting("mpich", 8).is_planned())
        self.assertFalse(endpoints.Setting("openmpi", 8).is_planned())
        self.assertFalse(endpoints.Setting("mpich", 8, "rc_mlx5").is_planned())
        self.assertFalse(endpoints.Setting("mpich", 8, ranks=4).is_planned())

    def test_what_the_transport_refuses_is_not_run(self):
        self.assertNotEqual("", endpoints.Setting(
            "mpich", 8, category="mpi_everywhere", cq_sharing=4).impossible())
        self.assertEqual("", endpoints.Setting(
            "mpich", 8, category="dynamic", cq_sharing=4).impossible())

    def test_a_plan_of_the_regime_is_needed(self):
        text = json.dumps({"plans": [{"regime": "legacy", "total": PLAN}]})
        self.assertEqual(PLAN, endpoints.read_plan(text, "legacy"))
        with self.assertRaises(endpoints.EndpointsError):
            endpoints.read_plan(text, "dynamic")


class CommandLine(unittest.TestCase):
    def setUp(self):
        """A build with a transport that has other categories than today's."""
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.build = temporary.name
        os.mkdir(f"{self.build}/bin")
        program = f"{self.build}/bin/sep_info"
        with open(program, "w", encoding="utf-8") as file:
            file.write("""#!/bin/sh
[ "$*" = "-l --json" ] || exit 1
echo '{"categories": [{"category": "one"}, {"category": "two"}]}'""")
        os.chmod(program, 0o755)

    def categories(self, *options):
        return endpoints_cli.parse_arguments(
            ["--build-dir", self.build, *options]).category

    def test_categories_are_those_of_the_transport(self):
        self.assertEqual(["one", "two"], self.categories())
        self.assertEqual(["two"], self.categories("--category", "two"))

    def test_with_few_pages_workers_get_what_there_is(self):
        options = endpoints_cli.parse_arguments(
            ["--pages", "6", "--threads", "8", "--cq-sharing", "1",
             "--postlist", "1"])
        setting, = endpoints_cli.settings(options)
        self.assertEqual((6, "default", 8), (setting.pages, setting.category,
                                             setting.threads))

    def test_others_are_refused(self):
        said = io.StringIO()
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(said):
            self.categories("--category", "dynamic")
        self.assertIn("unknown name 'dynamic'", said.getvalue())


if __name__ == "__main__":
    unittest.main()
