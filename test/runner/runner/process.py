# SPDX-License-Identifier: BSD-3-Clause
"""Start programs, and leave nothing of them behind.

Each program leads a session of its own. Whatever it starts stays in that
session (also what moves to another process group, as timeout(1) does), so that
all of it is found and nothing else is.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

GRACE = 15.0                # between SIGTERM and SIGKILL

_running = set()
_lock = threading.RLock()     # a signal may come to who holds it
_closed = False


class Closed(Exception):
    """The runner is being ended and starts nothing any more."""


class Process:
    """A program with its output in a file."""

    def __init__(self, command, log, environment=None, directory=None,
                 pass_fds=()):
        with _lock:
            if _closed:
                raise Closed
            self._popen = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, env=environment, cwd=directory,
                pass_fds=pass_fds, start_new_session=True)
            _running.add(self)
        self.pid = self._popen.pid
        self.status = None
        self.cpu = 0.0      # seconds, of all that it has waited for
        self.killed = False

    def ended(self):
        """Whether it has ended; if so, its number still belongs to it."""
        return os.waitid(os.P_PID, self.pid,
                         os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def wait(self, limit):
        """Wait for its end, or end it after so many seconds."""
        deadline = time.monotonic() + limit
        pause = 0.002
        while not self.ended():
            left = deadline - time.monotonic()
            if left <= 0:
                self.kill()
                break
            time.sleep(min(pause, left))
            pause = min(2 * pause, 0.05)
        self.close()

    def kill(self):
        """End it and what it has started, first politely."""
        self.killed = True
        _signal_session(self.pid, signal.SIGTERM)
        deadline = time.monotonic() + GRACE
        while not self.ended() and time.monotonic() < deadline:
            time.sleep(0.02)

    def close(self):
        """After its end: end what it has left behind, take its status."""
        _signal_session(self.pid, signal.SIGKILL)
        _, status, usage = os.wait4(self.pid, 0)
        self._popen.returncode = 0      # it has been waited for
        self.status = os.waitstatus_to_exitcode(status)
        self.cpu = usage.ru_utime + usage.ru_stime
        with _lock:
            _running.discard(self)

    def why(self):
        """How it ended, in words."""
        return describe(self.status)


def describe(status):
    """Exit status in words; launchers say 128 + N for signal N."""
    number = -status if status < 0 else status - 128
    if number > 0:
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(number).name}"
    return f"exit status {status}"


def _session_members(session):
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError):
            with open(f"/proc/{entry}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            if fields[0] != b"Z" and int(fields[3]) == session:
                found.append(int(entry))
    return found


def _signal_session(session, number):
    for pid in _session_members(session):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def end_all():
    """Start nothing any more, and end all that runs."""
    global _closed
    with _lock:
        _closed = True
        left = list(_running)
    for number, grace in ((signal.SIGTERM, GRACE), (signal.SIGKILL, 5.0)):
        for each in left:
            _signal_session(each.pid, number)
        deadline = time.monotonic() + grace
        while time.monotonic() < deadline and \
                any(_session_members(each.pid) for each in left):
            time.sleep(0.05)


def end_with_cleanup():
    """Make signals that end this program do so as exceptions, after ending
    whatever it has started."""
    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)

    def handler(number, _frame):
        # Once: a second signal must not interrupt the cleaning up
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        print(f"\nended by {signal.Signals(number).name}", file=sys.stderr)
        end_all()
        raise SystemExit(128 + number)

    for number in numbers:
        signal.signal(number, handler)
