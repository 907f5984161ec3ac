# SPDX-License-Identifier: BSD-3-Clause
"""Measuring on the software device: a program in one of several ways to run it."""

import glob
import os
import shutil
import tempfile

from . import device, jobs, process

# Only measure_*() counts. The registers must be right at every access to memory,
# for the device's signal handler reads them (see bench/measure/job.py).
CALLGRIND = ("valgrind", "--tool=callgrind", "-q", "--instr-atstart=no",
             "--collect-atstart=no", "--toggle-collect=measure_*",
             "--px-default=allregs-at-mem-access",
             "--px-file-backed=allregs-at-mem-access")


class BenchError(Exception):
    """Something could not be measured."""


def callgrind(where):
    """Start of a command line whose instructions are counted."""
    return [*CALLGRIND, f"--callgrind-out-file={where}/callgrind.out"]


def read_numbers(text):
    """{first word: [numbers]} of lines with words or tabs between."""
    rows = {}
    for line in text.splitlines():
        name, *numbers = line.split()
        rows[name] = [float(number) for number in numbers]
    return rows


class Bench:
    """Runs the programs of a build. What is compared is called a column."""

    name = "bench"

    def __init__(self, build_dir, top, ucx=None, log_dir=None, timeout=300):
        self.build_dir = os.path.abspath(build_dir)
        self.top = top
        self.ucx = ucx
        self.timeout = timeout
        self.log_dir = log_dir or tempfile.mkdtemp(prefix=f"sep-{self.name}.")
        os.makedirs(self.log_dir, exist_ok=True)

    def settings(self, column):
        """Variables that make the difference, UCX_TLS among them."""
        raise NotImplementedError

    def is_ours(self, column):
        """Whether it takes the transport's module."""
        raise NotImplementedError

    def environment(self, column, instance, extra=None):
        env = {name: value for name, value in os.environ.items()
               if not name.startswith("UCX_") or name.startswith("UCX_SEP_")}
        env.pop("LD_PRELOAD", None)
        env.update(jobs.ENVIRONMENT)
        env.update(instance.environment())
        if self.ucx:
            env["LD_LIBRARY_PATH"] = os.path.join(self.ucx, "lib")
        env["UCX_WARN_UNUSED_ENV_VARS"] = "n"
        env.update(self.settings(column))
        env.update(extra or {})
        return env

    def launcher(self, column):
        words = [os.path.join(self.build_dir, "bin", "mlx5sim-run")]
        if self.is_ours(column):
            words += [os.path.join(self.build_dir, "bin", "sep-run"), "--only"]
        return words

    def tool(self, name):
        """A program of UCX."""
        if self.ucx:
            return os.path.join(self.ucx, "bin", name)
        return name

    def run(self, column, argv, extra=None):
        """Standard output of a program on a device of its own."""
        with device.SoftwareDevice(self.build_dir) as instance:
            result = process.run(
                self.launcher(column) + list(argv), self.timeout,
                self.environment(column, instance, extra))
        if not result.ok:
            raise BenchError(f"{column}: {' '.join(map(str, argv[-4:]))}: "
                             f"{result.why()}{jobs.last_words(result)}")
        return result.stdout

    def script(self, name, *args):
        """Output of a program of bench/ that reads results."""
        result = process.run([os.path.join(self.top, "bench", name), *args],
                             process.PATIENCE)
        if not result.ok:
            raise BenchError(f"{name}: {result.why()}: {result.stderr}")
        return result.stdout

    def instructions(self, where, counts):
        """{operation: instructions per call} of what callgrind left in a
        directory. counts: lines of an operation and its calls."""
        path = os.path.join(where, "counts")
        with open(path, "w", encoding="utf-8") as file:
            file.write(counts)
        text = self.script("callgrind_insn.py", "sum", path,
                           *sorted(glob.glob(f"{where}/callgrind.out*")))
        return {name: numbers[0] for name, numbers in
                read_numbers(text).items()}

    def results(self, *words):
        """An empty directory for the files of a measurement."""
        path = os.path.join(self.log_dir, "-".join(words))
        os.makedirs(path, exist_ok=True)
        for old in glob.glob(os.path.join(path, "*")):
            os.unlink(old)
        return path

    def mpirun(self, job):
        """Launcher of a job's library, and its options but for the ranks."""
        launcher = shutil.which(jobs.LAUNCHERS[job.library])
        if launcher is None:
            raise BenchError(f"{jobs.LAUNCHERS[job.library]} is not installed")
        return jobs.launch(job.library, launcher)

    def job_argv(self, job, arguments):
        """Command line of a program under its library's launcher."""
        return self.mpirun(job) + ["-n", job.ranks] + job.binding() + \
            list(arguments)
