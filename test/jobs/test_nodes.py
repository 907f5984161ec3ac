# SPDX-License-Identifier: BSD-3-Clause
"""Two nodes of one machine: what differs, what is shared, and that nothing of
them stays."""

import os
import signal
import subprocess
import tempfile
import time
import unittest
from unittest import mock

from mainjob import cli, jobs, lanes, nodes, process

TIMEOUT = 300


def skip_without_nodes():
    reason = nodes.why_not()
    if reason:
        raise unittest.SkipTest(reason)


def two(script):
    """A shell script in the first node; $enter HOST COMMAND is another."""
    return process.run([nodes.PROGRAM, "bash", "-c", script], TIMEOUT,
                       dict(os.environ, enter=nodes.AGENT))


def namespaces_of_marked(mark):
    found = set()
    for pid in process.marked_processes(mark):
        try:
            found.add(os.readlink(f"/proc/{pid}/ns/net"))
        except OSError:
            pass
    return found


class Nodes(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        skip_without_nodes()

    def both(self, command):
        """What a command prints in each node."""
        result = two(f'for node in {" ".join(nodes.NAMES)}; do '
                     f'"$enter" -x $node "{command}" || exit; done')
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.splitlines()

    def test_each_is_a_machine_of_its_own_to_programs(self):
        self.assertEqual(self.both("uname -n"), list(nodes.NAMES))
        for command in ("cat /proc/sys/kernel/random/boot_id",
                        "readlink /proc/self/ns/net"):
            here = subprocess.run(["sh", "-c", command], text=True, check=True,
                                  stdout=subprocess.PIPE).stdout.strip()
            seen = self.both(command)
            self.assertEqual(len({here, *seen}), 3, (command, here, seen))

    def test_processes_files_and_directory_are_those_of_the_machine(self):
        pid = os.readlink("/proc/self/ns/pid")
        self.assertEqual(self.both("readlink /proc/self/ns/pid"), [pid, pid])
        self.assertEqual(self.both("pwd"), [os.getcwd()] * 2)
        with tempfile.NamedTemporaryFile("w", dir="/dev/shm") as file:
            file.write("seen\n")
            file.flush()
            self.assertEqual(self.both(f"cat {file.name}"), ["seen"] * 2)

    def test_they_reach_each_other_and_nothing_else(self):
        server = ("import socket; s = socket.create_server(('', 7000)); "
                  "c, _ = s.accept(); c.sendall(b'hello')")
        # Until the test has no patience any more: two()
        client = ("import socket, time\n"
                  "while True:\n"
                  "    try:\n"
                  "        s = socket.create_connection(('sep-node-b', 7000))\n"
                  "        break\n"
                  "    except ConnectionRefusedError:\n"
                  "        time.sleep(0.01)\n"
                  "print(s.recv(5).decode())")
        result = two(f'"$enter" {nodes.NAMES[1]} "python3 -c \\"{server}\\"" & '
                     f'python3 -c "{client}"; wait; ip route')
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = result.stdout.splitlines()
        self.assertEqual(lines[0], "hello")
        self.assertEqual(len(lines), 2, lines)      # one network, no gateway
        self.assertIn("sep-a", lines[1])

    def test_status_of_the_command_is_passed_on(self):
        self.assertEqual(two("exit 5").returncode, 5)
        self.assertEqual(two("kill -SEGV $$").returncode, 128 + 11)
        self.assertEqual(two(f'"$enter" {nodes.NAMES[1]} "exit 6"').returncode,
                         6)

    def test_unknown_host_is_refused(self):
        result = two('"$enter" elsewhere true')
        self.assertEqual(result.returncode, 255)
        self.assertIn("no node elsewhere", result.stderr)

    def test_a_signal_ends_all_of_it(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            running = process.Process([nodes.PROGRAM, "sleep", "1000"])
            deadline = time.monotonic() + TIMEOUT
            while not any(self.is_sleep(pid) for pid in
                          process.marked_processes(running.mark)):
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.01)
            self.assertEqual(len(namespaces_of_marked(running.mark)), 2)
            os.kill(running.pid, number)
            if number == signal.SIGKILL:
                # The command is left to who started it, as with any launcher
                running.finish()
            else:
                running.popen.wait(TIMEOUT)
            while process.marked_processes(running.mark):
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.01)
            if number != signal.SIGKILL:
                running.finish()

    @staticmethod
    def is_sleep(pid):
        try:
            with open(f"/proc/{pid}/comm", encoding="ascii") as file:
                return file.read() == "sleep\n"
        except OSError:
            return False


class WithoutNodes(unittest.TestCase):

    def test_no_namespaces_is_a_reason_to_skip(self):
        enter = ["unshare", "--user", "--map-root-user", "sh", "-c",
                 "echo 0 > /proc/sys/user/max_net_namespaces && exec \"$@\"",
                 "sh"]
        if subprocess.run([*enter, "true"], stderr=subprocess.DEVNULL,
                          check=False).returncode != 0:
            self.skipTest("no user namespaces here")
        result = process.run([*enter, nodes.PROGRAM, "true"], TIMEOUT)
        self.assertEqual(result.returncode, nodes.SKIP_STATUS)
        self.assertIn("may not make namespaces", result.stderr)

    def test_missing_program_is_named(self):
        with mock.patch("shutil.which", lambda name: None if name == "ip" else
                        f"/bin/{name}"):
            self.assertEqual(nodes.why_not(), "there is no ip (package iproute2)")

    def test_rows_are_skipped_with_the_reason(self):
        job = jobs.Job("mpich", "p2p", 2, nodes=2)
        with tempfile.TemporaryDirectory() as directory:
            main = cli.MainJob(cli.parse_arguments(["--log-dir", directory]))
            with mock.patch("mainjob.nodes.why_not", lambda: "no ip"):
                cell = main.job_row(job, cli.TRANSPORTS["sep_mlx5"])
        self.assertEqual((cell.status, cell.detail),
                         ("skip", "no second node: no ip"))


class Rows(unittest.TestCase):

    def test_both_mpis_have_rows(self):
        found = {(job.library, job.ranks) for job in
                 jobs.jobs(True, list(jobs.LIBRARIES)) if job.nodes == 2}
        self.assertEqual(found, {("mpich", 2), ("mpich", 4), ("openmpi", 2),
                                 ("openmpi", 4)})
        self.assertEqual(jobs.Job("openmpi", "p2p", 2, nodes=2).label,
                         "Open MPI 2 ranks, 2 nodes p2p")

    def test_ranks_are_spread(self):
        names = ",".join(nodes.NAMES)
        argv = jobs.Job("mpich", "p2p", 4, nodes=2).argv("/b", True, str)
        at = argv.index("-hosts")
        self.assertEqual(argv[at:at + 4], ["-hosts", names, "-ppn", "2"])
        argv = jobs.Job("openmpi", "p2p", 4, nodes=2).argv("/b", True, str)
        self.assertIn("sep-node-a:2,sep-node-b:2", argv)
        self.assertNotIn("--host",
                         jobs.Job("openmpi", "p2p", 4).argv("/b", True, str))

    def test_logs_tell_where_ranks_were(self):
        with tempfile.TemporaryDirectory() as directory:
            for name in ("ucx.sep-node-a.12", "ucx.sep-node-a.13",
                         "ucx.b.example.14", "stdout"):
                with open(os.path.join(directory, name), "w",
                          encoding="ascii"):
                    pass
            self.assertEqual(lanes.hosts(directory),
                             ["b.example", "sep-node-a"])

    def test_ranks_on_one_node_fail_a_row_for_two(self):
        job = jobs.Job("mpich", "p2p", 2, nodes=2)
        good = process.Result(["mpirun"], 0, "traffic 1 1\nPASS p2p: x\n", "",
                              1.0, False)
        for hosts, status in ((["a"], "fail"), (["a", "b"], "pass")):
            with tempfile.TemporaryDirectory() as directory:
                main = cli.MainJob(cli.parse_arguments(["--log-dir",
                                                        directory]))
                for host in hosts:
                    with open(os.path.join(directory, f"ucx.{host}.1"), "w",
                              encoding="ascii"):
                        pass
                main.run_cell = lambda _label, _transport, body, ucp: body(
                    [], {"UCX_LOG_FILE": f"{directory}/ucx.%h.%p"})[0]
                with mock.patch("mainjob.nodes.why_not", lambda: ""), \
                        mock.patch("mainjob.process.run",
                                   lambda argv, *_: good), \
                        mock.patch("mainjob.cli.MainJob.find",
                                   lambda _self, name: name):
                    cell = main.job_row(job, cli.TRANSPORTS["sep_mlx5"])
            self.assertEqual(cell.status, status, cell.detail)


if __name__ == "__main__":
    unittest.main()
