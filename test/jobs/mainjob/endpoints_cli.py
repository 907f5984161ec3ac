# SPDX-License-Identifier: BSD-3-Clause
"""Command line of test/jobs/endpoints."""

import argparse
import itertools
import os
import shutil
import sys

from . import cli, endpoints, jobs, process

COLUMNS = ("ranks", "library", "transport", "category", "threads", "cq",
           "postlist", "result", "contexts", "uars", "uuars", "qps", "peer_qps", "cqs",
           "srqs", "uneven", "wqes", "messages")
CONNECT_COLUMNS = ("ranks", "library", "transport", "category", "interfaces",
                   "result", "qps", "peer_qps", "init_ms", "first_ms",
                   "memory_mb")


def numbers(text):
    values = [int(word) for word in text.split(",")]
    if not values or min(values) < 1:
        raise argparse.ArgumentTypeError("numbers from 1 on are possible")
    return values


def names(choices):
    listed = cli.name_list(["all", *choices])

    def parse(text):
        found = listed(text)
        return list(choices) if "all" in found else found
    return parse


def parse_arguments(argv):
    parser = argparse.ArgumentParser(
        prog="endpoints",
        description="Run MPI jobs with an endpoint per thread: check all data, "
        "and that the processes have of the device what sep_info plans for as "
        "many workers as there are threads.")
    parser.add_argument("--build-dir", default=".", metavar="DIR",
                        help="where the project was built (default: .)")
    parser.add_argument("--library", default="mpich",
                        choices=("mpich", "openmpi"),
                        help="default: mpich; what Open MPI opens depends on "
                        "its version, and is shown but not compared")
    parser.add_argument("--programs", metavar="DIR",
                        help="where endpoints.LIBRARY and connect.LIBRARY are "
                        "(default: test/mpi of the build)")
    parser.add_argument("--connect", action="store_true",
                        help="connect the first interface of each rank with "
                        "that of the next, and so on, and nothing else: what "
                        "that takes. --threads are interfaces")
    parser.add_argument("--streams", action="store_true",
                        help="an MPIX_Stream per thread, and nothing else: "
                        "MPICH 4.1 and later")
    parser.add_argument("--mpiexec", metavar="FILE",
                        help="launcher (default: the installed library's)")
    parser.add_argument("--transport", default=["sep_mlx5"],
                        type=names(("sep_mlx5", "rc_mlx5")), metavar="LIST")
    parser.add_argument("--threads", default=[1, 2, 4, 8, 16], type=numbers,
                        metavar="LIST", help="default: 1,2,4,8,16")
    parser.add_argument("--category", default="all", metavar="LIST",
                        help="of those that sep_info -l prints (default: all)")
    parser.add_argument("--pages", type=int, metavar="N",
                        help="a device that has so few UAR pages that interfaces "
                        "have to get along with less than they are to have, "
                        "with category \"default\": each process says so once")
    parser.add_argument("--cq-sharing", default=[1, 4], type=numbers,
                        metavar="LIST", help="default: 1,4")
    parser.add_argument("--postlist", default=[1, 8], type=numbers,
                        metavar="LIST", help="default: 1,8")
    parser.add_argument("--ranks", default=[2], type=numbers, metavar="LIST",
                        help="default: 2")
    parser.add_argument("--two-sided", action="store_true",
                        help="no windows")
    parser.add_argument("--seconds", default=0, type=float, metavar="S",
                        help="a mixture of everything for so long")
    parser.add_argument("--patience", default=1, type=int, metavar="N",
                        help="time limits are N times as long")
    parser.add_argument("--tsv", action="store_true", help="with tabs")
    options = parser.parse_args(argv)
    if options.pages:
        # What others have may be refused, see docs/categories.md
        options.transport, options.category = ["sep_mlx5"], ["default"]
    elif "sep_mlx5" in options.transport:
        # The transport's own list, so it has to be there
        try:
            known = endpoints.categories(options.build_dir)
            options.category = names(known)(options.category)
        except (endpoints.EndpointsError, OSError) as error:
            parser.error(str(error))
        except argparse.ArgumentTypeError as error:
            parser.error(f"argument --category: {error}")
    return options


def settings(options):
    program = "connect" if options.connect else \
        "streams" if options.streams else "endpoints"
    for transport, ranks, threads in itertools.product(
            options.transport, options.ranks, options.threads):
        kinds = itertools.product(options.category, options.cq_sharing,
                                  options.postlist)
        if transport != "sep_mlx5":
            kinds = [("-", 1, 1)]
        for category, cq_sharing, postlist in kinds:
            yield endpoints.Setting(options.library, threads, transport,
                                    category, cq_sharing, postlist, ranks,
                                    options.two_sided, options.seconds, program,
                                    options.pages or 0)


def launcher(options):
    """argv of the program that starts the ranks."""
    wanted = options.mpiexec or jobs.LAUNCHERS[options.library]
    path = shutil.which(wanted)
    if path is None:
        raise SystemExit(f"endpoints: {wanted} is not installed")
    return jobs.launch(options.library, path)


def cells(outcome):
    """One line of the table; what processes have in common only once."""
    setting = outcome.setting

    def each(value):
        values = sorted({value(found) for found in outcome.found})
        return ",".join(str(one) for one in values) if values else "-"

    taken = {name: each(lambda found, name=name: found.taken[name])
             for name, _ in endpoints.RESOURCES}
    peer_qps = each(lambda found: found.remote)
    report = outcome.report or jobs.Report()
    head = [setting.ranks, setting.library, setting.transport, setting.category,
            setting.threads]
    if setting.program == "connect":
        metrics = {name: value for name, _, value, _ in report.metrics}
        return head + [outcome.status, taken["qps"], peer_qps] + \
            [metrics.get(name, "-") for name in ("init", "first", "memory")]
    return head + [setting.cq_sharing, setting.postlist, outcome.status,
                   taken["contexts"], taken["uars"], taken["uuars_in_use"],
                   taken["qps"], peer_qps, taken["cqs"], taken["srqs"],
                   each(lambda found: round(found.unevenness(), 2)),
                   sum(found.wqes for found in outcome.found), report.messages]


def print_line(options, words):
    if options.tsv:
        print(*words, sep="\t", flush=True)
    else:
        widths = (5, 7, 9, 14) + (10,) * (len(words) - 4)
        print(" ".join(str(word).ljust(width) for word, width in
                       zip(words, widths)).rstrip(), flush=True)


def main(argv=None):
    options = parse_arguments(argv)
    runner = endpoints.Runner(options.build_dir, launcher(options),
                              options.programs, options.patience)
    todo = list(settings(options))
    program = runner.binary(todo[0])
    if not os.access(program, os.X_OK):
        print(f"endpoints: {program} is missing (run make job-programs in "
              f"{options.build_dir})", file=sys.stderr)
        return 2

    process.end_with_cleanup()
    count = {"pass": 0, "fail": 0, "skip": 0}
    print_line(options, CONNECT_COLUMNS if options.connect else COLUMNS)
    for setting in todo:
        try:
            outcome = runner.run(setting)
        except (endpoints.EndpointsError, OSError) as error:
            outcome = endpoints.Outcome(setting, "fail", str(error))
        count[outcome.status] += 1
        print_line(options, cells(outcome))
        if outcome.status != "pass":
            print(f"    {outcome.status}: {outcome.detail}", file=sys.stderr,
                  flush=True)
    print(f"{count['pass']} passed, {count['fail']} failed, {count['skip']} "
          "skipped", file=sys.stderr)
    return 1 if count["fail"] or not count["pass"] else 0
