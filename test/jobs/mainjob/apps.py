# SPDX-License-Identifier: BSD-3-Clause
"""Direct verbs and verbs under MPI programs: instructions, times, and what the
device did.

bench/mpi_sweep.c is ours; NetPIPE, LAMMPS and HPCC are Debian's.
"""

import os
import shutil
import statistics
import tempfile
from dataclasses import dataclass, field

from . import applications, bench, device, jobs, process

DV, WR, VERBS, RC_MLX5, RC_VERBS = COLUMNS = (
    "sep_mlx5 (dv)", "sep_mlx5 (wr)", "sep_mlx5 (verbs)", "rc_mlx5",
    "rc_verbs")

SETTINGS = {
    DV: {"UCX_TLS": "sep_mlx5", "UCX_SEP_API": "dv"},
    WR: {"UCX_TLS": "sep_mlx5", "UCX_SEP_API": "wr"},
    VERBS: {"UCX_TLS": "sep_mlx5", "UCX_SEP_API": "verbs"},
    RC_MLX5: {"UCX_TLS": "rc_x"},
    RC_VERBS: {"UCX_TLS": "rc_v"},
}

# What the last columns of a table divide
RATIOS = {"dv/verbs": (DV, VERBS), "wr/verbs": (WR, VERBS),
          "rc_mlx5/rc_verbs": (RC_MLX5, RC_VERBS), "dv/rc_mlx5": (DV, RC_MLX5)}

# Copies of the processor's own (REP MOVS) count as an instruction per byte under
# valgrind; so copies are loops when they are counted.
LOOPS = {"UCX_BUILTIN_MEMCPY_MIN": "inf",
         "GLIBC_TUNABLES": "glibc.cpu.x86_rep_movsb_threshold=1000000000"}

# Operations of bench/mpi_sweep.c: sizes that are counted, and that are timed.
# A rank that waits for answers polls as often as it has time to, so windows and
# collectives are counted only where all messages are eager and nobody has to
# wait for the one that is counted. In Allreduce of MPICH, all do for more than a
# few numbers.
LONG = (1, 8, 64, 256, 1024, 4096, 16384, 65536)
COLLECTIVE = (8, 128, 1024)
COLLECTIVE_TIMES = (8, 1024, 8192, 65536)
COUNTED_SIZES = {
    "pingpong": LONG, "rate": (8, 64, 1024), "barrier": (0,),
    "bcast": COLLECTIVE, "allreduce": (8,), "alltoall": COLLECTIVE,
    "allgather": COLLECTIVE}
TIMED_SIZES = {
    "pingpong": LONG, "rate": (8, 64, 1024, 16384), "barrier": (0,),
    "bcast": COLLECTIVE_TIMES, "allreduce": COLLECTIVE_TIMES,
    "alltoall": COLLECTIVE_TIMES, "allgather": COLLECTIVE_TIMES}
OPERATIONS = tuple(COUNTED_SIZES)
POINT_TO_POINT = ("pingpong", "rate")
COUNTED_RANKS = 4       # of collectives

# Of a window, mpi_sweep counts both sides
PARTS = {"rate": ("rate_send", "rate_recv")}

NETPIPE = {"mpich": "NPmpich2", "openmpi": "NPopenmpi"}
NETPIPE_LIMIT = 65536

HPCC_SIZE, HPCC_QUICK_SIZE = 400, 96

# Of HPCC's own figures, the ones of messages
HPCC_FIGURES = {"MaxPingPongLatency_usec": "us",
                "RandomlyOrderedRingLatency_usec": "us"}


class AppsError(bench.BenchError):
    """A program could not be run, or its result is wrong."""


@dataclass
class Row:
    """One line: values by column, and what they are."""
    name: str
    unit: str
    values: dict = field(default_factory=dict)

    def ratio(self, name):
        first, second = (self.values.get(column) for column in RATIOS[name])
        return first / second if first and second else None


def sizes_of(table, only=None, quick=False):
    """{operation: sizes} of those that are wanted."""
    found = {name: sizes for name, sizes in table.items()
             if not only or name in only}
    if quick:
        found = {name: sizes[:1] + sizes[2:3] for name, sizes in found.items()}
    return found


def words_of(sizes):
    """Arguments of mpi_sweep."""
    return [f"{name}:{size}" for name, all_sizes in sizes.items()
            for size in all_sizes]


def row_name(operation, size):
    return operation if operation == "barrier" else f"{operation} {size}"


def least(found):
    """{(operation, size): instructions} of {"operation:size:batch": instructions}.
    A rank that polled in vain has more, never less."""
    rows = {}
    for name, count in found.items():
        operation, size, _ = name.split(":")
        key = (operation, int(size))
        rows[key] = min(count, rows.get(key, count))
    return rows


def calls_of(output):
    """Lines of callgrind_insn.py's COUNTS, of what mpi_sweep printed."""
    return "".join(line[len("calls "):] + "\n" for line in output.splitlines()
                   if line.startswith("calls "))


class Bench(bench.Bench):
    """Measures, with the programs of a build."""

    name = "apps"

    def __init__(self, build_dir, top, ucx=None, log_dir=None, timeout=300,
                 library="mpich", count=64, repeat=5, quick=False):
        super().__init__(build_dir, top, ucx, log_dir, timeout)
        self.library = library
        self.count = count
        self.repeat = repeat
        self.quick = quick

    def settings(self, column):
        return SETTINGS[column]

    def is_ours(self, column):
        return column in (DV, WR, VERBS)

    def run_job(self, column, job, argv, extra=None, where=None):
        """(result, counters of the device) of a job that ended well, with its
        files in a directory."""
        with device.SoftwareDevice(self.build_dir) as instance:
            env = self.environment(column, instance, extra)
            words = self.launcher(column) + list(argv)
            if where is not None:
                words = ["env", "-C", where, *words]
            result = process.run(words, self.timeout, env)
            done = instance.counters()
        if not result.ok:
            raise AppsError(f"{column}: {job.label}: {result.why()}"
                            f"{jobs.last_words(result)}")
        return result, done

    def check_traffic(self, column, job, done, messages=1, payload=0):
        """A program whose messages went elsewhere shows nothing."""
        complaints = device.check_traffic(dict.fromkeys(device.COUNTERS, 0),
                                          done, messages, payload)
        if complaints:
            raise AppsError(f"{column}: {job.label}: {'; '.join(complaints)}")

    # -- ours ------------------------------------------------------------

    def sweep(self, column, ranks, argv, extra=None):
        """(output, metrics) of bench/mpi_sweep.c."""
        job = jobs.Job(self.library, "mpi_sweep", ranks)
        result, done = self.run_job(column, job, argv, extra)
        status, why, report = jobs.judge(job, result)
        if status != "pass":
            raise AppsError(f"{column}: {job.label}: {why}")
        self.check_traffic(column, job, done, report.messages, report.payload)
        return result.stdout, report.metrics

    def program(self):
        return os.path.join(self.build_dir, "bench",
                            f"mpi_sweep.{self.library}")

    def count_job(self, column, ranks, words):
        """{(operation, size): instructions of rank 0 per call}."""
        job = jobs.Job(self.library, "mpi_sweep", ranks)
        where = self.results("counts", column.replace(" ", ""), str(ranks))
        argv = [self.program(), "count", self.count, *words]
        output, _ = self.sweep(column, ranks, [
            *self.mpirun(job), "-n", 1, *job.binding(), *bench.callgrind(where),
            *argv, ":", "-n", ranks - 1, *job.binding(), *argv], LOOPS)
        return least(self.instructions(where, calls_of(output)))

    def groups(self, sizes, ranks):
        """What is run together: ranks, and {operation: sizes}."""
        for number, names in ((2, POINT_TO_POINT),
                              (ranks, set(OPERATIONS) - set(POINT_TO_POINT))):
            mine = {name: sizes[name] for name in sizes if name in names}
            if mine:
                yield number, mine

    def counts(self, sizes):
        """Rows of instructions."""
        for ranks, mine in self.groups(sizes, COUNTED_RANKS):
            found = {column: self.count_job(column, ranks, words_of(mine))
                     for column in COLUMNS}
            for operation, all_sizes in mine.items():
                for part in PARTS.get(operation, (operation,)):
                    for size in all_sizes:
                        yield Row(row_name(part, size), "instructions",
                                  {column: found[column][part, size]
                                   for column in COLUMNS})

    def times(self, sizes):
        """Rows of time: medians of runs that alternate. Ranks that take turns on
        a processor would be what is measured, so there are no more ranks than
        processors."""
        ranks = max(2, min(COUNTED_RANKS, len(os.sched_getaffinity(0))))
        for number, mine in self.groups(sizes, ranks):
            job = jobs.Job(self.library, "mpi_sweep", number)
            argv = self.job_argv(job, [self.program(), "time",
                                       200 if self.quick else 2000,
                                       *words_of(mine)])
            found = {}
            for _ in range(self.repeat):
                for column in COLUMNS:
                    _, metrics = self.sweep(column, number, argv)
                    for name, size, value, _ in metrics:
                        found.setdefault((name, size), {}).setdefault(
                            column, []).append(value)
            yield from median_rows(
                {row_name(*key): values for key, values in found.items()}, "us")

    # -- NetPIPE ---------------------------------------------------------

    def netpipe_job(self, column, library, options):
        """(standard output, output file)."""
        program = shutil.which(NETPIPE[library])
        if program is None:
            raise AppsError(f"{NETPIPE[library]} is not installed")
        job = jobs.Job(library, "NetPIPE", 2)
        with tempfile.TemporaryDirectory(prefix="sep-apps.") as where:
            path = os.path.join(where, "np.out")
            limit = 1024 if self.quick else NETPIPE_LIMIT
            argv = self.job_argv(job, [program, "-l", 1, "-u", limit, "-p", 0,
                                       "-o", path, *options])
            result, done = self.run_job(column, job, argv, where=where)
            text = applications.read(path)
        self.check_traffic(column, job, done)
        return result.stdout + result.stderr, text

    def netpipe(self, library):
        """Rows of NetPIPE: powers of two, whose data it has compared before."""
        found = {}
        for column in COLUMNS:
            output, _ = self.netpipe_job(column, library, ["-n", 20, "-i"])
            applications.netpipe_integrity(output)
        for _ in range(self.repeat):
            for column in COLUMNS:
                _, text = self.netpipe_job(column, library,
                                           ["-n", 100 if self.quick else 1000])
                times = applications.netpipe_times(text)
                for size in [size for size in times if size & (size - 1) == 0]:
                    found.setdefault(f"{library} {size}", {}).setdefault(
                        column, []).append(times[size])
        yield from median_rows(found, "us")

    # -- applications ----------------------------------------------------

    def melt(self, column, job):
        """(result, figures, seconds, counters) of LAMMPS."""
        program = shutil.which("lmp")
        if program is None:
            raise AppsError("lmp (Debian's lammps) is not installed")
        with tempfile.TemporaryDirectory(prefix="sep-apps.") as where:
            result, done = self.run_job(column, job, self.job_argv(
                job, applications.melt(program, where)), where=where)
            screen = applications.read(os.path.join(where, "screen"))
        return applications.melt_result(screen), {}, result.seconds, done

    def hpcc(self, column, job):
        """(result, figures, seconds, counters) of HPCC, which verifies what it
        has computed."""
        program = shutil.which("hpcc")
        if program is None:
            raise AppsError("hpcc is not installed")
        with tempfile.TemporaryDirectory(prefix="sep-apps.") as where:
            applications.write(
                os.path.join(where, "hpccinf.txt"), applications.hpcc_input(
                    job.ranks, HPCC_QUICK_SIZE if self.quick else HPCC_SIZE))
            result, done = self.run_job(column, job, self.job_argv(
                job, [program]), where=where)
            found = applications.hpcc_result(applications.read(
                os.path.join(where, "hpccoutf.txt")))
        figures = {(name, unit): found[name] for name, unit in
                   HPCC_FIGURES.items()}
        return None, figures, result.seconds, done

    def application(self, name, ranks):
        """Rows of an application, with results that are those of all columns."""
        run = {"LAMMPS": self.melt, "HPCC": self.hpcc}[name]
        job = jobs.Job("openmpi", name, ranks)
        results, found = {}, {}
        for _ in range(self.repeat):
            for column in COLUMNS:
                results[column], figures, seconds, done = run(column, job)
                self.check_traffic(column, job, done)
                figures = {("time", "s"): seconds,
                           ("messages", "WQEs"): done["wqes"],
                           ("data", "MB"): done["bytes"] / 1e6, **figures}
                for key, value in figures.items():
                    found.setdefault(key, {}).setdefault(column, []).append(
                        value)
                if results[column] != results[DV]:
                    raise AppsError(f"{name}, {ranks} ranks: {column} has "
                                    f"{results[column]}, {DV} "
                                    f"{results[DV]}")
        for (what, unit), values in found.items():
            yield from median_rows({f"{name} {ranks} ranks, {what}": values},
                                   unit)


APPLICATIONS = ("LAMMPS", "HPCC")


def median_rows(found, unit):
    """Rows of {name: {column: values}}."""
    for name, values in found.items():
        yield Row(name, unit, {column: statistics.median(values[column])
                               for column in COLUMNS})
