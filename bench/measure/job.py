# SPDX-License-Identifier: BSD-3-Clause
"""What a measurement has at hand: options, a build, and how to run programs."""

import glob
import os
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))

# The registers must be right at every access to memory, for the device's signal
# handler reads them.
CALLGRIND = ("valgrind", "--tool=callgrind", "-q", "--collect-atstart=no",
             "--px-default=allregs-at-mem-access",
             "--px-file-backed=allregs-at-mem-access")
# Collect inside of measure_*() only
MEASURED = (*CALLGRIND, "--instr-atstart=no", "--toggle-collect=measure_*")


class Failed(Exception):
    """Why; no text if it has been said."""


def top(*path):
    return os.path.join(TOP, *path)


def libraries(ucx):
    """Where the libraries of a UCX are; nothing for the system's."""
    if not ucx:
        return {}
    found = sorted(glob.glob(f"{ucx}/**/libuct.so.0", recursive=True))
    return {"LD_LIBRARY_PATH": os.path.dirname(found[0]) if found else "."}


class Job:
    """A row that is being measured. build: where its programs are; ucx: the UCX
    that they are for, None if that is the system's."""

    def __init__(self, row, options, rest=()):
        self.row = row
        self.options = options
        self.rest = list(rest)  # options for a driver
        self.tsv = options.tsv
        self.build = self.ucx = None
        self.messages = None    # file for those of steps; standard error
        self._scratch = None

    def say(self, text):
        print(f"\n==> {text}", file=sys.stderr, flush=True)

    def path(self, *words):
        """In the build."""
        return os.path.join(self.build, *words)

    def scratch(self, *words):
        """A new directory, which goes with the job."""
        if self._scratch is None:
            self._scratch = tempfile.TemporaryDirectory(
                prefix=f"sep-{self.row.name}.")
        path = os.path.join(self._scratch.name, *words)
        os.makedirs(path, exist_ok=True)
        return path

    def _goes(self, path):
        return self._scratch and path.startswith(self._scratch.name)

    def fresh(self, *words):
        """An empty directory in the build, which stays."""
        shutil.rmtree(self.path(*words), ignore_errors=True)
        os.makedirs(self.path(*words))
        return self.path(*words)

    def output(self, *command, env=None, check=True):
        """What a command prints; its messages are ours."""
        done = subprocess.run(
            list(map(str, command)), stdout=subprocess.PIPE, text=True,
            stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})},
            check=False)
        if check and done.returncode != 0:
            raise Failed()
        return done.stdout

    def do(self, *command, env=None):
        """A step before measuring: all that it prints is a message."""
        if subprocess.run(list(map(str, command)), check=False,
                          stdin=subprocess.DEVNULL, stderr=self.messages,
                          stdout=self.messages or sys.stderr,
                          env={**os.environ, **(env or {})}).returncode != 0:
            raise Failed()

    def shell(self, *command):
        """The same, of a function of contrib/lib.sh or contrib/ucx.sh."""
        self.do(*self._sourced(*command))

    def ask(self, *command):
        """The line that such a function prints."""
        return self.output(*self._sourced(*command)).strip()

    def _sourced(self, *command):
        return ["bash", "-c", 'set -euo pipefail; . "$1/lib.sh"; . "$1/ucx.sh"; '
                'sep_use_ccache; shift; "$@"', self.row.script, top("contrib"),
                *command]

    def run(self, what, command, output, log, env, limit=600):
        """Run what is measured; output, log: files."""
        env = {**os.environ, "UCX_WARN_UNUSED_ENV_VARS": "n", **env}
        with open(output, "w", encoding="utf-8") as out, \
                open(log, "w", encoding="utf-8") as err:
            status = subprocess.run(
                ["timeout", "--kill-after=15", str(limit),
                 *map(str, command)], stdin=subprocess.DEVNULL, stdout=out,
                stderr=err, env=env, check=False).returncode
        if status != 0:
            with open(log, encoding="utf-8", errors="replace") as err:
                sys.stderr.writelines(err.readlines()[-30:])
            kept = "" if self._goes(log) else f"; see {log}"
            raise Failed(f"{what} could not be measured{kept}")

    def read(self, program, *arguments):
        """Rows that a program of bench/ makes of results."""
        text = self.output(top("bench", program), *arguments)
        return [line.split("\t") for line in text.splitlines()]

    def callgrind(self, mode, counts, prefix):
        """Rows of callgrind_insn.py of the files with a prefix."""
        return self.read("callgrind_insn.py", mode, counts,
                         *sorted(glob.glob(f"{glob.escape(prefix)}*")))

    def categories(self, env=None):
        """Names of all sharing categories."""
        text = self.output(self.path("bin/sep_info"), "-l", env=env)
        names = [line.split()[0] for line in
                 text.partition("\n\n")[0].splitlines()]
        if not names:
            raise Failed("sep_info -l printed nothing")
        return names

    def show(self, rows):
        """Print rows: with tabs, or as the row says that people want it."""
        for row in rows:
            print(self.line(row), flush=True)

    def line(self, row):
        if self.tsv:
            return "\t".join(map(str, row))
        head, cell = self.row.text
        first = head.count("%")
        return (head % tuple(row[:first]) + "".join(
            cell % each for each in row[first:])).rstrip()
