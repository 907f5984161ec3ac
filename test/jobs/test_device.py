# SPDX-License-Identifier: BSD-3-Clause
"""What main_job makes of the device's counters and of UCX's lanes."""

import json
import unittest

from mainjob import device, lanes


def totals(**counters):
    return dict(dict.fromkeys(device.COUNTERS, 0), **counters)


class ParseCounters(unittest.TestCase):

    def test_totals_are_read_and_the_rest_ignored(self):
        text = json.dumps({"processes": [{"name": "x", "wqes": 1}],
                           "totals": dict(totals(wqes=7, bytes=9), other=3)})
        counters = device.parse_counters(text)
        self.assertEqual((counters["wqes"], counters["bytes"]), (7, 9))
        self.assertNotIn("other", counters)

    def test_device_nobody_used(self):
        counters = device.parse_counters('{"processes": [], "totals": {}}')
        self.assertEqual(set(counters.values()), {0})

    def test_what_is_no_statistics_is_refused(self):
        for text in ("", "no json", "[]", "{}", '{"totals": 3}',
                     '{"processes": [{}], "totals": {}}',
                     '{"totals": {"wqes": "many"}}'):
            with self.assertRaises(device.CounterError, msg=text):
                device.parse_counters(text)

    def test_missing_counter_is_named(self):
        counters = totals()
        del counters["cqes"]
        with self.assertRaisesRegex(device.CounterError, "lack cqes"):
            device.parse_counters(json.dumps({"totals": counters}))


class CheckTraffic(unittest.TestCase):

    def check(self, messages, payload, **after):
        before = totals(wqes=100, bytes=1000, cqes=10)
        return device.check_traffic(before, totals(**after), messages, payload)

    def test_enough_is_enough(self):
        self.assertEqual(self.check(50, 400, wqes=150, bytes=1400, cqes=11), [])

    def test_counters_that_did_not_move(self):
        complaints = self.check(50, 400, wqes=100, bytes=1000, cqes=10)
        self.assertEqual(len(complaints), 3)
        self.assertIn("executed 0 WQEs for at least 50 messages",
                      complaints[0])

    def test_one_wqe_too_few(self):
        self.assertTrue(self.check(50, 400, wqes=149, bytes=1400, cqes=11))

    def test_bytes_that_went_elsewhere(self):
        complaints = self.check(50, 400, wqes=150, bytes=1399, cqes=11)
        self.assertEqual(complaints, ["the device moved 399 bytes of at least "
                                      "400"])

    def test_violations(self):
        complaints = self.check(0, 0, wqes=100, bytes=1000, cqes=10,
                                violations=2)
        self.assertEqual(complaints, ["2 violations of the device's rules"])


LOG = """\
[1.0] [vm:1:0]     ucp_context.c:1849 UCX  INFO  Version 1.13.1
[1.1] [vm:1:0]      ucp_worker.c:1763 UCX  INFO    ep_cfg[0]: tag(rc_mlx5/mlx5_0:1)
[1.2] [vm:1:0]      ucp_worker.c:1763 UCX  INFO    ep_cfg[1]: tag(rc_mlx5/mlx5_0:1 cma/memory); rma(posix/memory); ka(ud_mlx5/mlx5_0:1)
"""

NEWER_LOG = """\
[1.0] [vm:1:0]     ucp_context.c:2257 UCX  INFO  Version 1.18.1
[1.1] [vm:1:0]      ucp_worker.c:1903 UCX  INFO    ucp_context_0 self cfg#0 tag(rc_mlx5/mlx5_0:1)  rma(rc_mlx5/mlx5_0:1)
[1.2] [vm:1:0]      ucp_worker.c:1903 UCX  INFO    perftest intra-node cfg#12 tag(cma/memory rc_mlx5/mlx5_0:1)  am(posix/memory)
"""


class Lanes(unittest.TestCase):

    def test_every_lane_of_every_endpoint(self):
        self.assertEqual(lanes.parse(LOG),
                         {"rc_mlx5/mlx5_0:1": {"tag"}, "cma/memory": {"tag"},
                          "posix/memory": {"rma"}, "ud_mlx5/mlx5_0:1": {"ka"}})

    def test_shared_memory_is_foreign(self):
        found = lanes.parse(LOG)
        self.assertEqual(lanes.foreign(found, ("rc_mlx5", "ud_mlx5")),
                         ["cma/memory", "posix/memory"])

    def test_words_of_newer_versions(self):
        self.assertEqual(lanes.parse(NEWER_LOG),
                         {"rc_mlx5/mlx5_0:1": {"tag", "rma"},
                          "cma/memory": {"tag"}, "posix/memory": {"am"}})

    def test_nothing_chosen(self):
        self.assertEqual(lanes.parse("no endpoints here"), {})


if __name__ == "__main__":
    unittest.main()
