# SPDX-License-Identifier: BSD-3-Clause
"""Listen to a GoogleTest program while it runs.

A program writes its report when it ends. With --gtest_stream_result_to, it also
tells over a socket which test begins and ends, and that is all we have of a
program that crashes or hangs.
"""

import contextlib
import select
import socket
import time
import urllib.parse


class Events:
    """What a program has told so far."""

    def __init__(self):
        self.suite = ""
        self.running = None         # full name of the test
        self.passed = {}            # full name: seconds
        self.not_passed = []        # failed or skipped, which is not told
        self.messages = []          # of the running test
        self.began = self.ended = self.suite_began = time.monotonic()

    def line(self, text):
        """Take one line of the protocol."""
        fields = dict(field.partition("=")[::2] for field in text.split("&"))
        event = fields.get("event")
        if event == "TestCaseStart":
            self.suite = fields["name"]
            self.suite_began = time.monotonic()
        elif event == "TestStart":
            self.running = f"{self.suite}.{fields['name']}"
            self.began = time.monotonic()
            self.messages = []
        elif event == "TestPartResult":
            self.messages.append(urllib.parse.unquote(
                fields.get("message", "")).strip())
        elif event == "TestEnd" and self.running:
            if fields.get("passed") == "1":
                self.passed[self.running] = time.monotonic() - self.began
            else:
                self.not_passed.append(self.running)
            self.running = None
            self.ended = time.monotonic()
        elif event == "TestCaseEnd":
            self.suite_began = time.monotonic()

    def seconds_running(self):
        """Since the running test began."""
        return time.monotonic() - self.began

    def seconds_left(self, policy):
        """Until the suite, or the test, has taken too long."""
        began = max(self.began, self.ended) if policy.each_test else \
            self.suite_began
        return began + policy.seconds - time.monotonic()


class Stream:
    """The socket that one program reports to."""

    def __init__(self):
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.setblocking(False)
        self._connection = None
        self._rest = b""
        self.events = Events()
        host, port = self._server.getsockname()
        self.option = f"--gtest_stream_result_to={host}:{port}"

    def poll(self, seconds):
        """Take what is there, wait at most so long for it. Returns whether
        there was anything."""
        source = self._connection or self._server
        if source.fileno() == -1 or \
                not select.select([source], [], [], seconds)[0]:
            if source.fileno() == -1:
                time.sleep(seconds)
            return False
        if self._connection is None:
            self._connection, _ = self._server.accept()
            self._connection.setblocking(False)
            return True
        data = b""
        with contextlib.suppress(OSError):
            data = self._connection.recv(65536)
        if not data:
            self._connection.close()    # nothing more will come
            return False
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self.events.line(line.decode(errors="replace"))
        return True

    def close(self):
        """Take what is left, without waiting for more."""
        while self.poll(0):
            pass
        for each in (self._connection, self._server):
            if each:
                each.close()
