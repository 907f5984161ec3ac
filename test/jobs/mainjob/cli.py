# SPDX-License-Identifier: BSD-3-Clause
"""Command line of the main job, and the order of what it does."""

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field, replace

from . import defects, device, jobs, lanes, nodes, perftest, process, table

DEVICE = "mlx5_0:1"
PERFTEST_TIMEOUT = 300.0
INFO_ROW = "ucx_info lists it"


@dataclass(frozen=True)
class Transport:
    """How one transport is selected and started."""
    name: str
    tls: str                    # UCX_TLS
    allowed: tuple              # transports that may appear in lanes
    launcher: tuple             # program in the build's bin/ and options
    uct_name: str               # ucx_perftest -x
    uct_device: str             # ucx_perftest -d
    variable: str               # one of its configuration variables
    simulated: bool = True      # needs the software device


TRANSPORTS = {
    "sep_mlx5": Transport("sep_mlx5", "sep_mlx5", ("sep_mlx5",),
                          ("sep-run", "--only"),
                          "sep_mlx5", DEVICE, "UCX_SEP_CATEGORY"),
    # rc_x is rc_mlx5 with ud_mlx5 for its connection set-up only
    "rc_mlx5": Transport("rc_mlx5", "rc_x", ("rc_mlx5", "ud_mlx5"), (),
                         "rc_mlx5", DEVICE, "UCX_RC_MLX5_TX_QUEUE_LEN"),
    # For work on these programs without a device
    "tcp": Transport("tcp", "tcp", ("tcp",), (), "tcp", "lo",
                     "UCX_TCP_TX_SEG_SIZE", False),
}


def chosen_transports(options):
    """With --ucx, sep_mlx5 is a module of UCX and need not be preloaded."""
    chosen = [TRANSPORTS[name] for name in options.transport]
    if options.ucx:
        chosen = [replace(each, launcher=(), tls=each.tls.replace(
            "sep_mlx5", "sep")) for each in chosen]
    return chosen


@dataclass
class Cell:
    """One row of the table on one transport."""
    status: str                 # pass, fail, skip
    detail: str = ""
    value: float = None
    unit: str = ""
    metrics: list = field(default_factory=list)
    notes: list = field(default_factory=list)
    messages: int = 0
    payload: int = 0
    work: dict = field(default_factory=dict)    # device counters
    lanes: dict = field(default_factory=dict)
    seconds: float = 0.0
    log: str = ""


class MainJob:
    """Runs the rows, prints them, counts them."""

    def __init__(self, options):
        self.options = options
        self.build_dir = os.path.abspath(options.build_dir)
        self.transports = chosen_transports(options)
        self.log_dir = options.log_dir or tempfile.mkdtemp(
            prefix="sep-main-job.")
        self.rows = []
        self._ucx_version = None
        self._no_nodes = None       # "": there are; else why not
        self.started = time.monotonic()
        os.makedirs(self.log_dir, exist_ok=True)

    # -- running ---------------------------------------------------------

    def command(self, transport, instance):
        words = list(instance.launcher()) if transport.simulated else []
        if transport.launcher:
            words += [os.path.join(self.build_dir, "bin",
                                   transport.launcher[0]),
                      *transport.launcher[1:]]
        return words

    def simulated(self, transport):
        """Whether the device is the software device."""
        return transport.simulated and not self.options.hardware

    def instance(self, transport):
        if self.simulated(transport):
            return device.SoftwareDevice(self.build_dir)
        return device.NoDevice()

    def environment(self, transport, instance, log_dir):
        env = dict(os.environ)
        for name in ("LD_PRELOAD", "UCX_TLS", "UCX_NET_DEVICES"):
            env.pop(name, None)
        env.update(jobs.ENVIRONMENT)
        env.update(instance.environment())
        if self.options.ucx:
            env.update(jobs.MODULE_ENVIRONMENT)
            env["LD_LIBRARY_PATH"] = os.path.join(self.options.ucx, "lib")
        env["UCX_TLS"] = transport.tls
        env["UCX_LOG_LEVEL"] = "info"
        env["UCX_LOG_FILE"] = os.path.join(log_dir, "ucx.%h.%p")
        env["UCX_WARN_UNUSED_ENV_VARS"] = "n"
        env.update(self.settings(transport))
        return env

    def settings(self, transport):
        """What is set besides, so that the transport works at all."""
        if not self.simulated(transport):
            return {}
        return defects.settings(transport.name, self.ucx_version())

    def run_cell(self, label, transport, body, ucp=False):
        """Run body(command, env) on a fresh device and check the traffic.

        ucp: UCP chooses transports, so its log must tell which.
        """
        name = f"{transport.name} {label}".replace("/", "_").replace(" ", "_")
        log_dir = os.path.join(self.log_dir, name)
        os.makedirs(log_dir, exist_ok=True)
        started = time.monotonic()
        try:
            with self.instance(transport) as instance:
                env = self.environment(transport, instance, log_dir)
                before = instance.counters()
                cell, outputs = body(self.command(transport, instance), env)
                for output in outputs:
                    self.save(log_dir, output)
                after = instance.counters()
                cell.work = {key: after[key] - before[key] for key in after}
                cell.lanes = {lane: sorted(uses) for lane, uses in
                              lanes.parse(
                                  lanes.read_logs(log_dir)).items()}
                complaints = []
                if instance.counts and cell.status == "pass":
                    complaints += device.check_traffic(before, after,
                                                       cell.messages,
                                                       cell.payload)
                leaks = instance.leaks()
                if leaks:
                    complaints.append(leaks)
                strangers = lanes.foreign(cell.lanes, transport.allowed)
                if strangers:
                    complaints.append("traffic may have gone through " +
                                      ", ".join(strangers))
                if ucp and not cell.lanes:
                    complaints.append("UCX's log names no transport that was "
                                      "chosen")
                if complaints and cell.status == "pass":
                    cell.status = "fail"
                    cell.detail = "; ".join(complaints)
        except (device.CounterError, OSError) as error:
            cell = Cell("fail", str(error))
        cell.seconds = time.monotonic() - started
        cell.log = log_dir
        return cell

    @staticmethod
    def save(log_dir, result):
        name = os.path.basename(str(result.argv[0]))
        number = len([entry for entry in os.listdir(log_dir) if
                      entry.startswith("run.")])
        path = os.path.join(log_dir, f"run.{number}.{name}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"$ {' '.join(result.argv)}\n[{result.why()}]\n"
                       f"--- stdout\n{result.stdout}\n"
                       f"--- stderr\n{result.stderr}\n")

    # -- rows ------------------------------------------------------------

    def info_row(self, transport):
        """UCX offers the transport on the device, and its configuration."""
        def body(command, env):
            result = process.run(command + [self.find("ucx_info"), "-d", "-c"],
                                 30, env)
            found = [block for block in
                     result.stdout.split("#      Transport: ")[1:] if
                     block.split()[0] == transport.uct_name and
                     f"Device: {transport.uct_device}" in block]
            if not result.ok:
                return Cell("fail", result.why() + jobs.last_words(result)), \
                    [result]
            if not found:
                return Cell("fail", f"ucx_info -d does not list "
                            f"{transport.uct_name} on "
                            f"{transport.uct_device}"), [result]
            if f"\n{transport.variable}=" not in result.stdout:
                return Cell("fail", "ucx_info -c does not list "
                            f"{transport.variable}"), [result]
            return Cell("pass", "listed"), [result]
        return self.run_cell("ucx_info", transport, body)

    def ucx_version(self):
        """Major and minor number of the UCX that is tested."""
        if self._ucx_version is None:
            env = dict(os.environ, UCX_LOG_LEVEL="error")
            self._ucx_version = defects.version(
                process.run([self.find("ucx_info"), "-v"], 30, env).stdout)
        return self._ucx_version

    def perftest_row(self, test, transport):
        if self.simulated(transport):
            reason = defects.of_test(test, transport.name,
                                     self.ucx_version())
            if reason:
                return Cell("skip", reason)

        def body(command, env):
            uct_options = []
            if test.api == "uct":
                uct_options = ["-x", transport.uct_name, "-d",
                               transport.uct_device]
            client, server = perftest.run_pair(
                command + [self.find("ucx_perftest")], test, env,
                PERFTEST_TIMEOUT * self.options.patience, uct_options)
            outputs = [client, server]
            log = lanes.read_logs(os.path.dirname(env["UCX_LOG_FILE"]))
            reason = perftest.unsupported(log)
            if reason and test.optional:
                return Cell("skip", reason), outputs
            for role, result in (("client", client), ("server", server)):
                if not result.ok:
                    return Cell("fail", f"{role} {result.why()}" +
                                jobs.last_words(result, log)), outputs
            try:
                figures = perftest.parse(client.stdout)
            except ValueError as error:
                return Cell("fail", str(error)), outputs
            if figures["iterations"] < test.iterations:
                return Cell("fail", f"{figures['iterations']:.0f} of "
                            f"{test.iterations} iterations were run"), outputs
            cell = Cell("pass", "", test.value(figures), test.unit)
            cell.messages = test.messages
            cell.payload = test.messages * test.size
            return cell, outputs
        return self.run_cell(test.label, transport, body, test.names_lanes)

    def job_row(self, job, transport):
        if job.nodes > 1:
            if self._no_nodes is None:
                self._no_nodes = nodes.why_not()
            if self._no_nodes:
                return Cell("skip", f"no second node: {self._no_nodes}")

        def body(command, env):
            argv = command + job.argv(self.build_dir, self.options.quick,
                                      self.find)
            if job.nodes > 1:
                argv = [nodes.PROGRAM] + argv
            result = process.run(
                argv, job.timeout * self.options.patience,
                {**env, **jobs.ending(job.library, job.program)[1]})
            log = lanes.read_logs(os.path.dirname(env["UCX_LOG_FILE"]))
            status, detail, report = jobs.judge(job, result, log)
            cell = Cell(status, detail)
            seen = lanes.hosts(os.path.dirname(env["UCX_LOG_FILE"]))
            if status == "pass" and len(seen) != job.nodes:
                cell = Cell("fail", "ranks were on " + (", ".join(seen) or
                                                        "no node"))
            cell.messages = report.messages
            cell.payload = report.payload
            # Ranks that share a processor measure its scheduler
            if job.ranks <= len(os.sched_getaffinity(0)):
                cell.metrics = report.metrics
            cell.notes = report.notes
            return cell, [result]
        return self.run_cell(job.label, transport, body, ucp=True)

    def find(self, program):
        path = shutil.which(program, path=search_path(self.options))
        if path is None:
            raise FileNotFoundError(f"{program} is not installed")
        return path

    # -- printing --------------------------------------------------------

    def add_row(self, label, run):
        """Run a row on all transports and print it."""
        if self.options.only and self.options.only not in label or \
                self.options.row and label not in self.options.row:
            return
        cells = []
        for transport in self.transports:
            cells.append(run(transport))
        self.rows.append((label, cells))
        if self.options.json:
            # After each row: whoever kills a run still gets what was done
            self.write_json(self.options.json)

        texts = [self.cell_text(cell) for cell in cells]
        ratio = None
        if len(cells) == 2:
            ratio = table.format_ratio(cells[0].value, cells[1].value)
        print(table.line(label, texts, ratio, self.work_text(cells[0])))
        for index, metric in enumerate(cells[0].metrics):
            self.print_metric(index, metric, cells)
        for transport, cell in zip(self.transports, cells):
            if cell.status == "fail":
                print(f"    FAIL {transport.name}: {cell.detail}\n"
                      f"         output: {cell.log}")
            elif cell.status == "skip":
                print(f"    SKIP {transport.name}: {cell.detail}")
        sys.stdout.flush()

    @staticmethod
    def print_metric(index, metric, cells):
        values = [cell.metrics[index] if index < len(cell.metrics) else None
                  for cell in cells]
        texts = [table.format_value(value[2], value[3]) if value else ""
                 for value in values]
        ratio = None
        if len(values) == 2:
            ratio = table.format_ratio(values[0] and values[0][2],
                                       values[1] and values[1][2])
        name, size, _, unit = metric
        what = f"{size} threads" if name in ("threads", "endpoints") else \
            f"{name} {perftest.format_size(size)}"
        print(table.line("    " + what, texts, ratio))

    @staticmethod
    def cell_text(cell):
        if cell.status == "pass" and cell.value is not None:
            return table.format_value(cell.value, cell.unit)
        return {"pass": "pass", "fail": "FAIL", "skip": "n/a"}[cell.status]

    @staticmethod
    def work_text(cell):
        if not cell.messages or not cell.work.get("wqes"):
            return ""
        return f"{cell.work['wqes']}/{cell.messages}"

    def print_proof(self):
        """What carried the traffic, as UCX and the device tell it."""
        print("\nWhat carried it")
        for index, transport in enumerate(self.transports):
            cells = [row[index] for _, row in self.rows]
            passed = [cell for cell in cells if cell.status == "pass"]
            seen = {}
            for cell in passed:
                for lane, uses in cell.lanes.items():
                    seen.setdefault(lane, set()).update(uses)
            total = {key: sum(cell.work.get(key, 0) for cell in passed)
                     for key in device.COUNTERS}
            messages = sum(cell.messages for cell in passed)
            payload = sum(cell.payload for cell in passed)
            chosen = ", ".join(f"{lane} ({' '.join(sorted(uses))})"
                               for lane, uses in sorted(seen.items()))
            settings = "".join(
                f" {name}={value}"
                for name, value in self.settings(transport).items())
            print(f"  {transport.name}: UCX_TLS={transport.tls}{settings}, lanes "
                  f"that UCP chose: {chosen or 'none'}")
            if self.instance(transport).counts:
                print(f"    device: {total['wqes']} WQEs and {total['bytes']} "
                      f"bytes for at least {messages} messages and {payload} "
                      f"bytes of the programs;\n"
                      f"    {total['cqes']} CQEs, {total['doorbells']} "
                      f"doorbells, {total['blueflames']} BlueFlame writes, "
                      f"{total['violations']} violations")
        notes = {note for _, row in self.rows for cell in row
                 for note in cell.notes}
        for note in sorted(notes):
            print(f"  note: {note}")

    def write_json(self, path):
        rows = [{"name": label,
                 "cells": {transport.name: asdict(cell) for transport, cell in
                           zip(self.transports, cells)}}
                for label, cells in self.rows]
        document = {"machine": platform.platform(), "cpus": os.cpu_count(),
                    "seconds": round(time.monotonic() - self.started, 1),
                    "quick": self.options.quick, "rows": rows}
        with open(path + ".tmp", "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
        os.replace(path + ".tmp", path)

    def run(self):
        names = [transport.name for transport in self.transports]
        print(table.heading(names))
        self.add_row(INFO_ROW, self.info_row)
        for test in perftest.tests(self.options.quick):
            self.add_row(test.label, lambda transport, test=test:
                         self.perftest_row(test, transport))
        for job in jobs.jobs(self.options.quick, self.options.libraries):
            self.add_row(job.label, lambda transport, job=job:
                         self.job_row(job, transport))
        self.print_proof()

        seconds = time.monotonic() - self.started
        count = {"pass": 0, "fail": 0, "skip": 0}
        for _, cells in self.rows:
            for cell in cells:
                count[cell.status] += 1
        print(f"\nLogs: {self.log_dir}\nTime: {seconds:.0f} s")
        skipped = f", {count['skip']} skipped" if count["skip"] else ""
        print(f"{count['pass']} passed, {count['fail']} failed{skipped}")
        if count["fail"] or not any(count.values()):
            return 1
        # Nothing was tested, which is no success, but nothing is wrong either
        return 0 if count["pass"] else jobs.SKIP_STATUS


def row_names(options):
    """Names of all rows, in their order."""
    return [INFO_ROW] + \
        [test.label for test in perftest.tests(options.quick)] + \
        [job.label for job in jobs.jobs(options.quick, options.libraries)]


def search_path(options):
    """Where programs are looked for: UCX's own first in the UCX to test."""
    path = os.environ.get("PATH", os.defpath)
    if options.ucx:
        path = os.path.join(options.ucx, "bin") + os.pathsep + path
    return path


def name_list(choices):
    def parse(text):
        names = [name for name in text.split(",") if name]
        for name in names:
            if name not in choices:
                raise argparse.ArgumentTypeError(
                    f"unknown name '{name}', choose from {', '.join(choices)}")
        if not names:
            raise argparse.ArgumentTypeError("the list is empty")
        return names
    return parse


def parse_arguments(argv):
    parser = argparse.ArgumentParser(
        prog="main_job",
        description="Run ucx_perftest, MPI and OpenSHMEM jobs on sep_mlx5 and, "
        "beside it, on rc_mlx5; check their data and that the device carried "
        "it. Every row has a device of its own and a time limit.")
    parser.add_argument("--build-dir", default=".", metavar="DIR",
                        help="where the project was built (default: .)")
    parser.add_argument("--quick", action="store_true",
                        help="fewer sizes and iterations, under 2 minutes")
    parser.add_argument("--transport", default=["sep_mlx5", "rc_mlx5"],
                        type=name_list(list(TRANSPORTS)), metavar="LIST",
                        help="transports to run, comma separated (default: "
                        "sep_mlx5,rc_mlx5; tcp is for work on these programs)")
    parser.add_argument("--libraries", default=list(jobs.LIBRARIES),
                        type=name_list(jobs.LIBRARIES), metavar="LIST",
                        help="of mpich,openmpi,oshmem,ucp (default: all)")
    parser.add_argument("--only", metavar="TEXT",
                        help="only rows whose name contains TEXT")
    parser.add_argument("--ucx", metavar="PREFIX", type=os.path.abspath,
                        help="run on this UCX, by contrib/build-ucx-opt.sh, "
                        "instead of the installed one")
    parser.add_argument("--row", metavar="NAME", action="append",
                        help="only the row of this name; may be repeated")
    parser.add_argument("--list", action="store_true",
                        help="print the names of the rows")
    parser.add_argument("--patience", type=int, default=1, metavar="N",
                        choices=range(1, 101),
                        help="time limits are N times as long (1 to 100)")
    parser.add_argument("--hardware", action="store_true",
                        help="use this machine's real mlx5 device: no software "
                        "device is started, and no counters are checked")
    parser.add_argument("--json", metavar="FILE",
                        help="also write the results to FILE")
    parser.add_argument("--log-dir", metavar="DIR",
                        help="where the programs' output goes (default: a new "
                        "directory in the temporary directory)")
    return parser.parse_args(argv)


def missing_parts(options):
    """What is not there of what will be run."""
    build = os.path.abspath(options.build_dir)
    missing = []
    simulated = [name for name in options.transport if
                 TRANSPORTS[name].simulated]
    wanted = []
    if simulated and not options.hardware:
        wanted += ["mlx5sim-run", "mlx5sim-stat"]
    wanted += [each.launcher[0] for each in chosen_transports(options) if
               each.launcher]
    for name in wanted:
        if not os.access(os.path.join(build, "bin", name), os.X_OK):
            missing.append(f"{build}/bin/{name} (run make in {build})")
    for job in jobs.jobs(options.quick, options.libraries):
        path = job.binary(build)
        if not os.access(path, os.X_OK) and path not in "".join(missing):
            missing.append(f"{path} (run make job-programs in {build})")
    packages = {"ucx_info": "ucx-utils", "ucx_perftest": "ucx-utils",
                "mpirun.mpich": "mpich", "mpirun.openmpi": "openmpi-bin",
                "oshrun": "openmpi-bin"}
    needed = ["ucx_info", "ucx_perftest"] + [jobs.LAUNCHERS[name] for name in
                                             options.libraries if
                                             name in jobs.LAUNCHERS]
    for name in needed:
        if shutil.which(name, path=search_path(options)) is None:
            missing.append(f"{name} (Debian package {packages[name]})")
    if options.ucx and not os.path.exists(os.path.join(options.ucx, "lib",
                                                       "libucp.so.0")):
        missing.append(f"{options.ucx}/lib/libucp.so.0 (run "
                       "contrib/build-ucx-opt.sh)")
    return missing


def main(argv=None):
    options = parse_arguments(argv)
    if options.list:
        print("\n".join(row_names(options)))
        return 0
    missing = missing_parts(options)
    if missing:
        print("main_job: cannot start, these are missing:\n  " +
              "\n  ".join(missing), file=sys.stderr)
        return 2
    process.end_with_cleanup()
    return MainJob(options).run()
