# SPDX-License-Identifier: BSD-3-Clause
"""What counts as worse, better and the same; which tests are chosen."""

import unittest

from conformance import cases, compare, gtest


def result(status, reason=""):
    return gtest.Result(status, 0.0, reason)


def row(ours, theirs, note=""):
    return compare.Row("uct", "uct_x_test", "put/0", result(ours),
                       result(theirs), note)


class Changes(unittest.TestCase):

    def test_what_got_worse_is_counted_and_named(self):
        before = {"a": result(gtest.OK), "b": result(gtest.SKIPPED),
                  "c": result(gtest.FAILED), "d": result(gtest.CRASHED)}
        after = {"a": result(gtest.FAILED, "byte 3"), "b": result(gtest.OK),
                 "c": result(gtest.HUNG), "e": result(gtest.FAILED)}
        lines, worse = compare.changes(before, after)
        text = "\n".join(lines)
        self.assertEqual(1, worse)
        self.assertIn("a: ok before, failed now (byte 3)", text)
        self.assertIn("b: skipped before, ok now", text)
        self.assertIn("0 with the same result, 3 with another, 1 of these "
                      "worse", text)
        self.assertNotIn("e:", text)

    def test_the_same_failures_are_no_change(self):
        runs = [{"a": result(gtest.FAILED, why), "b": result(gtest.OK)}
                for why in ("x", "y")]
        lines, worse = compare.changes(*runs)
        self.assertEqual(0, worse)
        self.assertIn("2 with the same result, 0 with another", lines[-1])


class Verdict(unittest.TestCase):

    def test_verdicts(self):
        for ours, theirs, verdict in (
                (gtest.OK, gtest.OK, compare.SAME),
                (gtest.SKIPPED, gtest.SKIPPED, compare.SAME),
                (gtest.OK, gtest.SKIPPED, compare.BETTER),
                (gtest.OK, gtest.CRASHED, compare.BETTER),
                (gtest.SKIPPED, gtest.OK, compare.WORSE),
                (gtest.HUNG, gtest.OK, compare.WORSE),
                (gtest.FAILED, gtest.SKIPPED, compare.WORSE),
                (gtest.FAILED, gtest.CRASHED, compare.BOTH_FAIL)):
            self.assertEqual(verdict, row(ours, theirs).verdict,
                             f"{ours} / {theirs}")

    def test_a_note_makes_a_skip_right(self):
        noted = row(gtest.SKIPPED, gtest.OK, "it has none")
        self.assertEqual(compare.NOTED, noted.verdict)
        self.assertEqual([], compare.worse([noted]))

    def test_a_note_excuses_no_failure(self):
        for status in (gtest.FAILED, gtest.CRASHED, gtest.HUNG):
            self.assertEqual(compare.WORSE,
                             row(status, gtest.OK, "it has none").verdict)


class Defects(unittest.TestCase):

    def test_rc_mlx5_without_devx(self):
        known = ("uct_amo_add_xor_test.add64/0", "uct_amo_cswap_test.cswap64/0",
                 "uct_amo_fadd_fxor_test_inlresp.fadd64_inlresp32/0",
                 "uct_fence_test.add64/0",
                 "uct_p2p_mix_test.mix1000_last_byte_offset/1",
                 "uct_flush_test.put_zcopy_flush_ep_remote/0")
        for name in known:
            for version in ("1.16.0", "1.18.1", "2.0"):
                self.assertTrue(cases.is_rc_mlx5_defect(name, version), name)
            for version in ("1.13.1", "1.15.0", ""):
                self.assertFalse(cases.is_rc_mlx5_defect(name, version), name)
        for name in ("uct_p2p_rma_test.put_short/0", "uct_fence_test.add32/0",
                     "uct_flush_test.put_zcopy_flush_ep_no_comp/0"):
            self.assertFalse(cases.is_rc_mlx5_defect(name, "1.18.1"), name)


class Rows(unittest.TestCase):

    def test_instances_are_paired_and_missing_tests_are_noticed(self):
        tests = [gtest.Test("rcx", "test_ucp_tag", "a/0", ""),
                 gtest.Test("rcx", "test_ucp_tag", "b/0", ""),
                 gtest.Test("sep", "test_ucp_tag", "a/0", ""),
                 gtest.Test("sep", "test_md", "reg/0", ""),
                 gtest.Test("ib", "test_md", "reg/0", ""),
                 gtest.Test("ugni", "test_ucp_tag", "a/0", ""),
                 gtest.Test("tcp", "uct_flush_test", "put/0", "")]
        results = {test.full_name: result(gtest.OK) for test in tests}
        rows = {f"{r.group} {r.suite}.{r.test}": r
                for r in compare.make_rows(tests, results)}
        self.assertEqual({"ucp test_ucp_tag.a/0", "ucp test_ucp_tag.b/0",
                          "md test_md.reg/0"}, set(rows))
        self.assertEqual(compare.SAME, rows["md test_md.reg/0"].verdict)
        self.assertEqual(compare.WORSE, rows["ucp test_ucp_tag.b/0"].verdict)

    def test_a_transport_alone_is_compared_with_nothing(self):
        for status, verdict in ((gtest.OK, compare.SAME),
                                (gtest.SKIPPED, compare.SAME),
                                (gtest.FAILED, compare.BOTH_FAIL)):
            for instance, suite, group in (
                    ("ud_mlx5", "uct_flush_test", "ud"),
                    ("dc_mlx5", "test_dc", "dc"),
                    ("rc_mlx5", "test_rc_srq", "rc"),
                    ("dcx", "test_ucp_rma", "ucp-dc"),
                    ("udx", "test_ucp_tag", "ucp-ud"),
                    ("self", "test_proto_reset", "ucp-self"),
                    ("shm_ib", "test_ucp_rma", "ucp-shm")):
                test = gtest.Test(instance, suite, "put/0", "")
                row, = compare.make_rows([test],
                                         {test.full_name: result(status)})
                self.assertEqual((verdict, group), (row.verdict, row.group))

    def test_tables_say_how_many_and_why(self):
        rows = [row(gtest.OK, gtest.OK), row(gtest.FAILED, gtest.OK)]
        rows[1].ours.reason = "Expected equality"
        text = "\n".join(compare.tables(rows) + compare.summary(rows))
        self.assertIn("1 failed, 1 ok", text)
        self.assertIn("sep_mlx5 is worse: 1", text)
        self.assertIn("Expected equality", text)
        self.assertEqual(3, len(compare.tsv(rows)))


class Selection(unittest.TestCase):

    def test_each_pattern_has_a_reason(self):
        for pattern, reason in cases.EXCLUDED + cases.NOTES:
            self.assertTrue(pattern and reason)

    def test_exclusions(self):
        self.assertTrue(cases.excluded("test_uct_ib_pkey.send/0"))
        self.assertTrue(cases.excluded("test_ucp_tag_offload.post/0"))
        self.assertTrue(cases.excluded("test_uct_query_ib.send_overhead/0"))
        self.assertIsNone(cases.excluded("test_uct_query.query_perf/0"))
        self.assertIsNone(cases.excluded("test_uct_event.am/0"))
        self.assertIsNone(cases.excluded("test_ucp_tag_match.send/0"))
        self.assertIsNone(cases.excluded("test_uct_ib_pkey.send/0", "rc"))
        self.assertTrue(cases.excluded("test_tag.tag/0", "dc"))

    def test_alternatives_outside_of_brackets(self):
        for pattern, parts in (("a", ["a"]), ("^a|b", ["^a", "b"]),
                               (r"^(?:a|b)\.|c[|]", [r"^(?:a|b)\.", "c[|]"])):
            self.assertEqual(parts, cases.alternatives(pattern))

    def test_entries_without_a_test_are_found(self):
        tests = [gtest.Test("rc_mlx5", "test_rc_flow", "a/0", ""),
                 gtest.Test("sep_mlx5", "uct_flush_test", "put/0", "")]
        dead = cases.dead_entries(("EXCLUDED", "QUICK"), tests)
        self.assertIn("EXCLUDED ^test_ucp_sockaddr", dead)
        self.assertNotIn("EXCLUDED ^test_rc_", dead)
        self.assertIn("EXCLUDED ^test_rc\\b", dead)
        self.assertIn("QUICK ^md ", dead)
        self.assertFalse([each for each in dead if "^(?:uct|ud|" in each])
        # What is not run need not be built, but has to be in the source
        dead = cases.dead_entries(("EXCLUDED", "NOTES"), tests,
                                  {"test_rc.flush", "test_ucp_am_nbx.x"})
        self.assertNotIn("EXCLUDED ^test_rc\\b", dead)
        self.assertIn("EXCLUDED ^test_ucp_sockaddr", dead)
        self.assertTrue([each for each in dead if each.startswith("NOTES")])

    def test_quick_part(self):
        self.assertTrue(cases.quick("uct uct_flush_test.put/0"))
        self.assertTrue(cases.quick("uct uct_p2p_rma_test.put_short/1"))
        self.assertTrue(cases.quick("ucp test_ucp_am_nbx.x/11"))
        self.assertFalse(cases.quick("uct uct_p2p_rma_test.get_zcopy/1"))
        self.assertFalse(cases.quick("ucp test_ucp_tag_xfer.send/0"))


if __name__ == "__main__":
    unittest.main()
