#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Hold the transport's sources against what they declare about locks.

What src/uct/ib/sep/base/sep_lock.h declares is for clang's thread safety
analysis, with which this compiles all of them (or the files that are named), by
the flags of a build; nothing is written. Needs Debian's clang.
"""

import concurrent.futures
import glob
import os
import shlex
import shutil
import subprocess
import sys

import checks

SOURCES = "src/uct/ib/sep/*/*.c"
# "-w" would also silence what is an error
ANALYSIS = ("-fsyntax-only", "-Wno-everything", "-Wthread-safety", "-Werror")
# A rule for make, which knows the flags
RULE = ("flags-of-the-transport:\n\t@echo '$(DEFS) $(DEFAULT_INCLUDES) "
        "$(libuct_sep_static_la_CPPFLAGS) $(CPPFLAGS) $(AM_CFLAGS)'\n")


def find_clang():
    """Path of clang, perhaps with a version in its name, or None."""
    versions = [path for folder in os.environ["PATH"].split(os.pathsep)
                for path in glob.glob(os.path.join(folder, "clang-[0-9]*"))
                if path.rpartition("-")[2].isdigit()]
    return shutil.which("clang") or max(
        versions, key=lambda path: int(path.rpartition("-")[2]), default=None)


def build_flags(build):
    """Flags of the transport's sources, for a compiler in the directory of the
    build."""
    result = subprocess.run(
        ("make", "-s", "--no-print-directory", "-C", build, "-f", "Makefile",
         "-f", "-", "flags-of-the-transport"), input=RULE, text=True,
        stdout=subprocess.PIPE, check=True)
    return shlex.split(result.stdout.splitlines()[-1])


def complaints(clang, flags, path, directory=None):
    """What the analysis says about a file."""
    result = subprocess.run((clang, *flags, *ANALYSIS, path), cwd=directory,
                            stderr=subprocess.PIPE, text=True, check=False)
    if result.returncode and not result.stderr:
        return f"{path}: {clang} has failed: {result.returncode}\n"
    return result.stderr


def main():
    parser = checks.parser(__doc__)
    parser.add_argument("build", help="directory of a build")
    parser.add_argument("file", nargs="*")
    options = parser.parse_args()

    clang = find_clang()
    if clang is None:
        sys.exit("clang is not to be found; it is in Debian's package clang")
    flags = build_flags(options.build)
    files = [os.path.abspath(path) for path in options.file] or \
        sorted(glob.glob(os.path.join(checks.TOP, SOURCES)))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        said = list(pool.map(
            lambda path: complaints(clang, flags, path, options.build), files))
    sys.stderr.write("".join(said))
    return 1 if any(said) else 0


if __name__ == "__main__":
    sys.exit(main())
