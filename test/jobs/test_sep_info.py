# SPDX-License-Identifier: BSD-3-Clause
"""sep_info: plans, and what is really taken of the software device."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
BUILD = os.environ.get("SEP_BUILD_DIR", TOP)
SEP_INFO = os.path.join(BUILD, "bin/sep_info")
SIM_RUN = os.path.join(BUILD, "bin/mlx5sim-run")
SIM_STAT = os.path.join(BUILD, "bin/mlx5sim-stat")

# Contexts, static and dynamic UAR pages, uUARs, QPs and CQs of 16 threads with
# one queue pair each: Zambre, Chandramowlishwaran, Balaji, 2018
PAPER = {
    "mpi_everywhere": (16, 128, 0, 256, 16, 16),
    "2xdynamic":      (1, 8, 32, 80, 16, 16),
    "dynamic":        (1, 8, 16, 48, 16, 16),
    "shared_dynamic": (1, 8, 8, 32, 16, 16),
    "static":         (1, 8, 0, 16, 16, 16),
    "mpi_threads":    (1, 8, 0, 16, 1, 1),
}

# Queue pairs, and CQs, that 16 workers of the transport have besides: those of a
# connection manager each, and with contexts of their own one more to receive
OTHERS = {category: 16 for category in PAPER}
OTHERS["mpi_everywhere"] = 16 + 15
OTHERS["mpi_threads"] = 1

# The tool's names and those of the device for what both count
SAME = {"contexts": "contexts_created", "uars": "uars_created",
        "qps": "qps_created", "cqs": "cqs_created", "srqs": "srqs_created"}


def run(*args, env=None, sim_dir=None, timeout=300):
    command = [SEP_INFO, *args]
    if sim_dir is not None:
        command = [SIM_RUN, "--dir", sim_dir, "--", *command]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, check=False,
        env={**{name: value for name, value in os.environ.items()
                if not name.startswith(("UCX_", "MLX5"))}, **(env or {})})


def categories():
    """Rows of the transport's categories, those that can be opened."""
    result = run("-l", "--json")
    return {row["category"]: row
            for row in json.loads(result.stdout)["categories"]}


AVAILABLE = tuple(categories()) if os.access(SEP_INFO, os.X_OK) else ()


@unittest.skipUnless(os.access(SEP_INFO, os.X_OK), "sep_info is not built")
class Planner(unittest.TestCase):

    def plans(self, *args, env=None):
        result = run("-p", "--json", *args, env=env)
        self.assertEqual(result.returncode, 0, result.stderr)
        return {(plan["category"], plan["regime"]): plan
                for plan in json.loads(result.stdout)["plans"]}

    def test_table_of_the_paper(self):
        plans = self.plans("-w", "16", "-r", "legacy")
        self.assertEqual(tuple(category for category, _ in plans), AVAILABLE)
        for category, want in PAPER.items():
            own = plans[category, "legacy"]["own"]
            self.assertEqual(
                tuple(own[name] for name in
                      ("contexts", "uars_static", "uars_dynamic", "uuars",
                       "qps", "cqs")), want, category)

    def test_table_for_people_says_the_same(self):
        result = run("-p", "-w", "16", "-r", "legacy")
        self.assertRegex(result.stdout, r"2xdynamic +own +1 +8\+32 +80 ")
        self.assertRegex(result.stdout, r"mpi_everywhere +own +16 +128 +256 ")

    def test_907_naive_contexts_exhaust_a_device(self):
        plan = self.plans("-w", "1", "-c", "naive", "-r", "legacy")
        self.assertEqual(plan["naive", "legacy"]["processes"], 907)
        self.assertIn("907 workers would fit",
                      run("-p", "-r", "legacy").stdout)

    def test_both_regimes_unless_one_is_asked_for(self):
        self.assertEqual(len(self.plans()), 2 * len(AVAILABLE))
        self.assertEqual(len(self.plans("-c", "static")), 2)

    def test_configuration_is_that_of_the_transport(self):
        plan = self.plans("-w", "1", "-c", "dynamic", "-r", "dynamic",
                          env={"UCX_SEP_TX_QUEUE_LEN": "1024",
                               "UCX_SEP_RX_QUEUE_LEN": "300"})
        total = plan["dynamic", "dynamic"]["total"]
        self.assertEqual(total["srq_bytes"], 512 * 32)
        self.assertGreater(total["qp_bytes"], 1024 * 64)

    def test_budgets_of_queue_pairs_are_planned(self):
        env = {"UCX_SEP_MAX_QPS": "40"}
        args = ("-w", "4", "-n", "100", "-r", "dynamic")
        plan = self.plans(*args, env=env)["dynamic", "dynamic"]
        self.assertEqual((plan["max_qps"], plan["least_qps"]), (40, 8))
        self.assertEqual(plan["own"]["qps"], 40)
        self.assertEqual(plan["total"]["qps"], 44)
        text = run("-p", *args, env=env).stdout
        self.assertIn("# At most 40 RC queue pairs at a time", text)
        self.assertNotIn(" at least", text)
        text = run("-p", *args, env={"UCX_SEP_MAX_QPS": "8"}).stdout
        self.assertIn("needs 16 RC queue pairs at least", text)

    def test_the_default_is_planned_as_what_it_wants(self):
        plan = self.plans("-c", "default")
        self.assertEqual({category for category, _ in plan}, {"dynamic"})

    def test_uuars_are_those_of_libmlx5(self):
        plan = self.plans("-c", "static", "-r", "legacy",
                          env={"MLX5_TOTAL_UUARS": "64"})
        self.assertEqual(plan["static", "legacy"]["own"]["uars_static"], 32)


NODE = """\
[adapter]
uars = 1024
[nvshmem]
processes = 4
peers = 15
[sep_mlx5]
label = MPI
processes = 64
workers = 4
peers = 127
category = 2xdynamic
"""

# What "rdma -j resource show" prints, as far as sep_info looks
RDMA = """\
#!/bin/sh
case $* in
"-j resource show qp") echo '[{"ifname": "mlx5_0", "lqpn": 1, "comm": "ib_core"},
    {"ifname": "mlx5_0", "lqpn": 2, "pid": 999999999, "comm": "job"},
    {"ifname": "mlx5_0", "lqpn": 3, "pid": 999999999, "comm": "job"},
    {"ifname": "mlx5_1", "lqpn": 4, "pid": 999999999, "comm": "job"}]' ;;
"-j resource show cq") echo '[{"ifname": "mlx5_0", "cqn": 1,
    "pid": 999999999, "comm": "job"}]' ;;
*) exit 1 ;;
esac
"""


@unittest.skipUnless(os.access(SEP_INFO, os.X_OK), "sep_info is not built")
class Node(unittest.TestCase):

    def node(self, text, *args, status=0):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write(text)
            file.flush()
            result = run("--node", file.name, *args)
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stdout if status < 2 else result.stderr

    def test_what_ends_and_a_setting_that_fits(self):
        node = json.loads(self.node(NODE, "-j", status=1))["node"]
        # 122 pages each; 9 each; the kernel has 21
        self.assertEqual([group["each"]["uars"] for group in node["processes"]],
                         [122, 9])
        self.assertEqual(node["total"]["uars"], 4 * 122 + 64 * 9)
        self.assertEqual(node["available"]["uars"], 1024 - 21)
        self.assertFalse(node["fits"])
        self.assertEqual(node["fails"], {"limit": "uars", "label": "MPI",
                                         "line": 6, "process": 58})
        self.assertTrue(node["setting"]["fits"])
        self.assertEqual(node["setting"]["UCX_SEP_CATEGORY"], "dynamic")
        # Others have 4 x 121, and connection managers 256: nothing is left
        self.assertEqual(node["setting"]["UCX_SEP_MAX_QPS"], 8)
        self.assertEqual(node["setting"]["UCX_SEP_MAX_QPS_NODE"], 64 * 8)
        self.assertTrue(node["setting"]["slow"])

    def test_text_says_the_same(self):
        text = self.node(NODE, status=1)
        self.assertIn("UAR pages end at process 58 of 64 of MPI (line 6)", text)
        self.assertIn("\nUCX_SEP_CATEGORY=dynamic\nUCX_SEP_MAX_QPS=8\n", text)
        text = self.node("[sep_mlx5]\n")
        self.assertIn("# Fits.", text)
        self.assertNotIn("UCX_", text)

    def test_options_are_the_adapters(self):
        self.node("[sep_mlx5]\n", "-u", "23", "-k", "21", status=0)
        self.node("[sep_mlx5]\n", "-u", "22", "-k", "21", status=1)
        legacy = self.node("[sep_mlx5]\ncategory = static\n", "-j", "-r",
                           "legacy")
        self.assertEqual(json.loads(legacy)["node"]["total"]["uars"], 8)
        known = self.node("[sep_mlx5]\n", "-j")
        cx6 = self.node("[sep_mlx5]\n", "-j", "--adapter", "cx6")
        self.assertEqual(json.loads(known)["node"]["most_qps"],
                         json.loads(cx6)["node"]["most_qps"])

    def test_wrong_descriptions_are_refused(self):
        self.assertIn(":2: there is no \"ranks\" of processes, only",
                      self.node("[nixl]\nranks = 2\n", status=2))
        self.assertIn("there is no [ucx], only", self.node("[ucx]", status=2))
        self.assertIn("no processes", self.node("", status=2))
        result = run("--node", "/nowhere")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("/nowhere: No such file", result.stderr)
        self.assertEqual(run("--node", "/nowhere", "--predict", "-",
                             "--adapter", "cx6").returncode, 2)

    def live(self, *args, env):
        result = run("--node", "live", "-j", *args, env=env)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return {group["label"]: group["each"]
                for group in json.loads(result.stdout)["node"]["processes"]}

    def test_the_kernel_is_asked(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "rdma")
            with open(path, "w", encoding="utf-8") as file:
                file.write(RDMA)
            os.chmod(path, 0o755)
            env = {"PATH": directory + ":" + os.environ["PATH"],
                   "SEP_NODE_LIVE": ""}
            groups = self.live(env=env)
            job = groups["job (999999999)"]
            self.assertEqual((job["uars"], job["qps"], job["cqs"]), (0, 3, 1))
            self.assertEqual(groups["kernel (0)"]["qps"], 1)
            job = self.live("-D", "mlx5_0", env=env)["job (999999999)"]
            self.assertEqual((job["qps"], job["cqs"]), (2, 1))

    def test_a_command_may_know(self):
        groups = self.live(env={
            "SEP_NODE_LIVE": "printf '[other]\\nlabel = me\\nqps = 3\\n'"})
        self.assertEqual(groups["me"]["qps"], 3)
        result = run("--node", "live", env={"SEP_NODE_LIVE": "false"})
        self.assertEqual((result.returncode, result.stdout), (3, ""))
        self.assertIn("SEP_NODE_LIVE=false", result.stderr)

    @unittest.skipUnless(shutil.which("ibv_asyncwatch"), "no ibv_asyncwatch")
    def test_live_is_what_the_device_counts(self):
        with tempfile.TemporaryDirectory() as directory:
            sim = [SIM_RUN, "--dir", os.path.join(directory, "sim"), "--"]
            with subprocess.Popen(
                    [*sim, "stdbuf", "-oL", "ibv_asyncwatch"], text=True,
                    stdout=subprocess.PIPE) as watch:
                try:
                    watch.stdout.readline()
                    for own in (True, False):
                        command = [SEP_INFO, "--node", "live", "-j"]
                        result = subprocess.run(
                            [*sim, *([] if own else ["env", "SEP_NODE_LIVE="]),
                             *command], capture_output=True, text=True,
                            timeout=60, check=False)
                        self.assertEqual(result.returncode, 0, result.stderr)
                        uars = [group["each"]["uars"] for group in
                                json.loads(result.stdout)["node"]["processes"]
                                if group["label"].startswith("ibv_asyncwatch")]
                        self.assertIn(1, uars)
                finally:
                    watch.terminate()


@unittest.skipUnless(os.access(SEP_INFO, os.X_OK), "sep_info is not built")
class Usage(unittest.TestCase):

    def refused(self, *args, env=None):
        result = run(*args, env=env)
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertEqual(result.stdout, "")
        return result.stderr

    def test_wrong_arguments_are_named(self):
        self.assertIn('"best"', self.refused("-p", "-c", "best"))
        for category in AVAILABLE:
            self.assertIn(category, self.refused("-p", "-c", "best"))
        self.assertIn("chooses", self.refused("-p", "-c", "auto"))
        self.assertIn('"old"', self.refused("-p", "-r", "old"))
        for value in ("0", "-1", "x", "1x", "", "99999999999999999999"):
            self.assertIn("between", self.refused("-p", "-w", value))
        self.assertIn("what", self.refused("-p", "16"))
        self.assertIn("-h", self.refused("-z"))
        self.assertIn("planned", self.refused("-t", "-c", "naive"))

    def test_wrong_variables_are_named(self):
        self.assertIn("MLX5_TOTAL_UUARS",
                      self.refused("-p", env={"MLX5_TOTAL_UUARS": "0"}))
        self.assertIn("MLX5_NUM_LOW_LAT_UUARS", self.refused(
            "-p", env={"MLX5_NUM_LOW_LAT_UUARS": "16"}))
        self.assertIn("UCX_SEP", self.refused(
            "-p", env={"UCX_SEP_CATEGORY": "best"}))
        for category in (*AVAILABLE, "auto"):
            self.assertIn(category, self.refused(
                "-p", env={"UCX_SEP_CATEGORY": "best"}))
        for name, value in (("TX_QUEUE_LEN", "0"), ("CQ_SHARING", "-5"),
                            ("RX_QUEUE_LEN", "32768"), ("TIMEOUT", "-1s")):
            self.assertIn(f"UCX_SEP_{name}", self.refused(
                "-p", env={f"UCX_SEP_{name}": value}))

    def test_every_option_is_in_the_help(self):
        result = run("-h")
        self.assertEqual(result.returncode, 0)
        for option in "dptlvhwncrukDj":
            self.assertRegex(result.stdout, rf"(?m)^  -{option}\b")
        for category in AVAILABLE:
            self.assertIn(f" {category},", result.stdout)

    def test_list_of_categories(self):
        rows = categories()
        result = run("-l")
        self.assertEqual(result.returncode, 0, result.stderr)
        own, _, chosen = result.stdout.partition("\n\n")
        self.assertEqual([line.split(None, 1) for line in own.splitlines()],
                         [[name, row["what"]] for name, row in rows.items()])
        # Every other value that UCX_SEP_CATEGORY has
        choices = json.loads(run("-l", "--json").stdout)["choices"]
        self.assertEqual(["auto", "default"],
                         [row["choice"] for row in choices])
        self.assertEqual([line.split(None, 1) for line in
                          chosen.splitlines()[1:]],
                         [[row["choice"], row["what"]] for row in choices])
        self.assertLessEqual(set(PAPER), set(rows))
        self.assertEqual([name for name, row in rows.items()
                          if row["auto_alone"]], ["dynamic"])

    def test_version(self):
        self.assertRegex(run("-v").stdout, r"^# sep_info \d+\.\d+\.\d+\n$")

    def test_no_device_is_an_error_of_its_own(self):
        result = run("-d", "-D", "no_such_device")
        self.assertEqual(result.returncode, 3)
        self.assertIn("no_such_device", result.stderr)


@unittest.skipUnless(os.access(SEP_INFO, os.X_OK) and
                     os.access(SIM_RUN, os.X_OK), "not built")
class Taken(unittest.TestCase):

    def setUp(self):
        parent = tempfile.mkdtemp(prefix="sep_info.", dir="/dev/shm")
        self.addCleanup(shutil.rmtree, parent)
        self.dir = os.path.join(parent, "device")

    def device(self):
        result = subprocess.run(
            [SIM_STAT, "--json", "--all"], capture_output=True, text=True,
            env={**os.environ, "MLX5SIM_DIR": self.dir}, timeout=300,
            check=True)
        return json.loads(result.stdout)["processes"]

    def take(self, *args, status=0, env=None):
        result = run("-t", "--json", *args, sim_dir=self.dir, env=env)
        self.assertEqual(result.returncode, status,
                         result.stdout + result.stderr)
        taken = json.loads(result.stdout)["tries"]
        self.assertEqual(len(taken), 1)
        return taken[0]

    def check(self, category, workers, peers, env=None):
        """Taken as planned, and as the device has counted; returns both."""
        taken = self.take("-c", category, "-w", str(workers), "-n", str(peers),
                          env=env)
        self.assertTrue(taken["same"])

        # Of all processes it is the one with the most queue pairs
        process = max(self.device(), key=lambda row: row["qps_created"])
        for name, counter in SAME.items():
            self.assertEqual(taken[name]["taken"], process[counter], name)
        shutil.rmtree(self.dir)
        return taken, process

    def test_categories_were_found(self):
        self.assertLessEqual(set(PAPER), set(AVAILABLE))

    def test_as_planned_and_as_the_device_counts(self):
        for regime in ("legacy", "dynamic"):
            for category in AVAILABLE:
                for workers, peers in ((1, 2), (3, 2)):
                    with self.subTest(regime=regime, category=category,
                                      workers=workers):
                        taken, _ = self.check(
                            category, workers, peers,
                            env={"MLX5SIM_UAR_MODE": regime})
                        self.assertEqual(taken["regime"], regime)

    def test_without_write_combining(self):
        """There are no thread domains, and a page for each context."""
        result = run("-t", "-w", "3", "--json", sim_dir=self.dir,
                     env={"MLX5SIM_BF": "n"})
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        tries = json.loads(result.stdout)["tries"]
        self.assertEqual(["mpi_everywhere", "static", "mpi_threads"],
                         [each["category"] for each in tries])
        self.assertEqual({"nc"}, {each["regime"] for each in tries})

    def test_registered_memory_is_counted_once(self):
        """It was counted twice where it has two keys, which the processor
        decides unless it is set, and was more than the process has."""
        for ordering in ("off", "on"):
            for category in AVAILABLE:
                with self.subTest(ordering=ordering, category=category):
                    taken = self.take("-c", category, "-w", "4", env={
                        "UCX_SEP_PCI_RELAXED_ORDERING": ordering})
                    shutil.rmtree(self.dir)
                    registered = taken["mr_bytes"]
                    self.assertLess(
                        abs(registered["taken"] - registered["planned"]),
                        registered["planned"] / 10)
                    self.assertLessEqual(registered["planned"],
                                         taken["resident_bytes"]["planned"])

    def test_table_of_the_paper_on_the_device(self):
        # What the device has counted for 16 workers with a connection each
        for category, want in PAPER.items():
            contexts, static, dynamic, uuars, qps, cqs = want
            with self.subTest(category=category):
                _, process = self.check(category, 16, 1,
                                        env={"MLX5SIM_UAR_MODE": "legacy"})
                self.assertEqual(process["contexts_created"], contexts)
                self.assertEqual(process["uars_static_created"], static)
                self.assertEqual(process["uars_dynamic_created"], dynamic)
                self.assertEqual(2 * (static + dynamic), uuars)
                # and those of the others
                self.assertEqual(process["qps_created"],
                                 qps + OTHERS[category])
                self.assertEqual(process["cqs_created"],
                                 cqs + OTHERS[category])

    def test_pages_of_the_plan_suffice_and_one_less_does_not(self):
        for regime in ("legacy", "dynamic"):
            for category in AVAILABLE:
                with self.subTest(regime=regime, category=category):
                    env = {"MLX5SIM_UAR_MODE": regime}
                    taken = self.take("-c", category, "-w", "3", "-n", "0",
                                      env=env)
                    shutil.rmtree(self.dir)
                    pages = taken["uars"]["planned"]
                    self.take("-c", category, "-w", "3", "-n", "0",
                              env={**env, "MLX5SIM_UARS": str(pages)})
                    shutil.rmtree(self.dir)
                    result = run("-t", "-c", category, "-w", "3", "-n", "0",
                                 sim_dir=self.dir,
                                 env={**env, "MLX5SIM_UARS": str(pages - 1)})
                    self.assertEqual(result.returncode, 3, result.stdout)
                    shutil.rmtree(self.dir)

    def test_other_queues_and_uuars(self):
        for category in ("dynamic", "static"):
            self.check(category, 7, 1,
                       env={"UCX_SEP_TX_QUEUE_LEN": "128",
                            "UCX_SEP_TX_MIN_INLINE": "64",
                            "UCX_SEP_TX_CQ_LEN": "1000",
                            "UCX_SEP_RX_QUEUE_LEN": "100",
                            "UCX_SEP_CM_RX_QUEUE_LEN": "100",
                            "MLX5_TOTAL_UUARS": "6",
                            "MLX5_NUM_LOW_LAT_UUARS": "3"})

    def test_queues_of_libibverbs(self):
        for api in ("verbs", "wr"):
            for length in ("256", "100"):
                self.check("dynamic", 3, 2, env={
                    "UCX_SEP_API": api, "UCX_SEP_TX_QUEUE_LEN": length})

    def test_shared_send_queues_of_completions(self):
        for sharing in (2, 3, 16):
            taken, _ = self.check("dynamic", 5, 1,
                                  env={"UCX_SEP_CQ_SHARING": str(sharing)})
            # for sends, for receives, and of the connection managers
            self.assertEqual(taken["cqs"]["taken"], -(-5 // sharing) + 5 + 5)

    def test_the_eager_channel_is_tried(self):
        for category in ("dynamic", "mpi_threads"):
            found = self.take("-w", "2", "-n", "2", "-c", category,
                              env={"UCX_SEP_EAGER": "y",
                                   "UCX_SEP_EAGER_SLOTS": "8"})["eager"]
            self.assertEqual(8, found["slots"])
            # One to connect, and 256
            self.assertEqual(2 * 2 * 257, found["ring_sent"] + found["sent"])
            self.assertGreater(found["ring_sent"], 0)
            self.assertGreater(found["rings_of_peers"], 0)
        self.assertNotIn("eager", self.take("-w", "1", "-c", "dynamic"))

    def test_what_differs_is_told(self):
        # libmlx5 without BlueFlame: these queue pairs need no UAR pages
        taken = self.take("-c", "static", "-w", "2", status=1,
                          env={"MLX5_SHUT_UP_BF": "1"})
        self.assertFalse(taken["same"])
        self.assertGreater(taken["uars"]["planned"], taken["uars"]["taken"])
        result = run("-t", "-c", "static", "-w", "2", sim_dir=self.dir,
                     env={"MLX5_SHUT_UP_BF": "1"})
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"uars +\d+ +\d+ +<-- differs")

    def test_regime_is_found_out(self):
        for regime, pages, env in (
                ("legacy", 8, {"MLX5SIM_UAR_MODE": "legacy"}),
                ("dynamic", 1, {}), ("nc", 1, {"MLX5SIM_BF": "n"})):
            result = run("-d", "--json", sim_dir=self.dir, env=env)
            self.assertEqual(result.returncode, 0, result.stderr)
            device = json.loads(result.stdout)["devices"][0]
            self.assertEqual(device["regime"], regime)
            self.assertEqual(device["uars_at_open"], pages)
            self.assertEqual("max_dynamic_uuars" in device, regime == "legacy")
            shutil.rmtree(self.dir)

    def test_devices(self):
        result = run("-d", "--json", sim_dir=self.dir)
        self.assertEqual(result.returncode, 0, result.stderr)
        devices = json.loads(result.stdout)["devices"]
        self.assertEqual([device["device"] for device in devices], ["mlx5_0"])
        self.assertEqual(devices[0]["regime"], "dynamic")
        self.assertEqual(devices[0]["uars_at_open"], 1)
        self.assertEqual(devices[0]["bf_size"], 512)
        self.assertEqual(devices[0]["ports"][0]["state"], "active")
        self.assertIn("cswap", devices[0]["atomics32"])


if __name__ == "__main__":
    unittest.main()
