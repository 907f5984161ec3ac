# SPDX-License-Identifier: BSD-3-Clause
"""Measurements that a driver of test/jobs/mainjob, or another program of bench/,
makes: what it is given."""

import glob
import importlib
import os
import re
import subprocess
import sys

from . import builds
from .job import CALLGRIND, top


def drive(name, words):
    """The command line of a driver, in this process."""
    return _driver(name).main(words)


def _driver(name):
    sys.path.insert(0, top("test/jobs"))
    return importlib.import_module(f"mainjob.{name}")


def logged(job):
    """A driver that keeps logs, on the UCX of the build."""
    # What is wrong with options, before building
    _driver(job.row.driver).parse_arguments(job.rest)
    builds.bench(job)
    if not job.ucx:
        with open(job.path("Makefile"), encoding="utf-8") as file:
            found = re.search(r"^UCX_PREFIX = *(.+)$", file.read(), re.M)
        job.ucx = found and found.group(1)
    logs = job.options.logs or job.path(job.row.name)
    ucx = ["--ucx", job.ucx] if job.ucx else []
    return drive(job.row.driver, ["--build-dir", job.build, "--log-dir", logs,
                                  *ucx, *job.rest])


def endpoints(job):
    """Jobs, what connecting takes, or LOCKed instructions."""
    builds.release(job)
    prefix = builds.mpich(job)
    compiler, launcher = [f"{prefix}/bin/{name}" if prefix else f"{name}.mpich"
                          for name in ("mpicc", "mpiexec")]
    # For this MPI library, next to those of the build for others
    os.makedirs(job.path("endpoints"), exist_ok=True)
    for source in ("test/mpi/endpoints.c", "test/mpi/connect.c",
                   "bench/mpi_rate.c"):
        name = os.path.basename(source).replace(".c", ".mpich")
        builds.compiled(job, compiler, job.path("endpoints", name), source,
                        flags=("-lpthread",))
    os.environ["MPIR_CVAR_NOLOCAL"] = "1"
    if job.options.locks:
        job.show([job.row.columns])
        for category in job.categories():
            for role in ("sender", "receiver"):
                job.show(_locks(job, launcher, category, role))
        return 0
    # What comes later holds
    words = ["--connect", "--transport", "all", "--category", "dynamic",
             "--cq-sharing", "1", "--postlist", "1", "--ranks", "2,4,8,16"] \
        if job.options.connect else []
    return drive(job.row.driver, [
        "--build-dir", job.build, "--programs", job.path("endpoints"),
        "--mpiexec", launcher, *(["--tsv"] if job.tsv else []), *words,
        *job.rest])


def _locks(job, launcher, category, role):
    """LOCKed instructions of one rank while the other runs as it is."""
    threads, windows, window = 2, 20, 64
    where = job.fresh("endpoints", f"locks.{category}.{role}")
    sep_run = [job.path("bin/sep-run"), "--only"]
    program = [job.path("endpoints/mpi_rate.mpich"), "-t", threads, "-n",
               windows, "-w", window]
    ranks = [[*sep_run, *CALLGRIND, "--dump-instr=yes",
              "--toggle-collect=measure_*",
              f"--callgrind-out-file={where}/callgrind.out.%p", *program],
             [*sep_run, *program]]
    if role == "receiver":
        ranks.reverse()
    job.run(f"{category}, {role}", [
        job.path("bin/mlx5sim-run"), "--private", "--", launcher, "-n", "1",
        *ranks[0], ":", "-n", "1", *ranks[1]], f"{where}/out", f"{where}/log", {
            "UCX_TLS": "sep_mlx5", "UCX_SEP_CATEGORY": category,
            "MPIR_CVAR_CH4_NUM_VCIS": str(threads)})
    return [[category, role, *row] for row in job.read(
        "callgrind_locked.py", threads * windows * window,
        *sorted(glob.glob(f"{where}/callgrind.out.*")))]


def kernels(job):
    """Kernels of applications."""
    builds.release(job)
    prefix = builds.mpich(job)
    words = job.rest
    if prefix:
        programs = job.path("app_kernels")
        os.makedirs(programs, exist_ok=True)
        builds.compiled(job, f"{prefix}/bin/mpicc",
                        f"{programs}/app_kernels.mpich",
                        "test/mpi/app_kernels.c", flags=(
                            "-lpthread", "-lm", f"-Wl,-rpath,{prefix}/lib"))
        words += ["--mpich", prefix, "--programs", programs]
    if prefix or not builds.one_interface(job):
        words.append("--mpich-interfaces")
    return drive(job.row.driver, [*words, "--build-dir", job.build])


def resources(job):
    """Plans of sep_info, beside each other."""
    builds.release(job)
    options = job.options
    done = subprocess.run(
        [top("bench/resources.py"), "--sep-info", job.path("bin/sep_info"),
         "--sim-run", job.path("bin/mlx5sim-run"), "--peers", options.peers,
         *(["--workers", options.workers] if options.workers else []),
         *(["--take"] if options.take else []),
         *(["--markdown"] if options.markdown else [])], text=True, check=False,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    if job.tsv or options.markdown:
        print(done.stdout.rstrip("\n"))
        return done.returncode
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print("".join(f"{cell:<{width + 1}} " for cell, width in
                      zip(row, widths)))
    return done.returncode


def scale(job):
    """Connections to many peers, in virtual time."""
    builds.release(job)
    given = [f"--{name}={value}" for name, value in vars(job.options).items()
             if f"--{name}" in job.row.options and value and
             name not in ("build", "tsv", "lives")]
    return subprocess.run([job.path("bench/conn_scale"), *given,
                           *(["--tsv"] if job.tsv else []),
                           *(["--lives"] if job.options.lives else [])],
                          check=False,
                          stdin=subprocess.DEVNULL).returncode


def book(job):
    """The book of evidence."""
    importlib.import_module("book.cli").parse_arguments(job.rest)
    # Debian's matplotlib is for Debian's python3
    python = "python3"
    if not {"--check", "--no-figures"} & set(job.rest):
        job.shell("sep_install_deps", "book")
        if subprocess.run([python, "-c", "import matplotlib"], check=False,
                          stderr=subprocess.DEVNULL).returncode != 0:
            python = "/usr/bin/python3"
    if {"--list", "--draw"} & set(job.rest):
        job.build = job.options.build or top("build/release")
    else:
        builds.release(job)
    return subprocess.run([python, top("bench/book/main.py"), "--build",
                           job.build, *job.rest], check=False).returncode
