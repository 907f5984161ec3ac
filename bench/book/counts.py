# SPDX-License-Identifier: BSD-3-Clause
"""Instructions and work of the device, counted."""

from book.chapter import ChapterError, Counted
from book.figure import COLOURS, OURS, PEER, THEIRS, bars
from book.table import Table, number

MICHALOWICZ = "Michalowicz et al., direct verbs in MPI libraries, 2023"
LIU = "Liu, Wu, Panda, High Performance RDMA-Based MPI Implementation over " \
    "InfiniBand, 2003"
PAPADOPOULOU = "Papadopoulou, Oden, Balaji, A Performance Study of UCX over " \
    "InfiniBand, 2017"


class Instructions(Counted):
    name = "instructions"
    title = "Instructions per operation, sep_mlx5 and rc_mlx5"
    source = "The project's own goal: less than UCX's transport for the same " \
        "queues"
    row = "insn --tsv"
    quick = ()

    def differences(self, before, after):
        """But for lines of caches, a few each: how many there are depends on
        where the linker puts things."""
        def counted(table):
            return table.select([name for name in table.columns if
                                 name.split()[0] not in ("lines", "code")])
        return super().differences(counted(before), counted(after))

    def shown(self, table):
        return table.select(["op", "sep_mlx5", "rc_mlx5", "ratio",
                             "reads sep_mlx5", "reads rc_mlx5",
                             "writes sep_mlx5", "writes rc_mlx5"])

    def theirs(self, table):
        rc = dict(zip(table.column("op"), table.column("rc_mlx5")))
        return f"rc_mlx5 of the same UCX: {rc['put_short']} instructions for " \
            f"an 8-byte put, {rc['recv']} to receive a message."

    def verdict(self, table):
        ratios = [(float(row["ratio"]), row["op"]) for row in table.records()
                  if number(row["ratio"]) is not None]
        best, worst = min(ratios), max(ratios)
        fewer = "Fewer for each operation" if worst[0] <= 1 else \
            f"More for {worst[1]}"
        return f"{fewer}: {best[0]:.2f} of rc_mlx5's for {best[1]}, " \
            f"{worst[0]:.2f} for {worst[1]}. The device reads and writes the " \
            "same for most."

    def draw(self, table, plot):
        axes = plot.subplots()
        bars(axes, table.column("op"), {
            "rc_mlx5": (table.numbers("rc_mlx5"), THEIRS),
            "sep_mlx5": (table.numbers("sep_mlx5"), OURS)})
        axes.set_ylabel("instructions")


class Apis(Counted):
    name = "apis"
    title = "Direct verbs against verbs"
    source = f"{MICHALOWICZ}: direct verbs win below 16 KB"
    row = "insn --tsv --apis"
    quick = ()

    def theirs(self, table):
        return "Direct verbs are ahead of verbs for messages below 16 KB, in " \
            "some collectives by 20 to 50 %, and alike above."

    @staticmethod
    def apis(table):
        """Columns of direct verbs, and of both ways through libibverbs."""
        try:
            dv, wr, verbs = table.columns[1:4]
        except ValueError as error:
            raise ChapterError("columns of --apis are not there") from error
        return dv, wr, verbs

    @staticmethod
    def ratios(table, column, base):
        """Least and largest ratio of two columns, with their operations."""
        found = [(a / b, op) for op, a, b in
                 zip(table.column("op"), table.numbers(column),
                     table.numbers(base)) if a and b]
        return [f"{ratio:.2f} ({op})" for ratio, op in (min(found), max(found))]

    def verdict(self, table):
        dv, wr, verbs = self.apis(table)
        low, high = self.ratios(table, dv, verbs)
        wr_low, wr_high = self.ratios(table, wr, verbs)
        return "The same direction, in instructions: direct verbs take " \
            f"{low} to {high} of what libibverbs takes under the same " \
            "transport, and libibverbs' extended interface (wr) " \
            f"{wr_low} to {wr_high} of ibv_post_send. What that is worth " \
            "in time depends on the adapter; where data is copied or long, " \
            "little."

    def draw(self, table, plot):
        dv, wr, verbs = self.apis(table)
        axes = plot.subplots()
        bars(axes, table.column("op"), {
            verbs: (table.numbers(verbs), PEER),
            wr: (table.numbers(wr), COLOURS[4]),
            dv: (table.numbers(dv), OURS)})
        axes.set_ylabel("instructions")


class Ucp(Counted):
    name = "ucp"
    title = "What UCP adds, stock and patched"
    source = f"{PAPADOPOULOU}: overheads of UCX 1.0 on rc_mlx5"
    row = "ucp --tsv"

    def measure(self, bench):
        table = super().measure(bench)
        # Times are not counts
        return Table(table.columns, [row for row in table.rows
                                     if not row[0].startswith("put_rate")])

    @staticmethod
    def first(table):
        """Rows of rc_mlx5 and version 1 of the protocols."""
        return Table(table.columns, [row for row in table.rows
                                     if ":" not in row[0]])

    def shown(self, table):
        return self.first(table)

    @staticmethod
    def of(table, name):
        return next(row for row in table.records() if row["row"] == name)

    def theirs(self, table):
        return "Of an 8-byte put, 35 instructions resolve the remote key, 27 " \
            "of which can go; a flush spends 129 to 306 a call on the UD " \
            "interface that only connects, 26.6 to 29.8 % of its " \
            "instructions, and 4.8 to 12 % on polling for sends."

    def verdict(self, table):
        put = self.of(table, "ucp_put_above_uct")
        flush = self.of(table, "flush_one_put")
        return "The same places, in UCX 1.13.1 as in 1.0: UCP takes " \
            f"{put['stock']} instructions for an 8-byte put in stock UCX and " \
            f"{put['patched']} with the key resolved when it is unpacked; a " \
            f"flush of one put {flush['stock']} and {flush['patched']} with " \
            "all patches. More than the paper could remove; " \
            "[ucp-optimisations.md](ucp-optimisations.md) has each patch's " \
            "part."

    def draw(self, table, plot):
        rows = [row for row in self.first(table).records()
                if number(row["stock"]) and float(row["stock"]) > 0 and
                not row["row"].startswith(("wireup", "progress_idle_"))]
        axes = plot.subplots()
        bars(axes, [row["row"] for row in rows], {
            "stock": ([float(row["stock"]) for row in rows], THEIRS),
            "patched": ([float(row["patched"]) for row in rows], OURS)})
        axes.set_ylabel("instructions, rc_mlx5")


class Eager(Counted):
    name = "eager"
    title = "Eager channel: a message into memory that is polled"
    source = f"{LIU}: latency -24 %, bandwidth of small messages +104 %, " \
        "host overhead -22 %"
    row = "eager --tsv"
    quick = ()

    ROWS = ("am_short_send", "am_short_recv", "am_bcopy_1k_send",
            "am_bcopy_1k_recv", "am_short_dma_reads", "am_short_dma_writes",
            "am_short_mmio", "poll_per_ring")

    def measure(self, bench):
        only = [word for name in self.ROWS for word in ("--only", name)]
        return self.counted(bench, *only)

    def theirs(self, table):
        return "Host overhead, the time of the processor for a message: 22 % " \
            "less than with send/receive."

    def verdict(self, table):
        rows = {row["row"]: row for row in table.records()}
        both = [sum(float(rows[name][column]) for name in
                    ("am_short_send", "am_short_recv"))
                for column in ("send_receive", "ring")]
        change = 100 * (both[1] / both[0] - 1)
        return f"Not the same: {both[0]:.0f} instructions of sender and " \
            f"receiver become {both[1]:.0f} ({change:+.0f} %), because " \
            "send/receive of `sep_mlx5` has become cheap; the receiver alone " \
            f"saves {100 * (1 - float(rows['am_short_recv']['ratio'])):.0f} " \
            "%. The device reads and writes less per message. " \
            "[eager.md](eager.md) has times on the device, and all of the " \
            "paper's claims."

    def draw(self, table, plot):
        rows = [row for row in table.records() if "dma" not in row["row"] and
                "mmio" not in row["row"] and "poll" not in row["row"]]
        axes = plot.subplots()
        bars(axes, [row["row"] for row in rows], {
            "send/receive": ([float(row["send_receive"]) for row in rows],
                             THEIRS),
            "ring": ([float(row["ring"]) for row in rows], OURS)})
        axes.set_ylabel("instructions")


class Memory(Counted):
    name = "memory"
    title = "Memory of workers and endpoints"
    source = f"{MICHALOWICZ}: heap stays constant with direct verbs"
    row = "memory --tsv"
    quick = ()

    def measure(self, bench):
        table = super().measure(bench)
        return Table(["bytes", "sep_mlx5", "sep_mlx5 wr", "rc_mlx5"],
                     [[f"{row[0]}, {row[1]}", *row[2:]] for row in table.rows])

    def theirs(self, table):
        return "The heap does not grow with the number of processes if the " \
            "MPI uses direct verbs."

    def verdict(self, table):
        rows = {row["bytes"]: row for row in table.records()}
        idle, used = rows["unconnected, heap"], rows["connected, heap"]
        return "Not the same, and for nobody: what is connected has a queue " \
            f"pair. An endpoint takes {idle['sep_mlx5']} bytes of the heap " \
            f"with sep_mlx5 before it is used and {used['sep_mlx5']} after; " \
            f"with rc_mlx5, {idle['rc_mlx5']} at once. Connections are made " \
            "for those who talk."

    def draw(self, table, plot):
        axes = plot.subplots()
        bars(axes, table.column("bytes"), {
            "rc_mlx5": (table.numbers("rc_mlx5"), THEIRS),
            "sep_mlx5, wr": (table.numbers("sep_mlx5 wr"), PEER),
            "sep_mlx5": (table.numbers("sep_mlx5"), OURS)})
        axes.set_yscale("log")
        axes.set_ylabel("bytes")
