#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Install what is missing, build, run all tests, and close with a line
# "N passed, N failed". Run it again at any time; only what changed is rebuilt.
#
#   contrib/check.sh                   everything
#   contrib/check.sh unit jobs         only these parts
#   contrib/check.sh --one test_sep_fc.*   only tests that match
#   contrib/check.sh --help            all parts and options
#
# This script installs packages; the rest is done by test/runner/run.
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"

runner=$SEP_TOP/test/runner/run
case " $* " in
*" --help "*|*" -h "*)
    if command -v python3 > /dev/null 2>&1; then
        exec python3 "$runner" --help
    fi
    sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'
    exit 0 ;;
esac

# Standard output is for the list of tests, if that is all that is wanted
sep_install_deps build test style jobs bench root clients >&2
# Not every Debian has it; without it, test/litmus/run is skipped
for package in $(sep_deps litmus); do
    if apt-cache show "$package" > /dev/null 2>&1; then
        sep_install_deps litmus >&2
    fi
done
sep_use_ccache
exec python3 "$runner" "$@" < /dev/null
