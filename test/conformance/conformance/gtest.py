# SPDX-License-Identifier: BSD-3-Clause
"""List and run the tests of UCX's gtest program.

Each suite runs in a process of its own. A test that hangs or crashes costs
that test: the process is ended and the rest of the suite goes on in a new one.
What a test did is read from the program's output, because UCX prints there why
it skips a test and counts such a test as passed.
"""

import dataclasses
import os
import queue
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

OK = "ok"
SKIPPED = "skipped"
FAILED = "failed"
CRASHED = "crashed"
HUNG = "hung"

_TEST_LINE = re.compile(r"^\[ RUN      \] (\S+)")
_END_LINE = re.compile(r"^\[ {2}(?:     OK|FAILED ) \] ([^\s,]+).* "
                       r"\((\d+) ms\)$")
_SKIP_LINE = re.compile(r"^\[ +SKIP +\] ?\(?(.*?)\)?$")
_VIOLATION = re.compile(r"mlx5sim: strict check '([^']*)' failed on (.*)")
_REASON = re.compile(r"(?:\b(?:ERROR|WARN|FATAL|error)\b|Assertion|"
                     r"Caught signal|Got \d+ errors|Invalid .*configuration|"
                     r"mlx5sim: )")


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


def parse_list(text):
    """Tests in the output of --gtest_list_tests, without the disabled ones."""
    tests = []
    instance = suite = None
    for line in text.splitlines():
        name, _, comment = line.partition("#")
        if line.startswith("  ") and suite:
            name = name.split()[0]
            parameter = comment.partition("GetParam() = ")[2].strip()
            if "DISABLED_" not in name:
                tests.append(Test(instance, suite, name, parameter))
        elif re.match(r"^\w+(/\w+)?\.\s*$", name):
            instance, _, suite = name.strip().rstrip(".").rpartition("/")
            if not instance:
                suite = None            # not of any transport
    return tests


class Output:
    """Reads the program's output line by line and notes the results."""

    def __init__(self):
        self.results = {}
        self.running = None
        self.started = 0.0
        self.skip = None
        self.failed_why = []
        self.explaining = 0     # lines that still belong to a failure
        self.violation = None

    def line(self, text):
        text = text.rstrip("\n")
        begin = _TEST_LINE.match(text)
        if begin:
            self.running = begin.group(1)
            self.started = time.monotonic()
            self.skip = self.violation = None
            self.failed_why = []
            self.explaining = 0
            return
        end = _END_LINE.match(text)
        if end and end.group(1) == self.running:
            self._end(OK if "     OK" in text else FAILED,
                      int(end.group(2)) / 1000)
            return
        skip = _SKIP_LINE.match(text)
        if skip:
            self.skip = skip.group(1) or "no reason given"
            return
        violation = _VIOLATION.search(text)
        if violation:
            self.violation = f"device: {violation.group(1)}: " \
                             f"{violation.group(2)}"
        if text.endswith("Failure"):
            # The lines behind it say what was expected
            self.failed_why.append("")
            self.explaining = 5
        elif self.explaining and not text.startswith("["):
            self.failed_why[-1] = f"{self.failed_why[-1]} {text.strip()}".strip()
            self.explaining -= 1
        elif _REASON.search(text) and not text.startswith("[ "):
            self.failed_why.append(_without_prefix(text))
            self.explaining = 0

    def _end(self, status, seconds, reason=None):
        if status == OK and self.violation:
            status, reason = FAILED, self.violation
        elif status == OK and self.skip is not None:
            status, reason = SKIPPED, self.skip
        elif status != OK and reason is None:
            reason = self.why()
        self.results[self.running] = Result(status, seconds, reason or "")
        self.running = None

    def why(self):
        return "; ".join(self.failed_why[:3]) or "no message"

    def died(self, status, reason):
        """The process ended, or was ended, in the middle of a test."""
        if self.running:
            seconds = time.monotonic() - self.started
            if self.failed_why:
                reason += ": " + self.why()
            self._end(status, seconds, reason)


def _without_prefix(text):
    """UCX's log lines begin with time, host, process and source line."""
    text = re.sub(r"^\[\d[\d.]*\] \[[^\]]*\]\s+", "", text.strip())
    return re.sub(r"^\S+/test/gtest/", "", text)


class Program:
    """The gtest program, on a software device and with the transport."""

    def __init__(self, gtest, sep_build, environment, log_dir,
                 is_module=False):
        self.gtest = gtest
        self.sep_build = sep_build
        self.preload = [] if is_module else [f"{sep_build}/bin/sep-run",
                                             "--keep-tls"]
        self.environment = environment
        self.log_dir = log_dir

    def _start(self, device, arguments, stderr):
        environment = dict(os.environ)
        environment.update(UCX_HANDLE_ERRORS="bt", UCX_LOG_LEVEL="warn",
                           UCX_WARN_UNUSED_ENV_VARS="n")
        environment.update(self.environment)
        command = [f"{self.sep_build}/bin/mlx5sim-run", "--dir", device,
                   *self.preload, self.gtest, *arguments]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=stderr,
                                env=environment, text=True, errors="replace",
                                cwd=os.path.dirname(self.gtest),
                                start_new_session=True)

    def list(self):
        device = _make_device()
        try:
            process = self._start(device, ["--gtest_list_tests"],
                                  subprocess.PIPE)
            text, errors = process.communicate(timeout=120)
            if process.returncode != 0:
                raise SystemExit(f"{self.gtest} cannot list its tests, exit "
                                 f"status {process.returncode}: {errors[-500:]}")
        finally:
            shutil.rmtree(device, ignore_errors=True)
        return parse_list(text)

    def run(self, tests, limit, name):
        """Run tests of one suite, each within limit seconds. Returns results by
        full name; each test has one."""
        results = {}
        left = [test.full_name for test in tests]
        while left:
            done = self._run_once(left, limit, name)
            if not done:
                # Nothing started at all: do not try for ever
                done = {left[0]: Result(CRASHED, 0.0, "did not start")}
            results.update(done)
            left = [each for each in left if each not in results]
        return results

    def _run_once(self, names, limit, log_name):
        output = Output()
        device = _make_device()
        process = self._start(device, ["--gtest_filter=" + ":".join(names)],
                              subprocess.STDOUT)
        lines = queue.Queue()
        reader = threading.Thread(target=_read, args=(process.stdout, lines))
        reader.start()
        hung = False
        log_path = os.path.join(self.log_dir, log_name + ".log")
        try:
            with open(log_path, "a", encoding="utf-8") as log:
                deadline = time.monotonic() + limit
                while True:
                    try:
                        line = lines.get(timeout=max(
                            0.01, deadline - time.monotonic()))
                    except queue.Empty:
                        hung = True
                        break
                    if line is None:
                        break
                    log.write(line)
                    output.line(line)
                    # Each test has its own time; so has the program's end
                    if line.startswith(("[ RUN ", "[       OK", "[  FAILED")):
                        deadline = time.monotonic() + limit
                    elif time.monotonic() > deadline:
                        hung = True     # it still prints, but does not end
                        break
                if hung:
                    log.write(f"### killed: no end within {limit} s\n")
        finally:
            _end(process, hung)
            reader.join()
            process.stdout.close()
            shutil.rmtree(device, ignore_errors=True)
        if hung:
            output.died(HUNG, f"no end within {limit} s")
        elif output.running:
            output.died(CRASHED, f"exit status {process.returncode}")
        return output.results


def _make_device():
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return tempfile.mkdtemp(prefix=f"mlx5sim.{os.geteuid()}.gtest.", dir=parent)


def _read(stream, lines):
    for line in stream:
        lines.put(line)
    lines.put(None)


def _end(process, kill):
    """Leave nothing of the process and what it has started. It leads a session
    of its own, so the group's number belongs to nobody else until it is waited
    for."""
    if not kill:
        try:
            process.wait(timeout=30)
            return
        except subprocess.TimeoutExpired:
            pass
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
