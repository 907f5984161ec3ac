# SPDX-License-Identifier: BSD-3-Clause
"""What can be measured. To add something, add a row; help/NAME.txt is its help."""

import dataclasses

from . import drivers, insn, layers, matrix, memory, perf, ucp, \
    ucx_opt, warps
from .options import DIRECTORY, FLAG, LIST, PLACE, SOURCE, VALUE


@dataclasses.dataclass(frozen=True)
class Row:
    """Something that can be measured."""
    name: str                   # for bench/run
    script: str                 # of contrib/, which has nothing but the name
    about: str
    measure: callable           # of a Job: exit status
    options: dict               # {name: what argparse has to know}
    columns: tuple = ()         # first ones of --tsv without other options
    headed: bool = True         # whether --tsv prints them
    text: tuple = ()            # formats without --tsv: first cells, each other
    packages: tuple = ("build", "bench")    # groups of contrib/deps.txt
    targets: str = "all bench-programs"     # of make
    # {option: (group of packages, target or "")}
    more: dict = dataclasses.field(default_factory=dict)
    driver: str = ""            # of test/jobs/mainjob, for all other options
    has_help: bool = False      # of that driver, besides
    brief: bool = False         # what is wrong is a line and exit status 2


# Programs that measure: see builds.bench()
_BENCH = {"--ucx": DIRECTORY, "--build": DIRECTORY}
_LOGS = {**_BENCH, "--logs": PLACE}
_JOBS = ("jobs", "job-programs")


def _default(text):
    return {**VALUE, "default": text}


def _flags(*names):
    return dict.fromkeys(("--tsv", *names), FLAG)


ROWS = (
    Row("insn", "bench-insn.sh", "instructions per operation", insn.measure,
        {**_flags("--functions", "--check", "--apis"), "--ucx": DIRECTORY,
         "--ucx-source": SOURCE, "--count": _default("256"),
         "--peer": _default("rc_mlx5"), "--only": VALUE, "--category": VALUE},
        columns=("op", "sep_mlx5", "rc_mlx5", "ratio"),
        text=("%-16s", "%18s")),

    Row("memory", "bench-memory.sh", "memory per worker and endpoint",
        memory.measure, {**_flags(), "--ucx": DIRECTORY, "--ifaces": _default("8")},
        columns=("what", "kind", "sep_mlx5", "sep_mlx5 (wr)", "rc_mlx5"),
        text=("%-14s%-10s", "%18s")),

    Row("growth", "bench-growth.sh",
        "what grows with peers; --init, --start, --heap: with processes",
        drivers.logged, _LOGS, driver="growth_cli",
        more={"--init": _JOBS, "--start": _JOBS, "--heap": _JOBS}),

    Row("eager", "bench-eager.sh", "the eager channel beside send/receive",
        drivers.logged, _LOGS, driver="eager_cli",
        columns=("row", "send_receive", "ring", "ratio"), headed=False,
        more={"--jobs": _JOBS, "--lengths": _JOBS}),

    Row("apps", "bench-apps.sh", "direct verbs and verbs under MPI programs",
        drivers.logged, _LOGS, driver="apps_cli",
        packages=("build", "bench", "jobs"),
        more={"--netpipe": ("apps", ""), "--applications": ("apps", "")}),

    Row("ucp", "bench-ucp.sh", "the same for UCP, stock and patched",
        ucp.measure,
        {**_flags("--in-ucp", "--breakdown", "--functions", "--locks",
                  "--waits", "--quick"),
         "--stock": DIRECTORY,
         "--patched": DIRECTORY, "--ucx-source": SOURCE,
         "--count": _default("64")},
        columns=("row", "stock", "patched", "ratio"), text=("%-36s", "%10s")),

    Row("layers", "bench-layers.sh",
        "of an MPI put and a flush, by layer of the stack", layers.measure,
        {**_flags("--quick"), "--ucx-source": SOURCE, "--newer": SOURCE,
         "--stock": DIRECTORY, "--patched": DIRECTORY, "--build": DIRECTORY, "--only": LIST,
         "--count": _default("64")},
        columns=("operation", "mpi", "ucx", "transport", "total", "MPI", "UCP",
                 "UCT", "UCS", "verbs", "system", "other"),
        text=("%-14s %-8s %-8s %-17s", "%9s"),
        packages=("build", "bench", "jobs")),

    Row("perf", "bench-perf.sh",
        "instructions of sep_perf, by what threads share", perf.measure,
        {**_flags(), **_BENCH, "--level": LIST, "-s": LIST,
         "-o": _default("write"), "-b": LIST, "--features": LIST,
         "--threads": _default("2"), "--count": _default("512")},
        columns=("level", "sharing", "op", "features", "threads",
                 "instructions", "locked", "locked_in"),
        text=("%-6s %-16s %-7s %-24s %7s %13s %7s  %s", "")),

    Row("endpoints", "bench-endpoints.sh", "MPI with an endpoint per thread",
        drivers.endpoints,
        {**_flags("--connect", "--locks"), "--mpich": {},
         "--build": DIRECTORY},
        columns=("category", "role", "library", "function", "per message"),
        text=("%-15s %-9s %-24s %-36s %s", ""),
        packages=("build", "bench", "jobs"), targets="all",
        driver="endpoints_cli", has_help=True),

    Row("kernels", "kernels.sh",
        "kernels of applications: resources, work, rates", drivers.kernels,
        {"--mpich": {}, "--build": DIRECTORY},
        packages=("build", "bench", "jobs"), targets="all job-programs",
        driver="app_kernels_cli", has_help=True),

    Row("resources", "bench-resources.sh",
        "what sharing categories take from a device", drivers.resources,
        {**_flags("--take", "--markdown"), "--workers": VALUE,
         "--peers": _default("1"), "--build": DIRECTORY},
        columns=("regime", "category", "workers", "peers", "what"),
        targets="all"),

    Row("scale", "bench-scale.sh", "connections to many peers, in virtual time",
        drivers.scale,
        {**_flags("--lives"), "--build": DIRECTORY, **dict.fromkeys((
            "--traffic", "--budget", "--peers", "--senders", "--node",
            "--messages", "--window", "--loss", "--seed"), VALUE)},
        columns=("traffic", "budget", "messages", "connects", "packets", "us",
                 "seconds", "qps", "beyond", "unused", "evicted", "right"),
        targets="all bench/conn_scale"),

    Row("warps", "bench-warps.sh",
        "a GPU's part: queues shared by thread, warp, block and all",
        warps.measure,
        {**_flags(), "--build": DIRECTORY, "-s": LIST, "--blocks": _default("4"),
         "--warps": _default("4"), "--lanes": _default("32"),
         "--messages": _default("16"), "--depth": _default("256"),
         "--seed": _default("1")},
        columns=("queue of", "reserves", "rings", "qps", "cqs", "uars", "KB",
                 "instructions", "locked", "doorbells", "reads", "waits"),
        text=("%-9s %-9s %-5s", "%13s"), targets="all bench/devx_warps"),

    Row("matrix", "matrix.sh", "jobs and UCX's tests with other versions of UCX",
        matrix.measure,
        matrix.OPTIONS,
        columns=("ucx", "debian", "part", "passed", "failed", "skipped"),
        headed=False, text=("%-10s %-8s %-12s %6s %6s %7s", "%10s "),
        brief=True),

    Row("ucx-opt", "test-ucx-opt.sh", "tests of a patched UCX, and its ABI",
        ucx_opt.measure, {
            "--asan": FLAG, "--ucx-source": SOURCE,
            "patched": {"nargs": "?"}, "stock": {"nargs": "?"}},
        packages=("build", "bench", "test", "abi"),
        targets="all test/gtest/ucp_gtest test/ucp/exchange"),

    Row("book", "book.sh", "all chapters of the book, and writes it",
        drivers.book,
        {"--build": DIRECTORY}, driver="book", targets="all"),
)

BY_NAME = {row.name: row for row in ROWS}
