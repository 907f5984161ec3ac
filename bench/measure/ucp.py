# SPDX-License-Identifier: BSD-3-Clause
"""Instructions per operation of UCP, stock and patched."""

import dataclasses
import glob
import itertools

from . import builds
from .job import CALLGRIND, MEASURED, libraries, top

OPERATIONS = ("put_8", "put_1k", "get_8", "get_1k", "fadd", "tag_send",
              "tag_recv_post", "tag_recv_progress", "am_send",
              "am_recv_progress", "flush_one_put", "flush_two_puts",
              "flush_nothing", "worker_flush_one_put", "worker_flush_nothing",
              "rkey_unpack")
# put_1k and get_1k are copied by the transport, as their rows say: UCP guesses how
# fast this processor copies, and takes the user's buffer where that is slow.
COPIED = {"UCX_ZCOPY_THRESH": "inf"}
# Not short: what the transport copies, and what it sends from the user's buffer.
# Which of them UCP would do with a length depends on what the device says of
# itself.
MESSAGES = (
    (COPIED,
     tuple(f"{kind}_send_{length}" for kind in ("tag", "am")
           for length in ("1k", "2k", "4k", "8k"))),
    ({"UCX_ZCOPY_THRESH": "0"},
     tuple(f"{kind}_send_zcopy_{length}" for kind in ("tag", "am")
           for length in ("1k", "8k")) +
     ("tag_send_cached_8k", "am_send_cached_8k")))
# The same in a context whose workers are those of threads
SHARED = {f"{name}_shared": name for name in
          ("tag_send_cached_8k", "am_send_cached_8k")}
# With lanes on two devices, of which one has something to do, and on four: as
# many as rendezvous may use
LANES = {f"{name}{end}": (name, env)
         for end, env in (("_lanes", {"MLX5SIM_DEVICES": "2"}),
                          ("_four_lanes", {"MLX5SIM_DEVICES": "4",
                                           "UCX_MAX_RNDV_RAILS": "4"}))
         for name in ("flush_one_put", "flush_nothing",
                      "worker_flush_one_put")}
# LOCKed instructions, by number of workers: operation of bench/ucp_workers, and
# what is set so that it is sent as the name says
NO_RNDV = {"UCX_RNDV_THRESH": "inf"}
LOCKS = {"put_8": ("put_8", {}),
         "put_64k_zcopy": ("put_64k", {"UCX_ZCOPY_THRESH": "0"}),
         "tag_8": ("tag_8", NO_RNDV),
         "tag_8k_bcopy": ("tag_8k", {**NO_RNDV, **COPIED}),
         "tag_8k_zcopy": ("tag_8k", {**NO_RNDV, "UCX_ZCOPY_THRESH": "0"}),
         "tag_64k_rndv": ("tag_64k", {"UCX_RNDV_THRESH": "16k"})}
WORKERS = ("1", "2", "4", "16")
# What waits for a lock: row of LOCKS, options of bench/ucp_waits. UCP's part alone
# is done more often
WAITS = {"tag_8k_zcopy": ("tag_8k_zcopy", ("-n", "4096")),
         "tag_8k_zcopy_alone": ("tag_8k_zcopy", ("-a", "-n", "100000")),
         "put_64k_zcopy_alone": ("put_64k_zcopy", ("-a", "-n", "100000"))}
RATE = "put_rate"
ABOVE_UCT = "ucp_put_above_uct"
TURNS = 5


@dataclasses.dataclass(frozen=True)
class Transport:
    """UCX_TLS for all, and for 1, 2 and 4 interfaces that are open."""
    tls: str
    idle: dict


# rc_mlx5 cannot be alone
RC_MLX5 = Transport("rc_mlx5,ud_mlx5", {
    1: "rc_mlx5,ud_mlx5:aux", 2: "rc_mlx5,ud_mlx5",
    4: "rc_mlx5,ud_mlx5,rc_verbs,ud_verbs"})
SEP_MLX5 = Transport("sep_mlx5", {
    1: "sep_mlx5", 2: "sep_mlx5,ud_mlx5",
    4: "sep_mlx5,ud_mlx5,rc_mlx5,rc_verbs"})

# Transport, version of UCP's protocols (UCX_PROTO_ENABLE), end of the rows' names
SETS = ((RC_MLX5, "n", ""), (RC_MLX5, "y", ":rc_mlx5:y"),
        (SEP_MLX5, "n", ":sep_mlx5:n"), (SEP_MLX5, "y", ":sep_mlx5:y"))

# What an interface that only connects has of an operation
WIREUP = {"progress_idle_1": "wireup_idle",
          "progress_connecting": "wireup_connecting"}


def is_there(release, proto, operation):
    """Whether a release has an operation with a version of the protocols."""
    return not (release.startswith("1.22.") and proto == "n" and
                ("put" in operation or operation.startswith("get_") or
                 operation == "rkey_unpack"))


def by_operation(found, name=None):
    """[operation, total, of it in UCP], of lines of an operation, a library and
    its instructions. name: of the operation, instead of its own."""
    sums = {}
    for operation, library, count in found:
        row = sums.setdefault(name or operation, [0.0, 0.0])
        row[0] += float(count)
        row[1] += float(count) if library.startswith("libucp") else 0
    rows = []
    for operation, (total, in_ucp) in sums.items():
        rows.append([operation, f"{total:.1f}", f"{in_ucp:.1f}"])
        if operation == "put_8":
            rows.append([ABOVE_UCT, f"{in_ucp:.1f}", f"{in_ucp:.1f}"])
    return rows


def table(stock, patched, has_ucp=False):
    """Header, and rows of both with their ratio; and of these what is in UCP."""
    yield ["row", "stock", "patched", "ratio",
           *(("stock_ucp", "patched_ucp") if has_ucp else ())]
    before = {row[0]: row[1:] for row in stock}
    for name, count, *in_ucp in patched:
        was, *was_in_ucp = before[name]
        ratio = "-"
        if count != "-":
            ratio = 1 if was == count else float(count) / float(was)
            ratio = f"{ratio:.2f}"
        parts = [each or "-" for each in (*was_in_ucp, *in_ucp)]
        yield [name, was, count, ratio, *(parts if has_ucp else ())]


def breakdown(found):
    """Header, and what is in UCP and below of the rows of each build."""
    yield ["row", "build", "total", "UCP", "below"]
    rows = [[name, which, total, in_ucp, f"{float(total) - float(in_ucp):.1f}"]
            for which, each in found.items() for name, total, in_ucp in each
            if in_ucp and not name.startswith(ABOVE_UCT)]
    yield from sorted(rows, key=lambda row: row[0])


class Bench:
    """Both builds; `found` is {build: rows}."""

    def __init__(self, job, both, functions):
        self.job = job
        self.release = both.release
        self.prefix = {"stock": both.stock, "patched": both.patched}
        self.functions = functions
        self.found = {which: [] for which in self.prefix}

    def run(self, which, tls, proto, where, *command, env=None):
        # Atomics by the adapter, where the transport has all that UCP wants:
        # sep_mlx5. rc_mlx5 has ADD and CSWAP only on the software device, and
        # UCP carries out all of them by active messages then.
        self.job.run(f"{which} UCX on {tls}", [
            self.job.path("bin/mlx5sim-run"), "--private", "--", *command],
                     f"{where}/counts", f"{where}/log", {
                         **libraries(self.prefix[which]), "UCX_TLS": tls,
                         "UCX_PROTO_ENABLE": proto,
                         "UCX_ATOMIC_MODE": "device", **(env or {})})

    def measure(self, which, tls, proto, suffix, *operations, name=None,
                env=None, flags=()):
        where = self.job.fresh(
            "ucp-insn", f"{which}{suffix}.{name or operations[0]}")
        callgrind = f"{where}/callgrind.out"
        self.job.say(f"{which} UCX, {tls}, protocols '{proto}'")
        self.run(which, tls, proto, where, *MEASURED,
                 f"--callgrind-out-file={callgrind}",
                 self.job.path("bench/ucp_insn"), "-n",
                 self.job.options.count, *flags, *operations, env=env)
        if self.functions:
            print(f"\n{which} UCX, {tls}, protocols {proto}")
            for row in self.job.callgrind("functions", f"{where}/counts",
                                          callgrind):
                print(*row)
            return
        rows = by_operation(self.job.callgrind("objects", f"{where}/counts",
                                               callgrind), name)
        wireup = WIREUP.get(name or operations[0])
        if wireup:
            rows += [[wireup, count, ""] for _, count in self.job.callgrind(
                "part=^uct_ud_", f"{where}/counts", callgrind)]
        self.add(which, suffix, rows)

    def add(self, which, suffix, rows):
        self.found[which] += [[row[0] + suffix, *row[1:]] for row in rows]

    def rate(self, tls, proto, suffix):
        """Median of runs that alternate."""
        values = {which: [] for which in self.prefix}
        where = self.job.fresh("ucp-insn", "rate")
        for _ in range(TURNS):
            for which, found in values.items():
                self.run(which, tls, proto, where,
                         self.job.path("bench/ucp_insn"), "-r")
                with open(f"{where}/counts", encoding="utf-8") as file:
                    found.append(file.read().strip())
        for which, found in values.items():
            median = sorted(found, key=float)[TURNS // 2]
            self.add(which, suffix, [[RATE, median, ""]])

    def measure_set(self, transport, proto, suffix):
        there = [name for name in (*OPERATIONS, *LANES, RATE) if
                 is_there(self.release, proto, name)]
        for which in self.prefix:
            self.measure(which, transport.tls, proto, suffix,
                         *(name for name in there if name in OPERATIONS),
                         env=COPIED)
            for env, operations in MESSAGES:
                env = {"UCX_RNDV_THRESH": "inf", **env}
                self.measure(which, transport.tls, proto, suffix, *operations,
                             env=env)
            for name, operation in SHARED.items():
                self.measure(which, transport.tls, proto, suffix, operation,
                             name=name, env=env, flags=("-s",))
            for name, (operation, env) in LANES.items():
                if name in there:
                    self.measure(which, transport.tls, proto, suffix, operation,
                                 name=name, env=env)
            for number, tls in transport.idle.items():
                self.measure(which, tls, proto, suffix, "progress_idle",
                             name=f"progress_idle_{number}")
            if transport is RC_MLX5:
                self.measure(which, transport.tls, proto, suffix,
                             "progress_connecting")
        if self.functions:
            return
        if RATE in there:
            self.rate(transport.tls, proto, suffix)
        for which in self.prefix:
            for name in (*OPERATIONS, *LANES, RATE):
                if name not in there:
                    self.add(which, suffix, [[name, "-", ""]])
                    if name == "put_8":
                        self.add(which, suffix, [[ABOVE_UCT, "-", ""]])


class Locks:
    """LOCKed instructions of a message, by the number of workers that send at a
    time, each by a thread of its own in the same context."""

    def __init__(self, job, both):
        self.job = job
        self.prefix = {"stock": both.stock, "patched": both.patched}

    def row(self, transport, name, types, workers, which):
        operation, env = LOCKS[name]
        where = self.job.fresh("ucp-locks", f"{which}.{name}.{workers}")
        flags = ["-m"] if types else []
        self.job.run(f"{which} UCX, {transport.tls}, {name}, {workers}", [
            self.job.path("bin/mlx5sim-run"), "--private", "--", *CALLGRIND,
            "--instr-atstart=no", "--dump-instr=yes",
            "--toggle-collect=measure_message",
            # Who takes a lock, not how it is taken
            "--separate-callers1=pthread_spin_lock*",
            f"--callgrind-out-file={where}/callgrind.out.%p",
            self.job.path("bench/ucp_workers"), *flags, "-n",
            self.job.options.count, "-t", workers, operation],
                     f"{where}/messages", f"{where}/log", {
                         **libraries(self.prefix[which]),
                         "UCX_TLS": transport.tls, **env})
        with open(f"{where}/messages", encoding="utf-8") as file:
            messages = file.read().strip()
        found = self.job.read("callgrind_locked.py", messages,
                              *sorted(glob.glob(f"{where}/callgrind.out.*")))
        locked = [row for row in found if row[1] != "*"]
        tls = transport.tls.partition(",")[0]
        return [f"{name}:{tls}{types}", workers, which,
                f"{sum(float(row[2]) for row in found if row[1] == '*'):.1f}",
                f"{sum(float(row[2]) for row in locked):.2f}",
                ",".join(f"{row[1]}={row[2]}" for row in locked) or "-"]

    def rows(self):
        yield ["row", "workers", "build", "instructions", "locked", "locked_in"]
        for each in itertools.product((SEP_MLX5, RC_MLX5), LOCKS,
                                      ("", ":types"), WORKERS, self.prefix):
            yield self.row(*each)


class Waits:
    """How long messages wait for locks of UCP, by the number of threads on two
    processors."""

    def __init__(self, job, both):
        self.job = job
        self.prefix = {"stock": both.stock, "patched": both.patched}

    def run(self, row, which):
        """[threads, contended, waited, time] of one process."""
        name, flags = WAITS[row]
        operation, env = LOCKS[name]
        where = self.job.fresh("ucp-waits", f"{which}.{row}")
        self.job.run(f"{which} UCX, {row}", [
            self.job.path("bin/mlx5sim-run"), "--private", "--",
            self.job.path("bench/ucp_waits"), *flags, operation],
                     f"{where}/found", f"{where}/log", {
                         **libraries(self.prefix[which]),
                         "UCX_TLS": SEP_MLX5.tls, **env})
        with open(f"{where}/found", encoding="utf-8") as file:
            return [line.split() for line in file]

    def rows(self):
        """Medians of processes that alternate."""
        yield ["row", "threads", "build", "contended", "waited_ns", "time_ns"]
        for row in WAITS:
            found = {which: [] for which in self.prefix}
            for _ in range(TURNS):
                for which, turns in found.items():
                    turns.append(self.run(row, which))
            for index, (threads, *_) in enumerate(found["stock"][0]):
                for which, turns in found.items():
                    yield [row, threads, which, *(
                        sorted((turn[index][column] for turn in turns),
                               key=float)[TURNS // 2]
                        for column in range(1, 4))]


def measure(job):
    options = job.options
    both = builds.pair(job, options.stock, options.patched)
    job.build = top(f"build/bench-ucp{both.suffix}")
    job.shell("sep_install_deps", *job.row.packages)
    builds.build_pair_of_release(job, both)
    builds.configured(job, job.build, job.row.targets, "--disable-gtest",
                      ucx=both.stock, source=both.source)

    if options.locks:
        job.show(Locks(job, both).rows())
        return 0
    if options.waits:
        job.show(Waits(job, both).rows())
        return 0
    bench = Bench(job, both, options.functions)
    for each in SETS[:1] if options.quick else SETS:
        bench.measure_set(*each)
    if options.breakdown:
        job.show(breakdown(bench.found))
    elif not options.functions:
        job.show(table(bench.found["stock"], bench.found["patched"],
                       options.in_ucp))
    return 0
