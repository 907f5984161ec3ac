#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the programs in bench/ make of callgrind's files and of counters."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

TOP = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")

CALLGRIND = """version: 1
events: Ir Dr Dw I1mr D1mr D1mw
desc: Trigger: Client Request: put
ob=(1) /lib/libuct.so
fn=(1) uct_put
10 7 2 1 3 4 5
+1 3
calls=1 0
+1 900 0 0 90 90 90
fn=(2) measure_put
20 5 0 0 1 1
ob=(2) /lib/libmlx5sim.so
fn=(3) mlx5sim_trap
30 1000 0 0 50 50 50
"""


BUILD = os.path.realpath(os.environ.get("SEP_BUILD_DIR", TOP))

# Of all threads: the device calls libc, which a real one would not
PROCESS = """version: 1
events: Ir
desc: Trigger: Client Request: put
ob=(1) /lib/libuct.so
fn=(1) uct_put
10 7
cob=(3) /lib/libc.so
cfn=(4) memcpy
calls=2 0
+1 60
cob=(2) /lib/libmlx5sim.so
cfn=(3) mlx5sim_ioctl
calls=1 0
+1 1040
ob=(3)
fn=(4)
40 100
fn=(5) pthread_spin_lock@@GLIBC_2.34
50 900
ob=(2)
fn=(3)
30 1000
cob=(3)
cfn=(4)
calls=1 0
+1 40
cfn=(6) mlx5sim_run
calls=1 0
+1 300
"""


class Bench(unittest.TestCase):

    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.counts = self.write("counts", "put 2\n")

    def write(self, name, text):
        path = os.path.join(self.dir.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def run_program(self, name, *args):
        return subprocess.run([os.path.join(TOP, "bench", name), *args],
                              capture_output=True, text=True, timeout=300,
                              check=False)

    def test_instructions_are_those_of_the_transport(self):
        path = self.write("callgrind.out", CALLGRIND)
        run = self.run_program("callgrind_insn.py", "sum", self.counts, path)
        self.assertEqual(run.stdout, "put\t5.0\n", run.stderr)

    def test_what_the_device_calls_is_not_the_process(self):
        path = self.write("callgrind.out", PROCESS)
        run = self.run_program("callgrind_insn.py", "process", self.counts,
                               path)
        self.assertEqual(run.stdout, f"put\t{(7 + 100 - 40) / 2}\n", run.stderr)

    def test_layers_share_what_is_counted(self):
        objects = ("libmpich.so.12", "mca_osc_ucx.so", "libucp.so.0",
                   "libuct_ib.so.0", "libucs.so.0", "libmlx5.so.1",
                   "libc.so.6", "libstrange.so.1", "mpi_insn.mpich")
        path = self.write("callgrind.out", "events: Ir\n" + "desc: Trigger: "
                          "Client Request: put\n" + "".join(
                              f"ob=/lib/{name}\nfn=f{i}\n{i} {2 * 10 ** i}\n"
                              for i, name in enumerate(objects)))
        run = self.run_program("callgrind_insn.py", "layers", self.counts, path)
        head, row = [line.split("\t") for line in run.stdout.splitlines()]
        found = dict(zip(head, row))
        self.assertEqual(found, {
            "operation": "put", "total": "11111111.0", "MPI": "11.0",
            "UCP": "100.0", "UCT": "1000.0", "UCS": "10000.0",
            "verbs": "100000.0", "system": "1000000.0", "other": "10000000.0"})

    def test_lines_are_those_of_the_caller_as_well(self):
        path = self.write("callgrind.out", CALLGRIND)
        run = self.run_program("callgrind_insn.py", "lines", self.counts, path)
        self.assertEqual(run.stdout, "put\t5.0\t2.0\n", run.stderr)

    def test_lines_cannot_be_had_without_simulated_caches(self):
        path = self.write("callgrind.out", "events: Ir\n" + CALLGRIND.split(
            "\n", 2)[2])
        run = self.run_program("callgrind_insn.py", "lines", self.counts, path)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("does not count D1mr, D1mw", run.stderr)

    def write_counters(self, when, **totals):
        self.write(f"c.put.{when}", json.dumps({"totals": totals}))

    def test_device_counts_are_per_call(self):
        self.write_counters("before", dma_reads=1, dma_writes=5, mmio_writes=9)
        self.write_counters("after", dma_reads=3, dma_writes=10, mmio_writes=9)
        run = self.run_program("device_counts.py", self.counts,
                               os.path.join(self.dir.name, "c"))
        self.assertEqual(run.stdout, "put\t1.0\t2.5\t0.0\n", run.stderr)

    def test_counters_that_are_missing_are_named(self):
        self.write_counters("before", dma_reads=1, dma_writes=5, mmio_writes=9)
        self.write_counters("after", dma_reads=3, dma_writes=10)
        run = self.run_program("device_counts.py", self.counts,
                               os.path.join(self.dir.name, "c"))
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("mmio_writes", run.stderr)
        self.assertIn("c.put.after", run.stderr)


@unittest.skipUnless(os.access(os.path.join(BUILD, "bin/sep-run"), os.X_OK) and
                     shutil.which("mpicc.mpich") and shutil.which("valgrind")
                     and not os.environ.get("SEP_SANITIZERS"),
                     "needs sep_mlx5, MPICH, valgrind, and no sanitizer")
class Layers(unittest.TestCase):

    def run_script(self, *args):
        return subprocess.run(
            [os.path.join(TOP, "contrib/bench-layers.sh"), "--build", BUILD,
             "--tsv", "--count", "4", "--only", "mpich", *args],
            capture_output=True, text=True, timeout=300, check=False)

    def rows(self, *args):
        run = self.run_script(*args)
        self.assertEqual(run.returncode, 0, run.stderr)
        head, *lines = [line.split("\t") for line in run.stdout.splitlines()]
        return {line[0]: dict(zip(head, line)) for line in lines}

    def test_each_layer_has_its_part(self):
        for transport, calls_verbs in (("sep_mlx5", False),
                                       ("sep_mlx5 (wr)", True)):
            rows = self.rows("--only", transport)
            self.assertEqual(list(rows), ["put_8", "flush_one_put"])
            for row in rows.values():
                parts = {name: float(row[name]) for name in
                         ("MPI", "UCP", "UCT", "verbs", "other")}
                for layer in ("MPI", "UCP", "UCT"):
                    self.assertGreater(parts[layer], 0, row)
                self.assertEqual(parts["other"], 0, row)
                self.assertEqual(parts["verbs"] > 0, calls_verbs, row)

    def test_nonsense(self):
        run = self.run_script("--count", "many")
        self.assertEqual(run.returncode, 1)
        self.assertIn("--count: 'many' is no number", run.stderr)


if __name__ == "__main__":
    unittest.main()
