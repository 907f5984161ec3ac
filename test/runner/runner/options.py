# SPDX-License-Identifier: BSD-3-Clause
"""Options of the command line, and what patterns of tests mean."""

import argparse
import fnmatch
import os
import secrets

from .parts import PARTS

_NAMES = [part.name for part in PARTS]

_EPILOG = """\
parts (default: all but those in brackets)
%s

examples
  contrib/check.sh unit sources
  contrib/check.sh --one test_sep_fc.*            of the first part that has it
  contrib/check.sh --one sanitized/test_sep_fc.grant*
  contrib/check.sh --one 'sep_gtest-static/*.put_*'
  contrib/check.sh --one 'jobs/*tag_lat*'
  contrib/check.sh --one insn_fuzz.* --seed random --repeat 20
  contrib/check.sh --list unit > tests

A test is called PART/RUN TEST, as --list prints it. A pattern with * or ? has
to match all of TEST, PART/TEST, RUN/TEST or PART/RUN/TEST; one without is
looked for in PART/RUN/TEST. If it does not begin with a part, parts are tried in
the order above until one has such a test.

environment
  SEP_UNIT_TIMEOUT         seconds for a unit test (600; three times that with
                           sanitizers and valgrind); within a test, what waits
                           for something gives up after half of it
  SEP_JOBS_TIMEOUT         seconds for all jobs of a run (7200)
  SEP_CONFORMANCE_TIMEOUT  seconds for each of UCX's tests (300)
  SEP_DEBIAN13_UCX_SOURCE  source of Debian 13's UCX, if apt does not have it
  SEP_NEWEST_UCX_SOURCE    source of UCX 1.22.0, for part ucp

Logs, and the results as JUnit XML, are in build/check-results. The last line is
"N passed, N failed"; the exit status is 0 if some passed and none failed.
"""


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="contrib/check.sh",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Install what is missing, build what is needed and run "
        "tests. Run it again at any\ntime; only what changed is rebuilt.",
        epilog=_EPILOG % "\n".join(_about(part) for part in PARTS))
    parser.add_argument("parts", nargs="*", metavar="PART",
                        help="parts of the tests, see below")
    parser.add_argument("--one", metavar="PATTERN", action="append",
                        help="only tests that match, built and run as their "
                        "part does; may be repeated")
    parser.add_argument("--list", action="store_true",
                        help="build, and print the names of the tests")
    parser.add_argument("--seed", metavar="N",
                        help="for tests with random numbers; 'random' chooses "
                        "one and prints it (default: always the same)")
    parser.add_argument("--repeat", type=_positive, default=1, metavar="N",
                        help="run each unit test N times")
    parser.add_argument("--jobs", type=_positive, default=_processes(),
                        metavar="N", help="processes at a time (default: one "
                        "more than cores, %(default)s)")
    parser.add_argument("--build", metavar="DIR",
                        help="a configured build for all that is not sanitized "
                        "(default: build/check is made for that)")
    parser.add_argument("--quick", action="store_true",
                        help="fewer sizes and iterations in the jobs")
    parser.add_argument("--junit", metavar="FILE",
                        help="write the results there, too")
    options = parser.parse_args(arguments)
    for name in options.parts:
        if name not in _NAMES:
            parser.error(f"unknown part '{name}', choose from "
                         f"{' '.join(_NAMES)}")
    # Against what hangs: a sound test comes nowhere near, on any machine
    options.unit_limit = _limit("SEP_UNIT_TIMEOUT", 600)
    options.jobs_limit = _limit("SEP_JOBS_TIMEOUT", 7200)
    options.conformance_limit = _limit("SEP_CONFORMANCE_TIMEOUT", 300)
    return options


def _about(part):
    name = f"[{part.name}]" if part.by_name else part.name
    return f"  {name:<12} {part.about}"


def _positive(text):
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a positive number")
    return int(text)


def _limit(name, default):
    return float(os.environ.get(name) or default)


def _processes():
    """One per core and one more, as some wait: with one per core, a tenth of the
    time was left. Memory for a compiler each."""
    cores = len(os.sched_getaffinity(0)) + 1
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                cores = min(cores, int(line.split()[1]) // 1000000)
    return max(cores, 1)


def seed(text):
    """The seed that all tests get, or None for their own."""
    if text == "random":
        return secrets.randbelow(2 ** 31)
    return text


def chosen_parts(options):
    """Lists of parts: the next one is for when no test of one matched."""
    if options.parts:
        return [[part for part in PARTS if part.name in options.parts]]
    if not options.one:
        return [[part for part in PARTS if not part.by_name]]
    begins = [pattern.partition("/")[0] for pattern in options.one]
    named = [part for part in PARTS if part.name in begins]
    if all(name in _NAMES for name in begins):
        return [named]
    return [named + [part] for part in PARTS if part not in named]


def matcher(patterns):
    """Function that tells whether one of the patterns means a test."""
    if not patterns:
        return None
    return lambda part, run, test: any(
        _means(pattern, part, run, test) for pattern in patterns)


def _means(pattern, part, run, test):
    full = f"{part}/{run}/{test}"
    if not set(pattern) & set("*?["):
        return pattern in full or pattern in f"{part}/{test}"
    return any(fnmatch.fnmatchcase(name, pattern) for name in
               (test, f"{part}/{test}", f"{run}/{test}", full))
