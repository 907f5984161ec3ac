# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of applications with an interface per thread: what they take of the
device, what the device does per message, and what a model makes of that.

The programs app_kernels of test/mpi, test/shmem and test/ucp wait before and
behind what counts. Then the device is looked at.
"""

import json
import os
import shutil
import tempfile
import time
from dataclasses import dataclass, field

from . import device, endpoints, jobs, process

PROGRAM = "app_kernels"
KERNELS = ("dgemm", "stencil")
APIS = ("ucp", "mpich", "openmpi", "oshmem")
ADAPTERS = ("cx4", "cx6")

# Of the device, per message
WORK = ("wqes", "doorbells", "blueflames", "dma_reads", "dma_writes", "cqes")

# How the paper measured: writes of 2 bytes, inline, 128 under way
PAPER_PREDICTION = ("--path", "inline", "--depth", "128", "--bytes", "2")

# Requests that a thread has under way, by kernel and sides, as it waits
DEPTHS = {("dgemm", 1): 2, ("dgemm", 2): 2,
          ("stencil", 1): 4, ("stencil", 2): 2}

# Of Zambre, Chandramowlishwaran and Balaji, Scalable Communication Endpoints for
# MPI+Threads Applications (2018): 16 threads of a node; contexts, UAR pages,
# uUARs, and the rate of the global array in percent of MPI everywhere
PAPER = {
    "mpi_everywhere": (16, 128, 256, 100),
    "2xdynamic":      (1, 40, 80, 108),
    "dynamic":        (1, 24, 48, 94),
    "shared_dynamic": (1, 16, 32, 65),
    "static":         (1, 8, 16, 64),
    "mpi_threads":    (1, 8, 16, 3),
}

# Likewise, the rate of the stencil with 16 processes of a thread, and with MPI
# everywhere in one process
PAPER_STENCIL = {
    ("mpi_everywhere", "16.1"): 100, ("2xdynamic", "16.1"): 106,
    ("dynamic", "16.1"): 106, ("shared_dynamic", "16.1"): 106,
    ("static", "16.1"): 100, ("mpi_threads", "16.1"): 87,
    ("mpi_everywhere", "1.16"): 71,
}


class KernelError(Exception):
    """Something can't be found out."""


@dataclass(frozen=True)
class Shape:
    """Processes and threads of a node, of which there are two."""
    processes: int
    threads: int

    @property
    def ranks(self):
        return 2 * self.processes

    def __str__(self):
        return f"{self.processes}.{self.threads}"


def read_shape(text):
    """From "4.4": processes and the threads of each."""
    words = text.split(".")
    if len(words) != 2 or not all(word.isdigit() for word in words):
        raise ValueError(f"'{text}' is no shape; 4.8 is 4 processes of 8 "
                         "threads per node")
    shape = Shape(int(words[0]), int(words[1]))
    if not 1 <= shape.processes <= 32 or not 1 <= shape.threads <= 64:
        raise ValueError(f"'{text}': from 1 to 32 processes of 1 to 64 threads "
                         "are possible")
    return shape


@dataclass(frozen=True)
class Setting:
    """One job."""
    kernel: str
    api: str
    sided: int
    shape: Shape
    category: str
    regime: str = "legacy"
    options: tuple = ()         # of the program

    def environment(self, has_interfaces=False):
        """has_interfaces: MPICH has one per thread, if it is told to."""
        env = {"UCX_TLS": "sep_mlx5", "UCX_SEP_CATEGORY": self.category,
               "MLX5SIM_UAR_MODE": self.regime}
        if self.api == "mpich" and has_interfaces:
            env["MPIR_CVAR_CH4_NUM_VCIS"] = str(self.shape.threads)
        return env

    def arguments(self, has_interfaces=False):
        words = [self.kernel, "--threads", str(self.shape.threads),
                 *self.options]
        if self.api == "mpich" and has_interfaces:
            words.append("--need-interfaces")
        return words + (["--two-sided"] if self.sided == 2 else [])

    def peers(self):
        """Interfaces that each one talks to. With a window, MPICH connects it
        to itself as well."""
        itself = int(self.api == "mpich" and self.sided == 1)
        if self.kernel == "stencil":
            return min(2, self.shape.ranks - 1) + itself
        return self.shape.ranks - 1 + itself

    def impossible(self):
        if self.api == "oshmem" and self.sided == 2:
            return "OpenSHMEM has one-sided operations only"
        return ""

    def paper(self):
        """Contexts, UAR pages, uUARs and rate in the paper; None: not there."""
        row = PAPER.get(self.category)
        if row is None or self.shape.processes * self.shape.threads != 16:
            return (None,) * 4
        # A context per thread is one, however many processes they are in
        is_there = self.shape.processes == 1 or \
            self.category == "mpi_everywhere"
        taken = row[:3] if is_there else (None,) * 3
        if self.kernel == "stencil":
            return taken + (PAPER_STENCIL.get((self.category,
                                               str(self.shape))),)
        return taken + (row[3] if self.shape.processes == 1 else None,)


@dataclass
class Outcome:
    """Of one job."""
    setting: Setting
    status: str                 # pass, fail, skip
    detail: str = ""
    notes: list = field(default_factory=list)
    found: list = field(default_factory=list)   # endpoints.Endpoints
    uuars: int = 0              # of all processes, used or not
    plan: str = "-"             # equal, differs; -: there is none
    messages: int = 0
    payload: int = 0
    work: dict = field(default_factory=dict)    # of the device, all messages

    @property
    def interfaces(self):
        """Of a process; each has a receive queue."""
        counts = {found.taken["srqs"] for found in self.found}
        return max(counts) if counts else 0

    def taken(self, name):
        """Of a node: half of the processes."""
        return sum(found.taken[name] for found in self.found) // 2

    def per_message(self, name):
        return self.work[name] / self.messages if self.messages else 0.0


def read_kernel_lines(output):
    """Lines "kernel key=value ..." of all processes."""
    found = []
    for line in output.splitlines():
        if line.startswith("kernel "):
            found.append(dict(word.split("=", 1) for word in
                              line.split()[1:]))
    return found


def read_totals(text):
    """What the device has done for all processes."""
    totals = json.loads(text)["totals"]
    return {name: totals.get(name, 0) for name in WORK}


def read_prediction(text, regime, operation):
    """Requests per second in "sep_info -p --json --adapter"."""
    plans = [plan for plan in json.loads(text)["plans"] if
             plan["regime"] == regime]
    if len(plans) != 1:
        raise KernelError(f"sep_info made {len(plans)} plans of the {regime} "
                          "regime")
    return plans[0]["predicted"][operation]["requests_per_second"]


class Runner:
    """Runs jobs, each on a device of its own."""

    def __init__(self, build_dir, mpich=None, programs=None,
                 has_interfaces=False, patience=1):
        self.build_dir = os.path.abspath(build_dir)
        self.mpich = mpich              # prefix of another one
        self.has_interfaces = has_interfaces    # that MPICH, or the installed
        self.programs = programs        # where its program is
        self.patience = patience
        self.answers = {}               # of sep_info

    def tool(self, name):
        return os.path.join(self.build_dir, "bin", name)

    def binary(self, api):
        if api == "mpich" and self.mpich:
            return os.path.join(self.programs, f"{PROGRAM}.mpich")
        return jobs.Job(api, PROGRAM, 2).binary(self.build_dir)

    def launcher(self, api):
        name = jobs.LAUNCHERS[api]
        path = os.path.join(self.mpich, "bin", "mpiexec") \
            if api == "mpich" and self.mpich else shutil.which(name)
        if path is None or not os.access(path, os.X_OK):
            raise KernelError(f"{path or name} is not there")
        return path

    def argv(self, setting):
        words = [self.tool("mlx5sim-run")]
        binary = self.binary(setting.api)
        ranks = ["--ranks", str(setting.shape.ranks)]
        start = [self.tool("sep-run"), "--only", binary]
        if setting.api == "ucp":
            return words + start + setting.arguments() + ranks
        words += jobs.launch(setting.api, self.launcher(setting.api))
        return words + ["-n", str(setting.shape.ranks)] + start + \
            setting.arguments(self.has_interfaces) + \
            jobs.ending(setting.api, PROGRAM)[0]

    def environment(self, setting, instance, pause):
        env = {name: value for name, value in os.environ.items()
               if not name.startswith(("UCX_", "MLX5")) and
               name != "LD_PRELOAD"}
        env.update(jobs.ENVIRONMENT)
        env.update(jobs.ending(setting.api, PROGRAM)[1])
        env.update(instance.environment())
        env.update(setting.environment(self.has_interfaces))
        env["UCX_WARN_UNUSED_ENV_VARS"] = "n"
        env["SEP_JOB_PAUSE"] = pause
        return env

    # -- sep_info ----------------------------------------------------------

    def ask(self, *words):
        """What sep_info -p says, in JSON."""
        if words not in self.answers:
            env = {name: value for name, value in os.environ.items()
                   if not name.startswith(("UCX_", "MLX5"))}
            result = process.run([self.tool("sep_info"), "-p", "--json",
                                  *words], 30, env)
            if not result.ok:
                raise KernelError(result.why() + ": " + result.stderr.strip())
            self.answers[words] = result.stdout
        return self.answers[words]

    def plan(self, setting):
        """Of a process, or None if it is not known what it will open: Open MPI
        has as many workers as it likes, and collectives and contexts of
        OpenSHMEM connect with more than the kernel does."""
        is_known = setting.api == "ucp" or (
            setting.api == "mpich" and self.has_interfaces and
            setting.shape.ranks == 2)
        if not is_known:
            return None
        return endpoints.read_plan(
            self.ask("-r", setting.regime, "-c", setting.category, "-w",
                     str(setting.shape.threads), "-n", str(setting.peers())),
            setting.regime)

    def predict(self, outcome, adapter, category=None):
        """Millions of messages per second of a node: its processes share the
        adapter and nothing else. If threads have no interfaces of their own,
        they share one."""
        setting = outcome.setting
        if category is None:
            category = setting.category
            if outcome.interfaces < setting.shape.threads:
                category = "mpi_threads"
        operation = "read" if (setting.kernel, setting.sided) == \
            ("dgemm", 1) else "write"
        length = max(1, round(outcome.payload / max(outcome.messages, 1)))
        text = self.ask("-r", setting.regime, "-c", category, "-w",
                        str(setting.shape.threads), "--adapter", adapter,
                        "--path", "sep", "--depth",
                        str(DEPTHS[setting.kernel, setting.sided]), "--bytes",
                        str(length))
        return setting.shape.processes * read_prediction(
            text, setting.regime, operation) / 1e6

    def predict_percent(self, outcome, adapter):
        """Of a context per thread."""
        return 100 * self.predict(outcome, adapter) / \
            self.predict(outcome, adapter, "mpi_everywhere")

    def predict_paper(self, setting):
        """Percent of a context per thread, on the paper's adapter and as it
        measured."""
        rates = [read_prediction(self.ask(
            "-r", setting.regime, "-c", category, "-w",
            str(setting.shape.threads), "--adapter", "cx4",
            *PAPER_PREDICTION), setting.regime, "write")
            for category in (setting.category, "mpi_everywhere")]
        return 100 * rates[0] / rates[1]

    # -- jobs --------------------------------------------------------------

    def run(self, setting):
        why = setting.impossible()
        if why:
            return Outcome(setting, "skip", why)
        with device.SoftwareDevice(self.build_dir) as instance, \
                tempfile.TemporaryDirectory(prefix="sep-kernels.") as pause:
            try:
                outcome = self.run_on(setting, instance, pause)
            except (KernelError, endpoints.EndpointsError, OSError) as error:
                return Outcome(setting, "fail", str(error))
            leaks = instance.leaks()
            if leaks and outcome.status == "pass":
                outcome.status, outcome.detail = "fail", leaks
        return outcome

    def run_on(self, setting, instance, pause):
        running = process.Process(self.argv(setting),
                                  self.environment(setting, instance, pause))
        deadline = time.monotonic() + 240 * self.patience
        texts = []
        try:
            for name in ("begin", "end"):
                texts.append(self.look(setting, instance, pause, name, running,
                                       deadline))
        except BaseException:
            running.finish()
            raise
        result = running.wait(deadline - time.monotonic())
        job = jobs.Job(setting.api, PROGRAM, setting.shape.ranks)
        status, detail, report = jobs.judge(job, result)
        outcome = Outcome(setting, status, detail, report.notes)
        if status != "pass":
            return outcome
        if None in texts:
            outcome.status, outcome.detail = "fail", "the program did not wait"
            return outcome
        self.judge(outcome, texts, read_kernel_lines(result.stdout))
        words = device.check_traffic(
            dict.fromkeys(device.COUNTERS, 0), instance.counters(),
            report.messages, report.payload)
        if words and outcome.status == "pass":
            outcome.status, outcome.detail = "fail", "; ".join(words)
        return outcome

    def look(self, setting, instance, pause, name, running, deadline):
        """What the device says when all processes wait, or None if they do
        not."""
        files = [os.path.join(pause, f"{name}.{rank}") for rank in
                 range(setting.shape.ranks)]
        while not all(os.path.exists(path) for path in files):
            if running.poll() is not None or time.monotonic() > deadline:
                return None
            time.sleep(0.05)
        stat = instance.stat("--json", "--detail")
        with open(os.path.join(pause, f"{name}.go"), "w", encoding="utf-8"):
            pass
        if not stat.ok:
            raise KernelError(stat.why() + ": " + stat.stderr.strip())
        return stat.stdout

    def judge(self, outcome, texts, lines):
        """Fill in what was found between two looks at the device."""
        setting = outcome.setting
        before, after = (read_totals(text) for text in texts)
        outcome.work = {name: after[name] - before[name] for name in WORK}
        outcome.messages = sum(int(line["messages"]) for line in lines)
        outcome.payload = sum(int(line["bytes"]) for line in lines)
        # The kernel keeps 15 characters of a process's name
        name = os.path.basename(self.binary(setting.api))[:15]
        outcome.found = endpoints.read_snapshot(texts[1], name)
        outcome.uuars = sum(each["uuars"] for each in
                            json.loads(texts[1])["processes"] if
                            each["live"] and each["name"].startswith(name))
        words = []
        if len(lines) != setting.shape.ranks:
            words.append(f"{len(lines)} processes said what they did, "
                         f"{setting.shape.ranks} should")
        if len(outcome.found) != setting.shape.ranks:
            words.append(f"{len(outcome.found)} processes use the device, "
                         f"{setting.shape.ranks} should")
        if outcome.work["wqes"] < outcome.messages:
            words.append(f"the device executed {outcome.work['wqes']} WQEs for "
                         f"{outcome.messages} messages")
        planned = self.plan(setting)
        if planned:
            different = [f"process {rank}: {each}"
                         for rank, mine in enumerate(outcome.found)
                         for each in endpoints.differences(mine, planned)]
            outcome.plan = "differs" if different else "equal"
            words += different
        if words:
            outcome.status, outcome.detail = "fail", "; ".join(words)
