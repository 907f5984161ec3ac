# SPDX-License-Identifier: BSD-3-Clause
"""List and run the tests of UCX's gtest program.

Each suite runs in a process of its own, on a device of its own. A test that
hangs or crashes costs that test: the rest of the suite goes on in a new process.
Results are those of GoogleTest's report; why UCX skips a test is a property in
it, which adapt.py puts there. What the device complained about is in a file of
its instance: then the tests that it may have been are run alone.
"""

import contextlib
import dataclasses
import glob
import os
import re
import shutil
import tempfile

from runner import gtest, process, result

OK = "ok"
SKIPPED = "skipped"
FAILED = "failed"
CRASHED = "crashed"
HUNG = "hung"

_STATUS = {result.PASSED: OK, result.SKIPPED: SKIPPED, result.FAILED: FAILED}


@dataclasses.dataclass(frozen=True)
class Test:
    """One test as the program lists it: instance/suite.name/index."""
    instance: str
    suite: str
    name: str
    parameter: str

    @property
    def full_name(self):
        return f"{self.instance}/{self.suite}.{self.name}"


@dataclasses.dataclass
class Result:
    """What became of one test."""
    status: str
    seconds: float = 0.0
    reason: str = ""
    tries: int = 1
    violates: bool = False      # the device complained: no other try excuses it


def of_instances(listed):
    """Tests of some transport, from names and parameters."""
    tests = []
    for name, parameter in listed:
        match = re.fullmatch(r"(\w+)/(\w+)\.(.*)", name)
        if match:
            tests.append(Test(*match.groups(), parameter))
    return tests


def of_source(source):
    """Names of the tests in a source tree of UCX, whether they are built or
    not. Empty if it has none."""
    names = set()
    for path in glob.glob(os.path.join(source, "test/gtest/uc[tp]/**/*.[ch]*"),
                          recursive=True):
        with open(path, encoding="utf-8", errors="replace") as file:
            names |= {f"{suite}.{name}" for suite, name in re.findall(
                r"^(?:UCS_)?\w*TEST\w*\(\s*(\w+)\s*,\s*(\w+)", file.read(),
                re.MULTILINE)}
    return names


class Program:
    """The gtest program, on a software device and with the transport."""

    def __init__(self, gtest_path, sep_build, environment, log_dir,
                 is_module=False):
        self.gtest = gtest_path
        self.sep_build = sep_build
        self.preload = [] if is_module else [f"{sep_build}/bin/sep-run",
                                             "--keep-tls"]
        self.environment = environment
        self.log_dir = log_dir
        self.cpu = 0.0          # seconds, of all processes so far

    def list(self):
        """All tests of transports, in the order of the program."""
        with self._directory() as directory:
            return of_instances(gtest.list_with_parameters(
                self._starter(directory), directory))

    def run(self, tests, limit, name):
        """Run tests of one suite, each within limit seconds. Returns results by
        full name; each test has one."""
        results, complaints = self._run(tests, limit, name)
        passed = [test for test in tests
                  if results[test.full_name].status == OK]
        if not complaints:
            return results

        suspects = passed or tests
        if len(suspects) > 1:
            for test in passed:
                results.update(self.run([test], limit, name))
        if not any(result.violates for result in results.values()):
            # It does not come again, or came from one that failed anyway
            failed = [test for test in tests if
                      results[test.full_name].status not in (OK, SKIPPED)]
            _blame(results[(failed or suspects)[-1].full_name], complaints)
        return results

    def _run(self, tests, limit, name):
        log_path = os.path.join(self.log_dir, name + ".log")
        names = [test.full_name for test in tests]
        policy = gtest.Policy(limit, each_test=True, deaths=len(tests) + 1,
                              certain=False)
        with self._directory() as directory, open(log_path, "ab") as log:
            report = gtest.run(self._starter(directory), names, policy,
                               directory, log)
            complaints = _complaints(directory)
        self.cpu += report.cpu
        return {name: _result(report.outcomes[name])
                for name in names}, complaints

    def _starter(self, directory):
        """Function that starts the program, each time on a new device."""
        environment = dict(os.environ)
        environment.update(UCX_HANDLE_ERRORS="bt", UCX_LOG_LEVEL="warn",
                           UCX_WARN_UNUSED_ENV_VARS="n")
        environment.update(self.environment)

        def start(options, log):
            device = tempfile.mkdtemp(prefix="device.", dir=directory)
            return process.Process(
                [f"{self.sep_build}/bin/mlx5sim-run", "--dir", device,
                 *self.preload, self.gtest, *options], log, environment,
                os.path.dirname(self.gtest))
        return start

    @contextlib.contextmanager
    def _directory(self):
        """For devices and reports."""
        parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        path = tempfile.mkdtemp(prefix=f"mlx5sim.{os.geteuid()}.gtest.",
                                dir=parent)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


def _result(outcome):
    status = outcome.fatal or _STATUS[outcome.status]
    if outcome.reason.endswith("before any test"):
        status = CRASHED
    return Result(status, outcome.seconds, outcome.reason)


def _complaints(directory):
    """What the devices in there report."""
    lines = []
    for entry in sorted(os.listdir(directory)):
        with contextlib.suppress(OSError):
            with open(os.path.join(directory, entry, "violations"),
                      encoding="utf-8", errors="replace") as file:
                lines += file.read().splitlines()
    return lines


def _blame(outcome, complaints):
    if outcome.status in (OK, SKIPPED):
        outcome.status = FAILED
        outcome.reason = f"device: {complaints[0]}"
    else:
        outcome.reason += f"; device: {complaints[0]}"
    outcome.violates = True
