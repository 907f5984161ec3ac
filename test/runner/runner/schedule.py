# SPDX-License-Identifier: BSD-3-Clause
"""Do tasks that depend on each other, as many at a time as there are tokens."""

import threading
import time

from . import process


class Task:
    """Something to do. It is done when all that it needs is done, and dropped
    if any of that could not be done."""

    def __init__(self, name, action, needs=(), urgent=False, alone=False,
                 aside=False, dropped=None):
        self.name = name
        self.action = action        # called in a thread
        self.needs = list(needs)
        self.urgent = urgent        # many others wait for it
        self.alone = alone          # at the end, while nothing else is done
        self.aside = aside          # waits most of its time: needs no token
        self.dropped = dropped      # called instead, with the name of a need
        self.state = "waiting"      # running, done, failed
        self.began = 0.0


class Failed(Exception):
    """Raised by an action: what needs this task can't be done."""


class Schedule:
    """All tasks. Actions may add more."""

    def __init__(self, tokens):
        self._tokens = tokens
        self._tasks = []
        self._changed = threading.Condition()
        self._error = None

    def add(self, task):
        with self._changed:
            self._tasks.append(task)
            self._changed.notify_all()
        return task

    def running(self):
        """Tasks being done, and how many are waiting."""
        with self._changed:
            now = [task for task in self._tasks if task.state == "running"]
            waiting = sum(task.state == "waiting" for task in self._tasks)
        return now, waiting

    def run(self, tick=lambda: None):
        """Do everything. Calls tick now and then."""
        threads = [threading.Thread(target=self._work, args=(aside,),
                                    daemon=True)
                   for aside in [False] * self._tokens.number + [True]]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            tick()
            time.sleep(0.2)
        if self._error:
            raise self._error

    def _work(self, aside):
        while self._wait(aside):
            if not aside:
                self._tokens.acquire()
            task = self._take(aside)
            if task:
                self._do(task)
            if not aside:
                self._tokens.release()

    def _wait(self, aside):
        """Wait until there is something to do. False: there never will be."""
        with self._changed:
            while not self._error:
                self._drop()
                if self._next(aside):
                    return True
                if all(task.state in ("done", "failed")
                       for task in self._tasks):
                    break
                self._changed.wait()
            self._changed.notify_all()
            return False

    def _take(self, aside):
        with self._changed:
            task = self._next(aside)
            if task:
                task.state = "running"
                task.began = time.monotonic()
            return task

    def _next(self, aside):
        """The most urgent task that can be done now, with a token or aside."""
        waiting = [task for task in self._tasks if task.state == "waiting"]
        # Tokens that nothing else is left for are for all
        rest = all(task.aside or task.alone for task in waiting)
        ready = [task for task in waiting if
                 (task.aside == aside or rest and not aside) and
                 all(need.state == "done" for need in task.needs)]
        shared = [task for task in ready if not task.alone]
        if shared:
            if any(task.alone and task.state == "running"
                   for task in self._tasks):
                return None
            return next((task for task in shared if task.urgent), shared[0])
        if any(task.state == "running" for task in self._tasks) or \
                any(task.state == "waiting" and not task.alone
                    for task in self._tasks):
            return None
        return ready[0] if ready else None

    def _drop(self):
        """Give up what needs a failed task."""
        for task in self._tasks:
            if task.state != "waiting":
                continue
            bad = [need for need in task.needs if need.state == "failed"]
            if bad:
                task.state = "failed"
                if task.dropped:
                    task.dropped(bad[0].name)

    def _do(self, task):
        state = "failed"
        try:
            task.action()
            state = "done"
        except (Failed, process.Closed):
            pass
        except BaseException as error:
            self._error = error
        with self._changed:
            task.state = state
            self._changed.notify_all()
