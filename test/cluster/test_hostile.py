# SPDX-License-Identifier: BSD-3-Clause
"""A neighbour that sends what it should not."""

import os
import unittest

import nodes
import roce
from mainjob import jobs
from test_jobs import Row
from test_verbs import IPV4, PORT

SEED = int(os.environ.get("SEP_TEST_SEED") or 1)
PACKETS = 20000

# Cases of peer: syndrome, PSN of the answer, whether the connection is an error
ANSWERS = {
    "send": (roce.ACK, 0, False),
    "send_ahead": (roce.NAK_PSN, 0, False),
    "send_again": (roce.ACK, 0, False),
    "send_too_long": (roce.NAK_INVALID, 0, True),
    "middle_first": (roce.NAK_INVALID, 0, True),
    "last_first": (roce.NAK_INVALID, 0, True),
    "first_too_short": (roce.NAK_INVALID, 0, True),
    # Not permitted for this queue pair, whatever the key
    "write": (roce.NAK_INVALID, 0, True),
    "read": (roce.NAK_INVALID, 0, True),
    "atomic": (roce.NAK_INVALID, 0, True),
}


class Hostile(nodes.Test):
    NODES = 3

    def tearDown(self):
        self.good(*self.cluster.pair(PORT, "ibv_rc_pingpong", "-c", "-n", "20",
                                     "-g", IPV4))

    def test_job_in_the_rain(self):
        rain = os.path.join(nodes.HERE, "rain")
        seen = os.path.join(self.cluster.parent.name, "seen")
        pids = [self.cluster.wire_pid(node) for node in (1, 2, 3)]
        spy = self.cluster.start(2, rain, "spy", "300", seen)
        self.cluster.until(lambda: "ready" in nodes.output(spy), spy)
        row = Row("mpich", "rma", 1)
        job = self.cluster.start(1, *row.argv())
        self.good(spy.wait(nodes.PATIENCE))
        self.good(self.cluster.run(3, rain, "send", str(SEED), str(PACKETS),
                                   seen))
        result = job.wait(nodes.PATIENCE)
        status, text, _ = jobs.judge(jobs.Job("mpich", "rma", 2), result)
        self.assertEqual(status, "pass", f"SEP_TEST_SEED={SEED}: {text}\n"
                         f"{result.stdout}\n{result.stderr}")
        for node, pid in zip((1, 2, 3), pids):
            self.good(self.cluster.run(node, "kill", "-0", str(pid)))

    def answer(self, case, syndrome, psn, is_error):
        server, pid = self.cluster.listen(1, PORT, "ibv_rc_pingpong", "-s",
                                          "64", "-g", IPV4)
        result = self.cluster.run(3, os.path.join(nodes.HERE, "peer"), case)
        if not is_error:
            self.cluster.run(1, "kill", "-KILL", str(pid))
        end = server.wait(nodes.PATIENCE)
        self.good(result)
        self.assertEqual(result.stdout.split(), [hex(syndrome), str(psn),
                                                 "True"])
        self.assertFalse(end.ok or end.timed_out)


def add_tests():
    for case, answer in ANSWERS.items():
        setattr(Hostile, f"test_{case}", lambda self, args=(case, *answer):
                self.answer(*args))


add_tests()


if __name__ == "__main__":
    unittest.main()
