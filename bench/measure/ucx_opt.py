# SPDX-License-Identifier: BSD-3-Clause
"""Tests of a UCX with the optimisations of UCP, of its ABI, and of jobs in which
the other process has none."""

import os
import subprocess
import sys

from . import builds
from .job import top

SEP, RC_MLX5, RC_VERBS = "sep", "rc_mlx5,ud_mlx5", "rc_verbs,ud_verbs"
# UCX_TLS, and what else is set: all optimisations, and each version of UCP's
# protocols
TESTS = tuple((tls, f"UCX_PROTO_ENABLE={proto}") for tls in (SEP, RC_MLX5)
              for proto in "ny")
MORE_TESTS = (
    (RC_VERBS, "UCX_PROTO_ENABLE=n"), (RC_VERBS, "UCX_PROTO_ENABLE=y"),
    *(each for tls in (SEP, RC_MLX5, RC_VERBS) for each in (
        (tls, "UCX_OPT_ONDEMAND=y"),
        (tls, *(f"UCX_OPT_{name}=n" for name in (
            "RKEY", "FLUSH", "IDLE_TX", "FLUSH_SIGNAL", "WIREUP", "EAGER",
            "RECV", "PROGRESS", "MEM", "MEMTYPE"))))),
    # Several lanes, and keys for shared memory. What is left out fails on stock
    # UCX as well: who attaches to the shared memory of a process that is gone,
    # or, with version 2 of the protocols, waits for one that computes: there
    # shared memory carries puts, as messages that the peer has to receive. With
    # version 1 it writes them, and registers nothing that could be remembered.
    ("sep,shm", "UCX_PROTO_ENABLE=n", "GTEST_FILTER=-*OneThatIsGone*:UcpMem*"),
    ("sep,shm", "UCX_PROTO_ENABLE=y",
     "GTEST_FILTER=-*OneThatIsGone*:*Computes*"))


# UCX 1.22 has no puts, gets and keys with version 1 of the protocols
MESSAGES_ONLY = "UcpEager*.*:UcpRecv.*"


def settings_of(release, settings):
    """What to set on a release."""
    if not release.startswith("1.22.") or "UCX_PROTO_ENABLE=n" not in settings:
        return settings
    return [each for each in settings if not each.startswith("GTEST_FILTER")] + \
        [f"GTEST_FILTER={MESSAGES_ONLY}"]


class Results:
    """What has passed, and what has not."""

    def __init__(self):
        self.count = {True: 0, False: 0}

    def add(self, name, passed):
        self.count[passed] += 1
        print(f"{'pass' if passed else 'FAIL'}  {name}", flush=True)


def _run_tests(job, prefix, tls, *settings):
    """Whether the tests of a build pass on a UCX."""
    log = job.path("ucp_gtest.log")
    env = {**os.environ, "LD_LIBRARY_PATH": f"{prefix}/lib", "UCX_TLS": tls,
           "UCX_WARN_UNUSED_ENV_VARS": "n", "SEP_BUILD_DIR": job.build,
           **dict(each.split("=", 1) for each in settings)}
    with open(log, "w", encoding="utf-8") as file:
        status = subprocess.run(
            ["timeout", "--kill-after=15", "300", job.path("bin/mlx5sim-run"),
             "--private", "--", job.path("test/gtest/ucp_gtest")],
            stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
            env=env, check=False).returncode
    if status != 0:
        with open(log, encoding="utf-8", errors="replace") as file:
            sys.stderr.writelines(file.readlines()[-40:])
    return status == 0


def _is_compatible(both, library):
    """Whether a library's ABI is that of stock UCX."""
    name = f"lib/lib{library}.so.0"
    return subprocess.run(
        ["abidiff", "--no-added-syms", "--headers-dir1", f"{both.stock}/include",
         "--headers-dir2", f"{both.patched}/include", f"{both.stock}/{name}",
         f"{both.patched}/{name}"], check=False).returncode == 0


def _understand(job, both, transport):
    """Whether processes with and without the optimisations talk to each other."""
    return subprocess.run(
        [top("test/jobs/mixed"), "--build-dir", job.build, "--transport",
         transport, "--ucx", both.stock, "--ucx", both.patched],
        stdin=subprocess.DEVNULL, check=False).returncode == 0


def measure(job):
    is_sanitized = job.options.asan
    patched, stock = job.options.patched, job.options.stock
    both = builds.pair(job, stock, patched)
    if is_sanitized:
        tested = patched or top(f"build/ucx-asan{both.suffix}")
        job.build = top(f"build/test-ucx-asan{both.suffix}")
        job.do(top("contrib/build-ucx-opt.sh"), "--asan",
               *builds.source_option(both.source), tested)
        job.shell("sep_build", job.build, job.row.targets, top("configure"),
                  "--enable-gtest", "--enable-asan", "--enable-ubsan",
                  *builds.ucx_options(tested, both.source))
    else:
        tested = both.patched
        job.build = top(f"build/bench-ucp{both.suffix}")
        job.shell("sep_install_deps", *job.row.packages)
        builds.build_pair_of_release(job, both)
        builds.configured(job, job.build, job.row.targets, ucx=both.stock,
                          source=both.source)

    results = Results()
    for tls, *settings in TESTS if is_sanitized else (*TESTS, *MORE_TESTS):
        settings = settings_of(both.release, settings)
        results.add(f"tests: {tls} {' '.join(settings)}",
                    _run_tests(job, tested, tls, *settings))
    if not is_sanitized:
        for library in ("ucp", "uct", "ucs"):
            results.add(f"ABI of lib{library}", _is_compatible(both, library))
        for transport in ("sep_mlx5", "rc_mlx5"):
            results.add(f"jobs with stock UCX: {transport}",
                        _understand(job, both, transport))
    print(f"{results.count[True]} passed, {results.count[False]} failed")
    return 1 if results.count[False] else 0
