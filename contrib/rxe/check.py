#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests between the software device and Linux's rdma_rxe, and their table.

usage: check.py DIR MTU CLIENT-SERVER... [-- TEST...]

contrib/rxe-check.sh calls it, when guests and node are there. CLIENT and SERVER are
"device", "rxe1" or "rxe2". Each TEST is a part of a test's name; without them, all.
"""
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
            self.gids = {"ipv4": 3, "ipv6": 5, "local": 1}
            self.patterns = node[3]
        else:
            guest = name.removeprefix("rxe")
            self.prefix = [str(TOP / "contrib/rxe-vm.sh"), "exec", "--guest", guest,
                           "--timeout", str(SECONDS), directory]
            self.address, self.device = f"10.77.0.1{guest}", "rxe0"
            self.gids = {"ipv4": 1, "ipv6": 2, "local": 0}
            self.patterns = "/usr/bin/patterns"

    def fill(self, command, port):
        """Put our names into a command."""
        rename = "" if self.name == "device" else \
            "! rdma dev show rxe0 > /dev/null 2>&1 ||" \
            " rdma dev set rxe0 name mlx5_0; "
        back = "" if self.name == "device" else \
            "! rdma dev show mlx5_0 > /dev/null 2>&1 ||" \
            " rdma dev set mlx5_0 name rxe0; "
        values = {"same-name": rename, "device": self.device, "port": str(port),
                  "patterns": self.patterns}
        values.update({f"gid-{kind}": str(gid) for kind, gid in self.gids.items()})
        if "{same-name}" not in command:
            command = back + command
        for key, value in values.items():
            command = command.replace("{" + key + "}", value)
        return self.prefix + ["bash", "-c", command]

    def listens(self, port):
        """Whether somebody listens on a port."""
        out = subprocess.run(self.prefix[:-1] + ["ss", "-ltnH"]
                             if self.name == "device"
                             else self.prefix + ["ss", "-ltnH"], text=True,
                             stdin=subprocess.DEVNULL, capture_output=True,
                             check=False).stdout
        return f":{port} " in out


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


def run(command, client, server, port, log):
    """@return a word for the table."""
    begin = time.monotonic()
    with open(log.with_suffix(".server"), "wb") as server_out, \
            open(log.with_suffix(".client"), "wb") as client_out:
        one = subprocess.Popen(server.fill(command, port), stdout=server_out,
                               stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                               start_new_session=True)
        # Who asks whether somebody listens does not connect
        while not server.listens(port) and one.poll() is None and \
                time.monotonic() - begin < 60:
            time.sleep(0.2)
        two = subprocess.Popen(client.fill(f"{command} {server.address}", port),
                               stdout=client_out, stderr=subprocess.STDOUT,
                               stdin=subprocess.DEVNULL, start_new_session=True)
        status = wait_for(two, SECONDS + 30)
        other = wait_for(one, 15)
        end(two)
        end(one)
    seconds = time.monotonic() - begin
    if status == 0 and other == 0:
        return f"ok ({seconds:.0f} s)"
    text = log.with_suffix(".client").read_text(errors="replace").strip()
    text += "\n" + log.with_suffix(".server").read_text(errors="replace").strip()
    reasons = [line for line in text.split("\n") if "failed" in line.lower()] or \
        [line for line in text.strip().split("\n") if line]
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
    for name, command in tests(mtu):
        if wanted and not any(part in name for part in wanted):
            continue
        for pair in words:
            client, server = (sides.setdefault(word, Side(word, directory))
                              for word in pair.split("-"))
            log = out / f"{name.replace(' *', '')}-{pair}"
            port += 1
            result = run(command, client, server, port, log)
            print(f"{name:32} {client.name:7} {server.name:7} {result}", flush=True)
            passed += result.startswith("ok")
            failed += not result.startswith("ok")
    print(f"{passed} passed, {failed} failed; what the programs said is in {out}")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
