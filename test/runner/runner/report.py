# SPDX-License-Identifier: BSD-3-Clause
"""What the runner prints, while tests run and at the end."""

import os
import sys
import threading
import time

from . import result

_SILENCE = 60.0             # seconds without output, then say what is going on
_SHOWN = 5                  # failures whose logs are shown at the end


class Console:
    """Prints a line for each build and each group of tests."""

    def __init__(self, top, running):
        self._top = top
        self._running = running     # function: tasks being done, how many wait
        self._lock = threading.Lock()
        self._start = self._last = time.monotonic()

    def say(self, text, lines=()):
        """Print a line with the time, and others below it."""
        with self._lock:
            self._last = time.monotonic()
            print(f"[{clock(self._last - self._start)}] {text}")
            for line in lines:
                print(f"        {line}")
            sys.stdout.flush()

    def group(self, title, results, seconds):
        """What became of a group of tests."""
        passed, failed, skipped = result.count(results)
        text = f"{title:<58} {passed:4d} passed"
        if failed:
            text += f", {failed} FAILED"
        if skipped:
            text += f", {skipped} skipped"
        lines = [f"FAILED {each.name}: {each.reason}" for each in results
                 if each.status == result.FAILED]
        self.say(f"{text} {seconds:8.1f} s", lines)

    def tick(self):
        """If nothing was printed for a while, what is being done?"""
        now = time.monotonic()
        if now - self._last > _SILENCE:
            tasks, waiting = self._running()
            self.say("; ".join([f"{task.name} for {now - task.began:.0f} s"
                                for task in tasks]) + f"; {waiting} waiting")

    def path(self, path):
        """As seen from the top directory."""
        return path.removeprefix(self._top + "/")

    def closing(self, results, times, seed=None, left_out=()):
        """Tables, failures, and the line that counts, with what could not be
        run on this machine, and why."""
        seconds = time.monotonic() - self._start
        print("\n" + "\n".join(time_table(results, times)))
        failures = [each for each in results if each.status == result.FAILED]
        if failures:
            print("\nFailed:")
        for each in failures:
            log = f" (see {self.path(each.log)})" if each.log else ""
            print(f"  {each.part}: {each.name}: {each.reason}{log}")
        # Whoever has but this output, as from CI, sees what was said last
        for each in failures[:_SHOWN]:
            for path in _files(each.log):
                print(f"\n{self.path(path)}:")
                print("\n".join("    " + line
                                for line in said(path, each.test)))
        again = [each for each in results if each.before]
        if again:
            print(f"\nPassed at the second try: {len(again)}")
        for each in again:
            print(f"  {each.part}: {each.name}: {each.before}")
        passed, failed, skipped = result.count(results)
        print(f"\nTime {clock(seconds)}" +
              (f", {skipped} skipped" if skipped else "") +
              (f", SEP_TEST_SEED={seed}" if seed is not None else ""))
        print("; ".join([f"{passed} passed, {failed} failed"] + [
            f"{what} skipped: {reason}" for what, reason in left_out]),
              flush=True)
        return 0 if passed and not failed else 1


def skips_by_reason(results):
    """Lines that say how many were skipped for each reason."""
    counts = {}
    for each in results:
        if each.status == result.SKIPPED:
            counts[each.reason] = counts.get(each.reason, 0) + 1
    return [f"{count}: {reason}" for reason, count in counts.items()]


def clock(seconds):
    """"m:ss" of a number of seconds."""
    return f"{int(seconds) // 60:3d}:{int(seconds) % 60:02d}"


def _files(path):
    """A log, or those of a directory."""
    if os.path.isdir(path):
        return sorted(entry.path for entry in os.scandir(path)
                      if entry.is_file())
    return [path] if os.path.isfile(path) else []


def tail(path, count=15):
    """Last lines of a log."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()[-20000:].splitlines()[-count:]
    except OSError:
        return []


def said(path, name, count=40):
    """What a test of GoogleTest printed first, where a sanitizer's report is,
    or the last lines of the log of something else."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            _, began, text = file.read().partition(f"[ RUN      ] {name}\n")
    except OSError:
        return []
    lines = text.partition(f"[  FAILED  ] {name} ")[0].splitlines()[:count]
    return lines if began else tail(path, count)


def time_table(results, times):
    """Where the time went. Times are rows of (part, run, elapsed seconds,
    processor seconds); those of one run are added."""
    total = {}
    for part, run, elapsed, cpu in times:
        before = total.get((part, run), (0.0, 0.0))
        total[part, run] = (before[0] + elapsed, before[1] + cpu)
    lines = [f"{'':<46} {'tests':>6} {'elapsed':>9} {'processor':>10}"]
    for (part, run), (elapsed, cpu) in total.items():
        tests = sum((each.part, each.run) == (part, run) for each in results)
        lines.append(f"{part + ' ' + run:<46} {tests or '':>6} "
                     f"{elapsed:7.0f} s {cpu:8.0f} s")
    elapsed, cpu = map(sum, zip(*total.values())) if total else (0.0, 0.0)
    lines.append(f"{'all':<46} {len(results):>6} {elapsed:7.0f} s "
                 f"{cpu:8.0f} s")
    return lines
