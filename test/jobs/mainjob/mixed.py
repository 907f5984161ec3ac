# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of two processes with different versions of UCX.

test/ucp/exchange.c is run once per pair of UCXs and step, each on a device of its
own. What UCX sends is UCX's: if the same step fails on UCX's own rc_mlx5 between
these two, then that is no fault of the transport.
"""

import argparse
import itertools
import os
import re
import shutil
import tempfile
from dataclasses import dataclass

from . import cli, device, jobs, process

STEPS = ("tag", "am", "put", "get", "atomic")
TRANSPORTS = {"sep_mlx5": "sep_mlx5", "rc_mlx5": "rc_x"}


@dataclass(frozen=True)
class Ucx:
    """An installed UCX."""
    prefix: str                 # or "system"
    build_dir: str              # with the transport for it, if it has none

    @property
    def libraries(self):
        return None if self.prefix == "system" else \
            os.path.join(self.prefix, "lib")

    def has_sep(self):
        """Whether the transport is a module of it."""
        return self.libraries is not None and os.path.exists(
            os.path.join(self.libraries, "ucx", "libuct_sep.so"))

    def environment(self, base):
        env = dict(base)
        if self.libraries:
            env["LD_LIBRARY_PATH"] = self.libraries
        return env

    def version(self):
        """What it says about itself, or the name of its directory if it is
        libraries alone."""
        program = "ucx_info" if self.prefix == "system" else \
            os.path.join(self.prefix, "bin", "ucx_info")
        if shutil.which(program) is None:
            return os.path.basename(self.prefix)
        result = process.run([program, "-v"], process.PATIENCE,
                             self.environment(os.environ))
        return read_version(result.stdout)


def read_version(text):
    """From "ucx_info -v"."""
    match = re.search(r"[Vv]ersion:? +([0-9][0-9.]*)", text)
    return match.group(1) if match else "unknown"


@dataclass(frozen=True)
class Setting:
    """One job."""
    first: Ucx
    second: Ucx
    transport: str
    steps: tuple


def read_ucx(text, build_dir):
    """Of the command line: PREFIX or PREFIX,BUILD-DIRECTORY."""
    prefix, _, own = text.partition(",")
    return Ucx(prefix if prefix == "system" else os.path.abspath(prefix),
               os.path.abspath(own or build_dir))


def judge(results):
    """Whether both processes did all steps: (status, explanation)."""
    words = []
    reports = [jobs.judge(jobs.Job("ucp", "exchange", 2), result)
               for result in results]
    for rank, (status, detail, _) in enumerate(reports):
        if status != "pass":
            words.append(f"rank {rank}: {detail}")
    if words:
        return "fail", "; ".join(words)
    return "pass", "; ".join(detail for _, detail, _ in reports)


class Runner:
    """Runs settings."""

    def __init__(self, build_dir, program):
        self.build_dir = os.path.abspath(build_dir)
        self.program = os.path.abspath(program)

    def argv(self, setting, ucx, rank, directory):
        words = [os.path.join(self.build_dir, "bin", "mlx5sim-run")]
        if setting.transport == "sep_mlx5" and not ucx.has_sep():
            words += [os.path.join(ucx.build_dir, "bin", "sep-run"), "--only"]
        return words + [self.program, directory, str(rank), *setting.steps]

    def environment(self, setting, ucx, instance):
        env = {name: value for name, value in os.environ.items()
               if not name.startswith("UCX_") and
               name not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}
        env.update(instance.environment())
        env["UCX_TLS"] = TRANSPORTS[setting.transport]
        return ucx.environment(env)

    def run(self, setting):
        """Run one setting and judge it: (status, explanation)."""
        with device.SoftwareDevice(self.build_dir) as instance, \
                tempfile.TemporaryDirectory(prefix="sep-mixed.") as directory:
            running = [
                process.Process(self.argv(setting, ucx, rank, directory),
                                self.environment(setting, ucx, instance))
                for rank, ucx in enumerate((setting.first, setting.second))]
            results = [each.wait(process.PATIENCE) for each in running]
            status, detail = judge(results)
            if status == "pass":
                messages = sum(jobs.parse(each.stdout).messages
                               for each in results)
                payload = sum(jobs.parse(each.stdout).payload
                              for each in results)
                words = device.check_traffic(
                    dict.fromkeys(device.COUNTERS, 0), instance.counters(),
                    messages, payload)
                words += [leaks for leaks in [instance.leaks()] if leaks]
                if words:
                    status, detail = "fail", "; ".join(words)
        return status, detail


def parse_arguments(argv):
    parser = argparse.ArgumentParser(
        prog="mixed", description="Run jobs of two processes that have "
        "different versions of UCX: check all data.")
    parser.add_argument("--build-dir", default=".", metavar="DIR",
                        help="where the project was built (default: .)")
    parser.add_argument("--program", metavar="FILE",
                        help="default: test/ucp/exchange of the build")
    parser.add_argument("--ucx", action="append", metavar="PREFIX[,DIR]",
                        help="system (the default, alone), or where a UCX is "
                        "installed; and where the transport was built for it, "
                        "if not in --build-dir, and if it is no part of it. "
                        "May be repeated: each is tried with each")
    parser.add_argument("--transport", default=list(TRANSPORTS),
                        type=cli.name_list(list(TRANSPORTS)), metavar="LIST",
                        help="default: sep_mlx5,rc_mlx5")
    parser.add_argument("--steps", default=list(STEPS),
                        type=cli.name_list(STEPS), metavar="LIST",
                        help="default: tag,am,put,get,atomic")
    return parser.parse_args(argv)


def main(argv=None):
    options = parse_arguments(argv)
    program = options.program or os.path.join(options.build_dir, "test", "ucp",
                                              "exchange")
    if not os.access(program, os.X_OK):
        raise SystemExit(f"mixed: {program} is missing (run make job-programs "
                         f"in {options.build_dir})")
    process.end_with_cleanup()
    ucxs = [read_ucx(text, options.build_dir)
            for text in options.ucx or ["system"]]
    names = {ucx: ucx.version() for ucx in ucxs}
    runner = Runner(options.build_dir, program)
    failed = {name: 0 for name in options.transport}
    passed = {name: 0 for name in options.transport}
    print(f"{'rank 0':10} {'rank 1':10} {'transport':10} steps")
    for first, second in itertools.product(ucxs, repeat=2):
        if first == second and len(ucxs) > 1:
            continue
        for transport in options.transport:
            cells = []
            why = []
            for step in options.steps:
                status, detail = runner.run(Setting(first, second, transport,
                                                    (step,)))
                cells.append(f"{step} {status}")
                counts = passed if status == "pass" else failed
                counts[transport] += 1
                if status != "pass":
                    why.append(f"    {step}: {detail}")
            print(f"{names[first]:10} {names[second]:10} {transport:10} "
                  f"{', '.join(cells)}", flush=True)
            for line in why:
                print(line, flush=True)
    for transport in options.transport:
        print(f"{transport}: {passed[transport]} passed, "
              f"{failed[transport]} failed")
    ours = "sep_mlx5" if "sep_mlx5" in failed else options.transport[0]
    return 1 if failed[ours] or not passed[ours] else 0
