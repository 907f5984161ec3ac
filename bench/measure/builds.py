# SPDX-License-Identifier: BSD-3-Clause
"""What measurements need built, by the scripts of contrib/."""

import dataclasses
import os

from .job import Failed, top


def source_option(source):
    """For the scripts that build a UCX."""
    return ["--ucx-source", source] if source else []


def source_name(source):
    """What a source of UCX, a tree or an archive, is called: its version,
    mostly."""
    return os.path.basename(source).partition(".tar.")[0].removeprefix("ucx-")


def ucx_options(ucx, source):
    """How configure is told of a UCX, if it is not the system's."""
    return [f"--with-ucx{name}={value}"
            for name, value in (("", ucx), ("-source", source)) if value]


def configured(job, directory, targets, *options, ucx=None, source=None):
    """A release build, on a UCX if it is not the system's."""
    job.shell("sep_build", directory, targets, top("contrib/configure-release"),
              *ucx_options(ucx, source), *options)


def release_ucx(job, directory, targets, ucx, source=None):
    """A UCX in release configuration in `ucx`, from a source if that is not the
    system's, and programs that measure with it."""
    if not os.path.exists(os.path.join(ucx, ".sep-ucx-release")):
        job.do(top("contrib/build-ucx-release.sh"), *source_option(source), ucx)
    configured(job, directory, targets, "--disable-gtest", ucx=ucx,
               source=source)


def _needs(job):
    """Groups of packages and targets of make, with those of single options."""
    packages, targets = list(job.row.packages), [job.row.targets]
    for name, (package, target) in job.row.more.items():
        if name in job.rest:
            packages.append(package)
            targets += [target] if target else []
    return packages, " ".join(targets)


def bench(job):
    """build/bench on build/ucx-release, or the directory of --build as it is."""
    job.build = job.options.build
    job.ucx = job.options.ucx
    if job.build:
        return
    packages, targets = _needs(job)
    job.build = top("build/bench")
    source = job.options.ucx_source
    name = f"-{source_name(source)}" if source else ""
    job.ucx = job.ucx or top(f"build/ucx-release{name}")
    if source:
        # The transport is compiled for each UCX
        job.build = f"{job.ucx}-bench"
    job.shell("sep_install_deps", *packages)
    release_ucx(job, job.build, targets, job.ucx, source)


def release(job):
    """build/release on the system's UCX, or the directory of --build."""
    job.build = job.options.build
    if job.build:
        return
    packages, targets = _needs(job)
    job.build = top("build/release")
    job.shell("sep_install_deps", *packages)
    configured(job, job.build, targets, "--disable-gtest")


def mpich(job):
    """Prefix of an MPICH with an interface per thread; "" if the installed one
    is such."""
    job.shell("sep_install_deps", *job.row.packages)
    if job.options.mpich not in (None, "auto"):
        return job.options.mpich
    if not one_interface(job):
        return ""
    job.do(top("contrib/build-mpich.sh"), "--prefix", top("build/mpich"))
    return top("build/mpich")


def one_interface(job):
    """Whether the installed MPICH has a single interface."""
    try:
        job.do(top("contrib/build-mpich.sh"), "--needed")
    except Failed:
        return False
    return True


def compiled(job, compiler, name, *sources, flags=("-lpthread", "-lm")):
    """A program of MPI."""
    job.do(compiler, "-std=gnu11", "-O2", "-g", "-I", top("test"), "-o", name,
           *map(top, sources), *flags)


@dataclasses.dataclass(frozen=True)
class Pair:
    """UCX with the transport: as it is, and with the optimisations of UCP."""
    release: str
    suffix: str         # of directories
    source: str
    stock: str
    patched: str


def pair(job, stock=None, patched=None):
    """Of --ucx-source, or Debian's; not built yet."""
    source, release_name, suffix = None, "1.13.1", ""
    if job.options.ucx_source:
        source = job.ask("sep_ucx_tree", job.options.ucx_source)
        release_name = job.ask("sep_ucx_release", source)
        job.ask("sep_ucx_opt_series", release_name)
        suffix = f"-{release_name}"
    return Pair(release_name, suffix, source,
                stock or top(f"build/ucx-stock{suffix}"),
                patched or top(f"build/ucx-opt{suffix}"))


def build_pair(job, both):
    for prefix, options in ((both.stock, ["--stock"]), (both.patched, [])):
        if not os.path.exists(os.path.join(prefix, ".sep-ucx-opt")):
            job.do(top("contrib/build-ucx-opt.sh"), *options,
                   *source_option(both.source), prefix)


def build_pair_of_release(job, both):
    """The same, and both have to be of the release."""
    build_pair(job, both)
    for prefix in (both.stock, both.patched):
        job.shell("sep_ucx_expect_release", prefix, both.release)
