# SPDX-License-Identifier: BSD-3-Clause
"""The eager channel beside send/receive: instructions, what the device does, time.

bench/uct_insn and bench/ucp_insn perform the operations, callgrind and the
software device count, ucx_perftest takes the time.
"""

import os
import re
import shutil
import statistics
import tempfile
from dataclasses import dataclass, field

from . import applications, bench, device, jobs, lanes, perftest, process

DEVICE = "mlx5_0:1"

# What is compared; the last one is for people
SEND_RECEIVE, RING, PEER = COLUMNS = ("send_receive", "ring", "rc_mlx5")

# Calls behind a flush that are not counted: until a completion comes, messages go
# by send/receive then
SETTLE = ("-w", "128")

# Names of the device's counters, as bench/device_counts.py prints them
WORK = ("dma_reads", "dma_writes", "mmio")

# Rows of instructions: the program, and its operation
INSTRUCTIONS = {
    "am_short_send":     ("uct_insn", "am_short"),
    "am_short_recv":     ("uct_insn", "recv"),
    "am_pingpong_send":  ("uct_insn", "pingpong_send"),
    "am_pingpong_recv":  ("uct_insn", "pingpong_recv"),
    "am_bcopy_1k_send":  ("uct_insn", "am_bcopy"),
    "am_bcopy_1k_recv":  ("uct_insn", "recv_bcopy"),
    "tag_pingpong_send": ("ucp_insn", "tag_pingpong_send"),
    "tag_pingpong_recv": ("ucp_insn", "tag_pingpong_recv"),
}

# What the device does for a message: the operation, and its messages
MESSAGES = {
    "am_short":    ("am_short", 1),
    "am_pingpong": ("pingpong_send", 2),
    "am_bcopy_1k": ("am_bcopy", 1),
}

POLL = "poll_per_ring"


def perftest_of(api, name, size, iterations, layout="", options=()):
    return perftest.Test(api, name, size, iterations, layout, tuple(options))


# Rows of time
TIMES = {
    "am_lat":     perftest_of("uct", "am_lat", 8, 20000, "short"),
    "am_lat_1k":  perftest_of("uct", "am_lat", 1024, 20000, "bcopy"),
    "am_rate":    perftest_of("uct", "am_bw", 8, 20000, "short"),
    "tag_lat":    perftest_of("ucp", "tag_lat", 8, 20000),
    "tag_rate":   perftest_of("ucp", "tag_bw", 8, 20000),
}

# Programs with figures, see test/mpi and test/shmem
JOBS = (jobs.Job("mpich", "pingpong", 2), jobs.Job("openmpi", "pingpong", 2),
        jobs.Job("mpich", "kernels", 2), jobs.Job("openmpi", "kernels", 2),
        jobs.Job("oshmem", "sync", 2))

# Lengths of rings: what they do, and for whom
LENGTHS = (2, 3, 5, 8, 16, 32, 64, 100)
QUICK_LENGTHS = (2, 5, 64)
KERNELS = ("halo", "alltoall", "cg", "is")
KERNEL_JOBS = (jobs.Job("mpich", "kernels", 2), jobs.Job("mpich", "kernels", 4),
               jobs.Job("openmpi", "kernels", 4))
LAMMPS = jobs.Job("openmpi", "melt", 4)

# Numbers of rings that are polled
RINGS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
QUICK_RINGS = (1, 2, 4, 8, 16, 32, 64)
# The slope begins where the loop does not depend on the number being small
FIRST_OF_SLOPE = 16


class EagerError(bench.BenchError):
    """Something could not be measured."""


@dataclass
class Row:
    """One line: values by column, and what they are."""
    name: str
    unit: str
    values: dict = field(default_factory=dict)

    @property
    def ratio(self):
        """Ring by send/receive."""
        if not self.values.get(SEND_RECEIVE) or RING not in self.values:
            return None
        return self.values[RING] / self.values[SEND_RECEIVE]


def row_names():
    """All rows, in their order."""
    names = list(INSTRUCTIONS)
    names += [f"{kind}_{work}" for kind in MESSAGES for work in WORK]
    return names + [POLL] + list(TIMES)


def read_counters(text):
    """Sums of what interfaces log of the eager channel when they are closed."""
    names = ("ring_sent", "ring_received", "sent", "received", "fallbacks",
             "ring_full", "credit_writes")
    total = dict.fromkeys(names, 0)
    for line in re.findall(r"by ring \d+ sent, .*", text):
        for name, number in zip(names, re.findall(r"\d+", line)):
            total[name] += int(number)
    return total


def slope(costs):
    """What a ring adds, of {rings: cost}: between the first number from which on
    it is a straight line and the largest one."""
    numbers = [number for number in sorted(costs) if
               number >= FIRST_OF_SLOPE]
    if len(numbers) < 2:
        raise EagerError("too few numbers of rings for a slope")
    first, last = numbers[0], numbers[-1]
    return (costs[last] - costs[first]) / (last - first)


def settings(column):
    """What chooses the channel; everything else stays as it is."""
    if column == PEER:
        return {}
    # A device that tells that data are in order: slots are as long as set
    return {"UCX_SEP_EAGER": "y" if column == RING else "n",
            "MLX5SIM_DEVX": "y"}


def transport(column):
    return "rc_mlx5" if column == PEER else "sep_mlx5"


class Bench(bench.Bench):
    """Measures, with the programs of a build."""

    name = "eager"

    def __init__(self, build_dir, top, ucx=None, count=256, repeat=5,
                 log_dir=None, timeout=300):
        super().__init__(build_dir, top, ucx, log_dir, timeout)
        self.count = count
        self.repeat = repeat

    # -- programs --------------------------------------------------------

    def settings(self, column):
        return {"UCX_TLS": "rc_x" if column == PEER else "sep_mlx5",
                **settings(column)}

    def is_ours(self, column):
        return column != PEER

    def bench_argv(self, program, count):
        return [os.path.join(self.build_dir, "bench", program), "-n", count]

    def uct_options(self, column):
        return ["-t", transport(column), "-d", DEVICE, *SETTLE]

    # -- instructions ----------------------------------------------------

    def callgrind(self, column, program, arguments, extra=None):
        """{operation: instructions per call}."""
        where = self.results(column, program)
        argv = [*bench.callgrind(where),
                *self.bench_argv(program, self.count)]
        if program == "uct_insn":
            argv += self.uct_options(column)
        output = self.run(column, argv + list(arguments), extra)
        return self.instructions(where, output)

    def instruction_rows(self, names, columns):
        """Rows of instructions."""
        rows = {name: Row(name, "instructions") for name in names}
        for program in ("uct_insn", "ucp_insn"):
            mine = {name: INSTRUCTIONS[name][1] for name in names if
                    INSTRUCTIONS[name][0] == program}
            if not mine:
                continue
            for column in columns:
                found = self.callgrind(column, program, mine.values())
                for name, operation in mine.items():
                    rows[name].values[column] = found[operation]
        return list(rows.values())

    # -- the device ------------------------------------------------------

    def device_work(self, kinds, columns):
        """Rows of what the device does for a message."""
        rows = {(kind, work): Row(f"{kind}_{work}", "per message")
                for kind in kinds for work in WORK}
        for column in columns:
            where = self.results(column, "device")
            stat = os.path.join(self.build_dir, "bin", "mlx5sim-stat")
            output = self.run(column, [
                *self.bench_argv("uct_insn", self.count),
                *self.uct_options(column), "-s", f"'{stat}' --json", "-o",
                f"{where}/of", *[MESSAGES[kind][0] for kind in kinds]])
            counts = os.path.join(where, "counts")
            with open(counts, "w", encoding="utf-8") as file:
                file.write(output)
            found = bench.read_numbers(self.script("device_counts.py", counts,
                                             f"{where}/of"))
            for kind in kinds:
                operation, messages = MESSAGES[kind]
                for work, number in zip(WORK, found[operation]):
                    rows[kind, work].values[column] = number / messages
        return list(rows.values())

    # -- polling ---------------------------------------------------------

    def poll_settings(self, numbers):
        """Many peers, each with a short ring and short queues."""
        return {"UCX_SEP_NUM_PATHS": "128", "UCX_SEP_EAGER_SLOTS": "4",
                "UCX_SEP_EAGER_POLL_SET": str(max(numbers)),
                "UCX_SEP_TX_QUEUE_LEN": "64", "UCX_SEP_RX_QUEUE_LEN": "512"}

    def polling(self, numbers, column=RING):
        """{rings: instructions of an idle progress}; 0 is without any."""
        listed = [0, *numbers]
        found = self.callgrind(
            column, "uct_insn", ["-r", ",".join(map(str, listed))],
            self.poll_settings(listed))
        return {number: found[f"senders_{number}"] for number in listed}

    def polling_time(self, numbers):
        """{rings: nanoseconds of an idle progress}."""
        listed = [0, *numbers]
        output = self.run(RING, [
            *self.bench_argv("uct_insn", 1000), *self.uct_options(RING), "-c",
            "-r", ",".join(map(str, listed))], self.poll_settings(listed))
        found = bench.read_numbers(output)
        return {number: found[f"senders_{number}"][0] for number in listed}

    def poll_row(self, numbers):
        """What a ring adds, beside an idle progress without any."""
        costs = self.polling(numbers)
        idle = self.polling([1], SEND_RECEIVE)
        per_ring = slope(costs)
        if per_ring <= 0:
            raise EagerError("no ring was polled: progress costs the same with "
                             f"{max(costs)} senders")
        return Row(POLL, "instructions", {SEND_RECEIVE: idle[1],
                                          RING: per_ring})

    # -- time ------------------------------------------------------------

    def perftest(self, column, test, extra=None):
        """The figure of a run of ucx_perftest."""
        with device.SoftwareDevice(self.build_dir) as instance:
            options = []
            if test.api == "uct":
                options = ["-x", transport(column), "-d", DEVICE]
            client, server = perftest.run_pair(
                self.launcher(column) + [self.tool("ucx_perftest")], test,
                self.environment(column, instance, extra), 60, options)
        for result in (client, server):
            if not result.ok:
                raise EagerError(f"{column}: {test.label}: {result.why()}"
                                 f"{jobs.last_words(result)}")
        return test.value(perftest.parse(client.stdout))

    def times(self, names, columns):
        """Rows of time: medians of runs that alternate."""
        for name in names:
            test = TIMES[name]
            found = {column: [] for column in columns}
            for _ in range(self.repeat):
                for column in columns:
                    found[column].append(self.perftest(column, test))
            yield Row(name, test.unit, {column: statistics.median(values)
                                        for column, values in found.items()})

    # -- jobs ------------------------------------------------------------

    def run_job(self, column, job, arguments, extra=None):
        """(result, counters of all interfaces) of a job that ended well."""
        with device.SoftwareDevice(self.build_dir) as instance, \
                tempfile.TemporaryDirectory(prefix="sep-eager.") as logs:
            env = self.environment(column, instance, extra)
            env["UCX_LOG_LEVEL"] = "debug"
            env["UCX_LOG_FILE"] = os.path.join(logs, "ucx.%h.%p")
            result = process.run(self.launcher(column) +
                                 self.job_argv(job, arguments), self.timeout,
                                 env)
            text = lanes.read_logs(logs)
        if not result.ok:
            raise EagerError(f"{column}: {job.label}: {result.why()}"
                             f"{jobs.last_words(result)}")
        return result, read_counters(text)

    def program(self, column, job, arguments=(), extra=None):
        """Figures of a program that checks its data, as {(name, size): value},
        their units, and counters."""
        result, counters = self.run_job(
            column, job, [job.binary(self.build_dir), *arguments], extra)
        status, why, report = jobs.judge(job, result)
        if status != "pass":
            raise EagerError(f"{column}: {job.label}: {why}")
        values = {(name, size): value for name, size, value, _ in
                  report.metrics}
        units = {(name, size): unit for name, size, _, unit in report.metrics}
        return values, units, counters

    def job_rows(self, columns):
        """Rows of MPI and OpenSHMEM programs: medians of runs that alternate."""
        for job in JOBS:
            found, units = {}, {}
            for _ in range(self.repeat):
                for column in columns:
                    values, more, _ = self.program(column, job)
                    units.update(more)
                    for key, value in values.items():
                        found.setdefault(key, {}).setdefault(
                            column, []).append(value)
            for (name, size), by_column in found.items():
                has_size = size > 0 or name == "latency"
                row = f"{job.library}_{name}" + (f"_{size}" if has_size else "")
                yield Row(row, units[name, size],
                          {column: statistics.median(values) for column, values
                           in by_column.items()})

    def lengths(self, slots):
        """What of the messages goes through rings, by their length: for each
        program (name, {slots: (counters, value)})."""
        programs = [(f"{job.library} {kernel} {job.ranks}", job, kernel)
                    for job in KERNEL_JOBS for kernel in KERNELS]
        for name, job, kernel in programs:
            found = {}
            for number in slots:
                values, _, counters = self.program(
                    RING, job, [kernel], {"UCX_SEP_EAGER_SLOTS": str(number)})
                found[number] = (counters, values[kernel, 0])
            yield name, found
        lammps = shutil.which("lmp")
        if lammps is None:
            return
        with tempfile.TemporaryDirectory(prefix="sep-eager.") as where:
            argv = applications.melt(lammps, where)
            found = {}
            for number in slots:
                result, counters = self.run_job(
                    RING, LAMMPS, argv, {"UCX_SEP_EAGER_SLOTS": str(number)})
                found[number] = (counters, result.seconds)
            yield f"LAMMPS melt {LAMMPS.ranks}", found
