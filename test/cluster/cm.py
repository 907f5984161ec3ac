# SPDX-License-Identifier: BSD-3-Clause
"""Messages of the connection manager in packets of RoCE v2 over IPv4: a second
definition of them, beside src/sim/rdmacm/mad.c. Offsets are of IBTA volume 1,
chapter 12."""

import socket
import struct

import roce

LENGTH, HEADER = 256, 24
QKEY = 0x80010000
TCP, UDP = 0x0106, 0x0111       # port spaces, of service ids

REQ, MRA, REJ, REP, RTU, DREQ, DREP, SIDR_REQ, SIDR_REP = range(0x10, 0x19)
UD_SEND_ONLY = 0x64

# Reasons of rejections
TIMEOUT, UNSUPPORTED, NO_SERVICE, BAD_TRANSPORT = 4, 5, 8, 9
STALE, BAD_GID, BAD_MTU, CONSUMER = 10, 12, 26, 28


def gid(address):
    return bytes(10) + b"\xff\xff" + socket.inet_aton(address)


def mad(attr, body, *, base=1, group=7, version=2, method=3, status=0, tid=1):
    """@param body  (offset, bytes) pairs, behind the header."""
    data = bytearray(struct.pack(">BBBBHHQHHI", base, group, version, method,
                                 status, 0, tid, attr, 0, 0) +
                     bytes(LENGTH - HEADER))
    for offset, part in body:
        data[HEADER + offset:HEADER + offset + len(part)] = part
    assert len(data) == LENGTH
    return bytes(data)


def addresses(source, target, port, version=0x40, cma=0):
    """In front of private data."""
    return struct.pack(">BBH", cma, version, port) + bytes(12) + \
        socket.inet_aton(source) + bytes(12) + socket.inet_aton(target)


def request(source, target, port, *, comm=0x55aa, qpn=0x1234, psn=7, mtu=3,
            transport=0, space=TCP, ips=None, gids=None, lids=(0xffff, 0xffff),
            **header):
    gids = gids or (gid(source), gid(target))
    return mad(REQ, (
        (0, struct.pack(">I", comm)), (8, struct.pack(">Q", space << 16 | port)),
        (32, struct.pack(">I", qpn << 8 | 4)), (39, b"\4"),
        (43, bytes([20 << 3 | transport << 1])),
        (44, struct.pack(">I", psn << 8 | 20 << 3 | 7)), (48, b"\xff\xff"),
        (50, bytes([mtu << 4 | 7, 15 << 4])), (52, struct.pack(">HH", *lids)),
        (56, gids[0]), (72, gids[1]), (93, bytes([64, 0, 18 << 3])),
        (140, ips or addresses(source, target, 40000))), **header)


def sidr(source, target, port, *, comm=0x55aa, space=UDP):
    return mad(SIDR_REQ, (
        (0, struct.pack(">I", comm)), (4, b"\xff\xff"),
        (8, struct.pack(">Q", space << 16 | port)),
        (16, addresses(source, target, 40000))))


def reply(local, remote, *, qpn=0x1234, psn=7):
    return mad(REP, (
        (0, struct.pack(">II", local, remote)),
        (12, struct.pack(">I", qpn << 8)), (20, struct.pack(">I", psn << 8)),
        (24, bytes([4, 4, 16 << 3, 7 << 5]))))


def short(attr, local, remote, qpn=0):
    """RTU, DREP, DREQ."""
    return mad(attr, ((0, struct.pack(">II", local, remote)),
                      (8, struct.pack(">I", qpn << 8))))


def patience(local, remote, of, exponent):
    """MRA."""
    return mad(MRA, ((0, struct.pack(">IIBB", local, remote, of << 6,
                                     exponent << 3)),))


def reject(local, remote, of, reason):
    return mad(REJ, ((0, struct.pack(">IIBBH", local, remote, of << 6, 0,
                                     reason)),))


def packet(source, target, data, *, qkey=QKEY, qpn=1, opcode=UD_SEND_ONLY):
    return roce.packet(source, target, roce.bth(opcode, qpn, 0) +
                       struct.pack(">II", qkey, 1) + data)


def infiniband(slid, dlid, data):
    return roce.infiniband(slid, dlid, roce.bth(UD_SEND_ONLY, 1, 0) +
                           struct.pack(">II", QKEY, 1) + data)


class Message:
    """Of a MAD, and what is in front of it in its packet."""

    def __init__(self, data):
        self.qkey, self.sqpn = struct.unpack(">II", data[:8])
        self.mad = data[8:]
        self.attr = struct.unpack(">H", self.mad[16:18])[0]
        self.body = self.mad[HEADER:]
        self.local, self.remote = struct.unpack(">II", self.body[:8])
        self.reason = struct.unpack(">H", self.body[10:12])[0]
        self.status = self.body[4]      # SIDR_REP
        self.qpn = int.from_bytes(self.body[12:15], "big")  # REP


class Parsed(Message):
    """Of a packet from its IP header on."""

    def __init__(self, data):
        packet_ = roce.Parsed(data)
        self.is_mad = packet_.opcode == UD_SEND_ONLY and packet_.qpn == 1
        self.source, self.target = packet_.source, packet_.target
        if self.is_mad:
            super().__init__(packet_.rest)
