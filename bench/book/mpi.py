# SPDX-License-Identifier: BSD-3-Clause
"""Direct verbs and verbs under MPI programs."""

from book.chapter import Counted
from book.counts import MICHALOWICZ
from book.figure import COLOURS, OURS, PEER, THEIRS, bars
from book.table import Table

DV, WR, VERBS, RC_MLX5, RC_VERBS = COLUMNS = (
    "sep_mlx5 (dv)", "sep_mlx5 (wr)", "sep_mlx5 (verbs)", "rc_mlx5",
    "rc_verbs")
RATIOS = ("dv/verbs", "wr/verbs", "rc_mlx5/rc_verbs", "dv/rc_mlx5")
COLOUR = {DV: OURS, WR: COLOURS[4], VERBS: PEER, RC_MLX5: THEIRS,
          RC_VERBS: COLOURS[2]}

COLLECTIVES = ("barrier", "bcast", "allreduce", "alltoall", "allgather")


def percent_less(ratio):
    return f"{100 * (1 - float(ratio)):.0f} %"


def of_operation(table, *names):
    """Rows of operations, with their sizes."""
    found = []
    for row in table.records():
        name, _, size = row["row"].partition(" ")
        if name in names:
            found.append((int(size or 0), row))
    return found


class Sweep(Counted):
    name = "sweep"
    title = "Direct verbs against verbs: messages and collectives of MPI"
    source = f"{MICHALOWICZ}: OSU micro-benchmarks"
    row = "apps --sweep --counts --tsv"

    def shown(self, table):
        return table.select(["row", *COLUMNS, *RATIOS])

    def theirs(self, table):
        return "Direct verbs are ahead of verbs for messages below 16 KB, and " \
            "alike above; in some collectives by 20 to 50 %. That is time, " \
            "with UCX 1.13.1."

    def verdict(self, table):
        pingpong = of_operation(table, "pingpong")
        first, last = pingpong[0][1], pingpong[-1][1]
        words = []
        for ratio, name in (("dv/verbs", "`sep_mlx5`"),
                            ("rc_mlx5/rc_verbs", "UCX's own")):
            less = [float(row[ratio]) for _, row in
                    of_operation(table, *COLLECTIVES)]
            words.append(
                f"with {name}, direct verbs take {percent_less(first[ratio])} "
                f"fewer for {first['row'].split()[1]} byte and "
                f"{percent_less(last[ratio])} fewer for "
                f"{last['row'].split()[1]} bytes, and "
                f"{percent_less(max(less))} to {percent_less(min(less))} "
                "fewer in collectives of 4 ranks")
        return "The same direction, in instructions of the whole of MPI: " + \
            "; ".join(words) + ". They share what MPI and UCP do, and each " \
            "byte that is copied; how much of a message's time that is depends " \
            "on the adapter."

    def draw(self, table, plot):
        left, right = plot.subplots(1, 2, width_ratios=(1, 1.4))
        rows = of_operation(table, "pingpong")
        for column in COLUMNS:
            left.plot([size for size, _ in rows],
                      [float(row[column]) for _, row in rows], marker=".",
                      color=COLOUR[column], label=column)
        left.set_xscale("log", base=2)
        left.set_yscale("log", base=2)
        ticks = (2000, 4000, 8000, 16000)
        left.set_yticks(ticks, [str(tick) for tick in ticks])
        left.set_xlabel("bytes")
        left.set_ylabel("instructions per message")
        left.legend(frameon=False, fontsize=7)
        rows = [row for size, row in of_operation(table, *COLLECTIVES)
                if size in (0, 8)]
        bars(right, [row["row"] for row in rows], {
            column: ([float(row[column]) for row in rows], COLOUR[column])
            for column in COLUMNS})
        right.get_legend().remove()
        right.set_ylabel("instructions per call, 4 ranks")


class Applications(Counted):
    name = "applications"
    title = "Direct verbs against verbs: applications"
    source = f"{MICHALOWICZ}: LAMMPS (Lennard-Jones melt) and MILC"
    row = "apps --applications --tsv --repeat 1"

    def measure(self, bench):
        table = super().measure(bench)
        # Times are not counts
        return Table(table.columns, [
            row for row in table.rows
            if row[0].endswith((", messages", ", data"))])

    def shown(self, table):
        return table.select(["row", "unit", *COLUMNS, *RATIOS])

    def theirs(self, table):
        return "LAMMPS and MILC were run with both. What they gained is not " \
            "among the numbers that this project has of the paper."

    def verdict(self, table):
        apart = max(abs(float(row[ratio]) - 1) for row in table.records()
                    for ratio in RATIOS)
        return "Nobody has to do more: LAMMPS prints the same thermodynamics " \
            "with each of the five, HPC Challenge finds " \
            "all its results to be right, and the device has the same work " \
            f"requests and bytes, within {100 * apart:.0f} %. What a message " \
            "takes of a processor is in the chapter before; times of these " \
            "jobs are those of a software device, and not here."

    def draw(self, table, plot):
        rows = [row for row in table.records()
                if row["row"].endswith(", messages")]
        axes = plot.subplots()
        bars(axes, [row["row"].removesuffix(", messages") for row in rows], {
            column: ([float(row[column]) for row in rows], COLOUR[column])
            for column in COLUMNS})
        axes.set_yscale("log")
        axes.set_ylabel("work requests")
