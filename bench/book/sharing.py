# SPDX-License-Identifier: BSD-3-Clause
"""What sharing one kind of object takes, and the stencil: Zambre et al."""

import os

from book.chapter import EXACT, Chapter
from book.figure import COLOURS, MARKERS
from book.resources import SOURCE
from book.table import Table

# Their right-hand sides, 16 threads: contexts, UAR pages, uUARs, QPs, CQs
FIGURES = {
    3: ("threads, a context each", [(n, 9 * n, 18 * n, n, n)
                                    for n in (1, 2, 4, 8, 16)]),
    5: ("buffer", [(16, 144, 288, 16, 16)] * 5),
    7: ("context", [(n, 8 * n + 16, 16 * n + 32, 16, 16)
                    for n in (16, 8, 4, 2, 1)]),
    8: ("protection domain", [(1, 24, 48, 16, 16)] * 5),
    9: ("memory region", [(1, 24, 48, 16, 16)] * 5),
    10: ("completion queue", [(1, 24, 48, 16, n) for n in (16, 8, 4, 2, 1)]),
    11: ("queue pair and its CQ", [(1, 24, 48, 16, 16),
                                   *((1, 8, 16, n, n) for n in (8, 4, 2, 1))])
}
WAYS = (1, 2, 4, 8, 16)
WHAT = ("contexts", "uars", "uuars", "qps", "cqs")


class Sharing(Chapter):
    name = "sharing"
    title = "What sharing one kind of object takes"
    source = f"{SOURCE}, figures 3 and 5 to 11, right-hand sides"
    kind = EXACT
    command = "MLX5SIM_UAR_MODE=legacy mlx5sim-run --private sep_perf " \
        "--figure N --tsv"

    def measure(self, bench):
        rows = []
        for figure, (what, paper) in FIGURES.items():
            table = bench.tsv(os.path.join(bench.build, "bin/mlx5sim-run"),
                              "--private",
                              os.path.join(bench.build, "bin/sep_perf"),
                              "--figure", figure, "--tsv", "-n", 100,
                              MLX5SIM_UAR_MODE="legacy")
            for ways, row, theirs in zip(WAYS, table.records(), paper):
                rows.append([f"{figure}: {what}, {ways}",
                             " ".join(map(str, theirs)),
                             *(row[name] for name in WHAT)])
        return Table(["figure, shared by", "theirs", *WHAT], rows)

    def theirs(self, table):
        return "Contexts, UAR pages, uUARs, QPs and CQs of 16 threads; in " \
            "figure 3, of 1 to 16."

    def verdict(self, table):
        wrong = [row["figure, shared by"] for row in table.records()
                 if row["theirs"] != " ".join(row[name] for name in WHAT)]
        if wrong:
            return f"Different: {'; '.join(wrong)}."
        return f"The same, all {len(table.rows)} rows. A context is what " \
            "costs pages; protection domains, memory regions and buffers " \
            "cost none, and completion queues only memory. What their " \
            "left-hand sides have, rates, needs an adapter: `sep_perf` " \
            "measures them there ([perf.md](perf.md))."

    def draw(self, table, plot):
        axes = plot.subplots()
        for (figure, (what, _)), colour in zip(FIGURES.items(), COLOURS):
            rows = [row for row in table.records()
                    if row["figure, shared by"].startswith(f"{figure}:")]
            axes.plot(WAYS, [int(row["uuars"]) for row in rows], marker=".",
                      color=colour, label=f"{figure}: {what}")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.set_xlabel("threads that share one (3: threads)")
        axes.set_ylabel("uUARs")
        axes.legend(frameon=False, fontsize=7)


# Processes and threads of a node
SHAPES = ((16, 1), (8, 2), (4, 4), (2, 8), (1, 16))

# Of a node, where the paper has numbers: UAR pages
PAPER_PAGES = {"mpi_everywhere": {shape: 128 for shape in SHAPES},
               "2xdynamic": {(1, 16): 40}, "dynamic": {(1, 16): 24},
               "shared_dynamic": {(1, 16): 16}, "static": {(1, 16): 8},
               "mpi_threads": {(1, 16): 8}}


class Stencil(Chapter):
    name = "stencil"
    title = "UAR pages of a node's stencil"
    source = f"{SOURCE}, figure 14"
    kind = EXACT
    command = "sep_info -p -w T -n 2 -r legacy, times processes; " \
        "contrib/kernels.sh runs the jobs and compares"

    def measure(self, bench):
        rows = []
        for processes, threads in SHAPES:
            plans = bench.plans("-w", threads, "-n",
                                1 if processes == 1 else 2, "-r", "legacy")
            rows.append([f"{processes} x {threads}",
                         *(processes * plan["own"]["uars"] for plan in plans)])
        return Table(["processes x threads", *PAPER_PAGES], rows)

    def theirs(self, table):
        return "128 pages for MPI everywhere, whatever the shape; 40, 24, " \
            "16, 8 and 8 for the other categories with 1 x 16."

    def verdict(self, table):
        wrong = [f"{row['processes x threads']} {name}"
                 for shape, row in zip(SHAPES, table.records())
                 for name, pages in PAPER_PAGES.items()
                 if int(row[name]) != pages.get(shape, int(row[name]))]
        if wrong:
            return f"Different: {', '.join(wrong)}."
        return "The same, where the paper has numbers. The kernels run on " \
            "the software device in all shapes, compared with serial runs, " \
            "and take what is planned ([kernels.md](kernels.md))."

    def draw(self, table, plot):
        axes = plot.subplots()
        shapes = [f"{processes} x {threads}" for processes, threads in SHAPES]
        # static and mpi_threads have the same pages: one shows around the other
        for place, name in enumerate(PAPER_PAGES):
            axes.plot(shapes, table.numbers(name), marker=MARKERS[place],
                      color=COLOURS[place], label=name,
                      linestyle="--" if name == "mpi_threads" else "-",
                      markersize=9 if name == "static" else 5,
                      linewidth=3 if name == "static" else 1.5)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("processes x threads of a node")
        axes.set_ylabel("UAR pages")
        axes.legend(frameon=False, fontsize=7)
