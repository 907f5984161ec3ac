# SPDX-License-Identifier: BSD-3-Clause
"""For a Spack repository, as packages/ucx_sep/package.py. The archive that
contrib/dist.sh makes has to be in the directory in which spack is called."""

import os

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage

from spack.package import *


class UcxSep(AutotoolsPackage):
    """UCX transport with scalable endpoints for ConnectX adapters, and a
    software mlx5 device for those who have none."""

    manual_download = True
    url = f"file://{os.getcwd()}/sep-0.3.0.tar.gz"

    license("BSD-3-Clause")

    version("0.3.0")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python", type=("build", "run"))
    depends_on("json-c")
    depends_on("rdma-core")
    depends_on("ucx@1.13:1.22 +verbs+mlx5_dv+rdmacm+thread_multiple")

    def configure_args(self):
        # No package has the private headers of UCX: its source is staged again
        ucx = self.spec["ucx"]
        ucx.package.do_stage()
        return [
            "--enable-release",
            "--disable-gtest",
            f"--with-ucx={ucx.prefix}",
            f"--with-ucx-source={ucx.package.stage.source_path}",
        ]

    def setup_run_environment(self, env):
        # From 1.22 on, UCX needs no sep-run to find the module
        series = self.spec["ucx"].version.up_to(2)
        if self.spec.satisfies("^ucx@1.22:"):
            env.prepend_path("UCX_PLUGIN_PATH",
                             join_path(self.prefix.lib, "sep", f"ucx-{series}"))
