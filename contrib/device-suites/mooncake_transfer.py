#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two processes with Mooncake's transfer engine: one writes 1 MB into the memory of
the other by RDMA, and reads it back. Run by contrib/device-suites.sh."""

import ctypes
import sys

import other_process
from other_process import LIMIT

SIZE   = 1 << 20
DATA   = bytes(i * 7 % 251 for i in range(SIZE))
DEVICE = "mlx5_0"


def start(memory):
    """An engine with these buffers registered."""
    # Its import is slow, and no business of the process that only waits
    from mooncake.engine import TransferEngine  # pylint: disable=all
    engine = TransferEngine()
    result = engine.initialize("127.0.0.1", "P2PHANDSHAKE", "rdma", DEVICE)
    assert result == 0, f"initialize: {result}"
    for each in memory:
        result = engine.register_memory(ctypes.addressof(each), SIZE)
        assert result == 0, f"register_memory: {result}"
    return engine


def target(pipe):
    """Have memory, and look at it in the end."""
    memory = ctypes.create_string_buffer(SIZE)
    engine = start([memory])
    pipe.send((engine.get_rpc_port(), ctypes.addressof(memory)))
    assert pipe.poll(LIMIT), "the initiator says nothing"
    pipe.recv()
    pipe.send(memory.raw == DATA)


def main():
    other, pipe = other_process.start(target)
    port, address = pipe.recv()

    source = ctypes.create_string_buffer(DATA, SIZE)
    back   = ctypes.create_string_buffer(SIZE)
    engine = start([source, back])
    peer   = f"127.0.0.1:{port}"
    wrote  = engine.transfer_sync_write(peer, ctypes.addressof(source), address,
                                        SIZE)
    read   = engine.transfer_sync_read(peer, ctypes.addressof(back), address, SIZE)
    pipe.send("done")
    assert pipe.poll(LIMIT), "the target does not answer"
    passed = {"write": wrote == 0 and pipe.recv(),
              "read": read == 0 and back.raw == DATA}
    for name, success in passed.items():
        print(f"{name}: {'ok' if success else 'FAILED'}")
    other.join(LIMIT)
    return 0 if all(passed.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
