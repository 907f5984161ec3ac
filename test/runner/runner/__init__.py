# SPDX-License-Identifier: BSD-3-Clause
"""The one runner of all tests of the project."""
