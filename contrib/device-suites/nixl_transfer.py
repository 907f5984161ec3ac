#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two agents of NIXL, on the UCX that its package brings: one writes 1 MB into the
memory of the other, and reads it back. Run by contrib/device-suites.sh."""

import os
import sys

import numpy
from nixl_cu12 import nixl_agent, nixl_agent_config

SIZE = 1 << 20


def move(agent, peer, operation, local, remote):
    """A transfer, from its start to its end."""
    handle = agent.initialize_xfer(
        operation, agent.get_xfer_descs([(local.ctypes.data, SIZE, 0)], "DRAM"),
        agent.get_xfer_descs([(remote.ctypes.data, SIZE, 0)], "DRAM"), peer)
    state = agent.transfer(handle)
    while state == "PROC":
        state = agent.check_xfer_state(handle)
    agent.release_xfer_handle(handle)
    return state == "DONE"


def main():
    agents = [nixl_agent(name, nixl_agent_config(backends=["UCX"]))
              for name in ("initiator", "target")]
    source = (numpy.arange(SIZE) * 7 % 251).astype(numpy.uint8)
    memory = numpy.zeros(SIZE, numpy.uint8)
    back   = numpy.zeros(SIZE, numpy.uint8)
    for agent, buffers in zip(agents, ((source, back), (memory,))):
        agent.register_memory([(each.ctypes.data, SIZE, 0, "")
                               for each in buffers], "DRAM")
    peer   = agents[0].add_remote_agent(agents[1].get_agent_metadata())
    passed = {}
    passed["write"] = (move(agents[0], peer, "WRITE", source, memory) and
                       bool((memory == source).all()))
    passed["read"]  = (move(agents[0], peer, "READ", back, memory) and
                       bool((back == source).all()))
    for name, success in passed.items():
        print(f"{name}: {'ok' if success else 'FAILED'}")
    sys.stdout.flush()
    # The end of libraries that the package brings crashes, on TCP as well
    os._exit(0 if all(passed.values()) else 1)


if __name__ == "__main__":
    main()
