# SPDX-License-Identifier: BSD-3-Clause
"""Who spends the instructions of a put and of a flush."""

from book.chapter import Counted
from book.counts import PAPADOPOULOU
from book.figure import COLOURS
from book.table import Table

LAYERS = ("MPI", "UCP", "UCT", "UCS", "verbs", "system", "other")
KEYS = ("operation", "mpi", "ucx", "transport")


class Layers(Counted):
    name = "layers"
    title = "Layers of an 8-byte MPI put and of a flush"
    source = f"{PAPADOPOULOU}, where the instructions of each layer are counted"
    row = "layers --tsv"

    def measure(self, bench):
        newer = ["--newer", bench.newer] if bench.newer is not None else []
        table = self.counted(bench, *newer)
        # A row starts with its name
        rows = [[", ".join(row[key] for key in KEYS), *row.values()]
                for row in table.records()]
        return Table(["row", *table.columns], sorted(
            rows, key=lambda row: row[1] != "put_8"))

    def shown(self, table):
        return table.select([*KEYS, "total", *LAYERS])

    @staticmethod
    def of(table, *keys):
        """The row with these, as numbers; None if it was not measured."""
        found = [row for row in table.records()
                 if tuple(row[key] for key in KEYS) == keys]
        return {name: float(found[0][name]) for name in ("total", *LAYERS)} \
            if found else None

    def theirs(self, table):
        return "Of a put through UCX 1.0, what can go is in UCP (27 of 35 " \
            "instructions that resolve a key, 15 to 19 of function pointers); " \
            "of a flush, in polling what has nothing to do. MPI is not in " \
            "their figures."

    def verdict(self, table):
        before = self.of(table, "put_8", "mpich", "stock", "rc_mlx5")
        after = self.of(table, "put_8", "mpich", "patched", "sep_mlx5")
        flushes = [self.of(table, "flush_one_put", "mpich", ucx, transport)
                   for ucx, transport in (("stock", "rc_mlx5"),
                                          ("patched", "sep_mlx5"))]
        text = "Under MPICH, a put is " \
            f"{before['total']:.0f} instructions in stock UCX on rc_mlx5 and " \
            f"{after['total']:.0f} in the patched one on sep_mlx5: UCP " \
            f"{before['UCP']:.0f} and {after['UCP']:.0f}, UCT " \
            f"{before['UCT']:.0f} and {after['UCT']:.0f}. MPICH's own " \
            f"{after['MPI']:.0f} are the largest part then. A flush: " \
            f"{flushes[0]['total']:.0f} and {flushes[1]['total']:.0f}."
        newer = [row["ucx"] for row in table.records()
                 if row["ucx"] not in ("stock", "patched")]
        if newer:
            now = self.of(table, "put_8", "mpich", newer[0], "rc_mlx5")
            text += f" UCX {newer[0]}, as it is: {now['total']:.0f} for a " \
                f"put on rc_mlx5, UCP {now['UCP']:.0f} of them."
        return text

    def draw(self, table, plot):
        axes = plot.subplots(1, 2)
        for axis, operation in zip(axes, ("put_8", "flush_one_put")):
            rows = [row for row in table.records()
                    if row["operation"] == operation and row["mpi"] == "mpich"
                    and row["transport"] in ("rc_mlx5", "sep_mlx5")]
            names = [f"{row['ucx']}, {row['transport']}" for row in rows]
            below = [0.0] * len(rows)
            for layer, colour in zip(LAYERS, COLOURS):
                heights = [float(row[layer]) for row in rows]
                if any(heights):
                    axis.barh(names, heights, left=below, label=layer,
                              color=colour)
                below = [sum(pair) for pair in zip(below, heights)]
            axis.invert_yaxis()
            axis.grid(True, axis="x")
            axis.grid(False, axis="y")
            axis.set_xlabel(f"instructions of {operation}")
        axes[1].set_yticklabels([])
        axes[1].legend(frameon=False, fontsize=8)
