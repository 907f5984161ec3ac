# SPDX-License-Identifier: BSD-3-Clause
"""The main job: real programs on sep_mlx5 and rc_mlx5, with checked traffic."""
