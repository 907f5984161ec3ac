# SPDX-License-Identifier: BSD-3-Clause
"""Two nodes of one machine, for jobs of MPI between nodes.

A node is what programs take for one: a network of its own, joined to the other's
by a pair of virtual Ethernet interfaces, a host name, and the boot id by which
UCX tells machines apart (ucs_get_system_id()). Process numbers, files and
/dev/shm are those of the machine, and so is the device's instance, whose fabric
joins the nodes.

All of this is namespaces that last as long as the processes in them, and files
that have no name any more: there is nothing to remove.
"""

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import uuid

NAMES = ("sep-node-a", "sep-node-b")
_ADDRESSES = ("10.213.77.1", "10.213.77.2")
_INTERFACES = ("sep-a", "sep-b")
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_HERE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
PROGRAM = os.path.join(_HERE, "two-nodes")
AGENT = os.path.join(_HERE, "enter-node")
SKIP_STATUS = 77
_UNSHARE = ("unshare", "--mount", "--net", "--uts")

# Where each launcher looks for what starts a process in another node
ENVIRONMENT = {
    "HYDRA_LAUNCHER": "ssh",
    "HYDRA_LAUNCHER_EXEC": AGENT,
    "OMPI_MCA_plm_rsh_agent": AGENT,        # Open MPI 4
    "PRTE_MCA_plm_ssh_agent": AGENT,        # Open MPI 5
    # Not resource managers or what else the machine's environment has
    "OMPI_MCA_plm": "rsh",
    "PRTE_MCA_plm": "ssh",
}


class CannotError(Exception):
    """Namespaces or what they need can't be had here."""


def why_not():
    """Why nodes can't be made on this machine; empty if they can."""
    for program in ("unshare", "nsenter", "ip"):
        if shutil.which(program) is None:
            return f"there is no {program} (package " \
                   f"{'iproute2' if program == 'ip' else 'util-linux'})"
    result = subprocess.run([PROGRAM, "true"], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            check=False)
    if result.returncode == 0:
        return ""
    words = result.stdout.decode(errors="replace").strip().splitlines()
    return words[-1] if words else f"exit status {result.returncode}"


def _do(*words):
    result = subprocess.run(words, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            check=False)
    if result.returncode != 0:
        text = result.stdout.decode(errors="replace").strip()
        raise CannotError(f"{' '.join(words)}: {text}")


def _show_file(content, place):
    """Something else in a file, for those in this mount namespace."""
    with tempfile.NamedTemporaryFile("w", encoding="ascii") as file:
        file.write(content)
        file.flush()
        os.chmod(file.name, 0o644)
        _do("mount", "--bind", file.name, place)


def _become(index):
    """Make the node of this process what it should be, but for its network."""
    socket.sethostname(NAMES[index])
    _show_file(f"{uuid.uuid4()}\n", _BOOT_ID)


def _second():
    """The second node: is there until nobody is at the other end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)    # as the first one does
    _become(1)
    print("ready", flush=True)
    sys.stdin.read()
    return 0


def _join(pid):
    """The network of this node and of that of a process."""
    here, there = _INTERFACES
    _do("ip", "link", "add", here, "type", "veth", "peer", "name", there,
        "netns", str(pid))
    for index, enter in enumerate(([], ["nsenter", "--target", str(pid),
                                        "--net"])):
        _do(*enter, "ip", "address", "add", f"{_ADDRESSES[index]}/24", "dev",
            _INTERFACES[index])
        for name in ("lo", _INTERFACES[index]):
            _do(*enter, "ip", "link", "set", name, "up")


def _run(command, environment):
    """Run a command; what ends this process ends it as well."""
    child = subprocess.Popen(command, env=environment)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: child.send_signal(number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)    # a terminal tells all
    status = child.wait()
    return status if status >= 0 else 128 - status


def _first(command):
    """The first node, and the second; the command in it."""
    _show_file("127.0.0.1 localhost\n" + "".join(
        f"{address} {name}\n" for address, name in zip(_ADDRESSES, NAMES)),
        "/etc/hosts")
    with subprocess.Popen([*_UNSHARE, PROGRAM, "--second"],
                          stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as second:
        if second.stdout.readline() != b"ready\n":
            raise CannotError("the second node did not start")
        _become(0)
        _join(second.pid)
        return _run(command, dict(
            os.environ, **ENVIRONMENT,
            SEP_NODES=f"{NAMES[0]}={os.getpid()} {NAMES[1]}={second.pid}"))


def hosts(library, ranks):
    """Options of a launcher that spread ranks over both nodes."""
    each = ranks // len(NAMES)
    if library == "mpich":
        return ["-hosts", ",".join(NAMES), "-ppn", str(each)]
    return ["--host", ",".join(f"{name}:{each}" for name in NAMES),
            "--map-by", "node"]


def _inside(argv):
    """This program when it was started by itself, in new namespaces."""
    try:
        return _second() if argv == ["--second"] else _first(argv[1:])
    except (CannotError, OSError) as error:
        print(f"two-nodes: {error}", file=sys.stderr)
        return SKIP_STATUS


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    if argv and argv[0] in ("--first", "--second"):
        return _inside(argv)            # not options for users
    parser = argparse.ArgumentParser(
        prog="two-nodes",
        description=f"Run a command in {NAMES[0]}, the first of two nodes of "
        f"this machine; the other is {NAMES[1]}. Launchers of MPI reach it by "
        "test/jobs/enter-node, for which they find variables in their "
        "environment.",
        epilog=f"Exit status: the command's; {SKIP_STATUS} and a reason if "
        "nodes can't be made here.")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args(argv)
    if not options.command:
        parser.error("which command?")
    # Root needs no other users; others are root among their own
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    words = [*_UNSHARE, *user, PROGRAM, "--first", *options.command]
    # To know which of both has failed
    if subprocess.run([*words[:-len(options.command) - 2], "true"],
                      stdin=subprocess.DEVNULL, check=False).returncode != 0:
        print("two-nodes: this user may not make namespaces (a container?)",
              file=sys.stderr)
        return SKIP_STATUS
    os.execvp(words[0], words)
    return SKIP_STATUS                  # not reached
