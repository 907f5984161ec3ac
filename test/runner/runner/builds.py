# SPDX-License-Identifier: BSD-3-Clause
"""Build what tests need, each thing once."""

import functools
import os
import shutil
import subprocess

from . import report
from .parts import PLAIN
from .schedule import Failed, Task

_LIMIT = 3600

# Nobody steps through these tests, and what fails names its line itself
_COMMON = ("--enable-gtest", "--enable-werror", "--enable-precompiled-headers",
           "CXXFLAGS=-O0 -g0")


class Builds:
    """Tasks that build. In one directory, one target is made at a time."""

    def __init__(self, session):
        self._session = session
        self._made = {}         # (directory, target): task
        self._last = {}         # directory: task
        self._autogen = None

    def directory(self, build):
        return os.path.join(self._session.top, self._given(build) or
                            os.path.join("build", build.directory))

    def _given(self, build):
        """A directory that somebody else has configured."""
        return self._session.options.build if build is PLAIN else None

    def target(self, build, name):
        """The task that makes a target."""
        key = (build.directory, name)
        if key not in self._made:
            before = self._last.get(build.directory) or \
                self.configure_script()
            script = '. contrib/lib.sh; sep_build "$@"'
            command = ("bash", "-euo", "pipefail", "-c", script, "build",
                       self.directory(build), name,
                       os.path.join(self._session.top, "configure"), *_COMMON,
                       *build.options)
            if self._given(build):
                command = ("make", "-C", self.directory(build), name)
            # The tests' own objects are the same, and ccache has them then
            same = self._made.get((PLAIN.directory, name))
            self._made[key] = self._last[build.directory] = self._task(
                f"build {build.directory} {name}", command,
                [before, same] if same else [before])
        return self._made[key]

    @staticmethod
    @functools.cache
    def ucx_version():
        """Of the system's UCX, or an empty string."""
        if shutil.which("pkg-config") is None:
            return ""
        return subprocess.run(["pkg-config", "--modversion", "ucx"],
                              check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL,
                              text=True).stdout.strip()

    def obstacle(self, script):
        """Why a script can't do its work on this machine, or None."""
        if script.variable and not os.environ.get(script.variable):
            return f"{script.variable} is not set"
        version = self.ucx_version() if script.ucx else ""
        if version != script.ucx:
            return f"it is for UCX {script.ucx}, and here is {version or 'none'}"
        return None

    def script(self, script):
        """The task that runs a script which builds something."""
        if script.name not in self._made:
            last = (os.environ[script.variable],) if script.variable else ()
            self._made[script.name] = self._task(
                f"build {script.name}", script.command + last,
                [self.configure_script()])
        return self._made[script.name]

    def configure_script(self):
        """The task that makes the script that all builds need."""
        # The first to be built would call autogen.sh; there are several
        if self._autogen is None:
            self._autogen = self._task(
                "configure script",
                ("bash", "-euo", "pipefail", "-c",
                 ". contrib/lib.sh; sep_autogen"), [])
        return self._autogen

    def _task(self, name, command, needs):
        def action():
            session = self._session
            log = os.path.join(session.directory("build"),
                               name.replace("/", "-").replace(" ", "_") +
                               ".log")
            child, elapsed = session.command(command, log, _LIMIT, make=True)
            session.add_time("build", name.removeprefix("build "), elapsed,
                             child.cpu)
            if child.status != 0:
                session.console.say(f"{name} FAILED", report.tail(log, 40))
                session.fail("build", name, name, f"{child.why()}", log)
                raise Failed
            session.console.say(f"{name:<72} {elapsed:8.1f} s")

        return self._session.schedule.add(Task(name, action, needs,
                                               urgent=True))
