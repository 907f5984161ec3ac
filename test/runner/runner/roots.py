# SPDX-License-Identifier: BSD-3-Clause
"""Another Debian: the project is built and tried in a root directory of it.

Where no such root can be made, the part is left out, and the closing line says
why.
"""

import os
import re
import xml.etree.ElementTree as ElementTree

from . import jobs, report
from .parts import KILL_SOMETIMES
from .result import FAILED, PASSED, SKIPPED, Result
from .schedule import Failed

_CANNOT = 77                    # status of contrib/debian-root.sh
_ROOT_LIMIT = 2400


class Run:
    """The row of a part."""

    def __init__(self, session, part, row):
        self.session = session
        self.part = part
        self.row = row
        self.path = os.path.join(session.top, "build", row.directory)

    def plan(self):
        steps = [name for name in ("demo", "endpoints", "packages", "tests")
                 if self.session.wanted(self.part, self.row.run, name)]
        if self.session.options.list:
            self.session.note(f"{self.part}/{self.row.run} {name}"
                              for name in steps)
            return
        if not steps:
            return
        # It reads the same files, and would make those that are missing
        root = self._task("root", self._root,
                          [self.session.builds.configure_script()], urgent=True)
        root.dropped = lambda need: self.session.fail(
            self.part, self.row.run, self.row.run, f"not run, {need} failed")
        # What all others run, if there is a transport
        build = self._task("build", self._build, [root], urgent=True)
        # Jobs wait for each other by polling, as those of main_job here
        for name, action, alone in (("packages", self._packages, False),
                                    ("tests", self._tests, False),
                                    ("demo", self._demo, True),
                                    ("endpoints", self._endpoints, True)):
            if name in steps:
                self._task(name, action, [build], alone=alone)

    def _task(self, name, action, needs, **how):
        task = self.session.task(self.part, self.row.run,
                                 f"{self.row.run} {name}", action, needs, **how)
        task.dropped = None         # what it needs has its own result
        return task

    def _log(self, name):
        return os.path.join(self.session.directory(self.part), f"{name}.log")

    def _command(self, name, limit, *command, options=(), make=False):
        # The source of this machine's UCX is of no use there
        source = os.environ.get(self.row.source_variable) or "auto"
        bind = ["--bind", os.path.dirname(source)] if source != "auto" else []
        return self._run(
            name, limit, ["contrib/debian-root.sh", "--suite", self.row.suite,
                          *bind, *options, self.path, *command],
            # Warnings of its compiler are for us to see, and not for users
            ("SEP_UCX=auto", f"SEP_UCX_SOURCE={source}",
             "SEP_DEMO_CONFIGURE=--enable-werror --enable-gtest "
             "--enable-precompiled-headers CXXFLAGS=-O0", KILL_SOMETIMES), make)

    def _run(self, name, limit, command, environment=(), make=False):
        log = self._log(name)
        child, elapsed = self.session.command(command, log, limit, environment,
                                              make)
        reason = f"killed after {limit:.0f} s" if child.killed else child.why()
        return child, elapsed, log, reason

    def _root(self):
        child, elapsed, log, reason = self._command("root", _ROOT_LIMIT)
        good = child.status == 0 and not child.killed
        left_out = skip_reason(log) if child.status == _CANNOT else None
        status = PASSED if good else SKIPPED if left_out else FAILED
        self._outcome("root", status, elapsed, child.cpu,
                      left_out or ("" if good else reason),
                      "" if good else log)
        if left_out:
            self.session.leave_out(self.part, left_out)
        elif not good:
            self.session.console.say(f"end of {log}:", report.tail(log))
        if not good:
            raise Failed

    def _build(self):
        """All that the demo builds before it runs a job."""
        child, elapsed, log, reason = self._command(
            "build", self.session.options.jobs_limit, "contrib/demo.sh",
            "--list", make=True)
        good = child.status == 0 and not child.killed
        self._outcome("build", PASSED if good else FAILED, elapsed, child.cpu,
                      "" if good else reason, "" if good else log)
        if not good:
            self.session.console.say(f"end of {log}:", report.tail(log, 40))
            raise Failed

    def _demo(self):
        # build/ is another directory there
        name = "demo.json"
        path = os.path.join(f"{self.path}-build", name)
        remove(path)
        only = [word for label in self.row.rows for word in ("--row", label)]
        child, elapsed, log, reason = self._command(
            "demo", self.session.options.jobs_limit, "contrib/demo.sh",
            "--quick", "--json", os.path.join(self.session.top, "build", name),
            *only)
        results = jobs.results_of(self.part, self.row.run, path)
        missing = not_built(log)
        if missing:
            results.append(Result(self.part, self.row.run, "sep_mlx5", SKIPPED,
                                  0.0, f"the transport was {missing}", log))
            self.session.leave_out(f"{self.part} sep_mlx5", missing)
        self._finish("demo", results, child, elapsed, log, reason)

    def _endpoints(self):
        """What the demo has built, with MPI's threads."""
        missing = not_built(self._log("build"))
        if missing:
            self.session.add(
                [Result(self.part, self.row.run, "endpoints", SKIPPED, 0.0,
                        f"the transport was {missing}")],
                f"{self.part} {self.row.run}: endpoints", 0.0, 0.0)
            return
        for options in self.row.endpoints:
            what = "streams" if "--streams" in options else \
                "pages" if "--pages" in options else "endpoints"
            child, elapsed, log, reason = self._command(
                what, self.session.options.jobs_limit,
                "test/jobs/endpoints", "--build-dir", "build/demo", "--tsv",
                *options)
            self._finish(what, results_of_endpoints(self.part, self.row.run,
                                                    log, what),
                         child, elapsed, log, reason)

    def _packages(self):
        """Of what the demo has built; used in a root that has nothing else."""
        missing = not_built(self._log("build"))
        if missing:
            self._outcome("packages are made", SKIPPED, 0.0, 0.0,
                          f"the transport was {missing}")
            return
        for name, what, how in (
                ("deb", "packages are made", self._make_packages),
                ("deb-use", "packages are used", self._use_packages)):
            child, elapsed, log, reason = how(name)
            good = child.status == 0 and not child.killed
            left_out = skip_reason(log) if child.status == _CANNOT else None
            self._outcome(what, PASSED if good else
                          SKIPPED if left_out else FAILED, elapsed, child.cpu,
                          left_out or ("" if good else reason),
                          "" if good else log)
            if not good:
                if not left_out:
                    self.session.console.say(f"end of {log}:",
                                             report.tail(log, 40))
                return

    def _make_packages(self, name):
        return self._command(
            name, self.session.options.jobs_limit, "contrib/build-deb.sh",
            "--built", "build/demo", "build/deb-built",
            options=("--groups", "build test jobs package"))

    def _use_packages(self, name):
        return self._run(name, _ROOT_LIMIT, [
            "contrib/check-deb.sh", "--suite", self.row.suite, "--debs",
            f"{self.path}-build/deb-built", f"{self.path}-bare"])

    def _outcome(self, what, status, elapsed, cpu, reason, log=""):
        self.session.add(
            [Result(self.part, self.row.run, what, status, elapsed, reason,
                    log)], f"{self.part} {self.row.run}: {what}", elapsed, cpu)

    def _tests(self):
        name = "check-results/junit.xml"
        path = os.path.join(f"{self.path}-build", name)
        remove(path)
        tests = self.row.tests
        if not not_built(self._log("build")):
            tests += self.row.transport_tests
        patterns = [word for each in tests for word in ("--one", each)]
        child, elapsed, log, reason = self._command(
            "tests", self.session.options.jobs_limit, "test/runner/run",
            "--build", "build/demo", "--jobs", "1", *patterns)
        self._finish("tests", results_of_junit(self.part, self.row.run, path),
                     child, elapsed, log, reason)

    def _finish(self, name, results, child, elapsed, log, reason):
        """A step is good if what it ran is, and if it ran something."""
        passed = any(each.status == PASSED for each in results)
        failed = any(each.status == FAILED for each in results)
        if child.killed or not passed or (child.status != 0 and not failed):
            if not passed and child.status == 0:
                reason = "ran nothing"
            results.append(Result(self.part, self.row.run, name, FAILED,
                                  elapsed, reason, log))
            failed = True
        self.session.add(results, f"{self.part} {self.row.run}: {name}",
                         elapsed, child.cpu)
        if failed:
            self.session.console.say(f"end of {log}:", report.tail(log, 40))


def remove(path):
    """What an earlier run has left is no result of this one."""
    if os.path.exists(path):
        os.unlink(path)


def skip_reason(log):
    """What contrib/debian-root.sh said last, if it said why it can't."""
    for line in reversed(report.tail(log, 40)):
        match = re.search(r"debian-root\.sh: skipped: (.*)", line)
        if match:
            return match.group(1)
    return None


def not_built(log):
    """Why contrib/demo.sh had no transport to show, or None."""
    if not os.path.exists(log):
        return None
    with open(log, encoding="utf-8", errors="replace") as file:
        match = re.search(r"The transport was (not built .*?): on ",
                          file.read())
    return match.group(1) if match else None


_ENDPOINTS = {"pass": PASSED, "fail": FAILED, "skip": SKIPPED}


def results_of_endpoints(part, run, log, what="endpoints"):
    """From what test/jobs/endpoints --tsv has printed, reasons included."""
    results = []
    columns = None
    with open(log, encoding="utf-8", errors="replace") as file:
        for line in file.read().splitlines():
            cells = line.split("\t")
            if cells[0] == "ranks":
                columns = cells
            elif columns and len(cells) == len(columns):
                row = dict(zip(columns, cells))
                results.append(Result(
                    part, run, f"{what} {row['library']} "
                    f"{row['transport']} {row['category']}, {row['threads']} "
                    f"threads, CQ sharing {row['cq']}, postlist "
                    f"{row['postlist']}", _ENDPOINTS[row["result"]]))
            elif results and not results[-1].reason and \
                    results[-1].status != PASSED:
                results[-1].reason = line.strip()
    return results


def results_of_junit(part, run, path):
    """What another runner has found, each test with the name of its group."""
    if not os.path.exists(path):
        return []
    results = []
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        status, reason = PASSED, ""
        for each, tag in ((FAILED, "failure"), (SKIPPED, "skipped")):
            found = case.find(tag)
            if found is not None:
                status, reason = each, found.get("message", "")
        results.append(Result(
            part, run, f"{case.get('classname')}.{case.get('name')}", status,
            float(case.get("time", "0")), reason))
    return results
