# SPDX-License-Identifier: BSD-3-Clause
"""Run programs under a time limit and leave nothing of them behind.

An MPI launcher puts its processes into sessions and groups of their own, so
killing one group does not end a job. Every job therefore carries a mark in its
environment, by which all of its processes are found, whoever their parent is.
"""

import atexit
import os
import signal
import subprocess
import tempfile
import time
import uuid

MARK = "SEP_JOB_MARK"

# Seconds after which a program that takes less than one hangs, on any machine
PATIENCE = 300

# Marks of programs that have been started, or are about to be, and of which
# something may still be there
_unfinished = set()


class Result:
    """How a program ended and what it printed."""

    def __init__(self, argv, returncode, stdout, stderr, seconds, timed_out):
        self.argv = argv
        self.returncode = returncode
        self.stdout = stdout
        self.stderr = stderr
        self.seconds = seconds
        self.timed_out = timed_out

    @property
    def ok(self):
        return self.returncode == 0 and not self.timed_out

    def why(self):
        """One line that says why the program failed."""
        name = os.path.basename(self.argv[0])
        if self.timed_out:
            return f"{name}: hung, killed after {self.seconds:.0f} s"
        if self.returncode < 0:
            return f"{name}: killed by {signal_name(-self.returncode)}"
        return f"{name}: exit status {self.returncode}"


def end_with_cleanup():
    """Make signals that end this program do so as exceptions, so that whatever
    it has started is ended as well, and its files are removed. What a signal
    finds between being started and being waited for is ended at exit."""
    def handler(number, _frame):
        # Once: a second signal must not interrupt the cleaning up
        for each in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(128 + number)

    atexit.register(_end_unfinished)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, handler)


def _end_unfinished():
    for mark in list(_unfinished):
        kill_marked(mark)


def signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


# Longest time that processes without an address space are waited for, seconds
SETTLING = 10.0

KERNEL_THREAD = 0x00200000              # PF_KTHREAD


def read_process(entry):
    """(state, environment, whether there may be another one in a moment): a
    process has none in the middle of exec, and while it exits."""
    try:
        with open(f"/proc/{entry}/environ", "rb") as file:
            environment = file.read()
    except ProcessLookupError:
        environment = b""               # some kernels say it like that
    with open(f"/proc/{entry}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    start, end = int(fields[47]), int(fields[48])
    # Empty, and yet not of length 0: exec has come to its end since
    is_between = not environment and (end == 0 or end != start) and \
        not int(fields[6]) & KERNEL_THREAD
    return fields[0], environment, is_between


def marked_processes(mark):
    """Process ids of all that were started with this mark."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    entries = [entry for entry in os.listdir("/proc") if entry.isdigit() and
               int(entry) != os.getpid()]
    deadline = time.monotonic() + SETTLING
    while entries:
        again = []
        for entry in entries:
            try:
                state, environment, is_between = read_process(entry)
            except OSError:
                continue                # gone, or another user's
            if state == b"Z":
                continue
            if wanted in environment.split(b"\0"):
                found.append(int(entry))
            elif is_between:
                again.append(entry)
        entries = again if time.monotonic() < deadline else []
        if entries:
            time.sleep(0.005)
    return found


def kill_marked(mark, grace=2.0):
    """End what is left of a job; first politely, so that launchers can clean
    up. Returns how many processes were still there."""
    left = marked_processes(mark)
    count = len(left)
    for number, wait in ((signal.SIGTERM, grace), (signal.SIGKILL, 5.0)):
        for pid in left:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        deadline = time.monotonic() + wait
        while left and time.monotonic() < deadline:
            time.sleep(0.05)
            left = marked_processes(mark)
        if not left:
            break
    return count


class Process:
    """A program that is running, its output collected in files: a pipe that
    nobody reads could stop it, and a file also keeps what a killed one said.

    cpu: the processor that it may run on, if it is not all.
    terminal: its standard input is a terminal on which nobody types.
    """

    def __init__(self, argv, env=None, mark=None, cpu=None, terminal=False):
        self.argv = [str(word) for word in argv]
        self.mark = mark or uuid.uuid4().hex
        self.stdout_file = tempfile.TemporaryFile()
        self.stderr_file = tempfile.TemporaryFile()
        environment = dict(os.environ if env is None else env)
        environment[MARK] = self.mark
        _unfinished.add(self.mark)
        self.terminal = os.openpty() if terminal else ()
        self.started = time.monotonic()
        pin = None if cpu is None else \
            lambda: os.sched_setaffinity(0, [cpu])
        self.popen = subprocess.Popen(self.argv, env=environment,
                                      preexec_fn=pin,
                                      stdin=self.terminal[1] if terminal
                                      else subprocess.DEVNULL,
                                      stdout=self.stdout_file,
                                      stderr=self.stderr_file,
                                      start_new_session=True)

    @property
    def pid(self):
        return self.popen.pid

    def poll(self):
        return self.popen.poll()

    def wait(self, timeout):
        """Wait until the program ends, or kill it and all it started. None: it
        may take as long as it will."""
        timed_out = False
        try:
            self.popen.wait(timeout=timeout and max(timeout, 0))
        except subprocess.TimeoutExpired:
            timed_out = True
        except BaseException:
            # Interrupted: the caller ends, and what it started must not stay
            self.finish()
            raise
        return self.finish(timed_out)

    def finish(self, timed_out=False):
        """Kill what is left and collect the output."""
        kill_marked(self.mark)
        _unfinished.discard(self.mark)
        self.popen.wait()
        result = Result(self.argv, self.popen.returncode,
                        read_all(self.stdout_file), read_all(self.stderr_file),
                        time.monotonic() - self.started, timed_out)
        self.stdout_file.close()
        self.stderr_file.close()
        for end in self.terminal:
            os.close(end)
        return result


def read_all(file):
    file.seek(0)
    return file.read().decode(errors="replace")


def run(argv, timeout, env=None):
    """Run a program to its end."""
    return Process(argv, env).wait(timeout)
