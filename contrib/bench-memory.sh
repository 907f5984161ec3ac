#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Memory of the transport and of rc_mlx5, both in release builds on the same UCX
# in release configuration, on the software mlx5 device: bytes per worker, per
# endpoint that is not connected, and per endpoint that is (with its connection
# and queue pair).
#
#   contrib/bench-memory.sh        a table
#   contrib/bench-memory.sh --tsv  what, kind, sep_mlx5, sep_mlx5 (wr), rc_mlx5
#
# Options: --ucx PREFIX   a UCX that contrib/build-ucx-release.sh installed
#                         (default: build/ucx-release, built if it is not there)
#          --ifaces N     interfaces, fully connected (default 8)
#
# heap: as rounded up by malloc, including buffers and the queues that libmlx5
# allocates. mapped: outside the heap. resident: the part of both ever touched.
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"

usage()
{
    sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'
}

format=table
ucx=$SEP_TOP/build/ucx-release
ifaces=8
while [[ $# -gt 0 ]]; do
    case $1 in
    --tsv)     format=tsv; shift ;;
    --ucx)     ucx=$(cd "${2:?--ucx needs a directory}" && pwd); shift 2 ;;
    --ifaces)  ifaces=${2:?--ifaces needs a number}; shift 2 ;;
    --help|-h) usage; exit 0 ;;
    *)         usage >&2; exit 2 ;;
    esac
done

build=$SEP_TOP/build/bench
results=$build/memory

# Standard output is for the result.
{
    sep_install_deps build bench
    sep_build_release "$build" "all bench-programs" "$ucx"
} >&2

# usage: measure TRANSPORT API
measure()
{
    local transport=$1 api=$2 command
    command=("$build/bench/uct_memory" -t "$transport" -d mlx5_0:1 -n "$ifaces")
    [[ $transport != sep_* ]] ||
        command=("$build/bin/sep-run" --only "${command[@]}")

    sep_say "Measuring the memory of $transport ($api)" >&2
    mkdir -p "$results"
    if ! LD_LIBRARY_PATH=$(dirname "$(find "$ucx" -name libuct.so.0 |
                                      head -n 1)") \
         UCX_WARN_UNUSED_ENV_VARS=n UCX_SEP_API=$api \
         timeout --kill-after=15 300 "$build/bin/mlx5sim-run" --private \
         "${command[@]}" > "$results/$transport.$api" \
         2> "$results/$transport.$api.log" < /dev/null; then
        tail -n 30 "$results/$transport.$api.log" >&2
        sep_die "$transport could not be measured; see $results"
    fi
}

measure sep_mlx5 dv
measure sep_mlx5 wr
measure rc_mlx5 dv

table()
{
    printf 'what\tkind\tsep_mlx5\tsep_mlx5 (wr)\trc_mlx5\n'
    paste -d ' ' "$results/sep_mlx5.dv" "$results/sep_mlx5.wr" \
        "$results/rc_mlx5.dv" | awk -v OFS='\t' '
        { print $1, "heap", $2, $6, $10
          print $1, "mapped", $3, $7, $11
          print $1, "resident", $4, $8, $12 }'
}

if [[ $format == tsv ]]; then
    table
else
    table | awk -F '\t' '{ printf "%-14s%-10s", $1, $2
                           for (i = 3; i <= NF; ++i) printf "%18s", $i
                           print "" }'
fi
