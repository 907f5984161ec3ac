# SPDX-License-Identifier: BSD-3-Clause
"""What a machine must have for a build by a script."""

import os
import unittest
from unittest import mock

from runner import parts
from runner.builds import Builds


class Obstacle(unittest.TestCase):

    def obstacle(self, installed="", **needs):
        with mock.patch.object(Builds, "ucx_version", return_value=installed):
            return Builds(None).obstacle(parts.Script("it", ("true",),
                                                      **needs))

    def test_most_scripts_need_nothing(self):
        self.assertIsNone(self.obstacle())

    def test_a_variable(self):
        with mock.patch.dict(os.environ):
            os.environ.pop("SEP_A_SOURCE", None)
            self.assertEqual("SEP_A_SOURCE is not set",
                             self.obstacle(variable="SEP_A_SOURCE"))
            os.environ["SEP_A_SOURCE"] = "/somewhere"
            self.assertIsNone(self.obstacle(variable="SEP_A_SOURCE"))

    def test_a_version_of_ucx(self):
        self.assertIsNone(self.obstacle("1.13.1", ucx="1.13.1"))
        self.assertEqual("it is for UCX 1.13.1, and here is 1.18.1",
                         self.obstacle("1.18.1", ucx="1.13.1"))
        self.assertEqual("it is for UCX 1.13.1, and here is none",
                         self.obstacle("", ucx="1.13.1"))


if __name__ == "__main__":
    unittest.main()
