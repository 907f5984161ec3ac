# SPDX-License-Identifier: BSD-3-Clause
"""What jobs take of the device."""

from book.chapter import Counted
from book.figure import OURS, THEIRS, plain_ticks
from book.table import Table, differences


class Connect(Counted):
    name = "connect"
    title = "Queue pairs of MPI processes with an interface per thread"
    source = "MPICH 4.2.1 connects each interface with each; found by the " \
        "project, no paper has it"
    row = "endpoints --connect --tsv --transport sep_mlx5,rc_mlx5 " \
        "--category dynamic --cq-sharing 1 --postlist 1 --ranks 2"
    quick = ("--threads", "1,2,4")

    def measure(self, bench):
        mpich = ["--mpich", bench.mpich] if bench.mpich is not None else []
        table = self.counted(bench, *mpich)
        return Table(["row", *table.columns],
                     [[f"{row['transport']}, {row['ranks']} processes, "
                       f"{row['interfaces']}", *row.values()]
                      for row in table.records()])

    def shown(self, table):
        return table.select(["row", "qps", "peer_qps", "init_ms", "first_ms",
                             "memory_mb"])

    def theirs(self, table):
        last = [row for row in table.records()
                if row["transport"] == "rc_mlx5" and row["ranks"] == "2"][-1]
        return f"rc_mlx5: {last['qps']} queue pairs of a process with " \
            f"{last['interfaces']} interfaces and one peer."

    def verdict(self, table):
        last = [row for row in table.records()
                if row["transport"] == "sep_mlx5" and row["ranks"] == "2"][-1]
        return f"{last['qps']} with sep_mlx5, which connects those who talk."

    def draw(self, table, plot):
        axes = plot.subplots()
        for transport, colour in (("rc_mlx5", THEIRS), ("sep_mlx5", OURS)):
            rows = [row for row in table.records()
                    if row["transport"] == transport and row["ranks"] == "2"]
            axes.plot([int(row["interfaces"]) for row in rows],
                      [int(row["qps"]) for row in rows], marker="o",
                      color=colour, label=transport)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        plain_ticks(axes.xaxis, (1, 2, 4, 8, 16))
        plain_ticks(axes.yaxis, (2, 8, 32, 128, 512))
        axes.set_xlabel("interfaces of each of 2 processes")
        axes.set_ylabel("queue pairs of a process")
        axes.legend(frameon=False)

    def differences(self, before, after):
        return differences(before.select(["row", "qps"]),
                           after.select(["row", "qps"]))
