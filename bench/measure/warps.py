# SPDX-License-Identifier: BSD-3-Clause
"""What warps take that share queues: bench/devx_warps."""

import csv
import glob
import itertools
import json
import os

from . import builds
from .job import CALLGRIND

SHARING = ("thread", "warp", "block", "all")
COUNTERS = ("doorbells", "dma_reads")


def measure(job):
    builds.release(job)
    job.show([job.row.columns])
    job.show(_row(job, *each) for each in itertools.product(
        job.options.s or SHARING, ("warp", "lane"), ("each", "128"))
        # A warp has several queues to reserve on
        if each[:2] != ("thread", "warp"))
    return 0


def _row(job, sharing, reserves, rings):
    given = job.options
    program = [job.path("bench/devx_warps"), "-s", sharing,
               "-b", given.blocks, "-w", given.warps, "-l", given.lanes,
               "-n", given.messages, "-d", given.depth,
               *(["-a"] if reserves == "lane" else []),
               *(["-y"] if rings == "128" else [])]
    stat = job.scratch() + "/stat"
    taken = _run(job, sharing, [
        "sh", "-c", 'stat=$1; shift; "$@" && "$0" --json --all > "$stat"',
        job.path("bin/mlx5sim-stat"), stat, *program, "-o"])
    messages = int(taken["messages"])
    with open(stat, encoding="utf-8") as file:
        totals = json.load(file)["totals"]

    callgrind = job.scratch() + "/callgrind."
    for old in glob.glob(f"{callgrind}*"):
        os.unlink(old)
    _run(job, sharing, [
        *CALLGRIND, "--dump-instr=yes", "--toggle-collect=measure_put",
        # inside of the other
        "--toggle-collect=turns_point",
        f"--callgrind-out-file={callgrind}%p", *program, "-o"])
    found = job.read("callgrind_locked.py", messages,
                     *sorted(glob.glob(f"{callgrind}*")))

    waits = int(_run(job, sharing, [*program, "-r", given.seed])["waits"])
    return [sharing, reserves, rings, taken["qps"], taken["cqs"], taken["uars"],
            f"{int(taken['bytes']) / 1024:.0f}",
            f"{sum(float(row[2]) for row in found if row[1] == '*'):.1f}",
            f"{sum(float(row[2]) for row in found if row[1] != '*'):.2f}",
            *(f"{totals[name] / messages:.2f}" for name in COUNTERS),
            f"{waits / messages:.2f}"]


def _run(job, sharing, command):
    """On a device of its own: what the program prints."""
    rows, log = job.scratch() + "/rows", job.scratch() + "/log"
    job.run(f"queues of {sharing}", [
        job.path("bin/mlx5sim-run"), "--private", *command], rows, log,
            {"MLX5SIM_DEVX": "y"})
    with open(rows, encoding="utf-8") as file:
        return next(csv.DictReader(file, delimiter="\t"))
