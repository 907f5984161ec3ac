# SPDX-License-Identifier: BSD-3-Clause
"""What can be measured, and how: rows.py has the list."""
