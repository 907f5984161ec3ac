#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run a command in the virtual machine of contrib/rxe-vm.sh.

usage: call.py ADDRESS SECONDS COMMAND...

The command has our standard input; its output and errors are our output, and its
status is ours: 124 after SECONDS, 255 if the machine can't be reached or died.
"""
import os
import secrets
import shlex
import shutil
import socket
import sys
import threading

PORT = 7000


def feed(connection):
    """Pass our standard input on."""
    try:
        with connection.makefile("wb") as out:
            shutil.copyfileobj(sys.stdin.buffer, out)
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def main():
    address, seconds, command = sys.argv[1], sys.argv[2], sys.argv[3:]
    code = shlex.join(command).encode()
    # Says where the output ends: processes that the command leaves may hold the
    # connection open
    word = secrets.token_hex(16)
    with socket.create_connection((address, PORT), timeout=60) as connection:
        connection.settimeout(float(seconds) + 60)
        connection.sendall(f"{word} {seconds} {len(code)}\n".encode() + code)
        threading.Thread(target=feed, args=(connection,), daemon=True).start()
        end = f"\n{word} ".encode()
        held = b""
        while True:
            data = connection.recv(65536)
            held += data
            place = held.find(end)
            if place >= 0 and held.endswith(b"\n") and \
                    len(held) > place + len(end):
                sys.stdout.buffer.write(held[:place])
                sys.stdout.buffer.flush()
                return int(held[place + len(end):])
            if not data:
                sys.stdout.buffer.write(held)
                print("call.py: the virtual machine hung up", file=sys.stderr)
                return 255
            if place < 0 and len(held) > len(end) + 8:
                sys.stdout.buffer.write(held[:-len(end) - 8])
                sys.stdout.buffer.flush()
                held = held[-len(end) - 8:]


if __name__ == "__main__":
    try:
        status = main()
    except OSError as error:
        print(f"call.py: {error}", file=sys.stderr)
        status = 255
    # Whoever writes our standard input may not be done
    sys.stdout.flush()
    os._exit(status)
