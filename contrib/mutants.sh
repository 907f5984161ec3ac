#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Put small mistakes ("mutants") into a copy of the tree, one at a time, and tell
# which tests notice. The list is test/mutants/*.txt; test/mutants/mutants.py
# describes it.
#
#   contrib/mutants.sh                  all: hours
#   contrib/mutants.sh post conn        of these areas
#   contrib/mutants.sh 'conn-*psn*'     of these names
#   contrib/mutants.sh --help           all options
#
# Unlike contrib/check.sh it installs nothing.
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"

sep_use_ccache
exec python3 "$SEP_TOP/test/mutants/run" "$@"
