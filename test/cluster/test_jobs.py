# SPDX-License-Identifier: BSD-3-Clause
"""MPI and OpenSHMEM between nodes. The programs check every byte."""

import os
import re
import shutil
import tempfile
import unittest
from dataclasses import dataclass

import nodes
from mainjob import defects, jobs, lanes, process

ONLY = ("sep-run", "--only")
BOTH = ("sep-run",)             # shared memory inside of a node
ALL = ("sep-run", "--keep-tls") # UCX chooses among all that it has
RC = ("rc",)                    # the witness: UCX's own transport
THREADS = ("MPIR_CVAR_CH4_NUM_VCIS=2",)


@dataclass(frozen=True)
class Row:
    """A job; ranks are spread over the nodes."""
    library: str
    program: str
    each: int                   # ranks of a node
    nodes: int = 2
    transport: tuple = ONLY
    adapters: int = 1
    ports: int = 1
    link: str = "roce"
    arguments: tuple = ()       # of the program, besides --quick
    environment: tuple = ()

    @property
    def name(self):
        words = [self.library, self.program, f"{self.each}x{self.nodes}",
                 *self.transport]
        words += ["eager"] if "UCX_SEP_EAGER=y" in self.environment else []
        words += ["2_adapters"] if self.adapters > 1 else []
        words += ["2_ports"] if self.ports > 1 else []
        words += ["ib"] if self.link == "ib" else []
        return "_".join(words).replace("-", "")

    def launcher(self):
        """What starts it in the first node."""
        names = [f"node{i + 1}" for i in range(self.nodes)]
        argv = jobs.launch(self.library, jobs.LAUNCHERS[self.library])
        if self.library == "mpich":
            argv += ["-hosts", ",".join(names), "-ppn", str(self.each)]
        else:
            argv += ["--host", ",".join(f"{name}:{self.each}"
                                        for name in names)]
            argv += [word for each in self.variables() for word in
                     ("-x", each)]
        return argv + ["-n", str(self.each * self.nodes)]

    def variables(self):
        found = list(self.environment)
        if self.transport == RC:
            found += ["UCX_TLS=rc_x", "MPIR_CVAR_NOLOCAL=1",
                      *(f"{name}={value}" for name, value in
                        jobs.ENVIRONMENT.items() if name.startswith("UCX_")),
                      *(f"{name}={value}" for name, value in
                        jobs.MODULE_ENVIRONMENT.items())]
        return found

    def defect(self):
        """Why UCX can't do it, or None."""
        if self.ports < 2 or self.transport != RC:
            return None
        result = process.run(["ucx_info", "-v"], nodes.PATIENCE)
        return defects.of_ports("rc_mlx5", defects.version(result.stdout))

    def argv(self):
        job = jobs.Job(self.library, self.program, self.each * self.nodes)
        wrap = [] if self.transport == RC else \
            [nodes.program(self.transport[0]), *self.transport[1:]]
        return [*self.launcher(), *wrap, job.binary(nodes.BUILD), "--quick",
                *self.arguments]


ROWS = (
    Row("mpich", "p2p", 1),
    Row("mpich", "rma", 1),
    Row("mpich", "collectives", 1, nodes=4),
    Row("mpich", "collectives", 1, environment=("UCX_SEP_EAGER=y",)),
    Row("mpich", "collectives", 1, transport=RC),
    Row("mpich", "rma", 1, transport=RC),
    Row("mpich", "endpoints", 1, arguments=("--threads", "2"),
        environment=THREADS),
    Row("mpich", "collectives", 2, transport=BOTH),
    # Each rank sends its first messages to all others at once
    Row("mpich", "connect", 4, nodes=4, transport=BOTH,
        arguments=("--interfaces", "1", "--all")),
    Row("mpich", "collectives", 1, adapters=2),
    Row("mpich", "collectives", 1, adapters=2, transport=RC),
    Row("mpich", "collectives", 1, ports=2),
    Row("mpich", "collectives", 1, ports=2, transport=RC),
    Row("mpich", "collectives", 1, link="ib"),
    Row("mpich", "rma", 1, transport=RC, link="ib"),
    Row("openmpi", "collectives", 1),
    Row("openmpi", "collectives", 1, nodes=4),
    Row("openmpi", "endpoints", 1, arguments=("--threads", "2")),
    Row("oshmem", "put_get", 1),
    Row("oshmem", "put_get", 1, nodes=4),
)

# Debian 12's MPICH has one interface; contrib/build-mpich.sh makes another one
ONE_INTERFACE = "n_vcis <= MPIDI_CH4_MAX_VCIS"


class Jobs(nodes.Test):
    """Rows with so many nodes and adapters."""

    def setUp(self):
        self.before = self.counters()

    def counters(self):
        return [self.cluster.counters(node + 1) for node in range(self.NODES)]

    def moved(self):
        """Bytes and work requests of each node's device since the start."""
        return [(after["bytes"] - before["bytes"],
                 after["wqes"] - before["wqes"])
                for before, after in zip(self.before, self.counters())]

    def job(self, row):
        """Run a row. @return what it reports"""
        if shutil.which(jobs.LAUNCHERS[row.library]) is None or \
                not os.path.exists(row.argv()[row.argv().index("--quick") - 1]):
            self.skipTest(f"there is no {jobs.Job.TITLES[row.library]}")
        defect = row.defect()
        if defect:
            self.skipTest(defect)
        result = self.cluster.run(1, *row.argv(), environment=row.variables())
        if ONE_INTERFACE in result.stderr:
            self.skipTest("this MPICH can't have an endpoint per thread")
        status, text, report = jobs.judge(
            jobs.Job(row.library, row.program, row.each * row.nodes), result)
        if status == "skip":
            self.skipTest(text)
        self.assertEqual(status, "pass",
                         f"{text}\n{result.stdout}\n{result.stderr}")
        return report

    def row(self, row):
        report = self.job(row)
        moved = self.moved()
        if row.transport not in (BOTH, ALL):
            self.assertGreaterEqual(sum(each[0] for each in moved),
                                    report.payload)
        for node, (size, wqes) in enumerate(moved):
            self.assertGreater(min(size, wqes), 0, f"node{node + 1}")


class Nodes2(Jobs):

    def test_messages_inside_of_a_node_take_shared_memory(self):
        """Long ones take both, in pieces, with any transport: those are UCX's
        rails of a rendezvous, which is switched off."""
        for transport in (BOTH, ALL):
            self.job(Row("mpich", "collectives", 2, nodes=1,
                         transport=transport,
                         environment=("UCX_RNDV_THRESH=inf",)))
        self.assertEqual(sum(wqes for _, wqes in self.moved()), 0)

    def test_others_on_the_device_have_no_lane_if_all_may(self):
        """So what the device carries between nodes is all of sep_mlx5."""
        with tempfile.TemporaryDirectory(prefix="lanes") as logs:
            self.row(Row("mpich", "collectives", 2, transport=ALL,
                         environment=("UCX_LOG_LEVEL=info",
                                      f"UCX_LOG_FILE={logs}/ucx.%h.%p")))
            found = lanes.parse(lanes.read_logs(logs))
        self.assertIn("sep_mlx5/mlx5_0:1", found)
        self.assertEqual([], lanes.foreign(found, (
            "sep_mlx5", "self", "sysv", "posix", "cma")))

    def test_between_nodes_it_has_all_bytes_if_all_may(self):
        """Nothing is left for TCP."""
        report = self.job(Row("mpich", "p2p", 1, transport=ALL))
        self.assertGreaterEqual(sum(each[0] for each in self.moved()),
                                report.payload)


class Nodes4(Jobs):
    NODES = 4


class InfiniBand(Jobs):
    OPTIONS = ("--link", "ib")


class Rails2:
    """Two interfaces in each node, between which UCX divides long messages."""

    def setUp(self):
        super().setUp()
        self.seen = self.interfaces()

    def interfaces(self):
        """Bytes in and out of eth0 and eth1 of each node, says the kernel."""
        found = []
        for node in (1, 2):
            result = self.cluster.run(node, "cat", "/proc/net/dev")
            self.good(result)
            rows = {name: words.split() for name, words in re.findall(
                r"(eth\d):(.*)", result.stdout)}
            found += [[int(rows[name][0]), int(rows[name][8])]
                      for name in ("eth0", "eth1")]
        return found

    def carried(self):
        """The same since the start, in a row for each node."""
        moved = [[after - before for before, after in zip(*pair)]
                 for pair in zip(self.seen, self.interfaces())]
        return list(zip(moved[::2], moved[1::2]))

    def row(self, row):
        """Each interface has at least a quarter of what goes out and in."""
        super().row(row)
        for node in self.carried():
            for way in (0, 1):
                both = [interface[way] for interface in node]
                self.assertGreater(min(both), sum(both) / 4, both)

    def test_the_second_one_is_not_used_unless_it_may_be(self):
        """As the others would be if all went through one of both."""
        self.job(Row("mpich", "collectives", 1,
                     environment=("UCX_NET_DEVICES=mlx5_0:1",)))
        for first, second in self.carried():
            self.assertLess(max(second), min(first) / 100)


class Adapters2(Rails2, Jobs):
    OPTIONS = ("--adapters", "2")


class Ports2(Rails2, Jobs):
    ENVIRONMENT = ("MLX5SIM_PORTS=2",)


def add_tests():
    """A test for each row."""
    for row in ROWS:
        cls = Adapters2 if row.adapters == 2 else Ports2 if row.ports == 2 \
            else InfiniBand if row.link == "ib" \
            else {2: Nodes2, 4: Nodes4}[row.nodes]
        setattr(cls, f"test_{row.name}", lambda self, row=row: self.row(row))


add_tests()


if __name__ == "__main__":
    unittest.main()
