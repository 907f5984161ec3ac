# SPDX-License-Identifier: BSD-3-Clause
"""sep_perf on the software device: resources, what the device does for a
message, predictions, and wrong input."""

import csv
import io
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import unittest

from mainjob import defects, perftest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
BUILD = os.path.realpath(os.environ.get("SEP_BUILD_DIR", TOP))
SEP_PERF = os.path.join(BUILD, "bin/sep_perf")
SEP_INFO = os.path.join(BUILD, "bin/sep_info")
SIM_RUN = os.path.join(BUILD, "bin/mlx5sim-run")
STEPS = (1, 2, 4, 8, 16)

# Right-hand sides of the 2018 paper's figures, 16 threads, by x of 1 to 16:
# written down here from its table of categories, 18 uUARs for each naive
# endpoint, 8 static pages for a context and a page for each thread domain
CONST = (16,) * 5
ONE = (1,) * 5
DOWN = (16, 8, 4, 2, 1)
FIGURES = {
    3: {"contexts": STEPS, "uars": (9, 18, 36, 72, 144),
        "uuars": (18, 36, 72, 144, 288), "qps": STEPS, "cqs": STEPS,
        "pds": STEPS, "mrs": STEPS, "buffers": STEPS},
    5: {"contexts": CONST, "uars": (144,) * 5, "uuars": (288,) * 5,
        "qps": CONST, "cqs": CONST, "pds": CONST, "mrs": CONST,
        "buffers": DOWN},
    7: {"contexts": DOWN, "uars": (144, 80, 48, 32, 24),
        "uuars": (288, 160, 96, 64, 48), "qps": CONST, "cqs": CONST,
        "pds": CONST, "mrs": CONST, "buffers": CONST},
    8: {"contexts": ONE, "uars": (24,) * 5, "uuars": (48,) * 5, "qps": CONST,
        "cqs": CONST, "pds": DOWN, "mrs": CONST, "buffers": CONST},
    9: {"contexts": ONE, "uars": (24,) * 5, "uuars": (48,) * 5, "qps": CONST,
        "cqs": CONST, "pds": ONE, "mrs": DOWN, "buffers": CONST},
    10: {"contexts": ONE, "uars": (24,) * 5, "uuars": (48,) * 5, "qps": CONST,
         "cqs": DOWN, "pds": ONE, "mrs": CONST, "buffers": CONST},
    11: {"contexts": ONE, "uars": (24, 8, 8, 8, 8),
         "uuars": (48, 16, 16, 16, 16), "qps": DOWN, "cqs": DOWN, "pds": ONE,
         "mrs": CONST, "buffers": CONST},
}
FIGURES[6] = FIGURES[5]  # Other buffers, the same resources

# Its table of categories: contexts, UAR pages, uUARs, QPs, CQs
CATEGORIES = {
    "mpi_everywhere": (16, 128, 256, 16, 16),
    "2xdynamic": (1, 40, 80, 16, 16),
    "dynamic": (1, 24, 48, 16, 16),
    "shared_dynamic": (1, 16, 32, 16, 16),
    "static": (1, 8, 16, 16, 16),
    "mpi_threads": (1, 8, 16, 1, 1),
}

# And the sizes of its objects, in bytes
SIZES = {"contexts": 256 * 1024, "pds": 144, "mrs": 144, "qps": 80 * 1024,
         "cqs": 9 * 1024}


def environment(**more):
    return {**{name: value for name, value in os.environ.items()
               if not name.startswith(("UCX_", "MLX5"))}, **more}


def run(*args, device=True, timeout=300, **more):
    with tempfile.TemporaryDirectory(prefix="sep-perf.",
                                     dir="/dev/shm") as parent:
        command = [SIM_RUN, "--dir", os.path.join(parent, "device"), "--",
                   SEP_PERF] if device else [SEP_PERF]
        return subprocess.run([*command, *args], capture_output=True,
                              text=True, timeout=timeout, check=False,
                              env=environment(**more))


def ucx_version():
    """Of the UCX that sep_perf was built for: (major, minor)."""
    with open(os.path.join(BUILD, "Makefile"), encoding="utf-8") as file:
        found = re.search(r"(?m)^UCX_VERSION = (\d+)\.(\d+)", file.read())
    return int(found.group(1)), int(found.group(2))


def table(text):
    return list(csv.DictReader((line for line in text.splitlines()
                                if not line.startswith("#")), delimiter="\t"))


@unittest.skipUnless(os.access(SEP_PERF, os.X_OK), "sep_perf is not built")
class OnDevice(unittest.TestCase):

    def rows(self, *args, **more):
        result = run("--tsv", *args, **more)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return table(result.stdout)

    def one(self, *args, **more):
        rows = self.rows(*args, **more)
        self.assertEqual(len(rows), 1)
        return rows[0]


class Resources(OnDevice):

    def test_figures_of_the_paper(self):
        for number, figure in sorted(FIGURES.items()):
            for level in ("verbs", "dv") if number == 7 else ("verbs",):
                rows = self.rows("--figure", str(number), "-n", "32",
                                 "--level", level,
                                 *(("--unaligned",) if number == 6 else ()),
                                 MLX5SIM_UAR_MODE="legacy")
                for name, want in figure.items():
                    self.assertEqual(tuple(int(row[name]) for row in rows),
                                     want, f"figure {number}, {name}")
                for row in rows:
                    self.assertEqual(row["regime"], "legacy")
                    self.assertEqual(
                        int(row["paper_memory"]),
                        sum(int(row[name]) * size
                            for name, size in SIZES.items()), number)

    def test_categories_of_the_paper(self):
        for row in self.rows("-n", "32", MLX5SIM_UAR_MODE="legacy"):
            self.assertEqual(tuple(int(row[name]) for name in (
                "contexts", "uars", "uuars", "qps", "cqs")),
                CATEGORIES[row["sharing"]], row["sharing"])

    def test_today_the_same_as_planned(self):
        """What sep_info plans for a category itself."""
        plans = json.loads(subprocess.run(
            [SEP_INFO, "-p", "--json", "-r", "dynamic", "-w", "16"],
            capture_output=True, text=True, check=True, timeout=300,
            env=environment()).stdout)["plans"]
        plans = {plan["category"]: plan["own"] for plan in plans}
        for row in self.rows("-n", "32"):
            plan = plans[row["sharing"]]
            for name in ("contexts", "uars", "uuars", "qps", "cqs"):
                self.assertEqual(int(row[name]), plan[name],
                                 (row["sharing"], name))

    def test_memory_grows_with_the_objects(self):
        rows = self.rows("-n", "32", "-t", "1,4", "-s", "naive")
        one, four = (int(row["memory"]) for row in rows)
        self.assertGreater(one, 256 * 1024)  # A context
        self.assertAlmostEqual(four / one, 4, delta=.2)

    def test_workers_take_what_sep_info_counts(self):
        args = ("-w", "3", "-n", "1", "-c", "dynamic")
        plan = json.loads(subprocess.run(
            [SEP_INFO, "-p", "--json", "-r", "dynamic", *args], check=True,
            capture_output=True, text=True, timeout=300,
            env=environment()).stdout)["plans"][0]["total"]
        row = self.one("--level", "uct", "-s", "dynamic", "-t", "3", "-n", "32")
        for name in ("contexts", "uars", "uuars", "qps", "cqs"):
            self.assertEqual(int(row[name]), plan[name], name)


class Messages(OnDevice):

    def counts(self, *args):
        row = self.one("-t", "2", "-n", "256", *args)
        return tuple(float(row[name]) for name in (
            "doorbells", "blueflames", "dma_reads", "dma_writes", "cqes"))

    def test_features_are_what_the_device_sees(self):
        """A work request that did not come with the doorbell is read, as is
        data that is not inline; a completion is written."""
        for level in ("verbs", "dv"):
            want = {
                "all": (1 / 32, 0, 1, 1 / 64, 1 / 64),
                "no-postlist": (0, 1, 0, 1 / 64, 1 / 64),
                "no-unsignaled": (1 / 32, 0, 1, 1, 1),
                "no-inline": (1 / 32, 0, 2, 1 / 64, 1 / 64),
                "no-blueflame": (1 / 32, 0, 1, 1 / 64, 1 / 64),
                "no-postlist+inline": (0, 1, 1, 1 / 64, 1 / 64),
                "no-postlist+blueflame": (1, 0, 1, 1 / 64, 1 / 64),
            }
            for features, counts in want.items():
                for got, exact in zip(self.counts(
                        "--level", level, "-s", "dynamic", "--features",
                        features), counts):
                    self.assertAlmostEqual(got, exact, delta=1e-4,
                                           msg=(level, features))

    def test_operations_write_what_they_fetch(self):
        single = ("-s", "dynamic", "--features", "no-postlist+unsignaled")
        for level in ("verbs", "dv"):
            for op in ("read", "atomic"):
                self.assertEqual(
                    self.counts("--level", level, "-o", op, *single),
                    (0, 1, 0, 2, 1), (level, op))

    def test_data_arrives_whoever_shares(self):
        """sep_perf checks it itself, and fails otherwise."""
        sharing = ("naive", "mpi_threads", "static", "buf=2,ctx=all,pd=all",
                   "ctx=all,pd=all,cq=2", "ctx=all,pd=all,cq=all,qp=2")
        args = [word for name in sharing for word in ("-s", name)]
        for level in ("verbs", "dv"):
            for op in ("write", "read", "send", "atomic"):
                rows = self.rows("--level", level, "-o", op, "-t", "4", "-n",
                                 "200", "-d", "16", *args)
                self.assertEqual([row["sharing"] for row in rows],
                                 list(sharing))

    def test_lengths_and_wrapping_queues(self):
        for level in ("verbs", "dv"):
            for size in (1, 28, 29, 60, 61, 4096):
                self.one("--level", level, "-s", "static", "-t", "2", "-b",
                         str(size), "-n", "1000", "-d", "32", "--unaligned",
                         "--turns")

    def test_workers_of_any_transport(self):
        for op in ("write", "read", "send", "atomic"):
            for size in ("8", "200"):
                if (op, size) != ("atomic", "200"):
                    self.one("--level", "uct", "-s", "dynamic", "-o", op, "-b",
                             size, "-t", "2", "-n", "200")
            if op != "atomic" or not defects.of_test(
                    perftest.Test("uct", "fadd", 8, 200), "rc_mlx5",
                    ucx_version()):
                self.one("--level", "uct", "--tl", "rc_mlx5", "-o", op, "-b",
                         "8", "-t", "2", "-n", "200")
        row = self.one("--level", "uct", "-s", "dynamic", "-b", "8", "-t", "2",
                       "-n", "640", "--features", "no-postlist")
        self.assertAlmostEqual(float(row["blueflames"]), 1, delta=.05)

    def test_a_peer_elsewhere(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        with tempfile.TemporaryDirectory(dir="/dev/shm") as parent:
            device = [SIM_RUN, "--dir", os.path.join(parent, "device"), "--",
                      SEP_PERF]
            with subprocess.Popen([*device, "--listen", port],
                                  env=environment()) as peer:
                try:
                    end = time.monotonic() + 300
                    result = self.measure_with(device, port)
                    while "--listen running" in result.stderr and \
                            time.monotonic() < end:
                        time.sleep(.2)
                        result = self.measure_with(device, port)
                    # Somebody who has connected and says nothing
                    with socket.create_connection(("127.0.0.1", int(port))):
                        second = self.measure_with(device, port)
                finally:
                    peer.terminate()
            for each in result, second:
                self.assertEqual((each.returncode, each.stderr), (0, ""))
                self.assertEqual(len(table(each.stdout)), 2)

    @staticmethod
    def measure_with(device, port):
        """Measure with the peer that listens there."""
        return subprocess.run(
            [*device, "--host", "127.0.0.1:" + port, "--tsv", "-t", "2", "-s",
             "static", "-s", "dynamic", "-n", "64"], env=environment(),
            capture_output=True, text=True, timeout=300, check=False)


class Output(OnDevice):

    def test_times_mean_nothing(self):
        row = self.one("-t", "2", "-s", "static", "-n", "32")
        self.assertEqual((row["mops"], row["latency_us"],
                          row["software_device"]), ("-", "-", "y"))
        text = run("-t", "2", "-s", "static", "-n", "32").stdout
        self.assertIn("times mean nothing", text)
        self.assertRegex(text, r"~ +\d")

    def test_predictions_are_sep_infos(self):
        for category in ("static", "dynamic", "mpi_threads"):
            row = self.one("-t", "4", "-s", category, "-n", "32", "-o", "write",
                           "-b", "8", "-d", "8", "--features",
                           "no-postlist+unsignaled", "--turns", "--adapter",
                           "cx6")
            with subprocess.Popen(
                    [SEP_INFO, "--predict", "-", "--adapter", "cx6", "--path",
                     "inline"], stdin=subprocess.PIPE, text=True,
                    stdout=subprocess.PIPE, env=environment()) as info:
                out, _ = info.communicate(
                    f"op,policy,threads,depth,bytes\nwrite,{row['policy']},"
                    f"{row['threads']},{row['depth']},{row['bytes']}\n")
            want = list(csv.DictReader(io.StringIO(out)))[0]["predicted_mops"]
            self.assertEqual(row["predicted_mops"], want, category)
            self.assertEqual(row["adapter"], "cx6")

    def test_adapter_is_that_of_the_device(self):
        for model, adapter in (("cx4", "cx4"), ("cx6dx", "cx6"),
                               ("cx5", "cx6")):
            row = self.one("-t", "1", "-s", "static", "-n", "32",
                           MLX5SIM_MODEL=model)
            self.assertEqual(row["adapter"], adapter, model)

    def test_json_has_the_same(self):
        args = ("-t", "1,2", "-s", "static", "-n", "32")
        rows = self.rows(*args)
        result = run("--json", *args)
        items = json.loads(result.stdout)["rows"]
        self.assertEqual(len(items), 2)
        for row, item in zip(rows, items):
            self.assertEqual(list(row), list(item))
            for name, value in row.items():
                if name == "memory":
                    continue  # Not the same twice, to the byte
                if isinstance(item[name], (int, float)):
                    self.assertEqual(float(value), item[name], name)
                else:
                    self.assertEqual(value, item[name] or "-", name)

    def test_more_threads_than_processors_are_named(self):
        count = len(os.sched_getaffinity(0))
        text = run("-t", str(count + 1), "-s", "static", "-n", "32").stdout
        self.assertIn(f"more threads than the {count} processors", text)
        text = run("-t", str(count), "-s", "static", "-n", "32").stdout
        self.assertNotIn("processors", text)


class OnAdapter(OnDevice):
    """The device under a name by which sep_perf does not know it: there is no
    adapter, but this is what it would print on one."""

    def rows(self, *args, **more):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
            library = os.path.join(directory, "libadapter.so")
            shutil.copy(os.path.join(BUILD, "lib/sep/libmlx5sim.so"), library)
            result = subprocess.run(
                [SIM_RUN, "--private", "env", "LD_PRELOAD=" + library, SEP_PERF,
                 "--tsv", *args], capture_output=True, text=True, timeout=300,
                check=False, env=environment(**more))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertNotIn("mean nothing", result.stdout)
        return table(result.stdout)

    @unittest.skipIf(os.environ.get("SEP_SANITIZERS"),
                     "a sanitizer wants to be loaded first")
    def test_rates_and_latencies(self):
        for args in (("-s", "static"), ("--level", "dv", "-s", "mpi_threads"),
                     ("--level", "uct", "-s", "dynamic")):
            row = self.one("-t", "2", "-n", "256", *args)
            self.assertEqual(row["software_device"], "n")
            for name in ("mops", "latency_us", "latency_median_us",
                         "latency_p99_us"):
                self.assertGreater(float(row[name]), 0, (name, args))
            self.assertGreaterEqual(float(row["latency_p99_us"]),
                                    float(row["latency_median_us"]))
            for name in ("doorbells", "predicted_mops"):
                self.assertEqual(row[name], "-")
            self.assertEqual(int(row["contexts"]), 1, args)

    @unittest.skipIf(os.environ.get("SEP_SANITIZERS"),
                     "a sanitizer wants to be loaded first")
    def test_no_latency_and_a_prediction_if_asked(self):
        row = self.one("-t", "1", "-n", "64", "-s", "static", "--no-latency",
                       "--adapter", "cx4")
        self.assertEqual((row["latency_us"], row["adapter"]), ("-", "cx4"))
        self.assertGreater(float(row["mops"]), 0)
        self.assertGreater(float(row["predicted_mops"]), 0)

    @unittest.skipIf(os.environ.get("SEP_SANITIZERS"),
                     "a sanitizer wants to be loaded first")
    def test_the_model_can_be_fitted_to_it(self):
        """The script accepts what the program prints: columns and all."""
        with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
            rows = self.rows("-t", "1,2", "-n", "64", "-s", "dynamic", "-d",
                             "8", "-b", "8", "--turns", "--features",
                             "no-postlist+unsignaled", "--no-latency")
            writer = csv.DictWriter(file, list(rows[0]), delimiter="\t")
            writer.writeheader()
            writer.writerows(rows)
            file.flush()
            result = subprocess.run(
                [os.path.join(TOP, "contrib/fit-model.py"), "--adapter", "cx6",
                 "--check", "--sep-info", SEP_INFO, file.name], text=True,
                capture_output=True, timeout=300, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"(?m)^fitted +2 ")
        self.assertRegex(result.stdout, r"(?m)^  write dynamic +2 ")


@unittest.skipUnless(os.access(SEP_PERF, os.X_OK) and
                     shutil.which("valgrind") and shutil.which("objdump") and
                     not os.environ.get("SEP_SANITIZERS"),
                     "needs sep_perf, valgrind, objdump, and no sanitizer")
class Instructions(unittest.TestCase):

    def counts(self, *args):
        result = subprocess.run(
            [os.path.join(TOP, "contrib/bench-perf.sh"), "--build", BUILD,
             "--tsv", "--count", "64", "--features", "no-postlist+unsignaled",
             *args], capture_output=True, text=True, timeout=300, check=False,
            env=environment())
        self.assertEqual(result.returncode, 0, result.stderr)
        return {(row["level"], row["sharing"]): row
                for row in table(result.stdout)}

    def test_locked_where_threads_share(self):
        rows = self.counts("--level", "verbs", "-s", "dynamic", "-s", "static",
                           "-s", "mpi_threads")
        rows.update(self.counts("--level", "dv", "-s", "static",
                                "-s", "mpi_threads"))
        locked = {key: round(float(row["locked"])) for key, row in rows.items()}
        self.assertEqual(locked, {
            ("verbs", "dynamic"): 0,      # A thread domain
            ("verbs", "static"): 1,       # The queue pair's
            ("verbs", "mpi_threads"): 2,  # That, and whose completion it is
            ("dv", "static"): 0, ("dv", "mpi_threads"): 2})
        for key, row in rows.items():
            self.assertGreater(float(row["instructions"]), 50, key)
            self.assertLess(float(row["instructions"]), 2000, key)
        self.assertGreater(float(rows["verbs", "static"]["instructions"]),
                           float(rows["verbs", "dynamic"]["instructions"]))


@unittest.skipUnless(os.access(SEP_PERF, os.X_OK), "sep_perf is not built")
class WrongInput(unittest.TestCase):

    def refused(self, status, *args, device=False, **more):
        result = run(*args, device=device, **more)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertEqual(table(result.stdout), [])
        self.assertTrue(result.stderr.startswith("sep_perf: "), result.stderr)
        return result.stderr

    @unittest.skipIf(os.path.isdir("/sys/class/infiniband") and
                     os.listdir("/sys/class/infiniband"), "has an adapter")
    def test_no_adapter_and_no_device(self):
        for args in ((), ("--level", "dv"), ("--level", "uct")):
            text = self.refused(3, *args)
            self.assertIn("no mlx5 device", text)
            self.assertIn("mlx5sim-run", text)

    def test_nonsense(self):
        for args, word in ((("-t", "0"), "-t 0"), (("-d", "x"), "-d x"),
                           (("-s", "ctx=2,pd=4"), "a pd for 4"),
                           (("-d", "4", "--postlist", "8"), "list of 8"),
                           (("--level", "uct", "-s", "ctx=2"), "categories"),
                           (("--adapter", "cx9"), "only cx6, cx4"),
                           (("--adapter", "cx6", "--adapters", "/nowhere"),
                            "/nowhere"),
                           (("-t", "2", "extra"), "extra")):
            self.assertIn(word, self.refused(2, *args))

    def test_not_there(self):
        for args, word in ((("-D", "mlx5_7"), "mlx5_7"),
                           (("--port", "9"), "port 9"),
                           (("--level", "uct", "--tl", "none"), "no none"),
                           (("--host", "127.0.0.1:1"), "127.0.0.1:1")):
            self.assertIn(word, self.refused(3, "-t", "1", "-n", "32", *args,
                                             device=True))

    def test_no_pages_left(self):
        text = self.refused(3, "-t", "64", "-s", "2xdynamic", device=True,
                            MLX5SIM_UARS="40")
        self.assertIn("thread domain of queue pair", text)

    def test_full_disk(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = subprocess.run([SEP_PERF, "-l"], stdout=full, check=False,
                                    stderr=subprocess.PIPE, timeout=300)
        self.assertEqual(result.returncode, 3)


if __name__ == "__main__":
    unittest.main()
