# SPDX-License-Identifier: BSD-3-Clause
"""Put the results of both transports side by side."""

import collections
import dataclasses

from . import cases, gtest

_RANK = {gtest.OK: 2, gtest.SKIPPED: 1}

SAME = "same"
BETTER = "better"
NOTED = "noted"         # not as good, and cases.NOTES says why that is right
BOTH_FAIL = "both fail"
WORSE = "worse"


@dataclasses.dataclass
class Row:
    """One test on both transports."""
    group: str
    suite: str
    test: str
    ours: gtest.Result
    theirs: gtest.Result
    note: str = ""

    @property
    def verdict(self):
        ours = _RANK.get(self.ours.status, 0)
        theirs = _RANK.get(self.theirs.status, 0)
        if ours < theirs:
            # Only what is not offered can have a good reason
            skipped = self.ours.status == gtest.SKIPPED
            return NOTED if self.note and skipped else WORSE
        if ours > theirs:
            return BETTER
        return SAME if ours > 0 else BOTH_FAIL


def make_rows(tests, results):
    """Pair the tests of both instances. Results are by full name; a test that
    has none was not run and gives no row."""
    by_key = collections.OrderedDict()
    pairs  = {}
    for test in tests:
        pair = cases.group_of(test)
        if pair and test.full_name in results:
            key = (pair[2], test.suite, test.name)
            pairs[key] = pair
            by_key.setdefault(key, {})[pair.index(test.instance)] = \
                results[test.full_name]

    absent = gtest.Result(gtest.SKIPPED, 0.0, "no such test here")
    rows = []
    for key, both in by_key.items():
        ours = both.get(0, absent)
        alone = pairs[key][1] is None
        rows.append(Row(*key, ours, ours if alone else both.get(1, absent),
                        cases.note(f"{key[1]}.{key[2]}") or ""))
    return rows


def _cell(results):
    """Results of one test for all its parameters, in a few words."""
    counts = collections.Counter(each.status for each in results)
    if len(counts) == 1:
        status, count = next(iter(counts.items()))
        return status if count == 1 else f"{count} {status}"
    return ", ".join(f"{count} {status}"
                     for status, count in sorted(counts.items()))


def _reasons(rows):
    """Why a test was skipped or failed, each reason once."""
    found = []
    for row in rows:
        for who, result in (("sep", row.ours), ("rc", row.theirs)):
            if result.reason and result.status != gtest.OK:
                text = _short(result.reason)
                text = f"{who}: {text}"
                if text not in found:
                    found.append(text)
    both = [text[5:] for text in found
            if text.startswith("sep: ") and "rc: " + text[5:] in found]
    return both + [text for text in found
                   if text.partition(": ")[2] not in both]


def _short(reason):
    return reason if len(reason) <= 120 else reason[:117] + "..."


def by_suite(rows):
    suites = collections.OrderedDict()
    for row in rows:
        suites.setdefault((row.group, row.suite), []).append(row)
    return suites


def tables(rows):
    """A table per suite; parameters of a test are counted in one line."""
    lines = []
    for (group, suite), members in by_suite(rows).items():
        lines += ["", f"{group} {suite}",
                  f"  {'test':<44} {'sep_mlx5':>14} {'rc_mlx5':>14}"]
        tests = collections.OrderedDict()
        for row in members:
            tests.setdefault(row.test.partition("/")[0], []).append(row)
        for name, group_rows in tests.items():
            lines.append(f"  {name:<44} "
                         f"{_cell([r.ours for r in group_rows]):>14} "
                         f"{_cell([r.theirs for r in group_rows]):>14}"
                         .rstrip())
            lines += [f"      {text}" for text in _reasons(group_rows)[:4]]
    return lines


def summary(rows):
    """One line per suite, and what is different."""
    lines = ["", f"{'suite':<44} {'sep_mlx5':^20} {'rc_mlx5':^20}",
             f"{'':<44}" + 2 * f" {'ok':>6} {'skip':>6} {'fail':>6}" +
             f" {'differ':>7}"]
    total = [0] * 7
    for (group, suite), members in by_suite(rows).items():
        numbers = _count(members)
        total = [a + b for a, b in zip(total, numbers)]
        lines.append(_summary_line(f"{group} {suite}", numbers))
    lines.append(_summary_line("all", total))
    for verdict, title in (
            (WORSE, "sep_mlx5 is worse"),
            (NOTED, "sep_mlx5 does not do what rc_mlx5 does, for a reason"),
            (BETTER, "sep_mlx5 is better"),
            (BOTH_FAIL, "fails on both")):
        found = [row for row in rows if row.verdict == verdict]
        if found:
            lines += ["", f"{title}: {len(found)}"]
        for row in found:
            lines.append(f"  {row.group} {row.suite}.{row.test}: "
                         f"{row.ours.status} / {row.theirs.status}")
            lines += [f"      {text}" for text in
                      ([row.note] if row.note else _reasons([row]))]
    for name, retried in (
            ("sep_mlx5", [(row, row.ours) for row in rows]),
            ("rc_mlx5", [(row, row.theirs) for row in rows
                         if row.theirs is not row.ours])):
        retried = [f"  {row.group} {row.suite}.{row.test}: {result.reason}"
                   for row, result in retried if is_second_try(result)]
        if retried:
            lines += ["", f"{name} passed only when run again: {len(retried)}"]
            lines += retried
    return lines


def is_second_try(result):
    """Whether a test has failed before it passed."""
    return result.tries > 1 and result.status == gtest.OK


def _count(rows):
    def three(results):
        statuses = [each.status for each in results]
        ok = statuses.count(gtest.OK)
        skipped = statuses.count(gtest.SKIPPED)
        return [ok, skipped, len(statuses) - ok - skipped]

    return three([r.ours for r in rows]) + three([r.theirs for r in rows]) + \
        [sum(r.verdict not in (SAME, BOTH_FAIL) for r in rows)]


def _summary_line(name, numbers):
    return f"{name:<44}" + "".join(f" {each:>6}" for each in numbers[:6]) + \
        f" {numbers[6]:>7}"


def tsv(rows):
    lines = ["group\tsuite\ttest\tsep_mlx5\trc_mlx5\tverdict\tsep_reason\t"
             "rc_reason\tnote"]
    for row in rows:
        lines.append("\t".join(
            text.replace("\t", " ") for text in
            (row.group, row.suite, row.test, row.ours.status,
             row.theirs.status, row.verdict, row.ours.reason,
             row.theirs.reason, row.note)))
    return lines


def worse(rows):
    return [row for row in rows if row.verdict == WORSE]


def changes(before, after):
    """What another run had otherwise, by full name: lines, and how many tests
    are worse now. A test that one of them has not run is no change."""
    common = [name for name in after if name in before]
    lines = ["", f"{len(after)} tests, {len(common)} of them in the other run"]
    worse_now = 0
    for name in common:
        old, new = before[name], after[name]
        if old.status == new.status:
            continue
        is_worse = _RANK.get(new.status, 0) < _RANK.get(old.status, 0)
        worse_now += is_worse
        lines.append(f"  {name}: {old.status} before, {new.status} now" +
                     (f" ({_short(new.reason)})" if new.reason else ""))
    alike = sum(before[name].status == after[name].status for name in common)
    lines.append(f"{alike} with the same result, {len(common) - alike} with "
                 f"another, {worse_now} of these worse")
    return lines, worse_now
