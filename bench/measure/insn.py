# SPDX-License-Identifier: BSD-3-Clause
"""Instructions per operation of UCT, and what instructions do not show."""

import os
import sys

from . import builds, insn_table
from .job import MEASURED, Failed, libraries

APIS = ("sep_mlx5 (dv)", "sep_mlx5 (wr)", "sep_mlx5 (verbs)", "rc_mlx5",
        "rc_verbs")

# Caches without limits: each line misses once. They are emptied before each
# call, which takes long; a queue's signalling period shows all there is.
CACHES = ("--cache-sim=yes", "--I1=1048576,16,64", "--D1=1048576,16,64",
          "--LL=2097152,16,64")
LINE_CALLS = "64"


class Column:
    """A transport, which the API may follow in brackets, or sep_mlx5 in a
    category."""

    def __init__(self, job, name, category=None):
        self.job = job
        self.name = name
        self.transport, _, api = name.removesuffix(")").partition(" (")
        self.env = {**libraries(job.ucx), "UCX_SEP_API": api or "dv"}
        if category is not None:
            self.transport = "sep_mlx5"
            self.env["UCX_SEP_CATEGORY"] = category
        self.label = self.transport + (f", {category}" if category else "")

    def path(self, *words):
        return self.job.path("insn", self.name, *words)

    def run(self, count, output, log, options=(), tool=()):
        """uct_insn; output, log: names of files."""
        command = [*tool, self.job.path("bench/uct_insn"), "-t", self.transport,
                   "-n", count, *options]
        if self.transport.startswith("sep_"):
            command = [self.job.path("bin/sep-run"), "--only", *command]
        if self.transport.endswith(("_mlx5", "_verbs")):
            command = [self.job.path("bin/mlx5sim-run"), "--private", *command,
                       "-d", "mlx5_0:1"]
        self.job.run(self.transport, command, self.path(output), self.path(log),
                     self.env)
        if not os.path.getsize(self.path(output)):
            raise Failed(f"{self.transport} supports none of the operations")

    def write(self, name, rows):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.writelines("\t".join(row) + "\n" for row in rows)

    def measure(self, count, instructions_only):
        self.job.fresh("insn", self.name)
        os.makedirs(self.path("counters"))
        self.job.say(f"Counting the instructions of {self.label}")
        self.run(count, "counts", "log", tool=(
            *MEASURED, f"--callgrind-out-file={self.path('callgrind.out')}"))
        self.write("insn", self.job.callgrind(
            "sum", self.path("counts"), self.path("callgrind.out")))
        if instructions_only:
            return

        self.job.say(f"Counting the lines that {self.label} touches")
        self.run(LINE_CALLS, "line-counts", "line-log", ("-l",), (
            *MEASURED, f"--callgrind-out-file={self.path('lines.out')}",
            *CACHES))
        self.write("lines", self.job.callgrind(
            "lines", self.path("line-counts"), self.path("lines.out")))

        self.job.say(f"Counting what the device does for {self.label}")
        self.run(count, "device-counts", "device-log", (
            "-s", f"'{self.job.path('bin/mlx5sim-stat')}' --json",
            "-o", self.path("counters/of")))
        self.write("device", self.job.read(
            "device_counts.py", self.path("device-counts"),
            self.path("counters/of")))


def _columns(job):
    """Columns, and whether two transports are compared."""
    options = job.options
    if options.apis:
        return [Column(job, name) for name in APIS], False
    if options.category:
        names = job.categories() if options.category == "all" else \
            options.category.split(",")
        return [Column(job, name, name) for name in names], False
    if options.only:
        return [Column(job, options.only)], False
    return [Column(job, name) for name in
            ("sep_mlx5", options.peer)], True


def measure(job):
    options = job.options
    if options.check and (options.only or options.apis or options.category):
        raise Failed("--check is for comparisons of two transports")
    builds.bench(job)
    columns, compares = _columns(job)
    for column in columns:
        column.measure(options.count, not compares or options.functions)

    if options.functions:
        for column in columns:
            print(f"\n{column.name}")
            for row in job.callgrind("functions", column.path("counts"),
                                     column.path("callgrind.out")):
                print(*row)
        return 0
    if not compares:
        job.show(insn_table.side_by_side(job.path("insn"),
                                         [each.name for each in columns]))
        return 0
    names = [column.name for column in columns]
    rows = list(insn_table.rows_of(job.path("insn"), names))
    if job.tsv:
        job.show(rows)
    else:
        for part in insn_table.for_people(rows, names):
            job.show(part)
    worse = list(insn_table.worse(rows)) if options.check else []
    print("".join(f"{line}\n" for line in worse), end="", file=sys.stderr)
    if worse:
        raise Failed(f"{names[0]} is worse there")
    return 0
