# SPDX-License-Identifier: BSD-3-Clause
"""What grows with the number of peers, and of processes."""

import statistics

from book.chapter import TOLERANCE, ChapterError, Counted
from book.counts import MICHALOWICZ, PAPADOPOULOU
from book.figure import COLOURS
from book.table import Table, differences

SEP, WR, RC, RC_VERBS = "sep_mlx5", "sep_mlx5 wr", "rc_mlx5", "rc_verbs"
TRANSPORTS = (SEP, WR, RC, RC_VERBS)


def named(table, columns):
    """The rows of a table, with what the columns say as their names."""
    return Table(["row", *table.columns],
                 [[", ".join(row[column] for column in columns), *row.values()]
                  for row in table.records()])


def kilobytes(text):
    return f"{int(text) / 1024:.1f}"


class Peers(Counted):
    name = "growth"
    title = "One interface, 1 to 1024 peers"
    source = f"{PAPADOPOULOU}: asks for connections on demand"
    row = "growth --peers --tsv"

    # What happens only once is over by then
    SETTLED = 64

    def measure(self, bench):
        return named(super().measure(bench),
                     ("transport", "endpoints", "used"))

    @staticmethod
    def curve(table, transport, column, used):
        """{number: cell}: of endpoints that are not used, or of the used ones
        when all are there."""
        rows = [row for row in table.records() if
                row["transport"] == transport]
        last = max(int(row["endpoints"]) for row in rows)
        if used:
            return {int(row["used"]): int(row[column]) for row in rows
                    if int(row["endpoints"]) == last and row["used"] != "0"}
        return {int(row["endpoints"]): int(row[column]) for row in rows
                if row["used"] == "0" and row[column] != "-"}

    def slope(self, table, transport, column, used):
        """What a peer adds."""
        points = {number: value for number, value in
                  self.curve(table, transport, column, used).items()
                  if number >= self.SETTLED}
        low, high = min(points), max(points)
        if low == high:
            raise ChapterError("too few peers for a slope")
        return (points[high] - points[low]) / (high - low)

    def shown(self, table):
        last = max(self.curve(table, SEP, "qps", True))
        rows = []
        for number in self.curve(table, SEP, "qps", True):
            row = [number]
            for transport in TRANSPORTS:
                unused = self.curve(table, transport, "heap", False)
                used = self.curve(table, transport, "heap", True)
                row.append(kilobytes(unused[number]))
                if transport in (SEP, WR):
                    row.append(kilobytes(used[number]))
            row += [self.curve(table, SEP, "qps", False)[number],
                    self.curve(table, SEP, "qps", True)[number],
                    self.curve(table, RC, "qps", False)[number]]
            rows.append(row)
        return Table(["peers", "sep_mlx5, unused, KB",
                      f"used, of {last}, KB", "wr, unused, KB",
                      f"wr, used, of {last}, KB", "rc_mlx5, KB",
                      "rc_verbs, KB", "QPs sep_mlx5, unused", "used",
                      "QPs rc_mlx5"], rows)

    def theirs(self, table):
        return "UCX's transports make a queue pair when an endpoint is " \
            f"created: {self.slope(table, RC, 'heap', False) / 1024:.0f} KB of " \
            "the heap for each with rc_mlx5, " \
            f"{self.slope(table, RC_VERBS, 'heap', False) / 1024:.0f} with " \
            "rc_verbs, used or not."

    def instructions(self, table, transport):
        """Of a peer that is used, from making the endpoint on. The median:
        waiting for a busy machine is not free of instructions."""
        return round(sum(statistics.median(
            count for number, count in self.curve(
                table, transport, "instructions", used).items()
            if number >= self.SETTLED) for used in (False, True)))

    def verdict(self, table):
        last = max(self.curve(table, SEP, "qps", True))
        work, rc_work = (self.instructions(table, transport)
                         for transport in (SEP, RC))
        few = self.curve(table, SEP, "heap", True)
        few = few[max(number for number in few if number <= 8)]
        many = self.curve(table, RC, "heap", False)[last]
        return "An endpoint of sep_mlx5 that is not used takes " \
            f"{self.slope(table, SEP, 'heap', False):.0f} bytes and no queue " \
            f"pair; used, {self.slope(table, SEP, 'heap', True) / 1024:.1f} " \
            "KB with direct verbs, " \
            f"{self.slope(table, WR, 'heap', True) / 1024:.1f} KB with " \
            f"libibverbs (wr). {last} endpoints of which 8 are used take " \
            f"{few / 1024:.0f} KB, with rc_mlx5 {many / 1024:.0f} KB. Each peer " \
            "takes the same, the first as the last. Making, connecting and " \
            f"using an endpoint is {work} instructions (median of the rows " \
            f"from {self.SETTLED} peers on), control messages included; with " \
            f"rc_mlx5 {rc_work}, and the program carries the addresses."

    def draw(self, table, plot):
        axes = plot.subplots()
        for transport, colour in zip(TRANSPORTS, COLOURS):
            kinds = (False, True) if transport in (SEP, WR) else (False,)
            for used in kinds:
                points = {number: value for number, value in self.curve(
                    table, transport, "heap", used).items() if number and value}
                label = transport
                if len(kinds) > 1:
                    label += ", used" if used else ", unused"
                axes.plot(list(points), [value / 1024 for value in
                                         points.values()], marker=".",
                          color=colour, label=label,
                          linestyle="-" if used or len(kinds) == 1 else ":")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.set_xlabel("peers of an interface")
        axes.set_ylabel("heap, KB")
        axes.legend(frameon=False, fontsize=7, ncol=2)

    def differences(self, before, after):
        kept = ["row", "heap", "qps", "cqs"]
        return differences(before.select(kept), after.select(kept),
                           TOLERANCE[self.kind])


class Init(Counted):
    name = "init"
    title = "Queue pairs and instructions from MPI_Init to the first message"
    source = f"{PAPADOPOULOU}: asks for connections on demand"
    row = "growth --init --tsv --repeat 3 --library mpich"

    COLUMNS = ("library", "processes", "transport", "instructions", "qps_init",
               "qps_ring", "qps_all")

    def measure(self, bench):
        table = super().measure(bench)
        # Times are not counts
        return named(table.select(self.COLUMNS),
                     ("library", "processes", "transport"))

    def shown(self, table):
        return table.select(["row", "instructions", "qps_init", "qps_ring",
                             "qps_all"])

    @staticmethod
    def last(table, transport):
        return [row for row in table.records()
                if row["transport"] == transport][-1]

    def theirs(self, table):
        row = self.last(table, RC)
        return f"rc_mlx5, {row['processes']} processes: {row['qps_init']} queue " \
            "pairs of a process when MPI_Init returns, whoever it is going to " \
            "talk to."

    def verdict(self, table):
        row, other = self.last(table, SEP), self.last(table, RC)
        ratio = int(row["instructions"]) / int(other["instructions"])
        return f"sep_mlx5: {row['qps_init']}, {row['qps_ring']} after a ring, " \
            f"and {row['qps_all']} when all have talked to all. From MPI_Init " \
            f"to the first message rank 0 executes {row['instructions']} " \
            f"instructions, {ratio:.2f} of rc_mlx5's; most are UCX's and the " \
            "MPI library's own start, and polling while others are awaited."

    def draw(self, table, plot):
        axes = plot.subplots()
        lines = ((RC, "qps_init", "rc_mlx5, after MPI_Init"),
                 (SEP, "qps_all", "sep_mlx5, all to all"),
                 (SEP, "qps_ring", "sep_mlx5, ring"),
                 (SEP, "qps_init", "sep_mlx5, after MPI_Init"))
        for (transport, column, label), colour in zip(lines, COLOURS):
            rows = [row for row in table.records()
                    if row["transport"] == transport]
            axes.plot([int(row["processes"]) for row in rows],
                      [int(row[column].split("-")[-1]) for row in rows],
                      marker=".", color=colour, label=label)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.set_xlabel("processes")
        axes.set_ylabel("queue pairs of a process")
        axes.legend(frameon=False, fontsize=8)

    def differences(self, before, after):
        kept = ["row", "qps_init", "qps_ring", "qps_all"]
        return differences(before.select(kept), after.select(kept))


class Heap(Counted):
    name = "heap"
    title = "Heap of an MPI process over time, 2 to 32 processes"
    source = f"{MICHALOWICZ}: heap over time by massif, constant with direct " \
        "verbs"
    row = "growth --heap --tsv"

    MOMENTS = ("init", "ring", "all", "peak", "finalized")

    def measure(self, bench):
        return named(super().measure(bench),
                     ("library", "processes", "transport", "when"))

    @staticmethod
    def at(table, transport, moment):
        """{processes: bytes}"""
        return {int(row["processes"]): int(row["heap"]) for row in
                table.records() if row["transport"] == transport and
                row["when"] == moment}

    def shown(self, table):
        rows = []
        for transport in TRANSPORTS:
            found = {moment: self.at(table, transport, moment) for moment in
                     self.MOMENTS}
            for processes in found["peak"]:
                rows.append([f"{transport}, {processes} processes",
                             *(kilobytes(found[moment][processes]) for moment in
                               self.MOMENTS)])
        return Table(["heap of rank 0, KB", "after MPI_Init", "after a ring",
                      "after all-to-all", "peak", "after MPI_Finalize"], rows)

    def is_constant(self, table, transport, moment):
        """With any number of processes."""
        found = self.at(table, transport, moment).values()
        return max(found) <= (1 + TOLERANCE[self.kind]) * min(found)

    def growth(self, table, transport):
        """KB that each process more adds to the heap after all-to-all."""
        found = self.at(table, transport, "all")
        low, high = min(found), max(found)
        if low == high:
            raise ChapterError("more than one number of processes is needed")
        return (found[high] - found[low]) / (high - low) / 1024

    def theirs(self, table):
        return "The heap does not grow with the number of processes if the " \
            "MPI uses direct verbs."

    def verdict(self, table):
        growth = {transport: self.growth(table, transport) for transport in
                  TRANSPORTS}
        least = min(growth, key=growth.get)
        same = "The same only after MPI_Init" if self.is_constant(
            table, SEP, "init") else "Not the same"
        return f"{same}: what is connected has a queue pair. When all have " \
            "talked to all, rank 0 has for each process more " + \
            ", ".join(f"{size:.1f} KB with {transport}" for transport, size in
                      growth.items()) + \
            f", the least with {least}. rc_mlx5 and rc_verbs have it from " \
            "MPI_Init on, sep_mlx5 when it talks. (Rank 0 is slow under " \
            "massif: others are ahead of it, and their connections are in " \
            "its heap before it comes to that moment itself.)"

    def draw(self, table, plot):
        left, right = plot.subplots(1, 2)
        for transport, colour in zip(TRANSPORTS, COLOURS):
            found = self.at(table, transport, "all")
            left.plot(list(found), [value / 2**20 for value in found.values()],
                      marker=".", color=colour, label=transport)
            last = max(found)
            curve = [(int(row["when"].split()[0]), int(row["heap"]))
                     for row in table.records()
                     if row["transport"] == transport and
                     int(row["processes"]) == last and "%" in row["when"]]
            right.plot([percent for percent, _ in curve],
                       [value / 2**20 for _, value in curve], color=colour,
                       label=transport)
        left.set_xlabel("processes, after all-to-all")
        left.set_ylabel("heap of rank 0, MB")
        left.legend(frameon=False, fontsize=7)
        right.set_xlabel(f"percent of the instructions, {last} processes")

    def differences(self, before, after):
        """Not over time, which is that of waiting for others."""
        tables = [Table(table.columns, [
            row for row in table.rows if "%" not in row[0]])
            for table in (before, after)]
        return differences(*(table.select(["row", "heap"]) for table in tables),
                           TOLERANCE[self.kind])
