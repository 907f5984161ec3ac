# SPDX-License-Identifier: BSD-3-Clause
# For gdb on the software mlx5 device: 'gdb -ix FILE', which mlx5sim-run adds by
# itself. Every doorbell is a SIGBUS that the device handles.
handle SIGBUS nostop noprint pass
