# SPDX-License-Identifier: BSD-3-Clause
"""The book of evidence: a chapter per figure of a paper, beside ours."""
