# SPDX-License-Identifier: BSD-3-Clause
"""Command line of test/jobs/app_kernels."""

import argparse
import os
import sys

from . import app_kernels, cli, endpoints, process
from .endpoints_cli import names

# Name, and what it is; contrib/kernels.sh --help has the same
COLUMNS = (
    ("kernel", "dgemm or stencil"),
    ("api", "ucp, mpich, openmpi or oshmem"),
    ("sided", "1: gets and puts, 2: sends"),
    ("shape", "processes.threads of each of two nodes"),
    ("category", "UCX_SEP_CATEGORY"),
    ("regime", "UAR pages: legacy or dynamic"),
    ("result", "pass: data right, plan kept; fail; skip: impossible"),
    ("interfaces", "that a process opened (for its threads, and the library's)"),
    ("contexts", "of a node: sum of its processes, as the next"),
    ("uars", "UAR pages"),
    ("uuars", "uUARs on these"),
    ("uuars_used", "those that queue pairs have"),
    ("qps", "queue pairs, one per interface for connecting included"),
    ("cqs", "completion queues, likewise"),
    ("plan", "the same as sep_info -p says of a process: equal, differs; -: it "
     "can't say"),
    ("paper_contexts", "of the paper's figures for 16 threads, as the next; -: "
     "not there"),
    ("paper_uars", ""),
    ("paper_uuars", ""),
    ("messages", "of all processes"),
    ("bytes", "of their data"),
    ("wqes", "work queue elements per message, as the next"),
    ("doorbells", "doorbells"),
    ("blueflames", "BlueFlame writes"),
    ("dma_reads", "DMA reads, both nodes together"),
    ("dma_writes", "DMA writes, likewise"),
    ("cqes", "completion queue entries, likewise"),
    ("cx4_mops", "predicted millions of messages per second of a node"),
    ("cx4_percent", "predicted, of mpi_everywhere"),
    ("cx6_mops", "for another adapter"),
    ("cx6_percent", ""),
    ("model_percent", "predicted for cx4 as the paper measured: 2 bytes, 128 "
     "under way"),
    ("paper_percent", "measured by the paper"),
)

# What the paper has, and then what fits the machine
SHAPES = {"dgemm": ("1.16",), "stencil": ("16.1", "8.2", "4.4", "2.8", "1.16")}
QUICK_SHAPES = {"dgemm": ("1.4",), "stencil": ("2.1", "1.2")}


def shape_list(text):
    try:
        return [app_kernels.read_shape(word) for word in text.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def side_list(text):
    return [int(word) for word in cli.name_list(("1", "2"))(text)]


def parse_arguments(argv):
    parser = argparse.ArgumentParser(
        prog="app_kernels", formatter_class=argparse.RawTextHelpFormatter,
        description="Run kernels of applications with an interface per thread: "
        "check all data,\nwhat they take of the device against sep_info's plan, "
        "and count what it does.",
        epilog="columns:\n" + "\n".join(
            f"  {name:15} {about}" for name, about in COLUMNS))
    parser.add_argument("--build-dir", default=".", metavar="DIR",
                        help="where the project was built (default: .)")
    parser.add_argument("--kernel", default=list(app_kernels.KERNELS),
                        type=names(app_kernels.KERNELS), metavar="LIST",
                        help="of dgemm,stencil (default: all)")
    parser.add_argument("--api", default=list(app_kernels.APIS),
                        type=names(app_kernels.APIS), metavar="LIST",
                        help="of ucp,mpich,openmpi,oshmem (default: all)")
    parser.add_argument("--sided", default=[1, 2], type=side_list,
                        metavar="LIST", help="of 1,2 (default: both)")
    parser.add_argument("--shape", type=shape_list, metavar="LIST",
                        help="processes.threads of each of two nodes (default:"
                        "\n1.16 for dgemm, 16.1,8.2,4.4,2.8,1.16 for stencil)")
    parser.add_argument("--category", metavar="LIST",
                        help="of those that sep_info -l prints (default: all "
                        "for\none-sided ucp, 2xdynamic otherwise)")
    parser.add_argument("--regime", default=["legacy"],
                        type=names(("legacy", "dynamic")), metavar="LIST",
                        help="of legacy,dynamic (default: legacy, the paper's)")
    parser.add_argument("--mpich", metavar="PREFIX",
                        help="an MPICH that is not the installed one")
    parser.add_argument("--mpich-interfaces", action="store_true",
                        help="MPICH has an interface per thread if it is told "
                        "to")
    parser.add_argument("--programs", metavar="DIR",
                        help="where app_kernels.mpich for it is")
    parser.add_argument("--quick", action="store_true",
                        help="small shapes, few steps")
    parser.add_argument("--patience", default=1, type=int, metavar="N",
                        help="time limits are N times as long")
    parser.add_argument("--tsv", action="store_true", help="with tabs")
    options = parser.parse_args(argv)
    if options.mpich and not options.programs:
        parser.error("--mpich needs --programs")
    try:
        options.categories = endpoints.categories(options.build_dir)
        if options.category:
            options.category = names(options.categories)(options.category)
    except (endpoints.EndpointsError, OSError) as error:
        parser.error(str(error))
    except argparse.ArgumentTypeError as error:
        parser.error(f"argument --category: {error}")
    return options


def settings(options):
    """All that is to be run; what is impossible only if it was asked for."""
    shapes = QUICK_SHAPES if options.quick else SHAPES
    for kernel in options.kernel:
        for api in options.api:
            for sided in options.sided:
                every = api == "ucp" and sided == 1
                categories = options.category or (
                    options.categories if every else ["2xdynamic"])
                for shape in options.shape or \
                        [app_kernels.read_shape(each) for each in
                         shapes[kernel]]:
                    for category in categories:
                        for regime in options.regime:
                            setting = app_kernels.Setting(
                                kernel, api, sided, shape, category, regime,
                                ("--quick",) if options.quick else ())
                            if options.sided == [2] or \
                                    not setting.impossible():
                                yield setting


def cells(runner, outcome):
    """One line of the table."""
    setting = outcome.setting
    row = [setting.kernel, setting.api, setting.sided, setting.shape,
           setting.category, setting.regime, outcome.status]
    if not outcome.found or not outcome.messages:
        return row + ["-"] * (len(COLUMNS) - len(row))
    paper = ["-" if each is None else each for each in setting.paper()]
    if setting.regime != "legacy":
        paper[:3] = ["-"] * 3           # the paper's kernels had no other
    row += [outcome.interfaces, outcome.taken("contexts"),
            outcome.taken("uars"), outcome.uuars // 2,
            outcome.taken("uuars_in_use"), outcome.taken("qps"),
            outcome.taken("cqs"), outcome.plan, *paper[:3], outcome.messages,
            outcome.payload]
    row += [f"{outcome.per_message(name):.2f}" for name in app_kernels.WORK]
    for adapter in app_kernels.ADAPTERS:
        row += [f"{runner.predict(outcome, adapter):.1f}",
                f"{runner.predict_percent(outcome, adapter):.0f}"]
    return row + [f"{runner.predict_paper(setting):.0f}", paper[3]]


def print_line(options, words):
    if options.tsv:
        print(*words, sep="\t", flush=True)
    else:
        print(" ".join(str(word).ljust(max(len(name), 7)) for word, (name, _) in
                       zip(words, COLUMNS)).rstrip(), flush=True)


def complain_of_paper(outcome):
    """What a node takes otherwise than the paper says."""
    setting = outcome.setting
    if setting.regime != "legacy" or outcome.plan != "equal":
        return []
    taken = (outcome.taken("contexts"), outcome.taken("uars"),
             outcome.uuars // 2)
    return [f"{what}: {mine} instead of the paper's {theirs}"
            for what, mine, theirs in
            zip(("contexts", "UAR pages", "uUARs"), taken, setting.paper())
            if theirs is not None and mine != theirs]


def main(argv=None):
    options = parse_arguments(argv)
    runner = app_kernels.Runner(options.build_dir, options.mpich,
                                options.programs, options.mpich_interfaces,
                                options.patience)
    missing = [runner.binary(api) for api in options.api if
               not os.access(runner.binary(api), os.X_OK)]
    if missing:
        print(f"app_kernels: {', '.join(missing)}: missing (run make "
              f"job-programs in {options.build_dir})", file=sys.stderr)
        return 2

    process.end_with_cleanup()
    count = {"pass": 0, "fail": 0, "skip": 0}
    notes = set()
    print_line(options, [name for name, _ in COLUMNS])
    for setting in settings(options):
        outcome = runner.run(setting)
        different = complain_of_paper(outcome)
        if outcome.status == "pass" and different:
            outcome.status, outcome.detail = "fail", "; ".join(different)
        try:
            line = cells(runner, outcome)
        except app_kernels.KernelError as error:
            outcome = app_kernels.Outcome(setting, "fail", str(error))
            line = cells(runner, outcome)
        count[outcome.status] += 1
        print_line(options, line)
        notes.update(f"{setting.api}: {note}" for note in outcome.notes)
        if outcome.status != "pass":
            print(f"    {outcome.status}: {outcome.detail}", file=sys.stderr,
                  flush=True)
    for note in sorted(notes):
        print(f"note: {note}", file=sys.stderr)
    print(f"{count['pass']} passed, {count['fail']} failed, {count['skip']} "
          "skipped", file=sys.stderr)
    return 1 if count["fail"] or not count["pass"] else 0
