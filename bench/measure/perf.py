# SPDX-License-Identifier: BSD-3-Clause
"""Instructions of sep_perf's messages, and those that LOCK."""

import csv
import glob
import itertools
import os

from . import builds
from .job import CALLGRIND, libraries


def measure(job):
    builds.bench(job)
    env = libraries(job.ucx)
    options = job.options
    job.show([job.row.columns])
    job.show(_row(job, env, *each) for each in itertools.product(
        options.level or ("verbs", "dv", "uct"),
        options.s or job.categories(env), options.features or ("all",)))
    return 0


def _row(job, env, level, sharing, features):
    op, threads = job.options.o, job.options.threads
    rows, log = job.scratch() + "/rows", job.scratch() + "/log"
    callgrind = job.scratch() + "/callgrind."
    for old in glob.glob(f"{callgrind}*"):
        os.unlink(old)
    job.run(f"level {level}, {sharing}", [
        job.path("bin/mlx5sim-run"), "--private", *CALLGRIND,
        "--dump-instr=yes", "--toggle-collect=sep_perf_thread_rate",
        f"--callgrind-out-file={callgrind}%p", job.path("bin/sep_perf"),
        "--tsv", "--serial", "--no-latency", "--level", level, "-s", sharing,
        "--features", features, "-o", op, "-t", threads, "-n",
        job.options.count,
        *(word for size in job.options.b for word in ("-b", size))],
            rows, log, env)
    # Whole lists: perhaps more than were asked for
    with open(rows, encoding="utf-8") as file:
        messages = next(csv.DictReader(file, delimiter="\t"))["messages"]
    found = job.read("callgrind_locked.py", messages,
                     *sorted(glob.glob(f"{callgrind}*")))
    locked = [row for row in found if row[1] != "*"]
    return [level, sharing, op, features, threads,
            f"{sum(float(row[2]) for row in found if row[1] == '*'):.1f}",
            f"{sum(float(row[2]) for row in locked):.2f}",
            ",".join(f"{row[1]}={row[2]}" for row in locked) or "-"]
