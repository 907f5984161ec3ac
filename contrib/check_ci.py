#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run the examples of docs/ci.md as a runner would: in a bare Debian 12, which
contrib/debian-root.sh makes in ROOT, with the package that contrib/build-deb.sh has
made.

    contrib/check_ci.py ROOT

It says how long each took, and ends with 0 if all succeeded."""

import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import time

import yaml

TOP = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


def github(text):
    """Commands of the job's steps."""
    job, = text["jobs"].values()
    return [step["run"] for step in job["steps"] if "run" in step]


def gitlab(text):
    """Commands of the job."""
    job, = text.values()
    return job["before_script"] + job["script"]


KINDS = {"GitHub Actions": github, "GitLab": gitlab}


def examples():
    """Commands by the heading of each example."""
    with open(os.path.join(TOP, "docs/ci.md"), encoding="utf-8") as file:
        found = re.findall(r"^## ([^\n]*)\n\n```yaml\n(.*?)^```$", file.read(),
                           re.M | re.S)
    return {name: "\n".join(line.rstrip("\n")
                            for line in KINDS[name](yaml.safe_load(text)))
            for name, text in found}


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 2 - 2 * ("--help" in sys.argv[1:])

    work     = os.path.join(TOP, "build/ci")
    packages = glob.glob(os.path.join(TOP, "build/deb/mlx5sim_*.deb"))
    if not packages:
        sys.exit("check_ci.py: no package: run contrib/build-deb.sh before")
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(os.path.join(work, "packages"))
    for package in packages:
        shutil.copy(package, os.path.join(work, "packages"))

    root = [os.path.join(TOP, "contrib/debian-root.sh"), "--suite", "bookworm",
            "--groups", "", "--bind", work, sys.argv[1]]
    subprocess.run(root, check=True)
    failed = 0
    for name, commands in examples().items():
        start  = time.monotonic()
        result = subprocess.run(
            root + ["sh", "-ec", f"cd {shlex.quote(work)}\n{commands}"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            check=False)
        if result.returncode != 0:
            failed = 1
            print(result.stdout[-3000:])
        print(f"{name}: exit status {result.returncode} after "
              f"{time.monotonic() - start:.0f} s")
    return failed


if __name__ == "__main__":
    sys.exit(main())
