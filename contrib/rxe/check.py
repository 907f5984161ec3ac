#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests between the software device and Linux's rdma_rxe, and their table.

usage: check.py DIR MTU CLIENT-SERVER... [-- TEST...]

contrib/rxe-check.sh calls it, when guests and node are there. CLIENT and SERVER are
"device", "rxe1" or "rxe2". Each TEST is a part of a test's name; without them, all.
"""
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
SECONDS = 120   # an emulated processor may be slow, and a test hang
FIRST_PORT = 18600


class Side:
    """Where programs of a test run."""

    def __init__(self, name, directory):
        self.name = name
        if name == "device":
            node = pathlib.Path(directory, "node").read_text().split()
            self.prefix = ["nsenter", f"--net={node[0]}", "nice", "-n", "15", "env",
                           f"MLX5SIM_DIR={node[1]}", "MLX5SIM_LINK=roce",
                           "MLX5SIM_WIRE=eth0", "timeout", "-k", "5", str(SECONDS),
                           node[2]]
            self.address, self.device = "10.77.0.2", "mlx5_0"
            self.address6 = "fd77::2"
            self.gids = {"ipv4": 3, "ipv6": 5, "local": 1}
            self.patterns = node[3]
        else:
            guest = name.removeprefix("rxe")
            self.prefix = [str(TOP / "contrib/rxe-vm.sh"), "exec", "--guest", guest,
                           "--timeout", str(SECONDS), directory]
            self.address, self.device = f"10.77.0.1{guest}", "rxe0"
            self.address6 = f"fd77::1{guest}"
            self.gids = {"ipv4": 1, "ipv6": 2, "local": 0}
            self.patterns = "/usr/bin/patterns"

    def fill(self, command, port, server):
        """Put our names, and the addresses of the server, into a command."""
        rename = "" if self.name == "device" else \
            "! rdma dev show rxe0 > /dev/null 2>&1 ||" \
            " rdma dev set rxe0 name mlx5_0; "
        back = "" if self.name == "device" else \
            "! rdma dev show mlx5_0 > /dev/null 2>&1 ||" \
            " rdma dev set mlx5_0 name rxe0; "
        values = {"same-name": rename, "device": self.device, "port": str(port),
                  "patterns": self.patterns, "address": server.address,
                  "address6": server.address6}
        values.update({f"gid-{kind}": str(gid) for kind, gid in self.gids.items()})
        if "{same-name}" not in command:
            command = back + command
        for key, value in values.items():
            command = command.replace("{" + key + "}", value)
        return self.prefix + ["bash", "-c", command]

    def ask(self, *command):
        """Output of a command there, on the device without the device."""
        return subprocess.run((self.prefix[:-1] if self.name == "device"
                               else self.prefix) + list(command), text=True,
                              stdin=subprocess.DEVNULL, capture_output=True,
                              check=False).stdout

    def listens(self, port):
        """Whether somebody listens on a port."""
        return f":{port} " in self.ask("ss", "-ltnH")

    def listens_cm(self, port):
        """Whether somebody listens for the connection manager."""
        if self.name != "device":
            # Programs of other tests may not have ended yet
            return any("LISTEN" in line and f":{port} " in line for line in
                       self.ask("rdma", "resource", "show", "cm_id").split("\n"))
        stat = pathlib.Path(self.prefix[-1]).with_name("mlx5sim-stat")
        out = self.ask(str(stat), "--json")
        # Programs listen as soon as they have an id
        listens = bool(out) and \
            any(one["cm_ids"] for one in json.loads(out)["processes"]
                if one["name"] != "mlx5sim-wire")
        if listens:
            time.sleep(1)
        return listens


def tests(mtu):
    """Name and command of each; the client's has the server's address behind it.
    The interfaces have an MTU of so many bytes."""
    # Names of what has its data compared end in a star
    for kind in ("ipv4", "ipv6", "local"):
        yield f"patterns-{kind} *", \
            "{patterns} -d {device} -g {gid-" + kind + "} -p {port}"
    for size in (256, 4096):
        if size + 128 < mtu:
            yield f"patterns-mtu{size} *", \
                f"{{patterns}} -d {{device}} -g {{gid-ipv4}} -m {size} -p {{port}}"
    for kind in ("ipv4", "ipv6"):
        for program, options in (("ibv_rc_pingpong", "-m 1024 -c"),
                                 ("ibv_uc_pingpong", "-m 1024"),
                                 ("ibv_ud_pingpong", "-s 1000"),
                                 ("ibv_srq_pingpong", "-q 2 -m 1024")):
            star = " *" if "-c" in options else ""
            yield f"{program}-{kind}{star}", \
                f"{program} -d {{device}} -g {{gid-{kind}}} -p {{port}}" \
                f" -n 50 {options}"
    base = "-F -d {device} -x {gid-ipv4} -m 1024 -p {port} -n 20"
    # Without -o they have as many reads under way as the other device can, which is
    # more than ours can
    for name, options in (("ib_write", ""), ("ib_read", "-o 8"), ("ib_send", "")):
        for size in (1, 1025, 65536):
            yield f"{name}_bw-{size}", f"{name}_bw {base} -s {size} -t 16 {options}"
        yield f"{name}_lat", f"{name}_lat {base} -s 2000 {options}"
    yield "ib_send_bw-UD", f"ib_send_bw {base} -c UD -s 1024 -t 16"
    for kind in ("FETCH_AND_ADD", "CMP_AND_SWAP"):
        yield f"ib_atomic_lat-{kind}", f"ib_atomic_lat {base} -o 8 -A {kind}"
    # The client has the server use a device of the same name. Here it is that of ours
    ucx = "{same-name}UCX_IB_GID_INDEX={gid-ipv4} ucx_perftest -x rc_verbs -d mlx5_0:1" \
          " -p {port} -w 5 -n 50 "
    for test in ("am_lat -s 500 -D bcopy", "put_lat -s 5000 -D zcopy", "put_bw -s 5000 -D zcopy",
                 "get -s 5000 -D zcopy", "add_lat -s 8", "fadd -s 8", "cswap -s 8"):
        yield "uct-rc_verbs-" + test.split()[0], ucx + f"-t {test}"
    # UCX looks in a field of completions that only mlx5 fills whether a datagram came by
    # IPv4, and on rxe drops each that did
    ucp = "UCX_IB_GID_INDEX={gid-ipv6} UCX_NET_DEVICES={device}:1" \
          " UCX_TLS=rc_verbs,ud_verbs ucx_perftest -p {port} -w 5 -n 50 "
    for test in ("tag_lat -s 100", "tag_bw -s 100000", "ucp_put_lat -s 5000",
                 "ucp_get -s 5000", "ucp_fadd -s 8"):
        yield "ucp-rc_verbs-" + test.split()[0], ucp + f"-t {test}"


@dataclasses.dataclass
class Test:
    """What both sides run. Of the connection manager (is_cm) also what one of them
    says; with is_failure that is enough, and they may fail."""
    name: str
    server: str
    client: str
    says: str = ""
    who: str = "client"
    port: int = 0           # that nobody can choose
    is_cm: bool = True
    is_failure: bool = False
    only_on: str = ""       # the server

CM_TESTS = (
    Test("rping-ipv4 *", "rping -s -a 0.0.0.0 -p {port} -C 20 -V",
         "rping -c -a {address} -p {port} -C 20 -V -v", "rdma-ping-19"),
    Test("rping-ipv6 *", "rping -s -a :: -p {port} -C 20 -S 4000 -V",
         "rping -c -a {address6} -p {port} -C 20 -S 4000 -V -v", "rdma-ping-19"),
    Test("rping-nobody", "true", "rping -c -a {address} -p {port} -C 1",
         "RDMA_CM_EVENT_REJECTED, error 8", is_failure=True),
    Test("rping-killed", "rping -s -a 0.0.0.0 -p {port} -v",
         "timeout -s KILL 5 rping -c -a {address} -p {port} -v",
         "DISCONNECT EVENT", "server", is_failure=True),
    Test("ucmatose-ipv4", "ucmatose -p {port} -c 5",
         "ucmatose -s {address} -p {port} -c 5", "return status 0"),
    Test("ucmatose-ipv6", "ucmatose -b {address6} -p {port} -c 5",
         "ucmatose -s {address6} -p {port} -c 5", "return status 0"),
    Test("udaddy-ipv4", "udaddy -c 5", "udaddy -s {address} -c 5",
         "return status 0", port=7174),
    Test("udaddy-ipv6", "udaddy -b {address6} -c 5", "udaddy -s {address6} -c 5",
         "return status 0", port=7174),
    Test("rdma_client", "rdma_server -p {port}",
         "rdma_client -s {address} -p {port}", "end 0"),
    Test("rstream *", "rstream -p {port} -S 4096 -C 50 -T v",
         "rstream -s {address} -p {port} -S 4096 -C 50 -T v", "4k"),
    # Its server goes on
    Test("cmtime", "cmtime -p {port} -c 30", "cmtime -s {address} -p {port} -c 30",
         "destroy      :", is_failure=True),
    Test("ib_write_bw-R", "ib_write_bw -R -F -n 20 -s 65536 -m 1024 -p {port}",
         "ib_write_bw -R -F -n 20 -s 65536 -m 1024 -p {port} {address}", "65536"),
)


def all_tests(mtu):
    for name, command in tests(mtu):
        yield Test(name, command, command + " {address}", is_cm=False)
    command = "{patterns} -d {device} -g {gid-ipv4} -p {port}"
    # Linux 6.1 does not look at the length of windows
    yield Test("patterns-windows *", command, command + " -w {address}",
               is_cm=False, only_on="device")
    yield from CM_TESTS


def wait_for(process, limit):
    try:
        return process.wait(timeout=limit)
    except subprocess.TimeoutExpired:
        return None


def end(process):
    """End a process that we started, with its children."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        if wait_for(process, 10) is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def run(test, client, server, port, log):
    """@return a word for the table."""
    begin = time.monotonic()
    listens = server.listens_cm if test.is_cm else server.listens
    with open(log.with_suffix(".server"), "wb") as server_out, \
            open(log.with_suffix(".client"), "wb") as client_out:
        one = subprocess.Popen(server.fill(test.server, port, server),
                               stdout=server_out, stderr=subprocess.STDOUT,
                               stdin=subprocess.DEVNULL, start_new_session=True)
        # Who asks whether somebody listens does not connect
        while not listens(test.port or port) and one.poll() is None and \
                time.monotonic() - begin < 60:
            time.sleep(0.2)
        two = subprocess.Popen(client.fill(test.client, port, server),
                               stdout=client_out, stderr=subprocess.STDOUT,
                               stdin=subprocess.DEVNULL, start_new_session=True)
        status = wait_for(two, SECONDS + 30)
        other = wait_for(one, 15)
        end(two)
        end(one)
    seconds = time.monotonic() - begin
    text = {"client": log.with_suffix(".client").read_text(errors="replace"),
            "server": log.with_suffix(".server").read_text(errors="replace")}
    if (test.is_failure or (status == 0 and other == 0)) and \
            test.says in text[test.who]:
        return f"ok ({seconds:.0f} s)"
    lines = [line for line in (text["client"] + "\n" + text["server"]).split("\n")
             if line]
    reasons = [line for line in lines if "failed" in line.lower()] or lines
    reason = "; ".join(reasons[:2])[:150]
    return f"FAILED: client {status}, server {other} ({seconds:.0f} s): {reason}"


def main():
    directory, mtu, words = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    wanted = []
    if "--" in words:
        place = words.index("--")
        words, wanted = words[:place], words[place + 1:]
    sides = {}
    out = pathlib.Path(directory, "check")
    out.mkdir(exist_ok=True)
    failed = passed = 0
    port = FIRST_PORT
    print(f"{'test':32} {'client':7} {'server':7} result")
    for test in all_tests(mtu):
        name = test.name
        if wanted and not any(part in name for part in wanted):
            continue
        for pair in words:
            client, server = (sides.setdefault(word, Side(word, directory))
                              for word in pair.split("-"))
            if test.only_on not in ("", server.name):
                continue
            log = out / f"{name.replace(' *', '')}-{pair}"
            port += 1
            result = run(test, client, server, port, log)
            print(f"{name:32} {client.name:7} {server.name:7} {result}", flush=True)
            passed += result.startswith("ok")
            failed += not result.startswith("ok")
    print(f"{passed} passed, {failed} failed; what the programs said is in {out}")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
