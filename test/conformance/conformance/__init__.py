# SPDX-License-Identifier: BSD-3-Clause
"""Driver of UCX's own unit tests on the transport and on rc_mlx5."""
