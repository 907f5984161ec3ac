# SPDX-License-Identifier: BSD-3-Clause
"""Rates that sep_info predicts, and the script that fits the model."""

import csv
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
BUILD = os.environ.get("SEP_BUILD_DIR", TOP)
SEP_INFO = os.path.join(BUILD, "bin/sep_info")
FIT = os.path.join(TOP, "contrib/fit-model.py")
ADAPTERS = os.path.join(TOP, "src/model/adapters.conf")
DATA = os.path.join(TOP, "test/data/cx6-message-rate.csv")
QPS = os.path.join(TOP, "test/data/cx6-qp-count.csv")
HEADER = "op,policy,threads,depth,bytes"


def run(*args, stdin=""):
    return subprocess.run(
        [SEP_INFO, *args], input=stdin, capture_output=True, text=True,
        timeout=300, check=False,
        env={name: value for name, value in os.environ.items()
             if not name.startswith(("UCX_", "MLX5"))})


def predict(text, adapter="cx6", *args):
    return run("--predict", "-", "--adapter", adapter, *args, stdin=text)


@unittest.skipUnless(os.access(SEP_INFO, os.X_OK), "sep_info is not built")
class Rows(unittest.TestCase):

    def rates(self, rows, adapter="cx6", *args):
        result = predict("\n".join((HEADER, *rows)) + "\n", adapter, *args)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return [float(row["predicted_mops"])
                for row in csv.DictReader(io.StringIO(result.stdout))]

    def test_measurements_come_out_with_a_column_more(self):
        result = run("--predict", DATA, "--adapter", "cx6")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        with open(DATA, encoding="utf-8") as file:
            want = [line for line in file.read().splitlines()
                    if line and not line.startswith("#")]
        lines = result.stdout.splitlines()
        self.assertEqual([line.rpartition(",")[0] for line in lines], want)
        self.assertEqual(lines[0].rpartition(",")[2], "predicted_mops")
        errors = {"read": [], "write": []}
        for row in csv.DictReader(lines):
            errors[row["op"]].append(abs(
                float(row["predicted_mops"]) / float(row["mops"]) - 1))
        for op, (median, worst) in {"read": (.03, .26),
                                    "write": (.08, .28)}.items():
            self.assertLess(statistics.median(errors[op]), median, op)
            self.assertLess(max(errors[op]), worst, op)

    def test_policies_may_be_categories(self):
        a, b = self.rates(["read,static,96,8,8", "read,per-qp,96,8,8"])
        self.assertAlmostEqual(a, b, delta=b / 100)
        a, b = self.rates(["read,mpi_threads,16,8,8", "read,shared-qp,16,8,8"])
        self.assertAlmostEqual(a, b, delta=b / 100)

    def test_paths_differ(self):
        row = ["write,dynamic,16,8,8"]
        doorbell, inline, sep = (
            self.rates(row, "cx6", "--path", path)[0]
            for path in ("verbs", "inline", "sep"))
        self.assertLess(doorbell, inline)
        self.assertLess(inline, sep)
        # What is too long to be inline is posted in the same way
        row = ["write,dynamic,16,8,61"]
        self.assertEqual(self.rates(row, "cx6", "--path", "verbs"),
                         self.rates(row, "cx6", "--path", "inline"))

    def refused(self, text, *words):
        result = predict(text)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        for word in ("sep_info: standard input:", *words):
            self.assertIn(word, result.stderr)

    def test_wrong_rows_are_named(self):
        good = HEADER + "\n# comment\nread,per-qp,8,8,8\n"
        self.refused(good + "read,per-page,8,8,8\n", ":4: policy", "per-page",
                     "per-doorbell", "2xdynamic")
        self.refused(good + "fetch,per-qp,8,8,8\n", ":4: op", "fetch")
        self.refused(good + "read,per-qp,many,8,8\n", ":4: threads", "many")
        self.refused(good + "read,per-qp,8,8\n", ":4: 4 fields")
        self.refused("", "no rows")

    def test_wrong_files_are_named(self):
        result = run("--predict", "/nowhere/at.all", "--adapter", "cx6")
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("/nowhere/at.all: No such file", result.stderr)
        self.assertEqual(run("--predict", TOP, "--adapter", "cx6").returncode,
                         2)


@unittest.skipUnless(os.access(SEP_INFO, os.X_OK), "sep_info is not built")
class Plans(unittest.TestCase):

    def plans(self, *args):
        result = run("-p", "--json", "--adapter", "cx6", *args)
        self.assertEqual(result.returncode, 0, result.stderr)
        return {(plan["category"], plan["regime"]): plan["predicted"]
                for plan in json.loads(result.stdout)["plans"]}

    def test_each_category_has_rates(self):
        for (category, _), plan in self.plans("-w", "96").items():
            self.assertEqual((plan["adapter"], plan["depth"]), ("cx6", 8))
            for op in ("read", "write"):
                self.assertGreater(plan[op]["requests_per_second"], 0)
            self.assertEqual(plan["read"]["limited_by"],
                             {"static": "locks", "mpi_threads": "locks"}.get(
                                 category, "adapter"), category)

    def test_too_many_outstanding_are_shown(self):
        rates = [self.plans("-w", "96", "--depth", depth, "-r", "dynamic")[
            "2xdynamic", "dynamic"]["read"] for depth in ("8", "32")]
        self.assertLess(rates[1]["requests_per_second"],
                        rates[0]["requests_per_second"] * .7)
        self.assertEqual(rates[1]["limited_by"], "outstanding")
        self.assertGreater(rates[1]["outstanding"], 1200)

    def test_table_for_people_says_the_same(self):
        result = run("-p", "-w", "96", "--depth", "32", "-r", "dynamic",
                     "--adapter", "cx6")
        plan = self.plans("-w", "96", "--depth", "32")["dynamic", "dynamic"]
        self.assertRegex(result.stdout, r"(?m)^dynamic +{:.2f} outstanding ".format(
            plan["read"]["requests_per_second"] / 1e6))
        self.assertIn("32 outstanding", result.stdout)
        self.assertNotIn("take turns", result.stdout)
        self.assertIn("96 hardware threads", run(
            "-p", "-w", "97", "--adapter", "cx6").stdout)

    def test_there_are_none_without_an_adapter(self):
        self.assertNotIn("predict", run("-p").stdout)
        self.assertNotIn("predict", run("-p", "--json").stdout)

    def test_wrong_arguments_are_named(self):
        for args, word in (
                (("-p", "--adapter", "cx9"), "only cx6, cx4"),
                (("-p", "--adapter", "cx6", "--depth", "0"), "--depth 0"),
                (("-p", "--adapter", "cx6", "--depth", "x"), "--depth x"),
                (("-p", "--adapter", "cx6", "--bytes", "-1"), "--bytes -1"),
                (("-p", "--adapter", "cx6", "--path", "fast"), '"fast"'),
                (("-p", "--adapter", "cx6", "--adapters", "/nowhere"),
                 "/nowhere: No such file"),
                (("-p", "--depth", "8"), "need --adapter"),
                (("-d", "--adapter", "cx6"), "for -p and --predict"),
                (("--predict", DATA), "needs --adapter"),
                (("--predict", DATA, "--adapter", "cx6", "-j"), "CSV")):
            result = run(*args)
            self.assertEqual((result.returncode, result.stdout), (2, ""), args)
            self.assertIn(word, result.stderr)

    def test_users_can_edit_the_adapters(self):
        with open(ADAPTERS, encoding="utf-8") as file:
            text = file.read()
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "mine.conf")

            def rate(changed):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(changed)
                return run("-p", "-w", "1", "--adapter", "cx6", "--adapters",
                           path, "-r", "dynamic")

            slow = text.replace("latency = ", "latency = 1")
            self.assertNotEqual(text, slow)
            self.assertNotEqual(rate(text).stdout, rate(slow).stdout)
            result = rate(text.replace("[cx6]", "[cx6]\nlatency = 1 s"))
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertRegex(result.stderr, r"mine.conf:\d+: latency is in us")


@unittest.skipUnless(os.access(SEP_INFO, os.X_OK), "sep_info is not built")
class Auto(unittest.TestCase):

    def test_limits_are_the_models(self):
        result = subprocess.run(
            [sys.executable, os.path.join(TOP, "contrib/auto-limits.py"),
             "--check", "--sep-info", SEP_INFO], capture_output=True, text=True,
            timeout=300, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)


@unittest.skipUnless(os.access(SEP_INFO, os.X_OK), "sep_info is not built")
class Fit(unittest.TestCase):

    def fit(self, *args, data=DATA, status=0):
        result = subprocess.run(
            [sys.executable, FIT, "--adapter", "cx6", "--sep-info", SEP_INFO,
             *args, data], capture_output=True, text=True, timeout=300,
            check=False)
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stdout if status == 0 else result.stderr

    def values(self, path):
        with open(path, encoding="utf-8") as file:
            section = file.read().split("[cx6]")[1].split("\n[")[0]
        return {line.split()[0]: float(line.split()[2])
                for line in section.splitlines() if "# fitted" in line}

    def come_back(self, ending, rows, *args):
        """Change the values whose line has the ending, fit them to some rows of
        measurements, and compare. Returns their names."""
        changed = set()
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "mine.conf")
            with open(ADAPTERS, encoding="utf-8") as file:
                lines = file.readlines()
            with open(path, "w", encoding="utf-8") as file:
                for line in lines:
                    words = line.split()
                    if line.endswith(ending + "\n"):
                        changed.add(words[0])
                        value = f"{float(words[2]) * 1.1:.6g}"
                        line = line.replace(f"= {words[2]} ", f"= {value} ")
                    file.write(line)
            data = os.path.join(directory, "rows.csv")
            with open(data, "w", encoding="utf-8") as file:
                file.writelines(rows)
            for name in sorted(changed):
                args += ("--parameter", name)
            self.fit("--adapters", path, "--quick", "--write", *args, data=data)
            want = self.values(ADAPTERS)
            for name, value in self.values(path).items():
                self.assertAlmostEqual(value / want[name], 1, delta=.06,
                                       msg=name)
        return changed

    def test_the_committed_values_are_the_best(self):
        """From others it comes back to them, without having seen a write."""
        with open(DATA, encoding="utf-8") as file:
            rows = [row for row in file if not row.startswith("write")]
        self.assertEqual(len(self.come_back("  # fitted: reads", rows)), 9)

    def test_those_of_queue_pairs_are_the_best(self):
        """Nor the reads with 64 queue pairs."""
        with open(QPS, encoding="utf-8") as file:
            rows = [row for row in file if not row.startswith("write") and
                    ",64,64," not in row]
        self.assertEqual(len(rows), 9)
        self.assertEqual(self.come_back("  # fitted: reads by queue pairs",
                                        rows, "--relative"),
                         {"context_capacity", "context_fetches"})

    PERF = ("op", "policy", "threads", "depth", "bytes", "mops", "level",
            "features", "postlist", "signal", "inline", "turns")

    def perf_table(self, rows):
        """What sep_perf --tsv prints, as far as the script looks."""
        lines = ["# sep_perf", "\t".join(self.PERF)]
        lines += ["\t".join(map(str, row)) for row in rows]
        return "\n".join(lines) + "\n"

    def test_rows_of_sep_perf_are_like_others(self):
        """The committed data, said as sep_perf says it, has the same errors;
        what the model is not about is left out."""
        with open(DATA, encoding="utf-8") as file:
            data = [row for row in csv.DictReader(
                line for line in file if not line.startswith("#"))
                if row["op"] == "read"]
        how = ("verbs", "no-postlist+unsignaled+blueflame", 1, 1, "n", "y")
        rows = [(*(row[name] for name in self.PERF[:6]), *how) for row in data]
        other = [("read", "per-qp", 8, 8, 8, 1e6, "verbs", "all", 32, 64, "n",
                  "y"), ("read", "-", 8, 8, 8, 1e6, *how),
                 ("read", "per-qp", 8, 8, 8, "-", *how),
                 ("read", "per-qp", 8, 8, 8, 1e6, *how[:5], "n")]
        with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
            file.write(self.perf_table(rows + other))
            file.flush()
            got = self.fit("--check", data=file.name)
            want = self.fit("--check", "--fit", "op=read")
            self.assertEqual(got.splitlines(),
                             want.split("not fitted")[0].splitlines())

    def test_each_way_of_posting_is_predicted_as_such(self):
        """Rates that sep_info predicts have no error, whichever the path."""
        kinds = {"verbs": ("verbs", "no-postlist+unsignaled+inline+blueflame",
                           "n"),
                 "inline": ("verbs", "no-postlist+unsignaled", "y"),
                 "blueflame": ("verbs", "no-postlist+unsignaled", "n"),
                 "sep": ("dv", "no-postlist+unsignaled", "y")}
        rows = []
        for path, (level, features, is_inline) in kinds.items():
            op = "read" if path == "blueflame" else "write"
            for threads in (1, 16, 48):
                row = (op, "dynamic", threads, 8, 8)
                rate = next(csv.DictReader(io.StringIO(predict(
                    HEADER + "\n" + ",".join(map(str, row)) + "\n", "cx6",
                    "--path", path).stdout)))["predicted_mops"]
                rows.append((*row, rate, level, features, 1, 1, is_inline, "y"))
        self.assertEqual(len({tuple(row[5] for row in rows[i:i + 3])
                              for i in range(0, len(rows), 3)}), len(kinds))
        with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
            file.write(self.perf_table(rows))
            file.flush()
            lines = self.fit("--check", data=file.name).splitlines()
        self.assertEqual(lines[1].split(), ["fitted", "12", "0.0", "0.0"])

    def test_a_software_device_has_no_rates(self):
        row = ("read", "per-qp", 8, 8, 8, "-", "verbs",
               "no-postlist+unsignaled", 1, 1, "n", "y")
        with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
            file.write(self.perf_table([row]))
            file.flush()
            self.assertIn("software device",
                          self.fit("--check", data=file.name, status=2))
        with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
            file.write("op\tpolicy\tmops\nread\tper-qp\t1\n")
            file.flush()
            self.assertIn("not what sep_perf",
                          self.fit("--check", data=file.name, status=2))

    def test_wrong_input_is_named(self):
        self.assertIn("column colour", self.fit("--fit", "colour=red",
                                                status=2))
        self.assertIn("no row", self.fit("--fit", "op=nothing", status=2))
        self.assertIn("nowhere", self.fit(data="/nowhere", status=2))
        self.assertIn("no fitted parameter", self.fit(
            "--adapter", "cx9", status=2))
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.write(HEADER + ",mops\nread,per-qp,8,8,8,fast\n")
            file.flush()
            self.assertIn("without a rate", self.fit(data=file.name, status=2))


if __name__ == "__main__":
    unittest.main()
