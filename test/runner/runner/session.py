# SPDX-License-Identifier: BSD-3-Clause
"""What one call of the runner works with: options, directories, builds, and
the results as they come."""

import os
import re
import threading
import time

from . import builds, process, report
from .result import FAILED, Result
from .schedule import Failed, Task


class Session:
    """Shared by all parts that are run."""

    def __init__(self, top, options, schedule, tokens, seed, match=None):
        self.top = top
        self.options = options
        self.schedule = schedule
        self.tokens = tokens
        self.seed = seed            # of tests with random numbers, or None
        self.match = match          # function of part, run, test: wanted?
        self.results_dir = os.path.join(top, "build", "check-results")
        self.results = []
        self.times = []
        self.left_out = []          # (part, why), if it can't be run here
        self.listed = []            # names, if they are only to be listed
        self.console = report.Console(top, schedule.running)
        self.builds = builds.Builds(self)
        self._lock = threading.Lock()

    # -- results ---------------------------------------------------------

    def add(self, results, title, elapsed, cpu):
        """Results of one group of tests, all of the same part and run."""
        with self._lock:
            self.results += results
            if results:
                self.times.append((results[0].part, results[0].run, elapsed,
                                   cpu))
        self.console.group(title, results, elapsed)

    def add_time(self, part, run, elapsed, cpu):
        with self._lock:
            self.times.append((part, run, elapsed, cpu))

    def fail(self, part, run, test, reason, log=""):
        """One result that says why nothing else came of it."""
        self.add([Result(part, run, test, FAILED, 0.0, reason, log)],
                 f"{part} {run}", 0.0, 0.0)

    def leave_out(self, what, reason):
        """This machine can't do that, and the closing line will say so."""
        with self._lock:
            self.left_out.append((what, reason))

    def note(self, names):
        with self._lock:
            self.listed += names

    def wanted(self, part, run, test):
        return self.match is None or self.match(part, run, test)

    # -- running ---------------------------------------------------------

    def directory(self, *names):
        """A directory for logs of that part and run, made if need be."""
        words = [re.sub("[^A-Za-z0-9_.-]+", "_", name).strip("_")
                 for name in names]
        path = os.path.join(self.results_dir, *words)
        os.makedirs(path, exist_ok=True)
        return path

    def environment(self, assignments=(), make=False):
        """Of a program; a make, or what calls one, may use all cores."""
        environment = dict(os.environ)
        environment.pop("MAKEFLAGS", None)
        environment.pop("MAKELEVEL", None)
        if make:
            environment["MAKEFLAGS"] = self.tokens.makeflags()
        if self.seed is not None:
            environment["SEP_TEST_SEED"] = str(self.seed)
        for each in assignments:
            name, _, value = each.partition("=")
            environment[name] = value.replace("@TOP@", self.top)
        return environment

    def command(self, command, log_path, limit, environment=(), make=False):
        """Run a command in the top directory. Returns the process and how long
        it took."""
        began = time.monotonic()
        with open(log_path, "wb") as log:
            child = process.Process(
                command, log, self.environment(environment, make), self.top,
                self.tokens.fds if make else ())
            child.wait(limit)
        return child, time.monotonic() - began

    def task(self, part, run, name, action, needs, **how):
        """Add a task for a run. If what it needs fails, the run has failed."""
        def dropped(need):
            self.fail(part, run, run, f"not run, {need} failed")
        return self.schedule.add(Task(f"{part} {name}", action, needs,
                                      dropped=dropped, **how))


__all__ = ["Failed", "Session"]
