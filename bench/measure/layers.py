# SPDX-License-Identifier: BSD-3-Clause
"""Which layer spends the instructions of an MPI put and of a flush."""

import dataclasses
import itertools
import os

from . import builds
from .job import MEASURED, Failed, libraries, top

LAUNCHERS = {
    "mpich": ("mpiexec.mpich", "-bind-to", "none"),
    "openmpi": ("mpiexec.openmpi", "--oversubscribe", "--bind-to", "none",
                "--mca", "pml", "ucx", "--mca", "osc", "ucx", "--mca", "btl",
                "self", "--mca", "pml_ucx_tls", "any", "--mca",
                "pml_ucx_devices", "any", "--mca", "opal_common_ucx_tls", "any",
                "--mca", "opal_common_ucx_devices", "any")}
# MPICH would use its own shared memory, and Open MPI refuses to run as root
ENVIRONMENT = {"MPIR_CVAR_NOLOCAL": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1",
               "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
TRANSPORTS = ("rc_mlx5", "sep_mlx5", "rc_verbs", "sep_mlx5 (wr)")
TLS = {"rc_mlx5": "rc_mlx5,ud_mlx5:aux", "rc_verbs": "rc_verbs,ud_verbs:aux"}


@dataclasses.dataclass(frozen=True)
class Ucx:
    """A UCX of the table, and the build of ours for it."""
    name: str
    prefix: str
    build: str
    has_module: bool = False        # of ours


def _installations(job):
    """Those that are asked for; built, if they are not there."""
    options = job.options
    if options.build:
        return [Ucx("system", "", options.build)]
    both = builds.pair(job, options.stock, options.patched)
    build = top(f"build/bench-ucp{both.suffix}")
    job.shell("sep_install_deps", *job.row.packages)
    builds.build_pair(job, both)
    builds.configured(job, build, job.row.targets, "--disable-gtest",
                      ucx=both.stock, source=both.source)
    found = [Ucx("stock", both.stock, build, True),
             Ucx("patched", both.patched, build, True)]
    if options.newer:
        name = builds.source_name(options.newer)
        prefix = top(f"build/ucx-release-{name}")
        builds.release_ucx(job, f"{prefix}-bench", job.row.targets, prefix,
                           options.newer)
        found.append(Ucx(name, prefix, f"{prefix}-bench"))
    return found


def measure(job):
    count = job.options.count
    if not count.isdecimal() or count.startswith("0"):
        raise Failed(f"--count: '{count}' is no number of calls")
    installations = _installations(job)
    for mpi in LAUNCHERS:
        builds.compiled(job, f"mpicc.{mpi}", f"{job.scratch()}/mpi_insn.{mpi}",
                        "bench/mpi_insn.c", "bench/sim_uar.c",
                        flags=("-Wl,--export-dynamic", "-ldl"))
    quick = job.options.quick
    job.show([job.row.columns])
    for mpi, ucx, transport in itertools.product(
            list(LAUNCHERS)[:1 if quick else None], installations,
            TRANSPORTS[:2 if quick else None]):
        if set(job.options.only) <= {mpi, ucx.name, transport}:
            job.show(_rows(job, mpi, ucx, transport, count))
    return 0


def _rows(job, mpi, ucx, transport, count):
    where = job.scratch(f"{mpi}.{ucx.name}.{transport.replace(' ', '')}")
    program = f"{job.scratch()}/mpi_insn.{mpi}"
    launcher = []
    if transport not in TLS and not ucx.has_module:
        launcher = [os.path.join(ucx.build, "bin/sep-run"), "--only"]
    paths = [*libraries(ucx.prefix).values(),
             *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    job.say(f"{mpi}, {ucx.name} UCX, {transport}")
    # Only rank 0 is counted
    job.run(f"{mpi} on {ucx.name} UCX with {transport}", [
        os.path.join(ucx.build, "bin/mlx5sim-run"), "--private", "--",
        *launcher, *LAUNCHERS[mpi], "-n", "1", *MEASURED,
        f"--callgrind-out-file={where}/callgrind.out", program, count, ":",
        "-n", "1", program], f"{where}/counts", f"{where}/log", {
            **ENVIRONMENT, "LD_LIBRARY_PATH": ":".join(paths),
            "UCX_TLS": TLS.get(transport, transport.split()[0]),
            "UCX_SEP_API": "wr" if transport.endswith("(wr)") else "dv"},
            limit=300)
    _, *rows = job.callgrind("layers", f"{where}/counts",
                             f"{where}/callgrind.out")
    return [[row[0], mpi, ucx.name, transport, *row[1:]] for row in rows]
