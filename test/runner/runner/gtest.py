# SPDX-License-Identifier: BSD-3-Clause
"""List and run the tests of a GoogleTest program.

The results are GoogleTest's own JSON report. A program that crashed or was
killed has written none: the tests that had passed by then have passed, the one
that was running has failed, and what is left is run in a new process.
"""

import dataclasses
import json
import os
import re

from .result import FAILED, PASSED, SKIPPED
from .stream import Stream

_LIST_LIMIT = 600


@dataclasses.dataclass(frozen=True)
class Policy:
    """How long, and how often, a program may go on."""
    seconds: float              # for a suite
    each_test: bool = False     # ... for a test, whatever its suite takes
    deaths: int = 3             # before the rest of the tests is given up
    certain: bool = True        # what it calls passed has not been skipped


@dataclasses.dataclass
class Outcome:
    """What became of one test."""
    status: str
    seconds: float = 0.0
    reason: str = ""
    fatal: str = ""             # "crashed" or "hung", if it took the program


class Report:
    """What all processes for a list of tests have told."""

    def __init__(self):
        self.outcomes = {}          # by full name
        self.doubtful = set()       # not passed, in a process that died later
        self.complaint = ""         # about a process in which no test failed
        self.died = False           # one came to no report
        self.cpu = 0.0


class ListError(Exception):
    """A program cannot list its tests."""


def selected(filter_text, name):
    """Whether GoogleTest would run a test with this --gtest_filter."""
    positive, _, negative = filter_text.partition("-")
    return _matches(positive or "*", name) and not _matches(negative, name)


def _matches(patterns, name):
    return any(re.fullmatch(re.escape(pattern).replace(r"\*", ".*")
                            .replace(r"\?", "."), name)
               for pattern in patterns.split(":") if pattern)


def dead_patterns(filter_text, names):
    """Patterns of a --gtest_filter without effect on these tests: those that
    select none, and those that exclude none of what the others select."""
    positive, _, negative = filter_text.partition("-")
    chosen = [name for name in names if _matches(positive or "*", name)]
    return [pattern for pattern in positive.split(":") if pattern and
            not any(_matches(pattern, name) for name in names)] + \
        [f"-{pattern}" for pattern in negative.split(":") if pattern and
         not any(_matches(pattern, name) for name in chosen)]


def list_tests(start, directory):
    """Full names of a program's tests, without the disabled ones."""
    return [name for name, _ in list_with_parameters(start, directory)]


def list_with_parameters(start, directory):
    """Full names of a program's tests, each with the value that it is
    instantiated for."""
    report = os.path.join(directory, "list.json")
    log_path = os.path.join(directory, "list.log")
    _remove(report)
    with open(log_path, "wb") as log:
        child = start(["--gtest_list_tests", f"--gtest_output=json:{report}"],
                      log)
        child.wait(_LIST_LIMIT)
    if child.status != 0 or not os.path.exists(report):
        raise ListError(f"cannot list its tests, {child.why()}, see {log_path}")
    tests = [(f"{suite['name']}.{test['name']}", test.get("value_param", ""))
             for suite in _load(report)["testsuites"]
             for test in suite["testsuite"]]
    return [test for test in tests if not
            re.search(r"(^|[/.])DISABLED_", test[0])]


def chunks(names, size, apart=""):
    """Cut a list into pieces of about so many tests. Short suites stay whole;
    a long one is cut. Suites that match stay alone."""
    pieces = []
    closed = False              # nothing may be added to the last piece
    for name, suite in _suites(names).items():
        if _matches(apart, name):
            pieces.append(suite)
            closed = True
            continue
        parts = -(-len(suite) // size)
        length = -(-len(suite) // parts)
        for first in range(0, len(suite), length):
            part = suite[first:first + length]
            if pieces and not closed and len(pieces[-1]) + len(part) <= size:
                pieces[-1] += part
            else:
                pieces.append(part)
            closed = False
    return pieces


def _suites(names):
    suites = {}
    for name in names:
        suites.setdefault(name.rpartition(".")[0], []).append(name)
    return suites


def run(start, names, policy, directory, log):
    """Run tests. Each gets an outcome."""
    report = Report()
    left = list(names)
    deaths = 0
    while left:
        if deaths == policy.deaths:
            for name in left:
                report.outcomes[name] = Outcome(
                    FAILED, reason=f"not run: the program died {deaths} times")
            break
        if not _run_once(start, left, policy, directory, log, report):
            deaths += 1
            report.died = True
        left = [name for name in left if name not in report.outcomes]
    return report


def _run_once(start, names, policy, directory, log, report):
    """Run tests in one process. Returns whether it came to its report."""
    path = os.path.join(directory, "report.json")
    _remove(path)
    stream = Stream()
    child = start([f"--gtest_filter={':'.join(names)}",
                   f"--gtest_output=json:{path}", stream.option], log)
    while not child.ended():
        stream.poll(0.02)
        if stream.events.seconds_left(policy) < 0:
            child.kill()
            break
    child.close()
    stream.close()
    report.cpu += child.cpu

    end = f"killed after {policy.seconds:.0f} s" if child.killed else \
        child.why()
    complete = os.path.exists(path)
    if complete:
        _take_report(_load(path), names, report)
        if child.status != 0 and not any(
                report.outcomes[name].status == FAILED for name in names):
            report.complaint = f"{end} after its tests"
    else:
        _take_events(stream.events, names, end, policy, report)
        if stream.events.running in names:
            report.outcomes[stream.events.running].fatal = \
                "hung" if child.killed else "crashed"
    return complete


def _take_report(document, names, report):
    tests = {f"{suite['name']}.{test['name']}": test
             for suite in document["testsuites"] for test in suite["testsuite"]}
    for name in names:
        test = tests.get(name)
        if test is None:
            report.outcomes[name] = Outcome(FAILED, reason="not in the report")
            continue
        outcome = Outcome(PASSED, float(test["time"].rstrip("s")))
        if test.get("failures"):
            outcome.status = FAILED
            outcome.reason = _brief(test["failures"][0]["failure"])
        elif test.get("result") != "COMPLETED" or "skipped" in test:
            # UCX's tests record a property, see conformance/adapt.py
            outcome.status = SKIPPED
            outcome.reason = _why_skipped(test.get("skipped", ""))
        elif name in report.doubtful:
            outcome = Outcome(FAILED, outcome.seconds,
                              "failed, and passed when it was run again")
        report.outcomes[name] = outcome


def _take_events(events, names, end, policy, report):
    """Of a program without a report."""
    if policy.certain:
        for name, seconds in events.passed.items():
            report.outcomes[name] = Outcome(PASSED, seconds)
    report.doubtful.update(events.not_passed)
    if events.running in names:
        seconds = events.seconds_running()
        report.outcomes[events.running] = Outcome(
            FAILED, seconds, "; ".join([f"{end} in this test",
                                        *map(_brief, events.messages[:1])]))
    elif events.passed or events.not_passed:
        report.complaint = f"{end} between its tests"
    else:
        # There is nobody else to blame
        report.outcomes[names[0]] = Outcome(
            FAILED, 0.0, f"{end} before any test")


def _why_skipped(reason):
    """A property, or the messages of GTEST_SKIP(), which newer GoogleTest tells."""
    if isinstance(reason, list):
        return "; ".join(_brief(each["message"]) for each in reason)
    return reason


def _brief(text):
    """First lines of a message."""
    lines = [line.strip() for line in text.strip().splitlines()]
    return " ".join(lines[:5])[:300]


def _load(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return json.load(file)


def _remove(path):
    if os.path.exists(path):
        os.unlink(path)
