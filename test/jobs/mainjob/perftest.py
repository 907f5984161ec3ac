# SPDX-License-Identifier: BSD-3-Clause
"""ucx_perftest: which tests are run, and what their output says."""

import os
import re
import socket
import time
from dataclasses import dataclass

from . import process

# Tests in which every message is answered by one of the same size
PING_PONG = ("am_lat", "put_lat", "add_lat", "tag_lat", "tag_sync_lat",
             "ucp_put_lat", "ucp_am_lat", "stream_lat")

# By number of columns: a run of several threads prints its total only
CSV_FIELDS = {
    8: ("iterations", "latency_typical", "latency_average", "latency_overall",
        "bandwidth_average", "bandwidth_overall", "rate_average",
        "rate_overall"),
    4: ("iterations", "latency_overall", "bandwidth_overall", "rate_overall"),
}


@dataclass(frozen=True)
class Test:
    """One run of ucx_perftest."""
    api: str                    # uct or ucp
    name: str                   # as for -t
    size: int
    iterations: int
    layout: str = ""            # -D
    options: tuple = ()
    note: str = ""              # what the options do, for the label
    quick: bool = False         # part of the short run
    threads: int = 1
    optional: bool = False      # a transport need not offer it
    segments: tuple = ()        # sizes of a scatter-gather list

    @property
    def label(self):
        words = [self.api.upper(), self.name]
        if self.layout:
            words.append(self.layout)
        if self.note:
            words.append(self.note)
        return " ".join(words + [format_size(self.size)])

    @property
    def unit(self):
        if self.name.endswith("_lat") or self.name in ATOMICS:
            return "us"
        if self.name in ("get", "ucp_get") and self.size < 65536:
            return "us"
        return "MB/s" if self.size >= 1024 else "Mmsg/s"

    @property
    def messages(self):
        """Least number of operations that the two processes post."""
        both = 2 if self.name in PING_PONG else 1
        return self.iterations * self.threads * both

    @property
    def names_lanes(self):
        """Whether UCP always logs what it chose: newer versions say nothing of
        endpoints that need no active messages, as for atomics of the device."""
        return self.api == "ucp" and self.name not in ATOMICS + ("ucp_add",)

    def arguments(self):
        warmup = max(self.iterations // 10, 1)
        sizes = ",".join(str(size) for size in self.segments or [self.size])
        argv = ["-t", self.name, "-s", sizes, "-n", self.iterations, "-w",
                warmup, "-v", "-f"]
        if self.layout:
            argv += ["-D", self.layout]
        if self.threads > 1:
            argv += ["-T", self.threads]
        return argv + list(self.options)

    def value(self, figures):
        """The figure that stands in the table, in self.unit."""
        if self.unit == "us":
            # With two busy processes on few cores the average holds the time
            # slices of others; the median is the operation itself. Tests that
            # post ahead (-O) have no meaningful one.
            return figures["latency_typical"]
        if self.unit == "MB/s":
            return figures["bandwidth_overall"]
        return figures["rate_overall"] / 1e6


ATOMICS = ("fadd", "swap", "cswap", "ucp_fadd", "ucp_swap", "ucp_cswap")


def format_size(size):
    for unit, factor in (("MB", 1 << 20), ("KB", 1 << 10)):
        if size >= factor and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size} B"


def iterations_for(size, quick):
    """Enough to measure, few enough for a run of minutes."""
    base = 2000 if size <= 1024 else 1000 if size <= 16384 else \
        200 if size <= 262144 else 30
    return max(base // 2, 10) if quick else base


def tests(quick):
    """All tests of the table, in its order."""
    found = []

    def add(api, name, sizes, layout="", options=(), note="", quick_sizes=(),
            threads=1, scale=1.0, optional=False, segments=()):
        for size in sizes:
            if quick and size not in quick_sizes:
                continue
            found.append(Test(api, name, size,
                              max(int(iterations_for(size, quick) * scale), 10),
                              layout, tuple(options), note,
                              size in quick_sizes, threads, optional,
                              tuple(segments)))

    large = (65536, 1 << 20, 4 << 20)

    add("uct", "put_lat", (8, 64), "short", quick_sizes=(8,))
    add("uct", "put_lat", (1024,), "bcopy", quick_sizes=(1024,))
    add("uct", "put_lat", (65536, 4 << 20), "zcopy")
    add("uct", "am_lat", (8,), "short", quick_sizes=(8,))
    add("uct", "am_lat", (8,), "shortiov")
    add("uct", "am_lat", (1024, 4096), "bcopy", quick_sizes=(1024,))
    add("uct", "am_lat", (4096,), "zcopy")
    add("uct", "put_bw", (8,), "short", quick_sizes=(8,))
    add("uct", "put_bw", (4096,), "bcopy")
    add("uct", "put_bw", large, "zcopy", quick_sizes=(1 << 20,))
    add("uct", "am_bw", (8,), "short", quick_sizes=(8,))
    add("uct", "am_bw", (4096,), "bcopy", quick_sizes=(4096,))
    add("uct", "get", (8, 1024), "bcopy", quick_sizes=(8,))
    add("uct", "get", large, "zcopy", quick_sizes=(1 << 20,))
    add("uct", "add_lat", (8,))
    add("uct", "add_mr", (8,))
    for name in ("fadd", "cswap"):
        add("uct", name, (8,), quick_sizes=(8,))
    # mlx5 has no plain swap: it takes a masked compare-and-swap, which not
    # every device has
    add("uct", "swap", (8,), quick_sizes=(8,), optional=True)
    for name in ("fadd", "swap", "cswap"):
        add("uct", name, (4,), optional=True)

    sweep = (8, 1024, 8192, 65536, 1 << 20, 4 << 20)
    add("ucp", "tag_lat", sweep, quick_sizes=(8, 1024, 65536, 4 << 20))
    add("ucp", "tag_lat", (8, 65536), options=("-C",), note="wildcard")
    add("ucp", "tag_lat", (8, 65536), options=("-U",), note="unexpected",
        quick_sizes=(8,))
    add("ucp", "tag_lat", (8,), options=("-E", "sleep"), note="sleeping",
        quick_sizes=(8,), scale=0.3)
    add("ucp", "tag_lat", (8, 65536), options=("-e",), note="error handling")
    add("ucp", "tag_lat", (1024,), layout="iov,iov", segments=(16, 496, 512))
    add("ucp", "tag_sync_lat", (8, 65536))
    add("ucp", "tag_bw", (8, 8192, 65536, 4 << 20), quick_sizes=(8, 4 << 20))
    add("ucp", "tag_bw", (8,), options=("-M", "multi"), note="2 threads",
        threads=2)
    add("ucp", "ucp_put_lat", (8, 65536), quick_sizes=(8,))
    add("ucp", "ucp_put_bw", (8, 8192, 4 << 20), quick_sizes=(4 << 20,))
    add("ucp", "ucp_get", (8, 65536, 4 << 20), quick_sizes=(8, 4 << 20))
    add("ucp", "ucp_add", (4, 8))
    for name in ("ucp_fadd", "ucp_swap", "ucp_cswap"):
        add("ucp", name, (4, 8), quick_sizes=(8,) if name != "ucp_swap" else ())
    add("ucp", "ucp_am_lat", (8, 8192, 65536, 4 << 20), quick_sizes=(8,))
    add("ucp", "ucp_am_bw", (8, 65536, 4 << 20), quick_sizes=(65536,))
    add("ucp", "stream_lat", (8, 8192, 65536), quick_sizes=(8,))
    add("ucp", "stream_bw", (8, 65536, 4 << 20), quick_sizes=(65536,))
    add("ucp", "stream_bw", (8192,), options=("-r", "recv_data"),
        note="recv_data")
    return found


def parse(output):
    """Figures of the last line of "ucx_perftest -v" output, as a dictionary.

    Raises ValueError if there is none: a test that printed no result did not
    measure anything, whatever its exit status.
    """
    for line in reversed(output.splitlines()):
        words = line.strip().split(",")
        if len(words) not in CSV_FIELDS:
            continue
        try:
            return dict(zip(CSV_FIELDS[len(words)], map(float, words)))
        except ValueError:
            continue
    raise ValueError("ucx_perftest printed no result line")


def unsupported(text):
    """What UCX says if the transport does not offer the operation, or None."""
    match = re.search(r"(\S+ does not support .*)$", text, re.MULTILINE)
    return match.group(1).strip() if match else None


def free_port():
    """A TCP port nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def is_listening(port):
    """Whether somebody listens on the port. It is looked up and not tried: the
    server would take the trial for its client."""
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(path, encoding="ascii") as file:
                lines = file.read().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            words = line.split()
            if words[3] == "0A" and int(words[1].rpartition(":")[2],
                                        16) == port:
                return True
    return False


def run_pair(command, test, env, timeout, uct_options=()):
    """Run a test between two processes on this machine.

    command: how ucx_perftest is started, with launchers.
    Returns the results of client and server.
    """
    def start(cpu, *words):
        # The server is told about the test by the client, except that since UCX
        # 1.18 it wants to know from the beginning what is allocated for it.
        # Where ucx_perftest has been built with MPI, it takes part in an MPI job
        # of one process unless it is started from a terminal.
        return process.Process(
            [*command, "-p", port, *words, *uct_options, *test.arguments()],
            env, cpu=cpu, terminal=True)

    port = free_port()
    deadline = time.monotonic() + timeout
    # Two busy processes that share a core exchange a message per time slice
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2 or test.threads > 1:
        cpus = [None, None]
    server = start(cpus[-1])
    try:
        while not is_listening(port) and server.poll() is None and \
                time.monotonic() < deadline:
            time.sleep(0.01)
        client = start(cpus[0], "127.0.0.1")
        client_result = client.wait(deadline - time.monotonic())
    except BaseException:
        server.finish()
        raise
    # A server whose client failed waits for ever
    server_result = server.wait(5.0 if client_result.ok else 0.5)
    return client_result, server_result
