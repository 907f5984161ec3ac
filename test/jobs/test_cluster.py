# SPDX-License-Identifier: BSD-3-Clause
"""mlx5sim-cluster: what nodes have of their own, how they are reached, what is
refused, and that nothing of them stays."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import uuid

from mainjob import process

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
BUILD = os.path.realpath(os.environ.get("SEP_BUILD_DIR", TOP))
PROGRAM = os.path.join(BUILD, "bin/mlx5sim-cluster")
SSH = os.path.join(BUILD, "bin/mlx5sim-ssh")
TUN = "/dev/net/tun"
TIMEOUT = process.PATIENCE
# Python of the system, which any user may run
SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
# Open MPI 4 says this if the agent runs before mpirun has set its process group
AGENT_WAS_FIRST = re.compile(r"\[\S+\] plm:rsh: Warning: setpgid\(\d+,\d+\) "
                             r"failed in parent with errno=\S+ denied\(13\)\n")
AS_NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534",
             "--clear-groups"]


def environment(**more):
    """Without what the job around may have."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("MLX5SIM_", "HYDRA_", "OMPI_", "PRTE_"))
           and name != "LD_PRELOAD"}
    return dict(env, OMPI_ALLOW_RUN_AS_ROOT="1",
                OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **more)


class ClusterCase(unittest.TestCase):
    """A directory for what clusters leave, and a mark of their processes."""
    prefix = []

    def setUp(self):
        if not os.access(PROGRAM, os.X_OK):
            self.skipTest("mlx5sim-cluster is not built")
        self.tmp = tempfile.mkdtemp(prefix="mlx5sim-test.", dir="/tmp")
        os.chmod(self.tmp, 0o777)
        self.addCleanup(shutil.rmtree, self.tmp)
        self.mark = uuid.uuid4().hex
        self.env = environment(TMPDIR=self.tmp, **{process.MARK: self.mark})
        self.addCleanup(process.kill_marked, self.mark)

    def start(self, *words, program=PROGRAM, prefix=(), **options):
        return subprocess.Popen(
            [*self.prefix, *prefix, program, *words], env=self.env, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, **options)

    def run_it(self, *words, **options):
        with self.start(*words, **options) as child:
            out, err = child.communicate(timeout=TIMEOUT)
            return child.returncode, out, err

    def good(self, *words, **options):
        status, out, err = self.run_it(*words, **options)
        self.assertEqual((status, err), (0, ""), (words, out))
        return out

    def bad(self, says, *words, status=2, **options):
        found, out, err = self.run_it(*words, **options)
        self.assertEqual((found, out), (status, ""), (words, err))
        self.assertRegex(err, says)
        self.assertNotIn("Traceback", err)

    def assert_nothing_is_left(self):
        deadline = time.monotonic() + 60
        while process.marked_processes(self.mark) or os.listdir(self.tmp):
            if time.monotonic() > deadline:
                self.fail(f"left: {process.marked_processes(self.mark)}, "
                          f"{os.listdir(self.tmp)}")
            time.sleep(0.05)

    def need_nodes(self):
        status, _, err = self.run_it("--nodes", "1", "true")
        if "no cluster here" in err or "no bridge here" in err:
            self.skipTest(err.strip())
        self.assertEqual(status, 0, err)


class Nodes(ClusterCase):
    """As the user of the test."""

    def setUp(self):
        super().setUp()
        self.need_nodes()

    def tearDown(self):
        self.assert_nothing_is_left()

    def each(self, command, nodes=("node1", "node2"), options=()):
        """What a shell command prints in each node."""
        return [text.strip() for text in self.good(
            "--nodes", str(len(nodes)), *options, "sh", "-c",
            " && ".join(f"{SSH} -x -o A=b {node} {command!r} && echo %%%"
                        for node in nodes)).split("%%%")[:-1]]

    def test_each_is_a_machine_of_its_own(self):
        self.assertEqual(self.each("hostname"), ["node1", "node2"])
        for command in ("cat /proc/sys/kernel/random/boot_id", *(
                f"readlink /proc/self/ns/{kind}"
                for kind in ("mnt", "net", "uts", "ipc", "pid"))):
            here = subprocess.run(["sh", "-c", command], text=True, check=True,
                                  stdout=subprocess.PIPE).stdout.strip()
            seen = self.each(command)
            self.assertEqual(len({here, *seen}), 3, (command, here, seen))

    def test_memory_and_processes_of_one_are_not_in_another(self):
        seen = self.each("ls /dev/shm; touch /dev/shm/mine; "
                         "set -- /proc/[0-9]*; echo $#")
        for text in seen:
            self.assertRegex(text, r"^mlx5sim\n(mlx5sim-wire.pid\n)?[0-9]+$")
            self.assertLess(int(text.split()[-1]), 20)

    def test_ports_are_what_the_interfaces_are(self):
        for node, text in enumerate(self.each(
                "cd /sys/class/infiniband; for d in mlx5_0 mlx5_1; do "
                "cat $d/ports/1/gids/1 $d/ports/1/gids/3 $d/ports/1/gids/5 "
                "$d/ports/1/gid_attrs/ndevs/0 $d/node_guid; done; "
                "cat /sys/class/net/*/mtu",
                options=("--adapters", "2", "--mtu", "9000"))):
            words = text.split()
            number = node + 1
            self.assertEqual(words[:5], [
                f"fe80:0000:0000:0000:004d:4cff:fe58:000{number}",
                f"0000:0000:0000:0000:0000:ffff:0a4d:000{number}",
                f"fd77:0000:0000:0000:0000:0000:0000:000{number}", "eth0",
                f"024d:4c03:0058:000{number}"])
            self.assertEqual(words[6], "0000:0000:0000:0000:0000:ffff:"
                             f"0a4d:010{number}")
            self.assertEqual(words[8], "eth1")
            self.assertEqual(sorted(words[10:]), ["65536", "9000", "9000"])

    def hello(self, *options):
        """node2 tells node1 something over TCP. @return what the cluster says"""
        server = ("import socket; s = socket.create_server(('', 7000)); "
                  "c, _ = s.accept(); c.sendall(b'hello')")
        client = ("import socket, time\n"
                  "while True:\n"
                  "    try:\n"
                  "        s = socket.create_connection(('node2', 7000))\n"
                  "        break\n"
                  "    except ConnectionRefusedError:\n"
                  "        time.sleep(0.1)\n"
                  "print(s.recv(5).decode())")
        for name, text in (("server", server), ("client", client)):
            with open(os.path.join(self.tmp, name), "w",
                      encoding="ascii") as file:
                file.write(text)
        status, out, err = self.run_it(
            "--nodes", "2", *options, "sh", "-c", f"cd {self.tmp}; {SSH} node2 "
            "python3 server & python3 client && wait && rm server client")
        self.assertEqual((status, out), (0, "hello\n"), err)
        return err

    def test_they_reach_each_other_by_name(self):
        self.assertEqual(self.hello(), "")

    def have_tun(self, mode):
        """Let commands find /dev/net/tun with this mode, if it can be made."""
        words = ["unshare", "--mount", "sh", "-c",
                 "mount -t tmpfs none /mnt && mknod -m $0 /mnt/tun c 10 200 && "
                 f"mount --bind /mnt/tun {TUN} && umount -l /mnt && "
                 'exec "$@"', mode]
        if os.geteuid() != 0 or subprocess.run(
                [*words, "sh", "-c", f": <>{TUN}"], check=False,
                stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest(f"a {TUN} can't be made and opened")
        self.prefix = [*words, *self.prefix]

    def test_a_switch_joins_them_if_tap_interfaces_may_be_made(self):
        self.have_tun("666")
        self.assertRegex(self.hello("--switch"), r'"node1:eth0":')

    def test_input_output_status_and_signals_get_through(self):
        self.assertEqual(self.good(
            "--nodes", "2", "sh", "-c",
            f"echo in | {SSH} root@10.77.0.2 'cat; pwd'", cwd="/usr"),
            "in\n/usr\n")
        self.assertEqual(self.run_it("--nodes", "2", SSH, "node2", "exit 7")[0],
                         7)
        self.assertEqual(self.run_it("--nodes", "1", "sh", "-c",
                                     "kill -9 $$")[0], 137)
        self.assertEqual(self.run_it("--nodes", "2", SSH, "node2", "echo x >&2;"
                                     " exit 3"), (3, "", "x\n"))

    def test_launchers_of_mpi_start_ranks_in_them(self):
        wanted = ["node1", "node1", "node2", "node2"]
        found = 0
        for launcher, hosts in (("mpiexec.mpich", "-hosts=node1,node2"),
                                ("mpirun.openmpi", "--host=node1:2,node2:2")):
            if shutil.which(launcher) is None:
                continue
            found += 1
            status, out, err = self.run_it("--nodes", "2", launcher, "-n", "4",
                                           *hosts.split("="), "hostname")
            self.assertEqual((status, AGENT_WAS_FIRST.sub("", err)), (0, ""),
                             (launcher, out))
            self.assertEqual(sorted(out.split()), wanted, launcher)
        if found == 0:
            self.skipTest("there is no MPI")

    def test_up_exec_and_down(self):
        self.assertEqual(self.good("up", "--names", "a,b"), "a b\n")
        self.assertEqual(self.good("exec", "b", "hostname"), "b\n")
        self.bad("a cluster is in .*'mlx5sim-cluster down' ends it", "up",
                 "--nodes", "2")
        self.bad("no node c, only a, b", "exec", "c", "true")
        with self.start("exec", "a", "sleep", "1000"):
            self.good("down")
        self.assert_nothing_is_left()
        self.bad("there is no cluster in", "down")
        self.bad("there is no cluster in", "exec", "a", "true")

    def test_what_devices_have_reported_is_told_at_the_end(self):
        """Of each node, though the command itself has failed, too."""
        report = f"{SSH} node2 'echo broken >> $MLX5SIM_DIR/violations'"
        says = ("mlx5sim-cluster: node2: strict mode reported 1 "
                "violation(s):\nbroken\n")
        for end, status in (("true", 3), ("exit 7", 7)):
            found, _, err = self.run_it("--nodes", "2", "sh", "-c",
                                        f"{report}; {end}")
            self.assertEqual(found, status, err)
            self.assertTrue(err.endswith(says), err)
        directory = os.path.join(self.tmp, "c")
        self.good("up", "--nodes", "2", "--dir", directory)
        self.run_it("exec", "--dir", directory, "node2", "sh", "-c",
                    "echo broken >> $MLX5SIM_DIR/violations")
        self.assertEqual(self.run_it("down", "--dir", directory),
                         (3, "", says))

    def test_a_node_can_end_before_the_others(self):
        self.good("up", "--nodes", "2")
        self.run_it("exec", "node2", "kill", "-TERM", "1")
        deadline = time.monotonic() + TIMEOUT
        while self.run_it("exec", "node2", "true")[0] == 0:
            self.assertLess(time.monotonic(), deadline)
        self.bad("node2 has ended", "exec", "node2", "true")
        self.assertEqual(self.good("exec", "node1", "hostname"), "node1\n")
        self.good("down")

    def test_what_ends_it_ends_all(self):
        """The command has a child that has left its session."""
        for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130),
                               (signal.SIGKILL, -9)):
            with self.start("--nodes", "2", "sh", "-c", "setsid sleep 1000 & "
                            f"{SSH} node2 setsid sleep 1000 & echo ready; "
                            "exec sleep 1000") as child:
                self.assertEqual(child.stdout.readline(), "ready\n")
                child.send_signal(number)
                self.assertEqual(child.wait(TIMEOUT), status)
                self.assert_nothing_is_left()

    def test_a_killed_keeper_leaves_what_the_next_one_removes(self):
        self.good("up", "--nodes", "2")
        for pid in process.marked_processes(self.mark):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass                            # with the keeper
        while process.marked_processes(self.mark):
            time.sleep(0.01)
        self.bad("node1 has ended: .* removes what is left", "exec", "node1",
                 "true")
        self.good("up", "--nodes", "1")
        self.good("down")

    def test_there_is_none_in_a_node(self):
        self.bad("this is a node of a cluster", "--nodes", "1", PROGRAM,
                 "--nodes", "1", "true")

    def test_a_device_that_cannot_be_is_said(self):
        self.env["MLX5SIM_MODEL"] = "cx99"
        self.bad("no device in node1: .*MLX5SIM_MODEL='cx99' is not valid",
                 "--nodes", "2", "true")

    def test_no_module_for_bridges_is_said(self):
        """A stand-in for ip, as with a kernel without."""
        place = os.path.join(self.tmp, "bin")
        os.mkdir(place)
        with open(os.path.join(place, "ip"), "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\nPATH={SYSTEM_PATH}\ncase $* in *bridge*) "
                       "echo 'Error: Unknown device type.' >&2; exit 2;; esac\n"
                       'exec ip "$@"\n')
        os.chmod(os.path.join(place, "ip"), 0o755)
        self.bad("no bridge here .*Unknown device type.*root may 'modprobe "
                 "bridge'", "--nodes", "1", "true",
                 prefix=["env", f"PATH={place}:{SYSTEM_PATH}"])
        shutil.rmtree(place)

    def test_the_server_of_the_wire_runs_as_long_as_the_node(self):
        """A stand-in for it, beside copies of the programs."""
        place = os.path.join(self.tmp, "bin")
        os.mkdir(place)
        for name, text in (
                ("mlx5sim-run", f'#!/bin/sh\nexec {BUILD}/bin/mlx5sim-run "$@"'),
                ("mlx5sim-wire", "#!/bin/sh\n"
                 "trap 'echo ended; exit 0' TERM\n"
                 'echo "$MLX5SIM_DIR $1 on $(hostname)"\n'
                 'echo $$ >$2\nwhile :; do sleep 0.02; done')):
            with open(os.path.join(place, name), "w", encoding="ascii") as file:
                file.write(text + "\n")
            os.chmod(file.name, 0o755)
        program = shutil.copy(PROGRAM, place)
        out = self.good("--nodes", "2", "true", program=program)
        self.assertEqual(sorted(out.splitlines()), [
            "/dev/shm/mlx5sim --pid-file on node1",
            "/dev/shm/mlx5sim --pid-file on node2", "ended", "ended"])

        status, _, err = self.run_it(
            "--nodes", "1", "sh", "-c",
            "kill -9 $(cat /dev/shm/mlx5sim-wire.pid); sleep 0.5",
            program=program)
        self.assertEqual(status, 0)
        self.assertIn("node1: mlx5sim-wire has ended (status -9)", err)

        with open(os.path.join(place, "mlx5sim-wire"), "w",
                  encoding="ascii") as file:
            file.write("#!/bin/sh\necho port is taken >&2\nexit 1\n")
        self.bad("port is taken(.|\n)*mlx5sim-wire did not start", "--nodes",
                 "1", "true", program=program)
        shutil.rmtree(place)


class Rootless(Nodes):
    """The same as a user who is not root."""

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("the other tests are without root")
        if shutil.which("setpriv") is None:
            self.skipTest("there is no setpriv (package util-linux)")
        self.prefix = AS_NOBODY + ["env", f"PATH={SYSTEM_PATH}", "HOME=/tmp"]
        if subprocess.run([*self.prefix, "python3", PROGRAM, "--version"],
                          stdout=subprocess.DEVNULL, check=False,
                          stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("another user can't run programs of the build tree")
        super().setUp()

    def test_no_switch_where_the_user_may_not_open_the_device(self):
        self.have_tun("600")
        self.bad(f"no --switch here: {TUN}: Permission denied; root may .*"
                 "'chmod 666'", "--nodes", "2", "--switch", "true")


class Refusals(ClusterCase):
    """Needs no privilege."""

    def tearDown(self):
        self.assert_nothing_is_left()

    def test_what_is_no_cluster_is_refused_with_a_reason(self):
        for says, words in (
                ("no command given", "--nodes 2"),
                ("no command given", ""),
                ("how many nodes", "true"),
                ("--nodes 0: .* from 1 to 64", "--nodes 0 true"),
                ("--nodes 1000: .* from 1 to 64", "--nodes 1000 true"),
                ("--nodes two: .* from 1 to 64", "--nodes two true"),
                ("needs a value", "--nodes"),
                ("--mtu 351: .* from 352 to 65535", "--nodes=1 --mtu=351 true"),
                ("--adapters 17: .* to 16", "--nodes 1 --adapters 17 true"),
                ("unknown option --node ", "--node 1 true"),
                ("a is there twice", "--names a,b,a true"),
                ("'a_b' can't be the name", "--names a_b true"),
                ("'' can't be the name", "--names a, true"),
                ("'keeper' can't be the name", "--names keeper true"),
                ("2 names, and there are 3 nodes",
                 "--names a,b --nodes 3 true"),
                ("each node has a /dev/shm of its own",
                 "--nodes 1 --dir /dev/shm/x true"),
                ("/usr has other files in it", "--nodes 1 --dir /usr true"),
                ("can't make /no/such", "--nodes 1 --dir /no/such true"),
                ("'up' takes no command", "up --nodes 1 true"),
                ("'exec' needs a node and a command", "exec node1"),
                ("there is no cluster in", "exec node1 true"),
                ("there is no cluster in", "down"),
                ("'down' takes no arguments", "down node1")):
            if words.startswith("--nodes 1 --dir /usr") and os.geteuid() != 0:
                continue                        # not this user's
            self.bad(says, *words.split())

    def test_where_namespaces_do_not_go_it_is_said(self):
        enter = ["unshare", "--user", "--map-root-user", "--mount"]
        if subprocess.run([*enter, "true"], check=False,
                          stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("this user may not make namespaces")
        for says, command in (
                ("there may be no more namespaces",
                 "echo 0 >/proc/sys/user/max_net_namespaces"),
                ("there may be no more namespaces",
                 "echo 2 >/proc/sys/user/max_net_namespaces")):
            self.bad(f"no cluster here.*{says}", "-c",
                     f"{command} && exec {PROGRAM} --nodes 3 true",
                     program="sh", prefix=enter)

    def test_ssh_is_for_nodes(self):
        self.bad("mlx5sim-ssh is for commands in a cluster", "node1", "true",
                 program=SSH, status=255)

    def test_missing_tools_are_named_with_their_package(self):
        place = os.path.join(self.tmp, "bin")
        os.mkdir(place)
        os.symlink(shutil.which("python3", path=SYSTEM_PATH) or "/none",
                   os.path.join(place, "python3"))
        self.env["PATH"] = place
        self.bad("no program 'ip': install package iproute2", "--nodes", "1",
                 "true")
        shutil.rmtree(place)

    def test_files_of_others_stay(self):
        other = os.path.join(self.tmp, "other")
        os.mkdir(other)
        for name in ("state", "log", "keeper"):
            with open(os.path.join(other, name), "w", encoding="ascii"):
                pass
        self.bad("has other files in it", "--dir", other, "--nodes", "1",
                 "true")
        self.assertEqual(len(os.listdir(other)), 3)
        shutil.rmtree(other)

    def test_help_and_version(self):
        self.assertRegex(self.good("--help"), "usage: mlx5sim-cluster")
        self.assertRegex(self.good("--version"),
                         re.compile(r"^mlx5sim-cluster [0-9]"))


if __name__ == "__main__":
    unittest.main()
