#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""An agent of NIXL in each of two processes, on the UCX that its package brings: one
writes into the memory of the other, and reads it back, with small and large sizes.
Run by contrib/device-suites.sh.

usage: nixl_transfer.py THREADS     of the agent that moves data; 0: as it likes
"""

import os
import sys

import numpy
import other_process
from other_process import LIMIT

SIZES   = (64, 4096, 1 << 20, 16 << 20)
PATTERN = numpy.arange(251) * 7


def start(name, threads, buffers):
    """An agent with these buffers registered."""
    # Its import is slow, and no business of the process that only waits
    from nixl_cu12 import nixl_agent, nixl_agent_config
    agent = nixl_agent(name, nixl_agent_config(backends=["UCX"],
                                               num_threads=threads))
    agent.register_memory([(each.ctypes.data, each.nbytes, 0, "")
                           for each in buffers], "DRAM")
    return agent


def move(agent, peer, operation, local, remote):
    """A transfer, from its start to its end."""
    handle = agent.initialize_xfer(
        operation,
        agent.get_xfer_descs([(local.ctypes.data, local.nbytes, 0)], "DRAM"),
        agent.get_xfer_descs([(remote, local.nbytes, 0)], "DRAM"), peer)
    state = agent.transfer(handle)
    while state == "PROC":
        state = agent.check_xfer_state(handle)
    agent.release_xfer_handle(handle)
    return state == "DONE"


def leave(status):
    """The end of libraries that the package brings crashes, on TCP as well."""
    sys.stdout.flush()
    os._exit(status)


def target(pipe):
    """Have memory, and show it when asked."""
    memory = numpy.zeros(SIZES[-1], numpy.uint8)
    agent  = start("target", 0, [memory])
    pipe.send((agent.get_agent_metadata(), memory.ctypes.data))
    while pipe.poll(LIMIT):
        size = pipe.recv()
        if size is None:
            break
        pipe.send(memory[:size].tobytes())
    leave(0)


def main():
    other, pipe = other_process.start(target)
    metadata, address = pipe.recv()

    source = numpy.zeros(SIZES[-1], numpy.uint8)
    back   = numpy.zeros(SIZES[-1], numpy.uint8)
    agent  = start("initiator", int(sys.argv[1]), [source, back])
    peer   = agent.add_remote_agent(metadata)
    failed = 0
    for turn, size in enumerate(SIZES):
        # Other bytes than those of the size before
        source[:size] = numpy.resize((PATTERN + turn) % 251, size)
        wrote = move(agent, peer, "WRITE", source[:size], address)
        pipe.send(size)
        assert pipe.poll(LIMIT), "the target does not answer"
        wrote = wrote and pipe.recv() == source[:size].tobytes()
        read  = (move(agent, peer, "READ", back[:size], address) and
                 bool((back[:size] == source[:size]).all()))
        failed += not wrote or not read
        print(f"{size} bytes: write {'ok' if wrote else 'FAILED'}, "
              f"read {'ok' if read else 'FAILED'}")
    pipe.send(None)
    other.join(LIMIT)
    leave(1 if failed else 0)


if __name__ == "__main__":
    main()
