# SPDX-License-Identifier: BSD-3-Clause
"""MPI and OpenSHMEM jobs: how they are started, what their output says."""

import os
import re
from dataclasses import dataclass, field

from . import defects, nodes

SKIP_STATUS = 77


def launch(library, launcher):
    """Start of a command line: the launcher at this path, and its options."""
    argv = [launcher]
    if library == "mpich":
        return argv + ["-bind-to", "none"]
    argv += ["--oversubscribe", "--bind-to", "none", "--mca", "pml", "ucx",
             "--mca", "osc", "ucx", "--mca", "pml_ucx_tls", "any", "--mca",
             "pml_ucx_devices", "any"]
    if library == "oshmem":
        argv += ["--mca", "spml", "ucx"]
    return argv


# Ranks that wait for each other in turn, on as few processors as there are
KERNELS_TIMEOUT = 1200.0


@dataclass(frozen=True)
class Job:
    """A test program under one MPI library."""
    library: str                # mpich, openmpi, oshmem, ucp
    program: str                # source file in test/mpi, test/shmem, test/ucp
    ranks: int
    timeout: float = 600.0
    nodes: int = 1              # or 2: the launcher is started by two-nodes

    TITLES = {"mpich": "MPICH", "openmpi": "Open MPI", "oshmem": "OpenSHMEM",
              "ucp": "UCP"}
    FOLDERS = {"mpich": "mpi", "openmpi": "mpi", "oshmem": "shmem", "ucp": "ucp"}

    @property
    def label(self):
        where = f", {self.nodes} nodes" if self.nodes > 1 else ""
        return f"{self.TITLES[self.library]} {self.ranks} ranks{where} " \
               f"{self.program}"

    def binary(self, build_dir):
        suffix = "" if self.library == "ucp" else f".{self.library}"
        return os.path.join(build_dir, "test", self.FOLDERS[self.library],
                            self.program + suffix)

    def argv(self, build_dir, quick, launcher_for):
        """Command line; launcher_for(name) finds mpirun and the like."""
        quickly = ["--quick"] if quick else []
        if self.library == "ucp":       # starts its processes itself
            return [self.binary(build_dir), "--ranks", self.ranks] + quickly
        argv = launch(self.library, launcher_for(LAUNCHERS[self.library]))
        if self.nodes > 1:
            argv += nodes.hosts(self.library, self.ranks)
        argv += ["-n", self.ranks] + self.binding()
        argv.append(self.binary(build_dir))
        return argv + ending(self.library, self.program)[0] + quickly

    def binding(self):
        """Give each rank a processor if there are enough: two that meet on one
        exchange a message per time slice."""
        cpus = sorted(os.sched_getaffinity(0))
        if self.ranks > len(cpus) or self.program in THREADED:
            return []
        return [BIND_RANK, ",".join(str(cpu) for cpu in cpus)]


BIND_RANK = os.path.join(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))), "bind-rank")

# Programs with threads, which need more than one processor
THREADED = ("threads", "endpoints", "app_kernels")

# Programs that do not end as they should, see test/shmem/app_kernels.c, and
# their option for it
WITHOUT_FINALIZE = {("oshmem", "app_kernels"): ["--no-finalize"]}

# The launchers of Open MPI 4 and 5 would take that for a failure
ALLOW_NO_FINALIZE = {
    "OMPI_MCA_orte_allowed_exit_without_sync": "1",
    "PRTE_MCA_prte_allowed_exit_without_sync": "1",
}


def ending(library, program):
    """How a program ends: its options for it, and the environment."""
    options = WITHOUT_FINALIZE.get((library, program), [])
    return options, ALLOW_NO_FINALIZE if options else {}


LAUNCHERS = {"mpich": "mpirun.mpich", "openmpi": "mpirun.openmpi",
             "oshmem": "oshrun"}

# And UCP alone, whose programs need none
LIBRARIES = (*LAUNCHERS, "ucp")

# What the libraries need on one machine, whatever the transport. sep-run --only
# sets these by itself; they stand here so that rc_mlx5 runs the same way.
ENVIRONMENT = {
    # MPICH would use its own shared memory between ranks of one machine
    "MPIR_CVAR_NOLOCAL": "1",
    # Open MPI refuses to run as root, which containers often are
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    # Debian's Open MPI 4.1.4 unloads the owner of this hook and then calls it
    # in shmem_finalize (open-mpi/ompi issue 11604)
    "OMPI_MCA_opal_common_ucx_opal_mem_hooks": "0",
    # By default, fragments of long messages end inside of numbers, which MPICH
    # can not unpack. These make them as long as those of sep_mlx5.
    "UCX_RC_MLX5_SEG_SIZE": "8274",
    "UCX_TCP_TX_SEG_SIZE": "8272",
    "UCX_TCP_RX_SEG_SIZE": "8272",
}

# What sep-run sets besides: Open MPI takes UCX for one-sided operations and
# OpenSHMEM although it does not know the transport.
MODULE_ENVIRONMENT = {
    "OMPI_MCA_btl": "self",
    "OMPI_MCA_opal_common_ucx_tls": "any",
    "OMPI_MCA_opal_common_ucx_devices": "any",
}


@dataclass
class Report:
    """What a test program said."""
    verdict: str = ""           # PASS, SKIP, or empty
    text: str = ""              # of the verdict
    failures: list = field(default_factory=list)
    notes: list = field(default_factory=list)
    metrics: list = field(default_factory=list)   # (name, size, value, unit)
    messages: int = 0
    payload: int = 0


def parse(output):
    """Read the lines described in test/mpi/mpi_job.h."""
    report = Report()
    for line in output.splitlines():
        words = line.split()
        if line.startswith("FAIL "):
            report.failures.append(line[5:].strip())
        elif line.startswith(("PASS ", "SKIP ")):
            report.verdict = words[0]
            report.text = line[5:].strip()
        elif line.startswith("NOTE "):
            report.notes.append(line[5:].strip())
        elif line.startswith("metric ") and len(words) == 5:
            report.metrics.append((words[1], int(words[2]), float(words[3]),
                                   words[4]))
        elif line.startswith("traffic ") and len(words) == 3:
            report.messages = int(words[1])
            report.payload = int(words[2])
    return report


def judge(job, result, log=""):
    """Whether the job passed: (status, explanation, report). A job that ends
    well without having said so has not passed."""
    report = parse(result.stdout + "\n" + result.stderr)
    if result.timed_out:
        return "fail", result.why(), report
    if report.failures:
        return "fail", report.failures[0], report
    if report.verdict == "SKIP":
        return "skip", report.text, report
    if not result.ok:
        defect = defects.of_job(job, result.stdout + result.stderr + log)
        if defect:
            return "skip", defect, report
        return "fail", result.why() + last_words(result, log), report
    if report.verdict != "PASS":
        return "fail", f"{job.program} ended without PASS", report
    if report.messages == 0:
        return "fail", f"{job.program} reported no traffic", report
    return "pass", report.text, report


def last_words(result, log=""):
    """The most telling line of the output, for an error message. log: what was
    written to files besides."""
    lines = [line.strip() for line in
             (log + "\n" + result.stderr + "\n" + result.stdout).splitlines()]
    lines = [line for line in lines if line and not
             re.fullmatch(r"[-=+*|]+", line)]
    for pattern in (r"mlx5sim.*(violation|error)", r"\b(ERROR|FATAL)\b",
                    r"Caught sig", r"(?i)\b(error|abort|failed|cannot)\b"):
        for line in lines:
            if re.search(pattern, line):
                return ": " + line[:300]
    return ": " + lines[-1][:300] if lines else ""


def jobs(quick, libraries):
    """All jobs of the table, in its order."""
    found = []
    for library in libraries:
        if library == "ucp":
            found.append(Job(library, "app_kernels", 2))
            continue
        programs = ("put_get", "atomics", "sync") if library == "oshmem" else \
            ("p2p", "collectives", "rma", "threads", "kernels")
        for ranks in (2, 4):
            for program in programs:
                found.append(Job(library, program, ranks,
                                 KERNELS_TIMEOUT if program == "kernels" else
                                 Job.timeout))
            if library != "oshmem" and ranks == 2:
                found.append(Job(library, "pingpong", ranks))
        # Not contexts.c: Open MPI 4.1.4 leaves remote keys of contexts behind,
        # and UCX ends the program in shmem_finalize(), on every transport
        if library != "oshmem":
            found.append(Job(library, "endpoints", 2))
        found.append(Job(library, "app_kernels", 2))
        # All between nodes, and a part
        if library != "oshmem":
            found += [Job(library, program, ranks, nodes=2) for program, ranks
                      in (("p2p", 2), ("collectives", 4))]
    return found
