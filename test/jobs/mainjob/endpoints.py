# SPDX-License-Identifier: BSD-3-Clause
"""MPI jobs with an endpoint per thread, and the proof that each has one.

test/mpi/endpoints.c, connect.c or streams.c waits when it has used all it will use. Then
the device tells what each process has of it, which is compared with what sep_info
plans for a process with that many workers.
"""

import glob
import json
import os
import re
import tempfile
import time
from dataclasses import dataclass, field

from . import device, jobs, process

# What of a plan is compared, and how the device calls it
RESOURCES = (("contexts", ("contexts",)),
             ("uars", ("uars",)),
             ("uuars_in_use", ("uuars_used",)),
             ("qps", ("qps",)), ("cqs", ("cqs",)), ("srqs", ("srqs",)))

# The busiest uUAR has at most so many times the doorbells of the least busy one:
# threads do the same steps, from different ones on
MOST_UNEVEN = 3.0


class EndpointsError(Exception):
    """What was to be looked at did not come about."""


@dataclass(frozen=True)
class Setting:
    """One way to run a program."""
    library: str                # mpich or openmpi
    threads: int                # of connect.c: interfaces; of streams.c: streams
    transport: str = "sep_mlx5"
    category: str = "dynamic"
    cq_sharing: int = 1
    postlist: int = 1
    ranks: int = 2
    two_sided: bool = False
    seconds: float = 0.0
    program: str = "endpoints"  # or connect, or streams
    pages: int = 0              # UAR pages of the device; 0: as many as usual

    def impossible(self):
        """Why the transport refuses this, or an empty string."""
        if self.transport != "sep_mlx5":
            return ""
        if self.cq_sharing > 1 and self.category == "mpi_everywhere":
            return "a CQ belongs to a context, and each worker has its own"
        return ""

    def environment(self):
        tls = {"sep_mlx5": "sep_mlx5", "rc_mlx5": "rc_x"}[self.transport]
        env = {"UCX_TLS": tls}
        if self.transport == "sep_mlx5":
            env.update({"UCX_SEP_CATEGORY": self.category,
                        "UCX_SEP_CQ_SHARING": str(self.cq_sharing),
                        "UCX_SEP_TX_POSTLIST": str(self.postlist)})
        if self.program == "streams":
            env["MPIR_CVAR_CH4_RESERVE_VCIS"] = str(self.threads)
        elif self.library == "mpich":
            env["MPIR_CVAR_CH4_NUM_VCIS"] = str(self.threads)
        return env

    def workers(self):
        """Of a process. Besides those of streams, there is one interface for all
        other communication."""
        return self.threads + 1 if self.program == "streams" else self.threads

    def arguments(self):
        if self.program == "connect":
            return ["--interfaces", str(self.threads)]
        if self.program == "streams":
            return ["--quick", "--threads", str(self.threads)]
        words = ["--quick", "--threads", str(self.threads)]
        if self.two_sided:
            words.append("--two-sided")
        if self.seconds:
            words += ["--seconds", str(self.seconds)]
        return words

    def peers(self):
        """Interfaces that each worker of 2 ranks talks to, if every thread has
        one: that of its communicator in the other rank, and with a window its
        own, which accumulating in its own memory takes."""
        is_one_sided = self.program == "endpoints" and not self.two_sided
        return 2 if is_one_sided else 1

    def is_planned(self):
        """Whether it is known how many workers there will be, and how many
        peers each has. Among more ranks that depends on the collectives."""
        return self.transport == "sep_mlx5" and self.library == "mpich" and \
            self.ranks == 2 and not self.pages


@dataclass
class Endpoints:
    """What a process has of the device."""
    taken: dict = field(default_factory=dict)      # see RESOURCES
    remote: int = 0             # RC queue pairs to other processes
    to_self: int = 0            # to its own
    silent: int = 0             # queue pairs that have not rung: receivers
    # Doorbells by uUAR, of queue pairs to other processes
    rung: dict = field(default_factory=dict)
    wqes: int = 0
    control: int = 0            # of them, on UD queue pairs

    def unevenness(self):
        """Doorbells of the busiest uUAR by those of the least busy one."""
        counts = self.rung.values()
        return max(counts) / max(min(counts), 1) if counts else 0.0


def categories(build_dir):
    """Names of the sharing categories, as the transport lists them."""
    program = os.path.join(build_dir, "bin", "sep_info")
    result = process.run([program, "-l", "--json"], process.PATIENCE)
    if not result.ok:
        raise EndpointsError(f"{program} -l: {result.why()}: "
                             f"{result.stderr.strip()}")
    return [row["category"] for row in json.loads(result.stdout)["categories"]]


def rings(qp):
    return qp["doorbells"] + qp["blueflames"]


def read_snapshot(text, program):
    """Processes of "mlx5sim-stat --json --detail" that run a program."""
    found = []
    for each in json.loads(text)["processes"]:
        if not each["live"] or not each["name"].startswith(program):
            continue
        mine = Endpoints(wqes=each["wqes"])
        mine.taken = {name: sum(each[part] for part in parts)
                      for name, parts in RESOURCES}
        numbers = {qp["qpn"] for qp in each["qp_list"]}
        mine.control = sum(qp.get("wqes", 0) for qp in each["qp_list"]
                           if qp["type"] == "UD")
        mine.silent = sum(rings(qp) == 0 for qp in each["qp_list"])
        for qp in each["qp_list"]:
            if qp["type"] != "RC":
                continue
            if qp["dest_qpn"] in numbers:
                mine.to_self += 1
                continue
            mine.remote += 1
            place = (qp["uar"], qp["uuar_register"])
            if rings(qp):
                mine.rung[place] = mine.rung.get(place, 0) + rings(qp)
        found.append(mine)
    return found


def read_plan(text, regime):
    """Total of the one plan of a regime in "sep_info -p --json"."""
    plans = [plan for plan in json.loads(text)["plans"] if
             plan["regime"] == regime]
    if len(plans) != 1:
        raise EndpointsError(f"sep_info made {len(plans)} plans of the {regime} "
                             "regime")
    return plans[0]["total"]


def differences(mine, planned):
    """What a process has otherwise than planned, in words. Which uUAR a queue
    pair has is seen when it rings; of those that only receive, as half of them
    with a context per worker, the device knows no more than the page."""
    words = []
    for name, _ in RESOURCES:
        unseen = mine.silent if name == "uuars_in_use" else 0
        if not planned[name] - unseen <= mine.taken[name] <= planned[name]:
            words.append(f"{name}: {mine.taken[name]} instead of "
                         f"{planned[name]}")
    return words


# What a process has logged, in a file of its own: on standard output, lines of
# several would be mixed
LOG_FILE = "ucx.%p.log"
_MESSAGE = re.compile(r"\sUCX\s+(?:WARN|ERROR|FATAL)\s+(.*)")


def read_logs(directory):
    """Warnings and worse of each process that has logged some."""
    found = []
    for path in sorted(glob.glob(os.path.join(directory, "ucx.*.log"))):
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in _MESSAGE.findall(file.read())]
        if lines:
            found.append(lines)
    return found


def complaints_of_shortage(setting, said):
    """What is wrong with what the processes of a job have said that has fewer
    pages than it would like: each says once what it has instead."""
    words = []
    if len(said) != setting.ranks:
        words.append(f"{len(said)} processes have said that there are too few "
                     f"UAR pages, {setting.ranks} should")
    for lines in said:
        if len(lines) > 1:
            words.append(f"{len(lines)} messages instead of one")
        words += [line for line in lines if not re.search(
            r'there is no UAR page left for a worker of sharing category '
            r'"dynamic", using "\w+" \(said once\)$', line)]
    return words


def complaints(setting, found, planned):
    """What is wrong with what the processes of a job have."""
    if len(found) != setting.ranks:
        return [f"{len(found)} processes use the device, {setting.ranks} should"]
    words = []
    for rank, mine in enumerate(found):
        if planned:
            words += [f"process {rank}: {each}" for each in
                      differences(mine, planned)]
            if setting.program == "endpoints" and \
                    mine.unevenness() > MOST_UNEVEN:
                words.append(f"process {rank}: doorbells of its uUARs differ by "
                             f"{mine.unevenness():.1f} times")
    return words


@dataclass
class Outcome:
    """Of one setting."""
    setting: Setting
    status: str                 # pass, fail, skip
    detail: str = ""
    found: list = field(default_factory=list)
    report: jobs.Report = None


class Runner:
    """Runs settings, each on a device of its own."""

    def __init__(self, build_dir, launcher, programs=None, patience=1):
        self.build_dir = os.path.abspath(build_dir)
        self.launcher = launcher        # argv of mpiexec and its options
        # Where the programs are, NAME.LIBRARY
        self.programs = programs or os.path.join(self.build_dir, "test", "mpi")
        self.patience = patience

    def binary(self, setting):
        return os.path.join(self.programs,
                            f"{setting.program}.{setting.library}")

    def tool(self, name):
        return os.path.join(self.build_dir, "bin", name)

    def plan(self, setting, regime):
        env = {name: value for name, value in os.environ.items()
               if not name.startswith(("UCX_", "MLX5"))}
        env.update({name: value for name, value in
                    setting.environment().items() if
                    name.startswith("UCX_SEP")})
        result = process.run(
            [self.tool("sep_info"), "-p", "--json", "-r", regime, "-c",
             setting.category, "-w", str(setting.workers()), "-n",
             str(setting.peers())], process.PATIENCE, env)
        if not result.ok:
            raise EndpointsError(result.why() + ": " + result.stderr.strip())
        return read_plan(result.stdout, regime)

    def environment(self, setting, instance, pause):
        env = {name: value for name, value in os.environ.items()
               if not name.startswith("UCX_") and name != "LD_PRELOAD"}
        env.update(jobs.ENVIRONMENT)
        env.update(instance.environment())
        env.update(setting.environment())
        env["UCX_WARN_UNUSED_ENV_VARS"] = "n"
        env["SEP_JOB_PAUSE"] = pause
        if setting.pages:
            env["MLX5SIM_UARS"] = str(setting.pages)
            env["UCX_LOG_FILE"] = os.path.join(pause, LOG_FILE)
        return env

    def argv(self, setting):
        words = [self.tool("mlx5sim-run")] + self.launcher + \
            ["-n", str(setting.ranks)]
        if setting.transport == "sep_mlx5":
            words += [self.tool("sep-run"), "--only"]
        return words + [self.binary(setting)] + setting.arguments()

    def run(self, setting):
        """Run one setting and judge it."""
        why = setting.impossible()
        if why:
            return Outcome(setting, "skip", why)
        with device.SoftwareDevice(self.build_dir) as instance, \
                tempfile.TemporaryDirectory(prefix="sep-endpoints.") as pause:
            outcome = self.run_on(setting, instance, pause)
            leaks = instance.leaks()
            if leaks and outcome.status == "pass":
                outcome.status, outcome.detail = "fail", leaks
        return outcome

    def run_on(self, setting, instance, pause):
        timeout = (120 + setting.seconds) * self.patience
        running = process.Process(self.argv(setting),
                                  self.environment(setting, instance, pause))
        deadline = time.monotonic() + timeout
        try:
            text = self.wait_for_pause(setting, instance, pause, running,
                                       deadline)
        except BaseException:
            running.finish()
            raise
        result = running.wait(deadline - time.monotonic())
        job = jobs.Job(setting.library, setting.program, setting.ranks)
        status, detail, report = jobs.judge(job, result)
        outcome = Outcome(setting, status, detail, report=report)
        if status != "pass":
            return outcome
        if text is None:
            return Outcome(setting, "fail", "the program did not wait",
                           report=report)
        outcome = self.judge(outcome, text, instance)
        if outcome.status == "pass" and setting.pages:
            words = complaints_of_shortage(setting, read_logs(pause))
            if words:
                outcome.status, outcome.detail = "fail", "; ".join(words)
        return outcome

    def wait_for_pause(self, setting, instance, pause, running, deadline):
        """What the device says when all ranks wait, or None if they do not."""
        files = [os.path.join(pause, f"rank.{rank}") for rank in
                 range(setting.ranks)]
        while not all(os.path.exists(path) for path in files):
            if running.poll() is not None or time.monotonic() > deadline:
                return None
            time.sleep(0.05)
        stat = instance.stat("--json", "--detail")
        with open(os.path.join(pause, "go"), "w", encoding="utf-8"):
            pass
        if not stat.ok:
            raise EndpointsError(stat.why() + ": " + stat.stderr.strip())
        return stat.stdout

    def judge(self, outcome, text, instance):
        """Compare a job that did its work with the plan for it."""
        setting = outcome.setting
        # The kernel keeps 15 characters of a process's name
        outcome.found = read_snapshot(
            text, os.path.basename(self.binary(setting))[:15])
        planned = None
        if setting.is_planned():
            planned = self.plan(setting,
                                json.loads(text)["devices"][0]["uar_mode"])
        words = complaints(setting, outcome.found, planned)
        words += device.check_traffic(
            dict.fromkeys(device.COUNTERS, 0), instance.counters(),
            outcome.report.messages, outcome.report.payload)
        if words:
            outcome.status, outcome.detail = "fail", "; ".join(words)
        return outcome
