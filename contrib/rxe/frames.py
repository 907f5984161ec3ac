#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What is in a capture of RoCE v2: is each ICRC the device's own, and what do
senders put where the standard leaves a choice?

usage: frames.py LIBRARY CAPTURE...

LIBRARY is the device's code as a shared library, see contrib/rxe-check.sh. Status
1 if an ICRC is another one, or a capture has no frame.
"""
import collections
import ctypes
import struct
import sys

PORT = 4791

OPERATIONS = ["send first", "send middle", "send last", "send last imm", "send only",
              "send only imm", "write first", "write middle", "write last",
              "write last imm", "write only", "write only imm", "read request",
              "read first", "read middle", "read last", "read only", "ack",
              "atomic ack", "cmp-swap", "fetch-add", "0x15", "send last inv",
              "send only inv"]
SERVICES = {0: "RC", 1: "UC", 2: "RD", 3: "UD"}
WITH_AETH = {0x0d, 0x0f, 0x10, 0x11, 0x12}
WITH_RETH = {0x06, 0x0a, 0x0b, 0x0c}


def frames(path):
    """Each frame of a pcap file."""
    with open(path, "rb") as file:
        data = file.read()
    magic = data[:4]
    order = "<" if magic in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    place = 24
    while place + 16 <= len(data):
        kept, length = struct.unpack_from(order + "II", data, place + 8)
        place += 16
        # The last one may have been under way
        if place + kept <= len(data) and kept == length:
            yield data[place:place + kept]
        place += kept


class Frame:
    """Network header to ICRC of a frame; None of it if it is another one."""

    def __init__(self, frame):
        self.is_roce = False
        kind, = struct.unpack_from(">H", frame, 12)
        net = frame[14:]
        if kind == 0x0800 and net[9] == 17:
            length, = struct.unpack_from(">H", net, 2)
            head = (net[0] & 15) * 4
        elif kind == 0x86dd and net[6] == 17:
            length = 40 + struct.unpack_from(">H", net, 4)[0]
            head = 40
        else:
            return
        self.is_ipv4 = kind == 0x0800
        self.sport, dport, self.udp_length, self.checksum = \
            struct.unpack_from(">HHHH", net, head)
        if dport != PORT:
            return
        self.is_roce = True
        self.net = net[:length]
        bth = net[head + 8:length]
        self.opcode, self.flags, self.pkey, qpn, word = \
            struct.unpack_from(">BBHII", bth)
        self.dqpn, self.congestion = qpn & 0xffffff, qpn >> 24
        self.psn, self.ack_req = word & 0xffffff, word >> 31
        self.pad = (self.flags >> 4) & 3
        self.operation = self.opcode & 0x1f
        self.rest = bth[12:-4]
        self.icrc, = struct.unpack("<I", self.net[-4:])
        self.source = frame[6:12].hex(":")

    def name(self):
        if self.opcode == 0x81:
            return "CNP"
        operation = OPERATIONS[self.operation] \
            if self.operation < len(OPERATIONS) else hex(self.operation)
        return f"{SERVICES.get(self.opcode >> 5, 'other')} {operation}"


def count(facts, sender, what, value):
    facts[sender][what][value] += 1


def note(facts, sent, frame):
    """Where the standard leaves a choice, or receivers have to cope."""
    sender = frame.source
    if frame.is_ipv4:
        ident, fragment = struct.unpack_from(">HH", frame.net, 4)
        count(facts, sender, "IPv4 identification", "0" if ident == 0 else
              "same as before" if sent.get((sender, "id")) == ident else "changes")
        sent[sender, "id"] = ident
        count(facts, sender, "IPv4 flags", hex(fragment >> 13))
        count(facts, sender, "IPv4 TOS", hex(frame.net[1]))
        count(facts, sender, "IPv4 TTL", frame.net[8])
    else:
        word, = struct.unpack_from(">I", frame.net)
        count(facts, sender, "IPv6 flow label", hex(word & 0xfffff))
        count(facts, sender, "IPv6 traffic class", hex(word >> 20 & 0xff))
        count(facts, sender, "IPv6 hop limit", frame.net[7])
    count(facts, sender, "UDP source port", "0xc000 and above"
          if frame.sport >= 0xc000 else hex(frame.sport))
    count(facts, sender, "UDP checksum", "0" if frame.checksum == 0 else "set")
    count(facts, sender, "P_Key", hex(frame.pkey))
    count(facts, sender, "MIGREQ", frame.flags >> 6 & 1)
    count(facts, sender, "solicited event", frame.flags >> 7)
    count(facts, sender, "header version", frame.flags & 15)
    count(facts, sender, "FECN, BECN, reserved", hex(frame.congestion))
    count(facts, sender, "payload of a middle", len(frame.rest) - frame.pad
          if frame.operation in (1, 7, 14) else "-")
    if frame.pad:
        count(facts, sender, "pad bytes", "0" if not any(frame.rest[-frame.pad:])
              else "not 0")
    count(facts, sender, "ack-request of " + frame.name(), frame.ack_req)
    if frame.operation in WITH_AETH and frame.opcode < 0x20:
        word, = struct.unpack_from(">I", frame.rest)
        syndrome, msn = word >> 24, word & 0xffffff
        kind = ["ACK, credit", "RNR NAK, timer", "reserved", "NAK"][syndrome >> 5 & 3]
        count(facts, sender, "AETH of " + frame.name(), f"{kind} {syndrome & 31}")
        last = sent.get((sender, frame.dqpn, "msn"))
        if last is not None:
            step = (msn - last) & 0xffffff
            count(facts, sender, "MSN's steps", step if step < 64 else "backwards")
        sent[sender, frame.dqpn, "msn"] = msn
    if frame.operation in WITH_RETH and frame.opcode < 0x40:
        address, _, length = struct.unpack_from(">QII", frame.rest)
        if length == 0:
            count(facts, sender, "RETH of no bytes", frame.name())


def show(values):
    common = values.most_common(6)
    text = ", ".join(f"{value}: {number}" for value, number in common)
    return text + (", ..." if len(values) > 6 else "")


def main():
    library = ctypes.CDLL(sys.argv[1], mode=ctypes.DEFAULT_MODE)
    library.rxe_icrc.restype = ctypes.c_uint32
    facts = collections.defaultdict(
        lambda: collections.defaultdict(collections.Counter))
    sent, names = {}, collections.defaultdict(collections.Counter)
    good, bad, ipv6, failed = 0, 0, 0, False
    for path in sys.argv[2:]:
        seen = 0
        for data in frames(path):
            frame = Frame(data)
            if not frame.is_roce:
                continue
            seen += 1
            ipv6 += not frame.is_ipv4
            names[frame.source][frame.name()] += 1
            length = len(frame.net) - 4
            if library.rxe_icrc(frame.net, length) == frame.icrc:
                good += 1
            else:
                bad += 1
                print(f"{path}: ICRC of frame {seen} ({frame.name()} of"
                      f" {frame.source}) is another one")
            note(facts, sent, frame)
        if seen == 0:
            print(f"{path}: no frame of RoCE v2")
            failed = True
    for sender in sorted(names):
        print(f"{sender}: {show_all(names[sender])}")
        for what in sorted(facts[sender]):
            print(f"    {what}: {show(facts[sender][what])}")
    print(f"{good + bad} frames ({ipv6} of IPv6), {good} with the device's ICRC,"
          f" {bad} with another one")
    return 1 if failed or bad else 0


def show_all(counter):
    return ", ".join(f"{name} {number}" for name, number in sorted(counter.items()))


if __name__ == "__main__":
    sys.exit(main())
