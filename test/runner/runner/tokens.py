# SPDX-License-Identifier: BSD-3-Clause
"""How many processes may be at work, for the runner and every make it starts.

The runner is what GNU make calls a jobserver: a pipe holds a byte for each
process that may still be started. Who starts one takes a byte and puts it back
afterwards. So tests, and the compilations of several builds, share the cores
whatever is going on.
"""

import contextlib
import os
import select


class Tokens:
    """The pipe. A make that must be killed may keep what it has taken; those
    that the runner's own threads hold are always put back."""

    def __init__(self, number):
        self.number = number
        self.fds = os.pipe()
        # make wants it so, and it is the same pipe for all
        os.set_blocking(self.fds[0], False)
        os.write(self.fds[1], b"+" * number)

    def acquire(self):
        """Wait for one. Someone else may be faster than we are."""
        while True:
            select.select([self.fds[0]], [], [])
            with contextlib.suppress(BlockingIOError):
                os.read(self.fds[0], 1)
                return

    def release(self):
        os.write(self.fds[1], b"+")

    def makeflags(self):
        """What make has to have in its environment."""
        return f" -j{self.number} --jobserver-auth={self.fds[0]},{self.fds[1]}"
