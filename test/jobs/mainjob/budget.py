# SPDX-License-Identifier: BSD-3-Clause
"""Programs of the main job among many ranks that may hold few queue pairs each,
and many endpoints of one process.

Each row has a device of its own. While it runs, the device tells how many RC
queue pairs each process holds.
"""

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from dataclasses import dataclass

from . import cli, device, growth, jobs, process

# All that a library has. "connect" has all ranks send to all others at once.
PROGRAMS = {
    "mpich": ("p2p", "collectives", "rma", "threads", "endpoints", "connect",
              "kernels", "app_kernels"),
    "oshmem": ("put_get", "atomics", "sync", "app_kernels"),
}
PROGRAMS["openmpi"] = PROGRAMS["mpich"]
ARGUMENTS = {"connect": ["--interfaces", "1", "--all"]}

# With more ranks than this, an endpoint per thread is one for each of two threads
# instead of four: all of them poll
MANY_RANKS = 16
FEW_THREADS = ["--threads", "2"]

# Ranks that share few processors take turns
CM_TIMEOUT = "2s"
# What they wait for comes from one that is not running
YIELD = os.path.join("test", "ucp", "yield.so")
PEERS_TIMEOUT = 1200.0

MAX_QPS = "UCX_SEP_MAX_QPS"
RANK_ENV = os.path.join(os.path.dirname(jobs.BIND_RANK), "rank-env")


def budget_of(pid):
    """What the process was started with; empty if it has ended, or is just
    being started."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            words = file.read().decode(errors="replace").split("\0")
    except OSError:
        return ""
    if words == [""]:
        return ""
    return dict(word.partition("=")[::2] for word in words).get(MAX_QPS, "inf")


class WatchedDevice(device.SoftwareDevice):
    """Tells the most RC queue pairs that a process had at a time, for each
    budget that processes have. It looks once in a period of seconds."""

    def __init__(self, build_dir, period):
        super().__init__(build_dir)
        self.period = period
        self.most = {}
        self.budgets = {}
        self.is_over = threading.Event()
        self.watcher = threading.Thread(target=self.watch, daemon=True)

    def __enter__(self):
        super().__enter__()
        self.watcher.start()
        return self

    def __exit__(self, *args):
        self.is_over.set()
        self.watcher.join()
        super().__exit__(*args)

    def watch(self):
        while not self.is_over.wait(self.period):
            result = self.stat("--json", "--detail")
            if result.ok:
                self.take(result.stdout)

    def take(self, text):
        """Note what mlx5sim-stat has printed."""
        for each in json.loads(text)["processes"]:
            held = sum(qp["type"] == "RC" for qp in each["qp_list"])
            # While the list is made, one may take the place of another, and
            # both be in it
            held = min(held, each["qps"] - (len(each["qp_list"]) - held))
            pid = each["pid"]
            if not self.budgets.get(pid):
                self.budgets[pid] = budget_of(pid)
            budget = self.budgets[pid]
            if budget:
                self.most[budget] = max(held, self.most.get(budget, 0))

    def most_text(self):
        """The same in words."""
        return ", ".join(f"{held} of {budget}" for budget, held in
                         sorted(self.most.items())) or "-"


@dataclass(frozen=True)
class Job(jobs.Job):
    """One whose program may have arguments, and whose ranks may have budgets
    of their own."""
    budgets: tuple = ()

    def binding(self):
        several = [RANK_ENV, MAX_QPS, ",".join(self.budgets)] \
            if len(self.budgets) > 1 else []
        return several + super().binding()

    def argv(self, build_dir, quick, launcher_for):
        arguments = ARGUMENTS.get(self.program, [])
        if self.program == "endpoints" and self.ranks > MANY_RANKS:
            arguments = FEW_THREADS
        return super().argv(build_dir, quick, launcher_for) + arguments


class BudgetJob(cli.MainJob):
    """Runs the rows."""

    def instance(self, transport):
        self.device = WatchedDevice(self.build_dir,
                                    min(1.0, self.options.ranks / 64))
        return self.device

    def settings(self, transport):
        settings = {**super().settings(transport),
                    MAX_QPS: self.options.max_qps[0],
                    "UCX_SEP_CM_TIMEOUT": self.options.cm_timeout}
        if self.options.ranks > len(os.sched_getaffinity(0)):
            settings["LD_PRELOAD"] = os.path.join(
                os.path.abspath(self.build_dir), YIELD)
        return settings

    def peers_row(self, transport):
        """Endpoints of a process, each to an interface of its own, which are
        all used."""
        def body(command, env):
            result = process.run(
                command + [os.path.join(self.build_dir, "bench", "uct_peers"),
                           "-t", transport.uct_name, "-d", transport.uct_device,
                           "-n", self.options.endpoints, "-a"],
                PEERS_TIMEOUT * self.options.patience, env)
            if not result.ok:
                return cli.Cell("fail", result.why() +
                                jobs.last_words(result)), [result]
            _, stages = growth.read_stages(result.stdout)
            used = stages[-1].endpoints
            if stages[-1].name != "use" or used != self.options.endpoints:
                return cli.Cell("fail", f"{used} endpoints were used"), [result]
            return cli.Cell("pass", "", messages=used), [result]
        return self.run_cell("peers", transport, body)

    def all_rows(self):
        """(program, ranks, function that runs it) of all that were chosen."""
        for library in self.options.libraries:
            for program in PROGRAMS.get(library, ()):
                job = Job(library, program, self.options.ranks,
                          jobs.KERNELS_TIMEOUT,
                          budgets=self.options.max_qps)
                yield f"{job.TITLES[library]} {program}", job.ranks, \
                    lambda transport, job=job: self.job_row(job, transport)
        yield f"{self.options.endpoints} endpoints of a process", 1, \
            self.peers_row

    def chosen(self):
        return [row for row in self.all_rows() if not self.options.row or
                row[0] in self.options.row]

    def run(self):
        """Run all rows; exit status."""
        found = []
        transport = cli.TRANSPORTS["sep_mlx5"]
        print("| Program | processes | seconds | result | messages | queue "
              "pairs made | work requests | most RC queue pairs of a process |\n"
              "|---|---|---|---|---|---|---|---|", flush=True)
        for name, ranks, run in self.chosen():
            started = time.monotonic()
            cell = run(transport)
            found.append(cell.status)
            print(f"| {name} | {ranks} | {time.monotonic() - started:.0f} | "
                  f"{cell.detail or cell.status} | {cell.messages} | "
                  f"{cell.work.get('qps_created', '-')} | "
                  f"{cell.work.get('wqes', '-')} | "
                  f"{self.device.most_text()} |", flush=True)
            if cell.status == "fail":
                print(f"{name}: output: {cell.log}", file=sys.stderr)
        print(f"{found.count('pass')} passed, {found.count('fail')} failed, "
              f"{found.count('skip')} skipped")
        return 1 if "fail" in found or not found else 0


def number(least, most):
    def parse(text):
        value = int(text)
        if not least <= value <= most:
            raise ValueError
        return value
    parse.__name__ = f"number from {least} to {most}"
    return parse


def budgets(text):
    """Numbers of queue pairs, which ranks take in turn."""
    values = tuple(text.split(","))
    for value in values:
        if value != "inf" and not 2 <= int(value) <= 65536:
            raise ValueError
    return values


def parse_arguments(argv):
    parser = argparse.ArgumentParser(
        prog="budget", description="Run all programs of MPI and OpenSHMEM among "
        "many ranks with a bounded number of queue pairs, and many endpoints of "
        "one process. It takes an hour or more; CI does not run it.")
    parser.add_argument("--build-dir", default=".", metavar="DIR",
                        help="where the project was built (default: .)")
    parser.add_argument("--ranks", type=number(2, 256), default=64, metavar="N",
                        help="of a job (default: 64)")
    parser.add_argument("--max-qps", type=budgets, default=("8",),
                        metavar="N[,N...]", help="UCX_SEP_MAX_QPS, which ranks "
                        "take in turn, may be inf (default: 8)")
    parser.add_argument("--endpoints", type=number(1, 4096), default=2000,
                        metavar="N", help="of one process (default: 2000)")
    parser.add_argument("--cm-timeout", default=CM_TIMEOUT, metavar="TIME",
                        help="UCX_SEP_CM_TIMEOUT (default: %(default)s)")
    parser.add_argument("--libraries", default=list(PROGRAMS),
                        type=cli.name_list(list(PROGRAMS)), metavar="LIST",
                        help="of mpich,openmpi,oshmem (default: all)")
    parser.add_argument("--row", metavar="NAME", action="append",
                        help="only the row of this name; may be repeated")
    parser.add_argument("--list", action="store_true",
                        help="print the names of the rows")
    parser.add_argument("--whole", dest="quick", action="store_false",
                        help="all sizes and iterations of the programs, as of "
                        "the main job without --quick")
    parser.add_argument("--patience", type=number(1, 100), default=1,
                        metavar="N", help="time limits are N times as long")
    parser.add_argument("--log-dir", metavar="DIR",
                        default=os.path.join(tempfile.gettempdir(),
                                             "sep-budget"),
                        help="where the programs' output goes (default: "
                        "%(default)s)")
    parser.set_defaults(ucx=None, hardware=False, json=None, only=None,
                        transport=["sep_mlx5"])
    return parser.parse_args(argv)


def main(argv=None):
    options = parse_arguments(argv)
    job = BudgetJob(options)
    if options.list:
        print("\n".join(row[0] for row in job.chosen()))
        return 0
    process.end_with_cleanup()
    return job.run()
