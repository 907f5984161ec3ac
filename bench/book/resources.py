# SPDX-License-Identifier: BSD-3-Clause
"""What the sharing categories take: Zambre et al., 2018."""

from book.chapter import EXACT, Chapter
from book.figure import COLOURS, OURS, THEIRS, bars
from book.table import Table

SOURCE = "Zambre, Chandramowlishwaran, Balaji, Scalable Communication " \
    "Endpoints for MPI+Threads Applications, 2018"

# For 16 threads: contexts, UAR pages with and without thread domains, uUARs
PAPER = {
    "mpi_everywhere": (16, 128, 0, 256),
    "2xdynamic": (1, 8, 32, 80),
    "dynamic": (1, 8, 16, 48),
    "shared_dynamic": (1, 8, 8, 32),
    "static": (1, 8, 0, 16),
    "mpi_threads": (1, 8, 0, 16)
}
THREADS = 16
NAIVE_CONTEXTS = 907


class Categories(Chapter):
    name = "categories"
    title = "Resources of the categories, 16 threads"
    source = f"{SOURCE}, the categories' resources"
    kind = EXACT
    command = "sep_info -p -w 16 -r legacy"

    def measure(self, bench):
        rows = []
        for plan in bench.plans("-w", THREADS, "-r", "legacy"):
            own = plan["own"]
            paper = PAPER[plan["category"]]
            rows.append([plan["category"], paper[0], own["contexts"],
                         paper[1] + paper[2], own["uars"], paper[3],
                         own["uuars"], f"{100 * paper[3] / 256:g}",
                         f"{100 * own['uuars'] / 256:g}", own["uuars_in_use"]])
        return Table(["category", "contexts theirs", "contexts",
                      "UAR pages theirs", "UAR pages", "uUARs theirs", "uUARs",
                      "% theirs", "%", "uUARs in use"], rows)

    def theirs(self, table):
        return "In percent of the uUARs of a context per thread: " + \
            ", ".join(f"`{name}` {share}" for name, share in
                      zip(table.column("category"),
                          table.column("% theirs"))) + "."

    def verdict(self, table):
        wrong = [row["category"] for row in table.records()
                 if (row["contexts"], row["UAR pages"], row["uUARs"]) !=
                 (row["contexts theirs"], row["UAR pages theirs"],
                  row["uUARs theirs"])]
        if wrong:
            return f"Different: {', '.join(wrong)}."
        return "The same, each number. `sep_info -t` opens the workers and " \
            "compares the plan with what the device has given; today's " \
            "kernels give pages on demand, [resources.md](resources.md) has " \
            "both."

    def draw(self, table, plot):
        axes = plot.subplots()
        bars(axes, table.column("category"), {
            "Zambre 2018": (table.numbers("uUARs theirs"), THEIRS),
            "ours": (table.numbers("uUARs"), OURS)})
        axes.set_ylabel("uUARs of 16 threads")


class Growth(Chapter):
    name = "capacity"
    title = "How many threads fit an adapter"
    source = f"{SOURCE}, waste of naive endpoints"
    kind = EXACT
    command = "sep_info -p -w N -r legacy, N = 1 to 1024"

    WORKERS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
    PAGES = 8192

    def measure(self, bench):
        names = [*PAPER, "naive"]
        rows = []
        for workers in self.WORKERS:
            pages = {}
            for name in names:
                plan, = bench.plans("-w", workers, "-r", "legacy", "-c", name)
                pages[name] = ("-" if plan["exceeds_context"] else
                               plan["own"]["uars"])
            rows.append([workers, *(pages[name] for name in names)])
        return Table(["workers", *names], rows)

    def theirs(self, table):
        return "A context with a thread domain for each thread has 18 uUARs, " \
            f"of which 1 is used: 94 % are wasted; {NAIVE_CONTEXTS} such " \
            "contexts exhaust the 8192 pages of an adapter."

    def verdict(self, table):
        per_worker = table.numbers("naive")[0]
        fit = int((self.PAGES - 21) // per_worker)
        used = 1 / (2 * per_worker)
        same = "The same" if fit == NAIVE_CONTEXTS else "Different"
        return f"{same}: {per_worker:g} pages, {2 * per_worker:g} uUARs, " \
            f"{100 * (1 - used):.0f} % unused, and {fit} fit if the kernel " \
            "keeps 21 pages, the least that agrees with the paper. A context " \
            "gives at most 512 uUARs to thread domains: where there is a " \
            "dash, one is not enough."

    def draw(self, table, plot):
        axes = plot.subplots()
        for name, colour in zip(table.columns[1:], COLOURS):
            points = [(x, y) for x, y in zip(table.numbers("workers"),
                                             table.numbers(name))
                      if y is not None]
            axes.plot(*zip(*points), label=name, color=colour, marker=".")
        axes.axhline(self.PAGES, color="black", linewidth=0.8)
        axes.text(1, self.PAGES * 1.1, "8192, an adapter", fontsize=8)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.set_xlabel("threads of a process")
        axes.set_ylabel("UAR pages")
        axes.legend(frameon=False, fontsize=7, ncol=2)
