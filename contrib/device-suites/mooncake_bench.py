#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark of Mooncake's transfer engine, in two processes for a second: batches of
eight blocks of 4 KB are written or read. Run by contrib/device-suites.sh.

usage: mooncake_bench.py read|write
"""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time

DEVICE = "mlx5_0"
LIMIT  = 120


def start(log, mode, operation, *options):
    """One side of it. To import the package would load the engine as well."""
    package = importlib.util.find_spec("mooncake").submodule_search_locations[0]
    program = os.path.join(package, "transfer_engine_bench")
    return subprocess.Popen(
        [program, f"-mode={mode}", f"-operation={operation}",
         "-metadata_server=P2PHANDSHAKE", "-local_server_name=127.0.0.1",
         "-protocol=rdma", f"-device_name={DEVICE}", "-buffer_size=16777216",
         "-block_size=4096", "-batch_size=8", "-threads=1", "-duration=1",
         *options], stderr=log, stdout=log,
        env={**os.environ, "GLOG_logtostderr": "1"})


def port_of(log):
    """Where the target listens, as soon as it says so."""
    until = time.monotonic() + LIMIT
    while time.monotonic() < until:
        log.seek(0)
        found = re.search(r"listening on 127\.0\.0\.1:(\d+)", log.read())
        if found:
            return found[1]
        time.sleep(0.05)
    raise AssertionError("the target does not start")


def main():
    operation = sys.argv[1]
    batches = 0
    with tempfile.TemporaryFile("w+") as targets, \
            tempfile.TemporaryFile("w+") as initiators:
        target = start(targets, "target", operation)
        try:
            initiator = start(initiators, "initiator", operation,
                              f"-segment_id=127.0.0.1:{port_of(targets)}")
            status = initiator.wait(LIMIT)
        finally:
            target.terminate()
            target.wait()
            for log in targets, initiators:
                log.seek(0)
            text = initiators.read()
            print(targets.read(), text, sep="")
        found = re.search(r"Test completed:.*batch count (\d+)", text)
        if found:
            batches = int(found[1])
    print(f"{operation}: {batches} batches, status {status}")
    return 0 if status == 0 and batches else 1


if __name__ == "__main__":
    sys.exit(main())
