# SPDX-License-Identifier: BSD-3-Clause
"""A GPU's part: queues that its threads share."""

from book.chapter import Counted
from book.figure import OURS, PEER, THEIRS, bars
from book.table import Table


class Warps(Counted):
    name = "warps"
    title = "A GPU's part: queues shared by thread, warp, block and all"
    source = "UCX 1.22.0, src/uct/ib/mlx5/gdaki (rc_gda); the question is that " \
        "of Zambre et al., for 4 blocks of 4 warps of 32 threads"
    row = "warps --tsv"
    quick = ("-s", "block", "-s", "all")

    def measure(self, bench):
        table = self.counted(bench)
        return Table(["row", *table.columns],
                     [[f"{row['queue of']}, {row['reserves']}, {row['rings']}",
                       *row.values()] for row in table.records()])

    def shown(self, table):
        return table.select(table.columns[1:])

    def theirs(self, table):
        return "One queue pair of an endpoint, for all threads " \
            "(`UCX_RC_GDA_NUM_CHANNELS=1`), one page of doorbells, two " \
            "doorbells each time. Threads of the GPU, its warps or its blocks " \
            "put, as the kernel says, and who puts reserves. Without the flag " \
            "`NODELAY` 128 work requests go by until somebody rings."

    @staticmethod
    def of(table, sharing, reserves, rings="each"):
        return next(row for row in table.records() if row["row"] ==
                    f"{sharing}, {reserves}, {rings}")

    def verdict(self, table):
        alone = self.of(table, "all", "lane")
        late = self.of(table, "all", "lane", "128")
        warp = self.of(table, "all", "warp")
        own = self.of(table, "warp", "warp")
        block = self.of(table, "block", "warp")
        return "There are no numbers of theirs to compare. What a put takes depends " \
            "on who reserves, not on who has the queue: " \
            f"{alone['instructions']} instructions, {alone['locked']} of them " \
            f"LOCKed, and {alone['doorbells']} doorbells for each lane alone, " \
            f"{warp['instructions']}, {warp['locked']} and " \
            f"{warp['doorbells']} if a warp does it for its lanes. To ring " \
            f"late saves a lane doorbells ({late['doorbells']}), and costs a " \
            "LOCKed instruction more, as the ready index has to be compared " \
            "and swapped. What sharing costs is waiting: " \
            f"{alone['waits']} times a message with one queue for all lanes, " \
            f"{warp['waits']} for all warps, {block['waits']} with one for " \
            f"each block, {own['waits']} with one for each warp, which takes " \
            f"{own['qps']} queue pairs and {own['KB']} KB. A queue for each " \
            "lane saves nothing beyond that. Warps are threads of the " \
            "processor here, with lanes one after the other: a GPU does a " \
            "warp's instructions at once, and its doorbells and atomics are " \
            "what stays."

    def draw(self, table, plot):
        left, right = plot.subplots(1, 2)
        groups = [(sharing, reserves) for sharing, reserves in
                  dict.fromkeys(zip(table.column("queue of"),
                                    table.column("reserves")))]
        names = [f"{sharing}, {reserves}" for sharing, reserves in groups]

        def heights(column, rings):
            return [float(self.of(table, *group, rings)[column])
                    for group in groups]
        bars(left, names, {
            "doorbells": (heights("doorbells", "each"), THEIRS),
            "LOCKed": (heights("locked", "each"), OURS),
            "LOCKed, late": (heights("locked", "128"), PEER)})
        left.set_ylabel("per message")
        left.legend(frameon=False, fontsize=6, ncol=3)
        bars(right, names, {"each rings": (heights("waits", "each"), OURS),
                            "late": (heights("waits", "128"), PEER)})
        right.set_yscale("symlog", linthresh=0.1)
        right.set_ylabel("waits per message")
