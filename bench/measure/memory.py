# SPDX-License-Identifier: BSD-3-Clause
"""Memory of workers and endpoints."""

import os

from . import builds
from .job import libraries

COLUMNS = (("sep_mlx5", "dv"), ("sep_mlx5", "wr"), ("rc_mlx5", "dv"))


def measure(job):
    builds.bench(job)
    os.makedirs(job.path("memory"), exist_ok=True)
    found = []
    for transport, api in COLUMNS:
        job.say(f"Measuring the memory of {transport} ({api})")
        launcher = [job.path("bin/sep-run"), "--only"] \
            if transport.startswith("sep_") else []
        output = job.path("memory", f"{transport}.{api}")
        job.run(transport, [
            job.path("bin/mlx5sim-run"), "--private", *launcher,
            job.path("bench/uct_memory"), "-t", transport, "-d", "mlx5_0:1",
            "-n", job.options.ifaces],
                output, f"{output}.log",
                {**libraries(job.ucx), "UCX_SEP_API": api}, limit=300)
        with open(output, encoding="utf-8") as lines:
            found.append([line.split() for line in lines])
    job.show([job.row.columns])
    for name, *cells in ((sides[0][0], *sides) for sides in zip(*found)):
        job.show([name, kind, *(side[1 + i] for side in cells)]
                 for i, kind in enumerate(("heap", "mapped", "resident")))
    return 0
