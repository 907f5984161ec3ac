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


class Given(unittest.TestCase):

    def command(self, build, given):
        """How a target is made, and in which directory, if one is given."""
        session = mock.Mock(top="/top", options=mock.Mock(build=given))
        builds = Builds(session)
        with mock.patch.object(builds, "_task") as task:
            builds.target(build, "all")
        return task.call_args.args[1], builds.directory(build)

    def test_build_is_used_as_it_is(self):
        command, directory = self.command(parts.PLAIN, "build/demo")
        self.assertEqual(("make", "-C", "/top/build/demo", "all"), command)
        self.assertEqual("/top/build/demo", directory)

    def test_others_are_configured(self):
        for build, given, directory in (
                (parts.PLAIN, None, "/top/build/check"),
                (parts.SANITIZED, "build/demo", "/top/build/check-sanitized")):
            command, there = self.command(build, given)
            self.assertEqual("bash", command[0])
            self.assertIn("/top/configure", command)
            self.assertEqual(directory, there)


if __name__ == "__main__":
    unittest.main()
