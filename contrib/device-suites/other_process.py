# SPDX-License-Identifier: BSD-3-Clause
"""The target of a program that moves data between two processes."""

import multiprocessing

LIMIT = 120     # Seconds, for what the other one says


def start(function):
    """Have another process call the function with its end of a pipe. @return it, and
    our end, when it has said something."""
    context   = multiprocessing.get_context("spawn")
    pipe, end = context.Pipe()
    other     = context.Process(target=function, args=(end,), daemon=True)
    other.start()
    assert pipe.poll(LIMIT), "the target does not start"
    return other, pipe
