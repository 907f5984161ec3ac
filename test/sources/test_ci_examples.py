# SPDX-License-Identifier: BSD-3-Clause
"""The examples of docs/ci.md are YAML, and do the same on each service.

That they work is what contrib/check_ci.py looks at, which installs packages."""

import os
import sys
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))

sys.path.insert(0, os.path.join(TOP, "contrib"))
import check_ci  # noqa: E402


class Examples(unittest.TestCase):

    def test_each_service_has_one(self):
        self.assertEqual(set(check_ci.KINDS), set(check_ci.examples()))

    def test_they_do_the_same(self):
        self.assertEqual(1, len(set(check_ci.examples().values())),
                         check_ci.examples())


if __name__ == "__main__":
    unittest.main()
