#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What sharing categories take from a device, in both regimes of UAR pages, for
# a range of workers: contexts, UAR pages, uUARs, queue pairs, queues, memory.
#
#   contrib/bench-resources.sh             a table of plans, 1 to 24 workers
#   contrib/bench-resources.sh --tsv       the same with tabs
#   contrib/bench-resources.sh --take      and next to each plan what workers on
#                                          the software device have taken; fails
#                                          if that differs
#   contrib/bench-resources.sh --markdown  the tables of docs/resources.md
#
# Options: --workers N,N,...  other numbers of workers
#          --peers N          peers of each worker (default 1)
#          --build DIR        a build directory to use as it is (default:
#                             build/release, which is built)
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"

usage()
{
    sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'
}

build=
tsv=
options=()
while [[ $# -gt 0 ]]; do
    case $1 in
    --tsv)             tsv=y; shift ;;
    --take)            options+=("$1"); shift ;;
    --markdown)        options+=("$1"); tsv=y; shift ;;
    --workers|--peers) options+=("$1" "${2:?$1 needs a number}"); shift 2 ;;
    --build)           build=$(cd "${2:?--build needs a directory}" && pwd)
                       shift 2 ;;
    --help|-h)         usage; exit 0 ;;
    *)                 usage >&2; exit 2 ;;
    esac
done

if [[ -z $build ]]; then
    build=$SEP_TOP/build/release
    # Standard output is for the result.
    {
        sep_install_deps build bench
        sep_build "$build" all "$SEP_TOP/contrib/configure-release" \
            --disable-gtest
    } >&2
fi

status=0
output=$("$SEP_TOP/bench/resources.py" --sep-info "$build/bin/sep_info" \
         --sim-run "$build/bin/mlx5sim-run" "${options[@]}") || status=$?
if [[ -n $tsv ]]; then
    printf '%s\n' "$output"
else
    printf '%s\n' "$output" | awk -F '\t' '
        { for (i = 1; i <= NF; ++i) {
              cell[NR, i] = $i
              if (length($i) > width[i]) width[i] = length($i)
          } }
        END { for (r = 1; r <= NR; ++r) {
                  for (i = 1; i <= NF; ++i)
                      printf "%-*s ", width[i] + 1, cell[r, i]
                  print ""
              } }'
fi
exit "$status"
