# SPDX-License-Identifier: BSD-3-Clause
"""Command line of the conformance run."""

import argparse
import collections
import concurrent.futures
import dataclasses
import json
import os
import re
import sys
import threading
import time

from runner import process
from runner.gtest import ListError

from . import adapt, cases, compare, gtest

# A process for so many tests of a suite: what one leaves behind is not the
# business of all others, and starting one takes half a second.
_SHARD = 100

# Suites that measure, and take minutes on a software device.
_SLOW = re.compile(r"perf|loopback")


def parse(arguments=None):
    """Options of the command line."""
    parser = argparse.ArgumentParser(
        prog="ucx_gtest", description="Run UCX's unit tests on sep_mlx5 and "
        "on rc_mlx5 and compare. Built by contrib/ucx-gtest.sh.")
    parser.add_argument("--adapt", metavar="SOURCE",
                        help="add sep_mlx5 to this copy of UCX, and exit")
    parser.add_argument("--gtest", metavar="PROGRAM",
                        help="UCX's gtest program")
    parser.add_argument("--source", metavar="DIR",
                        help="source of that UCX: what is never run must be "
                        "there, if all tests are run")
    parser.add_argument("--sep-build", metavar="DIR",
                        help="build of the transport for that UCX")
    parser.add_argument("--module", action="store_true",
                        help="the transport is a module of that UCX and need "
                        "not be preloaded")
    parser.add_argument("--results", metavar="DIR", default="ucx-gtest-results",
                        help="where to keep logs and results")
    parser.add_argument("--group", choices=[pair[2] for pair in cases.PAIRS],
                        action="append", help="only these tests; ud, dc, "
                        "rc-verbs, ud-verbs: of ud_mlx5 and so on alone; rc: of "
                        "what looks into rc_mlx5; ucp-...: of UCP on these, on "
                        "self, tcp, and on shared memory beside InfiniBand; none "
                        "of these is run by default")
    parser.add_argument("--tests", metavar="REGEX",
                        help="only tests whose 'suite.test' matches")
    parser.add_argument("--only", choices=("sep", "rc"),
                        help="only one of the transports; nothing to compare")
    parser.add_argument("--quick", action="store_true",
                        help="the representative part")
    parser.add_argument("--resume", action="store_true",
                        help="keep results of an earlier run, run the rest")
    parser.add_argument("--rerun-failed", action="store_true",
                        help="with --resume: run again what did not succeed")
    parser.add_argument("--baseline", metavar="DIR",
                        help="take rc_mlx5's results from there")
    parser.add_argument("--against", metavar="DIR",
                        help="compare each test with the results there, of "
                        "another build; exit status 1 if any is worse")
    parser.add_argument("--limit", type=float, default=120, metavar="SECONDS",
                        help="time for each test (default %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N",
                        help="processes at a time (default %(default)s)")
    parser.add_argument("--again", type=int, default=1, metavar="N",
                        help="how often to repeat what fails (default "
                        "%(default)s); a success then is marked")
    parser.add_argument("--set", metavar="NAME=VALUE", action="append",
                        default=[], help="an environment variable of the tests")
    parser.add_argument("--tsv", action="store_true",
                        help="print one line per test, separated by tabs")
    parser.add_argument("--summary", action="store_true",
                        help="print only the summary")
    return parser.parse_args(arguments)


class Store:
    """Results, kept in a file as they come."""

    def __init__(self, path, resume):
        self.path = path
        self.results = {}
        self._lock = threading.Lock()
        if resume and os.path.exists(path):
            self.results = load(path)
        elif os.path.exists(path):
            os.unlink(path)

    def add(self, results):
        with self._lock:
            self.results.update(results)
            with open(self.path, "a", encoding="utf-8") as file:
                for name, result in results.items():
                    json.dump([name, dataclasses.asdict(result)], file)
                    file.write("\n")


def load(path):
    results = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            name, fields = json.loads(line)
            results[name] = gtest.Result(**fields)
    return results


def select(tests, options):
    """Tests to run, in the order of the program."""
    selected = []
    for test in tests:
        pair = cases.group_of(test)
        name = f"{test.suite}.{test.name}"
        if not pair or cases.excluded(name, pair[2]):
            continue
        if pair[2] not in (options.group or cases.BY_DEFAULT):
            continue
        if options.tests and not re.search(options.tests, name):
            continue
        if options.quick and not cases.quick(f"{pair[2]} {name}"):
            continue
        ours = test.instance == pair[0]
        if pair[1] and (options.only == "sep" and not ours or
                        options.only == "rc" and ours):
            continue
        if options.baseline and not ours:
            continue
        selected.append(test)
    return selected


def shards(tests):
    """Lists of at most _SHARD tests of one suite; long ones first."""
    suites = collections.OrderedDict()
    for test in tests:
        suites.setdefault((test.instance, test.suite), []).append(test)
    shards = [members[i:i + _SHARD] for members in suites.values()
              for i in range(0, len(members), _SHARD)]
    return sorted(shards, key=lambda each: not _SLOW.search(each[0].suite))


def without_witnesses(tests):
    """The tests on sep_mlx5, those that only rc_mlx5 has, and as a second list
    the other tests on rc_mlx5: witnesses of the first."""
    ours = {_key(test) for test in tests if _is_ours(test)}
    first, witnesses = [], []
    for test in tests:
        is_witness = not _is_ours(test) and _key(test) in ours
        (witnesses if is_witness else first).append(test)
    return first, witnesses


def witnesses_needed(witnesses, shard, results):
    """Of the witnesses, those of tests of the shard that have not succeeded: next
    to what has, no result is better."""
    doubtful = {_key(test) for test in shard if _is_ours(test) and
                results[test.full_name].status != gtest.OK}
    return [test for test in witnesses if _key(test) in doubtful]


def _is_ours(test):
    return test.instance == cases.group_of(test)[0]


def _key(test):
    return cases.group_of(test)[2], test.suite, test.name


def run_shard(program, shard, options):
    """Run tests of one suite, and once more what failed, alone. Returns results
    by full name."""
    name = f"{shard[0].instance}-{shard[0].suite}"
    limit = options.limit * (5 if _SLOW.search(shard[0].suite) else 1)
    results = program.run(shard, limit, name)
    for attempt in range(options.again):
        failed = [test for test in shard if results[test.full_name].status
                  not in (gtest.OK, gtest.SKIPPED) and
                  not results[test.full_name].violates]
        if not failed:
            break
        for test, again in zip(failed, _each(program, failed, limit, name)):
            before = results[test.full_name]
            again.tries = attempt + 2
            if again.status == gtest.OK:
                again.reason = f"first: {before.status}: {before.reason}"
            results[test.full_name] = again
    return results


def _run_and_store(program, shard, options, store):
    started = time.monotonic()
    results = run_shard(program, shard, options)
    store.add(results)
    print(f"  {shard[0].instance + '/' + shard[0].suite:<52} "
          f"{time.monotonic() - started:6.0f} s  {in_words(results)}",
          file=sys.stderr, flush=True)


def is_known(suite_and_test, ucx_version):
    """Whether it is UCX's own defect if rc_mlx5 fails at a test."""
    return cases.is_rc_mlx5_defect(suite_and_test, ucx_version)


def dead_options(tests, options):
    """Parts of --tests that mean no test of the groups."""
    groups = options.group or cases.BY_DEFAULT
    names = [f"{test.suite}.{test.name}" for test in tests
             if cases.group_of(test) and cases.group_of(test)[2] in groups]
    return cases.dead_patterns([options.tests] if options.tests else [], names)


def dead_entries(lists, tests, source):
    """Entries of the lists that mean no test of that UCX."""
    return cases.dead_entries(lists, tests, gtest.of_source(source))


def first_tries(row):
    """Why tests of a row failed before they passed, if they did."""
    return "; ".join(f"{name} {each.reason}" for name, each in
                     (("sep_mlx5", row.ours), ("rc_mlx5", row.theirs))
                     if compare.is_second_try(each))


def in_words(results):
    """How many of each status."""
    counts = collections.Counter(each.status for each in results.values())
    return ", ".join(f"{n} {status}" for status, n in sorted(counts.items()))


def _each(program, tests, limit, name):
    return [program.run([test], limit, name)[test.full_name] for test in tests]


def make_program(options, results_dir):
    """The program that the options name."""
    logs = os.path.join(results_dir, "logs")
    os.makedirs(logs, exist_ok=True)
    environment = dict(each.split("=", 1) for each in options.set)
    return gtest.Program(os.path.abspath(options.gtest),
                         os.path.abspath(options.sep_build), environment, logs,
                         options.module)


def main():
    options = parse()
    if options.adapt:
        adapt.adapt(options.adapt)
        return 0
    if not options.gtest or not options.sep_build:
        sys.exit("--gtest and --sep-build are needed: use "
                 "contrib/ucx-gtest.sh")

    process.end_with_cleanup()
    results_dir = os.path.abspath(options.results)
    program = make_program(options, results_dir)
    try:
        tests = program.list()
    except ListError as error:
        sys.exit(f"{options.gtest}: {error}")
    selected = select(tests, options)
    if not selected:
        sys.exit("no test is selected")

    dead = []
    if options.source and not (options.quick or options.group or
                               options.tests):
        dead = dead_entries(["EXCLUDED"], tests, options.source)
    for each in dead:
        print(f"no test of this UCX matches {each}", file=sys.stderr)

    store = Store(os.path.join(results_dir, "results.jsonl"), options.resume)
    left = [test for test in selected if test.full_name not in store.results or
            (options.rerun_failed and store.results[test.full_name].status
             not in (gtest.OK, gtest.SKIPPED))]
    print(f"{len(selected)} tests, {len(left)} to run; logs are in "
          f"{results_dir}/logs", file=sys.stderr, flush=True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for future in [pool.submit(_run_and_store, program, shard, options,
                                   store)
                       for shard in shards(left)]:
            future.result()

    results = dict(store.results)
    if options.baseline:
        for name, result in load(os.path.join(options.baseline,
                                              "results.jsonl")).items():
            results.setdefault(name, result)
    status = _report(tests, selected, results, results_dir, options)
    return 1 if dead else status


def rows_of(tests, selected, results):
    """The selected tests on both transports."""
    chosen = {(cases.group_of(test)[2], test.suite, test.name)
              for test in selected}
    known = [test for test in tests if cases.group_of(test) and
             (cases.group_of(test)[2], test.suite, test.name) in chosen]
    return compare.make_rows(known, results)


def _report(tests, selected, results, results_dir, options):
    rows = rows_of(tests, selected, results)
    full = compare.tables(rows) + compare.summary(rows)
    for name, lines in (("table.txt", full), ("table.tsv", compare.tsv(rows))):
        with open(os.path.join(results_dir, name), "w",
                  encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")

    print("\n".join(compare.tsv(rows) if options.tsv else
                    compare.summary(rows) if options.summary else full))
    if options.against:
        before = load(os.path.join(options.against, "results.jsonl"))
        now = {test.full_name: results[test.full_name] for test in selected
               if test.full_name in results}
        lines, worse_now = compare.changes(before, now)
        print("\n".join(lines))
        return 1 if worse_now else 0
    if options.only or not set(options.group or cases.BY_DEFAULT).intersection(
            cases.BY_DEFAULT):
        failed = [row for row in rows if row.ours.status not in
                  (gtest.OK, gtest.SKIPPED) or row.theirs.status not in
                  (gtest.OK, gtest.SKIPPED)]
        return 1 if failed else 0
    return 1 if compare.worse(rows) else 0
