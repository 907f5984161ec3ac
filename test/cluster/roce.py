# SPDX-License-Identifier: BSD-3-Clause
"""Packets of RoCE v2 over IPv4 or IPv6, as bytes: a second definition of them,
beside src/sim/wire, so that neither can hide the other's mistakes.

What is sent has IPv4 headers, and no checksum of UDP."""

import ipaddress
import struct
import zlib

PORT = 4791

# IBTA volume 1, "OpCode field", of reliable connections
SEND_FIRST, SEND_MIDDLE, SEND_LAST = 0x00, 0x01, 0x02
SEND_ONLY = 0x04
WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST = 0x06, 0x07, 0x08
WRITE_ONLY = 0x0a
READ_REQUEST = 0x0c
ACKNOWLEDGE = 0x11
COMPARE_SWAP, FETCH_ADD = 0x13, 0x14
NAMES_WITH_RETH = (WRITE_FIRST, WRITE_ONLY, 0x0b, READ_REQUEST)

ACK, NAK_PSN, NAK_INVALID, NAK_ACCESS = 0x1f, 0x60, 0x61, 0x62


def icrc(packet):
    """Of a packet from its IP header on, without ICRC: what routers change is
    taken for ones, as is the local route header, which is not there."""
    masked = bytearray(packet)
    if packet[0] >> 4 == 4:
        length = 20
        masked[1] = masked[8] = 0xff            # type of service, time to live
        masked[10:12] = b"\xff\xff"             # checksum
    else:
        length = 40
        masked[0] |= 0x0f                       # class and flow label
        masked[1:4] = b"\xff\xff\xff"
        masked[7] = 0xff                        # hop limit
    masked[length + 6:length + 8] = b"\xff\xff"  # checksum of UDP
    masked[length + 8 + 4] = 0xff               # FECN, BECN, reserved
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + masked))


def has_right_icrc(packet):
    return icrc(packet[:-4]) == packet[-4:]


def bth(opcode, qpn, psn, ack=False, pad=0, flags=0x40):
    return struct.pack(">BBHII", opcode, flags | pad << 4, 0xffff, qpn,
                       (ack << 31) | (psn & 0xffffff))


def reth(address, rkey, length):
    return struct.pack(">QII", address, rkey, length)


def aeth(syndrome, msn=0):
    return struct.pack(">I", syndrome << 24 | msn)


def ipv4(source, target, payload, sport=0xc000, port=PORT):
    """@param payload  Behind UDP's header."""
    header = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 28 + len(payload), 0, 0x4000,
                         64, 17, 0, ipaddress.ip_address(source).packed,
                         ipaddress.ip_address(target).packed)
    total = sum(struct.unpack(">10H", header))
    total = (total & 0xffff) + (total >> 16)
    total = ~((total & 0xffff) + (total >> 16)) & 0xffff
    header = header[:10] + struct.pack(">H", total) + header[12:]
    return header + struct.pack(">HHHH", sport, port, 8 + len(payload), 0) + \
        payload


def packet(source, target, payload, crc=0):
    """@param crc  Is xored with the right one."""
    without = ipv4(source, target, payload + bytes(4))[:-4]
    right = struct.unpack("<I", icrc(without))[0]
    return without + struct.pack("<I", right ^ crc)


def vcrc(data):
    """IBTA volume 1, "Variant CRC", bit by bit."""
    crc = 0xffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xd008 if crc & 1 else 0)
    return struct.pack("<H", crc ^ 0xffff)


def infiniband(slid, dlid, payload):
    """A packet of InfiniBand without GRH, from LRH to VCRC."""
    words  = (8 + len(payload) + 4) // 4
    data   = struct.pack(">BBHHH", 0, 2, dlid, words, slid) + payload
    masked = bytearray(data)
    masked[0] |= 0xf0                           # virtual lane
    masked[8 + 4] = 0xff                        # FECN, BECN, reserved
    data += struct.pack("<I", zlib.crc32(bytes(masked)))
    return data + vcrc(data)


class Parsed:
    """Of a packet from its IP header on."""

    def __init__(self, data):
        self.length = 20 if data[0] >> 4 == 4 else 40
        self.source, self.target = (
            (data[12:16], data[16:20]) if self.length == 20 else
            (data[8:24], data[24:40]))
        rest = data[self.length + 8:]
        self.opcode, self.flags, _, self.qpn, self.psn = \
            struct.unpack(">BBHII", rest[:12])
        self.qpn &= 0xffffff
        self.ack = self.psn >> 31
        self.psn &= 0xffffff
        self.rest = rest[12:-4]

    def reth(self):
        return struct.unpack(">QII", self.rest[:16])
