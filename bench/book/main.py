#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write the book of evidence: see cli.py."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
sys.dont_write_bytecode = True

from book import cli  # noqa: E402

sys.exit(cli.main())
