# SPDX-License-Identifier: BSD-3-Clause
"""The transport with several versions of UCX, on several versions of Debian."""

import argparse
import csv
import json
import os
import platform
import re
import shutil
import subprocess
import sys

from . import builds
from .job import Failed, top
from .options import FLAG, LIST, PLACE, existing

PARTS = ("build", "jobs", "conformance")
TRANSPORTS = ("sep_mlx5", "rc_mlx5")
RC_COLUMNS = ("rc-passed", "rc-failed", "rc-skipped")
SYSTEM = "system"
BROKEN = [0, 1, 0]              # what has failed as a whole


def _ucx(text):
    return text if text == SYSTEM else existing(text)


def _debian(text):
    if not re.fullmatch("[a-z]+", text):
        raise argparse.ArgumentTypeError(f"what release is {text}?")
    return text


OPTIONS = {
    "--ucx": {**LIST, "type": _ucx}, "--debian": {**LIST, "type": _debian},
    "--part": {**LIST, "choices": PARTS}, "--group": LIST,
    "--work": {**PLACE, "default": top("build/matrix")},
    "--quick": {"action": "store_true", "default": True},
    "--whole": {"action": "store_false", "dest": "quick"},
    "--tsv": FLAG, "--rc": FLAG, "--list": FLAG}


def count_jobs(path):
    """[passed, failed, skipped] on sep_mlx5, and on rc_mlx5."""
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)["rows"]
    found = []
    for name in TRANSPORTS:
        states = [row["cells"][name]["status"] for row in rows
                  if name in row["cells"]]
        found += [states.count(each) for each in ("pass", "fail", "skip")]
    return found


def count_conformance(path):
    """The same of UCX's tests."""
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    found = []
    for name in TRANSPORTS:
        states = [row[name] for row in rows]
        passed, skipped = states.count("ok"), states.count("skipped")
        found += [passed, len(states) - passed - skipped, skipped]
    return found


class Matrix:
    """What was tried, and with what result."""

    def __init__(self, job):
        options = job.options
        self.job = job
        self.with_rc = options.rc
        self.quick = options.quick
        self.ucx = options.ucx or [SYSTEM]
        self.debian = options.debian or ["this", "trixie"]
        self.parts = options.part or list(PARTS)
        self.group = [word for name in options.group
                      for word in ("--group", name)]
        self.work = options.work
        self.here = platform.freedesktop_os_release()
        self.tried = self.failed = False

    def name_of(self, ucx):
        if ucx != SYSTEM:
            return builds.source_name(ucx)
        return shutil.which("pkg-config") and self.job.output(
            "pkg-config", "--modversion", "ucx", check=False).strip() or SYSTEM

    def print_row(self, ucx, debian, part, *numbers):
        """numbers: those of sep_mlx5, and of rc_mlx5 if there are such."""
        passed, failed, skipped = map(int, numbers[:3])
        self.tried = True
        self.failed |= failed > 0 or not passed + skipped
        if not self.with_rc:
            numbers = numbers[:3]
        elif len(numbers) == 3:
            numbers = (*numbers, "-", "-", "-")
        self.job.show([(ucx, debian, part, *numbers)])

    def cannot(self, ucx, debian, part, reason):
        print(f"{self.job.row.script}: UCX {ucx}, Debian {debian}: no {part}: "
              f"{reason}", file=sys.stderr)

    def logged(self, log, step, *arguments, **named):
        """Whether a step succeeds; what it prints goes to a file."""
        with open(log, "w", encoding="utf-8") as self.job.messages:
            try:
                step(*arguments, **named)
                return True
            except (Failed, OSError) as error:
                self.job.messages.write(str(error))
                return False
            finally:
                self.job.messages = None

    def last_lines(self, log, number=20):
        with open(log, encoding="utf-8", errors="replace") as file:
            return "".join(file.readlines()[-number:])

    def show(self, debian):
        """What would be run on a system, one line per part."""
        for ucx in self.ucx:
            name = self.name_of(ucx)
            if debian != "this" and ucx == SYSTEM:
                name = "its own UCX"
            for part in self.parts:
                print(f"{name}, Debian {debian}: {part}")

    def run(self):
        is_list = self.job.options.list
        if not is_list and not self.job.tsv:
            self.job.show([self.job.row.columns +
                           (RC_COLUMNS if self.with_rc else ())])
        for debian in self.debian:
            if debian == self.here.get("VERSION_CODENAME"):
                debian = "this"
            if is_list:
                self.show(debian)
            elif debian == "this":
                for ucx in self.ucx:
                    Pair(self, ucx).run()
            else:
                self.run_in(debian)
        if is_list:
            return 0
        return (1 if self.failed else 0) if self.tried else 77

    def run_in(self, debian):
        """Try on another Debian: contrib/matrix.sh runs there."""
        bind = [word for ucx in self.ucx if ucx != SYSTEM
                for word in ("--bind", os.path.dirname(ucx))]
        options = ["--debian", "this", "--tsv",
                   *(word for name, values in (("--ucx", self.ucx),
                                               ("--part", self.parts))
                     for value in values for word in (name, value)),
                   *([] if self.quick else ["--whole"]),
                   *(["--rc"] if self.with_rc else []), *self.group]
        self.job.say(f"Debian {debian}")
        os.makedirs(self.work, exist_ok=True)
        log = os.path.join(self.work, f"debian-{debian}.log")
        with open(log, "w", encoding="utf-8") as file:
            done = subprocess.run(
                [top("contrib/debian-root.sh"), "--suite", debian, "--groups",
                 "build test jobs bench", *bind,
                 os.path.join(self.work, f"debian-{debian}"),
                 "contrib/matrix.sh", *options], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=file, text=True, check=False)
        with open(log, encoding="utf-8", errors="replace") as file:
            sys.stderr.writelines(line for line in file if
                                  line.startswith("matrix.sh: "))
        lines = done.stdout.splitlines()
        if done.returncode == 77:
            if not lines:
                self.cannot("any", debian, " ".join(self.parts),
                            self.last_lines(log, 1).rstrip())
            return
        self.failed |= done.returncode != 0
        if not lines:
            sys.stderr.write(self.last_lines(log))
            self.print_row("any", debian, self.parts[0], *BROKEN)
        for line in lines:
            self.print_row(*line.split("\t"))


class Pair:
    """One UCX on this system."""

    def __init__(self, matrix, ucx):
        self.matrix = matrix
        self.job = matrix.job
        self.ucx = ucx
        self.name = matrix.name_of(ucx)
        self.debian = matrix.here.get("VERSION_ID", "unknown")
        self.where = os.path.join(matrix.work, self.name)

    def path(self, *words):
        return os.path.join(self.where, *words)

    def say(self, what, log):
        self.job.say(f"UCX {self.name}, Debian {self.debian}: {what} "
                     f"(log: {log})")

    def run(self):
        os.makedirs(self.where, exist_ok=True)
        if not self.build():
            return
        if "jobs" in self.matrix.parts:
            self.part("jobs", self.path("jobs.json"), count_jobs, *self.jobs())
        if "conformance" in self.matrix.parts:
            log = self.path("conformance.log")
            if self.ucx == SYSTEM and not self.matrix.logged(
                    log, self.job.shell, "sep_ucx_source"):
                self.matrix.cannot(self.name, self.debian, "conformance",
                                   self.matrix.last_lines(log, 1).rstrip())
                return
            self.part("conformance", self.path("conformance/table.tsv"),
                      count_conformance, *self.conformance())

    def build(self):
        """UCX, if it is not the system's, and the transport for it. One that is
        there is brought up to date even if only used."""
        log = self.path("build.log")
        self.say("build", log)
        is_built = self.matrix.logged(log, self.build_it)
        transport = self.transport()
        if is_built and transport.startswith("not built"):
            for part in self.matrix.parts:
                self.matrix.cannot(self.name, self.debian, part,
                                   f"the transport was {transport}")
            return False
        if not is_built:
            sys.stderr.write(self.matrix.last_lines(log))
            self.matrix.print_row(self.name, self.debian, "build", *BROKEN)
        elif "build" in self.matrix.parts:
            self.matrix.print_row(self.name, self.debian, "build", 1, 0, 0)
        return is_built

    def build_it(self):
        source, options = self.path("source"), ["--with-ucx=auto"]
        if self.ucx != SYSTEM:
            if not os.path.isdir(source):
                shutil.rmtree(self.path("unpacked"), ignore_errors=True)
                self.job.shell("sep_ucx_copy", self.ucx, self.path("unpacked"))
                os.rename(self.path("unpacked"), source)
            self.job.do(top("contrib/build-ucx-release.sh"), "--ucx-source",
                        source, self.path("ucx"))
            options = [f"--with-ucx={self.path('ucx')}",
                       f"--with-ucx-source={source}"]
        self.job.shell("sep_install_deps", "build", "jobs")
        builds.configured(self.job, self.path("sep"), "all job-programs",
                          "--disable-gtest", *options)

    def transport(self):
        """What configure says of it."""
        try:
            with open(self.path("sep/configure.out"), encoding="utf-8") as file:
                found = re.search(r"^ *transport +(.*)", file.read(), re.M)
        except OSError:
            found = None
        return found.group(1) if found else ""

    def part(self, name, result, count, command, env):
        """Run a part, and print what its result says."""
        log = self.path(f"{name}.log")
        self.say(name, log)
        if os.path.exists(result):
            os.unlink(result)
        passed = self.matrix.logged(log, self.job.do, *command, env=env)
        try:
            numbers = count(result)
        except (OSError, ValueError, KeyError):
            numbers = BROKEN
        self.matrix.print_row(self.name, self.debian, name, *numbers)
        if not passed:
            self.matrix.failed = True
            sys.stderr.write(self.matrix.last_lines(log))

    def jobs(self):
        """The main job, on the UCX that the transport was built for."""
        env = {}
        if self.ucx != SYSTEM:
            env = {"LD_LIBRARY_PATH": self.path("ucx/lib"),
                   "PATH": f"{self.path('ucx/bin')}:{os.environ['PATH']}"}
        return ["timeout", "--kill-after=30",
                os.environ.get("SEP_JOBS_TIMEOUT") or "7200",
                top("test/jobs/main_job"), "--build-dir", self.path("sep"),
                *self.options(), "--json", self.path("jobs.json")], env

    def conformance(self):
        source = [] if self.ucx == SYSTEM else ["--ucx-source",
                                                self.path("source")]
        return [top("contrib/ucx-gtest.sh"), *source, "--build",
                self.path("gtest"), "--results", self.path("conformance"),
                *self.options(), *self.matrix.group], {}

    def options(self):
        return ["--quick"] if self.matrix.quick else []


def measure(job):
    return Matrix(job).run()
