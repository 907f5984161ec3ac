#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What sharing categories take of a device, for a range of workers.

Asks sep_info, for plans and with --take for what workers on the software device
really take. See contrib/bench-resources.sh.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

REGIMES = ("legacy", "dynamic")
COLUMNS = ("contexts", "uars", "uars_in_use", "uuars_in_use", "qps", "cqs",
           "srqs", "qp_bytes", "cq_bytes", "srq_bytes", "mr_bytes")
# Seconds after which a program hangs, on any machine
PATIENCE = 300
MARKDOWN_WORKERS = (1, 2, 4, 8, 16, 24)


def clean_environment(**more):
    """Nothing of the user's configuration, which would be in the numbers."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("UCX_", "MLX5_", "MLX5SIM_"))}
    return {**env, **more}


def categories(args):
    """Names, those with the most resources first."""
    output = subprocess.run([args.sep_info, "-l", "--json"], check=True,
                            capture_output=True, text=True,
                            env=clean_environment(), timeout=PATIENCE).stdout
    return [row["category"] for row in json.loads(output)["categories"]]


def plan(args, regime, workers):
    """Plans of all categories."""
    output = subprocess.run(
        [args.sep_info, "-p", "--json", "-r", regime, "-w", str(workers),
         "-n", str(args.peers)], check=True, capture_output=True, text=True,
        env=clean_environment(), timeout=PATIENCE).stdout
    return {plan["category"]: plan for plan in json.loads(output)["plans"]}


def take(args, regime, category, workers):
    """What workers of a category take, or None if they cannot be opened."""
    with tempfile.TemporaryDirectory(prefix="sep-resources.",
                                     dir="/dev/shm") as parent:
        result = subprocess.run(
            [args.sim_run, "--dir", os.path.join(parent, "device"), "--",
             args.sep_info, "-t", "--json", "-c", category, "-w", str(workers),
             "-n", str(args.peers)], check=False, capture_output=True,
            text=True, timeout=PATIENCE,
            env=clean_environment(MLX5SIM_UAR_MODE=regime))
    tries = json.loads(result.stdout)["tries"]
    if len(tries) != 1:
        print(f"{category}, {regime}, {workers} workers: "
              f"{result.stderr.strip()}", file=sys.stderr)
        return None
    return tries[0]


def print_tsv(args):
    """A line for each plan, and with --take one for what was taken."""
    print("\t".join(("regime", "category", "workers", "peers", "what")
                    + COLUMNS))
    failed = False
    for regime in REGIMES:
        for workers in args.workers:
            plans = plan(args, regime, workers)
            for category in args.categories:
                head = (regime, category, workers, args.peers)
                for what in ("own", "total"):
                    counts = plans[category][what]
                    print(*head, f"planned {what}",
                          *(counts[column] for column in COLUMNS), sep="\t")
                if not args.take:
                    continue
                taken = take(args, regime, category, workers)
                if taken is None:
                    failed = True
                    continue
                print(*head, "taken", *(taken[column]["taken"]
                                        for column in COLUMNS), sep="\t")
                if not taken["same"]:
                    print(f"{category}, {regime}, {workers} workers: not as "
                          "planned", file=sys.stderr)
                    failed = True
                sys.stdout.flush()
    return 1 if failed else 0


def pages(counts):
    """Static and dynamic pages."""
    if counts["uars_static"] and counts["uars_dynamic"]:
        return f"{counts['uars_static']}+{counts['uars_dynamic']}"
    return str(counts["uars"])


def size(count):
    """Bytes for people."""
    for unit in ("", " K", " M"):
        if count < 1024:
            break
        count /= 1024
    else:
        unit = " G"
    return f"{count:.0f}{unit}" if unit in ("", " K") else f"{count:.1f}{unit}"


def print_markdown(args):
    """The tables of docs/resources.md."""
    for regime in REGIMES:
        print(f"#### {regime.capitalize()} regime, own\n")
        print("UAR pages / uUARs of the category itself:\n")
        print("| workers | " + " | ".join(f"`{c}`" for c in args.categories)
              + " |")
        print("|---|" + "---|" * len(args.categories))
        plans = {n: plan(args, regime, n) for n in MARKDOWN_WORKERS}
        for workers, row in plans.items():
            cells = [f"{pages(row[c]['own'])} / {row[c]['own']['uuars']}"
                     for c in args.categories]
            print(f"| {workers} | " + " | ".join(cells) + " |")
        print(f"\n#### {regime.capitalize()} regime, in all\n")
        print("| category | workers | contexts | UAR pages | uUARs | of these "
              "in use | QPs | CQs | SRQs | queues | libmlx5 |")
        print("|---|---|---|---|---|---|---|---|---|---|---|")
        for category in args.categories:
            for workers in (1, 16):
                total = plans[workers][category]["total"]
                queues = sum(total[f"{q}_bytes"] for q in ("qp", "cq", "srq"))
                print(f"| `{category}` | {workers} | {total['contexts']} | "
                      f"{pages(total)} | {total['uuars']} | "
                      f"{total['uuars_in_use']} | {total['qps']} | "
                      f"{total['cqs']} | {total['srqs']} | {size(queues)} | "
                      f"{size(total['driver_bytes'])} |")
        print()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sep-info", required=True)
    parser.add_argument("--sim-run")
    parser.add_argument("--workers", type=lambda text: [
        int(word) for word in text.split(",")], default=list(range(1, 25)))
    parser.add_argument("--peers", type=int, default=1)
    parser.add_argument("--take", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    args = parser.parse_args()
    args.categories = categories(args)
    if args.markdown:
        print_markdown(args)
        return 0
    return print_tsv(args)


if __name__ == "__main__":
    sys.exit(main())
