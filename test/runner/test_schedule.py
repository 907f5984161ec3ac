# SPDX-License-Identifier: BSD-3-Clause
"""Tasks are done in order, at most so many at a time."""

import threading
import time
import unittest

from runner.schedule import Failed, Schedule, Task
from runner.tokens import Tokens


class Order(unittest.TestCase):

    def setUp(self):
        self.schedule = Schedule(Tokens(2))
        self.done = []
        self.now = self.most = 0
        self.lock = threading.Lock()

    def task(self, name, needs=(), **how):
        def action():
            with self.lock:
                self.now += 1
                self.most = max(self.most, self.now)
            time.sleep(0.02)
            with self.lock:
                self.now -= 1
                self.done.append(name)
        return self.schedule.add(Task(name, action, needs, **how))

    def test_needs_come_first(self):
        first = self.task("first")
        self.task("third", [self.task("second", [first])])
        self.schedule.run()
        self.assertEqual(["first", "second", "third"], self.done)

    def test_as_many_at_a_time_as_there_are_tokens(self):
        for i in range(8):
            self.task(str(i))
        self.schedule.run()
        self.assertEqual(8, len(self.done))
        self.assertEqual(2, self.most)

    def test_what_waits_takes_no_token(self):
        for i in range(4):
            self.task(str(i))
        self.task("aside", aside=True)
        self.schedule.run()
        self.assertEqual(5, len(self.done))
        self.assertEqual(3, self.most)

    def test_tokens_help_when_nothing_else_is_left(self):
        for i in range(8):
            self.task(str(i), aside=True)
        self.task("alone", alone=True)
        self.schedule.run()
        self.assertEqual("alone", self.done[-1])
        self.assertEqual(9, len(self.done))
        self.assertEqual(3, self.most)

    def test_alone_waits_for_what_is_aside(self):
        self.schedule.add(Task("alone", lambda: self.done.append("alone"),
                               alone=True))
        first = self.task("first")
        self.task("aside", [first], aside=True)
        self.schedule.run()
        self.assertEqual(["first", "aside", "alone"], self.done)

    def test_alone_is_last_and_alone(self):
        seen = []
        self.schedule.add(Task("alone", lambda: seen.append(
            (self.now, len(self.done))), alone=True))
        for i in range(5):
            self.task(str(i))
        self.schedule.run()
        self.assertEqual([(0, 5)], seen)

    def test_urgent_is_first(self):
        self.schedule = Schedule(Tokens(1))
        self.task("normal")
        self.task("urgent", urgent=True)
        self.schedule.run()
        self.assertEqual(["urgent", "normal"], self.done)

    def test_what_needs_a_failed_task_is_dropped(self):
        def fail():
            raise Failed
        dropped = []
        bad = self.schedule.add(Task("bad", fail))
        middle = self.task("middle", [bad], dropped=dropped.append)
        self.task("last", [middle], dropped=dropped.append)
        self.task("other")
        self.schedule.run()
        self.assertEqual(["other"], self.done)
        self.assertEqual(["bad", "middle"], sorted(dropped))

    def test_action_may_add_tasks(self):
        self.schedule.add(Task("adds", lambda: self.task("added")))
        self.schedule.run()
        self.assertEqual(["added"], self.done)

    def test_error_in_an_action_is_ours(self):
        def fail():
            raise ValueError("oops")
        self.schedule.add(Task("bad", fail))
        with self.assertRaises(ValueError):
            self.schedule.run()


if __name__ == "__main__":
    unittest.main()
