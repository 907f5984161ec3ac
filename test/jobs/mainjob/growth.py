# SPDX-License-Identifier: BSD-3-Clause
"""What grows with the number of peers and of processes: memory, queue pairs, the
work of connecting, and the heap over time.

bench/uct_peers has the peers of one interface, bench/ucp_peers those of a worker
of UCP, and test/mpi/growth.c jobs of MPI.
Callgrind counts instructions, massif the heap, and the software device its
objects.
"""

import glob
import json
import os
import shutil
import statistics
import tempfile
from dataclasses import dataclass

from . import device, endpoints, jobs, process

DEVICE = "mlx5_0:1"

# The registers must be right at every access to memory, for the device's signal
# handler reads them (see bench/measure/job.py)
VALGRIND = ("--px-default=allregs-at-mem-access",
            "--px-file-backed=allregs-at-mem-access")
CALLGRIND = ("valgrind", "--tool=callgrind", "-q", "--instr-atstart=no",
             *VALGRIND)
# As many snapshots as it keeps, and each peak
MASSIF = ("valgrind", "--tool=massif", "-q", "--time-unit=i", "--depth=1",
          "--max-snapshots=200", "--detailed-freq=1000000",
          "--peak-inaccuracy=0", *VALGRIND)

# What is compared: name, UCT's name of the transport, UCX_TLS, UCX_SEP_API
TRANSPORTS = {
    "sep_mlx5":       ("sep_mlx5", "sep_mlx5", "dv"),
    "sep_mlx5 wr":    ("sep_mlx5", "sep_mlx5", "wr"),
    "rc_mlx5":        ("rc_mlx5", "rc_x", ""),
    "rc_verbs":       ("rc_verbs", "rc_v", ""),
}

# ... and with a bounded number of queue pairs, if asked for
BOUNDED = {"sep_mlx5 8": "8"}
TRANSPORTS |= {name: TRANSPORTS["sep_mlx5"] for name in BOUNDED}

LIBRARIES = ("mpich", "openmpi")
PEERS, QUICK_PEERS, MOST_PEERS = 1024, 128, 4096
RANKS, QUICK_RANKS = (2, 4, 8, 16, 32), (2, 4)

# Of a process of peers on UCP
MOST_WORKERS = 4

# The slope begins where what happens only once does not count any more
FIRST_OF_SLOPE = 64

# How far test/mpi/growth.c goes, and what that is called
INIT, RING, ALL = STEPS = ("init", "ring", "all")
BARRIER = "barrier"
# When it has snapshots of the heap taken
MOMENTS = (INIT, RING, ALL, "finalized")
PEAK = "peak"


class GrowthError(Exception):
    """Something could not be measured."""


# -- what programs print and write ------------------------------------------

@dataclass(frozen=True)
class Stage:
    """A line of bench/uct_peers or ucp_peers, see bench/peer_stage.h."""
    name: str           # open, create, use
    endpoints: int
    heap: int
    mapped: int
    anonymous: int


def read_stages(text):
    """(process id, stages) of what bench/uct_peers or ucp_peers prints."""
    pid, stages = None, []
    for line in text.splitlines():
        words = line.split()
        try:
            if words[:1] == ["pid"]:
                pid = int(words[1])
            else:
                stages.append(Stage(words[0], *map(int, words[1:])))
        except (IndexError, ValueError, TypeError) as error:
            raise GrowthError(f"there is no stage in {line!r}") from error
    if pid is None or not stages or stages[0].name != "open":
        raise GrowthError("no stages were printed")
    return pid, stages


def read_resources(text, pid):
    """Objects of a process in "mlx5sim-stat --json --detail", and the requests
    of its UD queue pairs: those are for control messages only."""
    for each in json.loads(text)["processes"]:
        if each["pid"] == pid:
            return {"qps": each["qps"], "cqs": each["cqs"],
                    "uars": each["uars"],
                    "control": sum(qp["wqes"] for qp in each["qp_list"]
                                   if qp["type"] == "UD")}
    raise GrowthError(f"the device has no process {pid}")


@dataclass(frozen=True)
class Snapshot:
    """Of massif."""
    time: int
    heap: int           # bytes that were asked for, and of administration
    is_peak: bool


def read_massif(text):
    """Snapshots of massif's output."""
    found, fields = [], {}
    if "snapshot=" not in text:
        raise GrowthError("massif wrote no snapshots")
    for line in text.splitlines():
        name, is_field, value = line.partition("=")
        if not is_field or line.startswith((" ", "#")):
            continue
        fields[name] = value
        if name != "heap_tree":
            continue
        try:
            found.append(Snapshot(
                int(fields["time"]), int(fields["mem_heap_B"]) +
                int(fields["mem_heap_extra_B"]), value == "peak"))
        except (KeyError, ValueError) as error:
            raise GrowthError(f"massif's snapshot {fields.get('snapshot')} is "
                              "not complete") from error
        fields = {}
    if not found or fields:
        raise GrowthError("massif's last snapshot is not complete")
    return found


def highest(snapshots):
    """Most heap that was in use."""
    return max(snapshot.heap for snapshot in snapshots)


def over_time(snapshots, parts=10):
    """[(percent of the time, heap)]: the heap at equal distances of time, each
    as of the last snapshot before it."""
    last = snapshots[-1].time
    curve = []
    for part in range(parts + 1):
        before = [snapshot.heap for snapshot in snapshots
                  if snapshot.time * parts <= last * part]
        curve.append((100 * part // parts, before[-1] if before else 0))
    return curve


def slope(values, first=0):
    """What one more adds, of {number: value}: between the smallest number from
    first on, and the largest one."""
    numbers = sorted(number for number in values if number >= first)
    if len(numbers) < 2:
        raise GrowthError("too few numbers for a slope")
    low, high = numbers[0], numbers[-1]
    return (values[high] - values[low]) / (high - low)


# -- jobs of MPI -------------------------------------------------------------

@dataclass(frozen=True)
class Setting:
    """A job of test/mpi/growth.c; what endpoints.Runner needs to know of it."""
    library: str
    transport: str
    ranks: int
    until: str = ALL
    program: str = "growth"
    seconds: float = 0.0
    pages: int = 0

    def impossible(self):
        return ""

    def is_planned(self):
        return False

    def environment(self):
        _, tls, api = TRANSPORTS[self.transport]
        env = {"UCX_TLS": tls}
        if api:
            env["UCX_SEP_API"] = api
        if self.transport in BOUNDED:
            env["UCX_SEP_MAX_QPS"] = BOUNDED[self.transport]
        return env

    def arguments(self):
        return ["--until", self.until]

    @property
    def label(self):
        return f"{self.library}, {self.ranks} processes, {self.transport}"


class Runner(endpoints.Runner):
    """Runs jobs of MPI, with a tool for the first process or without."""

    def __init__(self, build_dir, launcher, ucx=None, patience=1):
        super().__init__(build_dir, launcher, patience=patience)
        self.ucx = ucx

    def environment(self, setting, instance, pause):
        env = super().environment(setting, instance, pause)
        if self.ucx:
            env["LD_LIBRARY_PATH"] = os.path.join(self.ucx, "lib")
        # Thirty processes on two processors take turns
        env["UCX_SEP_CM_TIMEOUT"] = "2s"
        # ... and one that valgrind runs may not answer for half a minute, which
        # rc_mlx5 takes for its death
        env["UCX_UD_MLX5_TIMEOUT"] = "600s"
        return env

    def front(self, setting):
        return [self.tool("sep-run"), "--only"] \
            if setting.transport.startswith("sep_mlx5") else []

    def argv(self, setting):
        return self.tooled(setting, ())

    def tooled(self, setting, tool):
        program = [self.binary(setting), *setting.arguments()]
        words = [self.tool("mlx5sim-run"), *self.launcher]
        if not tool:
            return words + ["-n", str(setting.ranks), *self.front(setting),
                            *program]
        return words + ["-n", "1", *self.front(setting), *tool, *program, ":",
                        "-n", str(setting.ranks - 1), *self.front(setting),
                        *program]

    def run_tool(self, setting, tool, extra):
        """Run a job with a tool for rank 0: its report."""
        with device.SoftwareDevice(self.build_dir) as instance:
            env = self.environment(setting, instance, "")
            del env["SEP_JOB_PAUSE"]
            env.update(extra)
            result = process.run(self.tooled(setting, tool),
                                 300 * self.patience, env)
            leaks = instance.leaks()
        job = jobs.Job(setting.library, setting.program, setting.ranks)
        status, why, report = jobs.judge(job, result)
        if status != "pass" or leaks:
            raise GrowthError(f"{setting.label}: {why or leaks}")
        return report


# -- measuring ---------------------------------------------------------------

PEER_COLUMNS = ("transport", "endpoints", "used", "heap", "mapped", "anonymous",
                "qps", "cqs", "uars", "control", "instructions")
INIT_COLUMNS = ("library", "processes", "transport", "init_ms", "first_ms",
                "ratio", "instructions", "qps_init", "qps_ring", "qps_all")
START_COLUMNS = ("library", "processes", "transport", "instructions", "control",
                 "qps", "most_qps")
HEAP_COLUMNS = ("library", "processes", "transport", "when", "heap")


class Bench:
    """Measures, with the programs of a build."""

    def __init__(self, build_dir, top, ucx=None, log_dir=None, repeat=3,
                 patience=1):
        self.build_dir = os.path.abspath(build_dir)
        self.top = top
        self.ucx = ucx
        self.repeat = repeat
        self.patience = patience
        self.log_dir = log_dir or tempfile.mkdtemp(prefix="sep-growth.")
        os.makedirs(self.log_dir, exist_ok=True)

    def tool(self, name):
        return os.path.join(self.build_dir, "bin", name)

    def results(self, *words):
        """An empty directory for the files of a measurement."""
        path = os.path.join(self.log_dir, "-".join(
            str(word).replace(" ", "-") for word in words))
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
        return path

    def runner(self, library):
        launcher = shutil.which(jobs.LAUNCHERS[library])
        if launcher is None:
            raise GrowthError(f"{jobs.LAUNCHERS[library]} is not installed")
        runner = Runner(self.build_dir, jobs.launch(library, launcher),
                        self.ucx, self.patience)
        program = runner.binary(Setting(library, "rc_mlx5", 2))
        if not os.access(program, os.X_OK):
            raise GrowthError(f"{program} is missing (run make job-programs in "
                              f"{self.build_dir})")
        return runner

    def instructions(self, where, calls):
        """{name: instructions per call}, of callgrind's files in a
        directory."""
        counts = os.path.join(where, "counts")
        with open(counts, "w", encoding="utf-8") as file:
            file.writelines(f"{name} {number}\n" for name, number in
                            calls.items())
        result = process.run(
            [os.path.join(self.top, "bench", "callgrind_insn.py"), "process",
             counts, *sorted(glob.glob(f"{where}/callgrind.out*"))], 120)
        if not result.ok:
            raise GrowthError(result.why() + ": " + result.stderr.strip())
        return {name: float(number) for name, number in
                (line.split("\t") for line in result.stdout.splitlines())}

    # -- peers -----------------------------------------------------------

    @staticmethod
    def peers_arguments(transport, count, is_ucp):
        """bench/uct_peers or ucp_peers, and its arguments."""
        uct_name = TRANSPORTS[transport][0]
        if not is_ucp:
            return ["uct_peers", "-t", uct_name, "-d", DEVICE, "-n", count]
        # Endpoints of sep_mlx5 to the same worker share a connection, and others'
        # workers take much memory
        workers = count if uct_name == "sep_mlx5" else MOST_WORKERS
        return ["ucp_peers", "-n", count, "-w", workers]

    def run_peers(self, transport, count, where, tool=(), is_ucp=False):
        """What bench/uct_peers or ucp_peers prints."""
        uct_name, tls, api = TRANSPORTS[transport]
        program, *arguments = self.peers_arguments(transport, count, is_ucp)
        argv = [self.tool("mlx5sim-run")]
        if uct_name == "sep_mlx5":
            argv += [self.tool("sep-run"), "--only"]
        argv += [*tool, os.path.join(self.build_dir, "bench", program),
                 *arguments]
        if not tool:
            stat = f"'{self.tool('mlx5sim-stat')}' --json --detail"
            argv += ["-s", stat, "-o", os.path.join(where, "of")]
        with device.SoftwareDevice(self.build_dir) as instance:
            env = {name: value for name, value in os.environ.items()
                   if not name.startswith("UCX_") and name != "LD_PRELOAD"}
            env.update(instance.environment())
            if self.ucx:
                env["LD_LIBRARY_PATH"] = os.path.join(self.ucx, "lib")
            env["UCX_WARN_UNUSED_ENV_VARS"] = "n"
            if api:
                env["UCX_SEP_API"] = api
            if transport in BOUNDED:
                env["UCX_SEP_MAX_QPS"] = BOUNDED[transport]
            if is_ucp:
                env["UCX_TLS"] = tls
            result = process.run(argv, 300 * self.patience, env)
            leaks = instance.leaks()
        if not result.ok or leaks:
            raise GrowthError(f"{transport}, {count} peers: {result.why()}"
                              f"{jobs.last_words(result)} {leaks}")
        return result.stdout

    def peer_rows(self, transport, count, is_ucp=False):
        """Rows of PEER_COLUMNS: first with no endpoint used, then with all
        there."""
        where = self.results("peers", transport, count)
        pid, stages = read_stages(self.run_peers(transport, count, where,
                                                 is_ucp=is_ucp))
        counted, calls = self.results("insn", transport, count), {}
        self.run_peers(transport, count, counted, (
            *CALLGRIND, f"--callgrind-out-file={counted}/callgrind.out"),
            is_ucp)
        former = {}
        for stage in stages[1:]:
            calls[f"{stage.name}.{stage.endpoints}"] = \
                stage.endpoints - former.get(stage.name, 0)
            former[stage.name] = stage.endpoints
        instructions = self.instructions(counted, calls)

        start = stages[0]
        for stage in stages:
            name = f"{stage.name}.{stage.endpoints}"
            with open(os.path.join(where, f"of.{name}"),
                      encoding="utf-8") as file:
                resources = read_resources(file.read(), pid)
            created, used = stage.endpoints, 0
            if stage.name == "use":
                created, used = count, stage.endpoints
            yield [transport, created, used, stage.heap - start.heap,
                   stage.mapped - start.mapped,
                   stage.anonymous - start.anonymous, *resources.values(),
                   round(instructions[name]) if name in instructions else "-"]

    # -- MPI_Init --------------------------------------------------------

    def queue_pairs(self, runner, library, transport, ranks, until):
        """Least and most queue pairs of the processes of a job that has come
        so far, and its report."""
        setting = Setting(library, transport, ranks, until)
        outcome = runner.run(setting)
        if outcome.status != "pass":
            raise GrowthError(f"{setting.label}: {outcome.detail}")
        numbers = [found.taken["qps"] for found in outcome.found]
        text = str(max(numbers))
        if min(numbers) != max(numbers):
            text = f"{min(numbers)}-{max(numbers)}"
        return text, {name: value for name, _, value, _ in
                      outcome.report.metrics}

    def init_instructions(self, runner, library, transport, ranks, until=RING):
        """Of rank 0 from MPI_Init() to its first messages."""
        where = self.results("init", library, transport, ranks)
        setting = Setting(library, transport, ranks, until)
        runner.run_tool(setting, (
            *CALLGRIND, f"--callgrind-out-file={where}/callgrind.out"), {})
        return self.instructions(where, {"first": 1})["first"]

    def init_rows(self, library, ranks, transports):
        """Rows of INIT_COLUMNS. Runs of the transports alternate; the ratio is
        that of init and first message to the last transport's."""
        runner = self.runner(library)
        times = {transport: {INIT: [], "first": []} for transport in transports}
        qps = {transport: {} for transport in transports}
        for turn in range(max(self.repeat, len(STEPS))):
            for transport in transports:
                until = STEPS[turn % len(STEPS)]
                qps[transport][until], metrics = self.queue_pairs(
                    runner, library, transport, ranks, until)
                for name, values in times[transport].items():
                    if name in metrics:
                        values.append(metrics[name])
        totals = {transport: sum(statistics.median(values) for values in
                                 found.values())
                  for transport, found in times.items()}
        for transport in transports:
            found = times[transport]
            yield [library, ranks, transport,
                   *(f"{statistics.median(found[name]):.1f}" for name in found),
                   f"{totals[transport] / totals[transports[-1]]:.2f}",
                   round(self.init_instructions(runner, library, transport,
                                                ranks)),
                   *(qps[transport][until] for until in STEPS)]

    def start_row(self, library, ranks, transport):
        """Row of START_COLUMNS: from MPI_Init() to a first barrier."""
        runner = self.runner(library)
        setting = Setting(library, transport, ranks, BARRIER)
        outcome = runner.run(setting)
        if outcome.status != "pass":
            raise GrowthError(f"{setting.label}: {outcome.detail}")
        qps = [found.taken["qps"] for found in outcome.found]
        control = sum(found.control for found in outcome.found)
        return [library, ranks, transport,
                round(self.init_instructions(runner, library, transport, ranks,
                                             BARRIER)),
                f"{control / ranks:.1f}", f"{sum(qps) / ranks:.1f}", max(qps)]

    # -- heap ------------------------------------------------------------

    def heap_rows(self, library, ranks, transport):
        """Rows of HEAP_COLUMNS: the heap of rank 0 at the moments that the
        program names, its peak, and over time in percent of instructions."""
        runner = self.runner(library)
        where = self.results("heap", library, transport, ranks)
        setting = Setting(library, transport, ranks)
        runner.run_tool(setting, (
            *MASSIF, f"--massif-out-file={where}/massif.out"),
            {"SEP_GROWTH_HEAP": os.path.join(where, "at")})
        head = [library, ranks, transport]
        for moment in MOMENTS:
            yield head + [moment, self.massif(where, f"at.{moment}")[-1].heap]
        snapshots = self.massif(where, "massif.out")
        yield head + [PEAK, highest(snapshots)]
        for percent, heap in over_time(snapshots):
            yield head + [f"{percent} %", heap]

    @staticmethod
    def massif(where, name):
        path = os.path.join(where, name)
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                return read_massif(file.read())
        except (OSError, GrowthError) as error:
            raise GrowthError(f"{path}: {error}") from error
