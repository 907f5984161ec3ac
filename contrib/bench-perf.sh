#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Instructions, and instructions that LOCK, per message of sep_perf, counted by
# callgrind on the software mlx5 device: posting and polling, everything included
# but the device itself.
#
#   contrib/bench-perf.sh              a table: the categories, at each level
#   contrib/bench-perf.sh --tsv        level, sharing, op, features, threads,
#                                      instructions, locked, locked_in
#   contrib/bench-perf.sh --level dv -s static -s dynamic --features no-postlist
#
# Options: --level, -s, -o, -b, --features of sep_perf; the first two and
#          --features may be repeated (default: verbs, dv and uct; the
#          categories; all)
#          --threads N    default 2, one after the other: nobody waits for a lock,
#                         which is taken all the same
#          --count N      messages of each thread (default 512)
#          --ucx PREFIX   a UCX that contrib/build-ucx-release.sh installed
#                         (default: build/ucx-release, built if it is not there)
#          --build DIR    a build directory to use as it is (default: build/bench,
#                         which is built)
#
# locked_in: the functions that have these instructions, with their share.
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"

usage()
{
    sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'
}

build=
ucx=
format=table
threads=2
count=512
levels=()
sharings=()
features=()
options=()
op="write"
while [[ $# -gt 0 ]]; do
    case $1 in
    --tsv)      format=tsv; shift ;;
    --level)    levels+=("${2:?--level needs a value}"); shift 2 ;;
    -s)         sharings+=("${2:?-s needs a value}"); shift 2 ;;
    --features) features+=("${2:?--features needs a value}"); shift 2 ;;
    -o)         op=${2:?-o needs a value}; shift 2 ;;
    -b)         options+=(-b "${2:?-b needs a value}"); shift 2 ;;
    --threads)  threads=${2:?--threads needs a number}; shift 2 ;;
    --count)    count=${2:?--count needs a number}; shift 2 ;;
    --ucx)      ucx=$(cd "${2:?--ucx needs a directory}" && pwd); shift 2 ;;
    --build)    build=$(cd "${2:?--build needs a directory}" && pwd); shift 2 ;;
    --help|-h)  usage; exit 0 ;;
    *)          usage >&2; exit 2 ;;
    esac
done

sep_prepare_bench "all bench-programs" build bench
if [[ -n $ucx ]]; then
    LD_LIBRARY_PATH=$(dirname "$(find "$ucx" -name libuct.so.0 | head -n 1)")
    export LD_LIBRARY_PATH
fi

[[ ${#levels[@]} -gt 0 ]] || levels=(verbs dv uct)
[[ ${#features[@]} -gt 0 ]] || features=(all)
if [[ ${#sharings[@]} == 0 ]]; then
    mapfile -t sharings < <("$build/bin/sep_info" -l |
                            awk 'NF == 0 { exit } { print $1 }')
fi
results=$(mktemp -d "${TMPDIR:-/tmp}/sep-perf.XXXXXX")
trap 'rm -rf "$results"' EXIT

# usage: measure LEVEL SHARING FEATURES; prints a line of TSV
measure()
{
    local level=$1 sharing=$2 set=$3 messages
    rm -f "$results"/callgrind.*
    # The registers must be right at every access to memory, for the device's
    # signal handler reads them.
    if ! UCX_WARN_UNUSED_ENV_VARS=n timeout --kill-after=15 600 \
         "$build/bin/mlx5sim-run" --private \
         valgrind --tool=callgrind -q --dump-instr=yes --collect-atstart=no \
         "--toggle-collect=sep_perf_thread_rate" \
         --px-default=allregs-at-mem-access \
         --px-file-backed=allregs-at-mem-access \
         --callgrind-out-file="$results/callgrind.%p" \
         "$build/bin/sep_perf" --tsv --serial --no-latency --level "$level" \
         -s "$sharing" --features "$set" -o "$op" -t "$threads" -n "$count" \
         "${options[@]}" > "$results/rows" 2> "$results/log" < /dev/null; then
        tail -n 30 "$results/log" >&2
        sep_die "level $level, $sharing could not be measured"
    fi
    # Whole lists: perhaps more than were asked for
    messages=$(awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; ++i) at[$i] = i }
                            NR == 2 { print $at["messages"] }' "$results/rows")
    "$SEP_TOP/bench/callgrind_locked.py" "$messages" \
        "$results"/callgrind.* > "$results/locked"
    awk -F '\t' -v level="$level" -v sharing="$sharing" -v op="$op" \
        -v set="$set" -v threads="$threads" '
        $2 == "*" { all += $3; next }
        { locked += $3; where = where (where == "" ? "" : ",") $2 "=" $3 }
        END { printf "%s\t%s\t%s\t%s\t%s\t%.1f\t%.2f\t%s\n", level, sharing,
                     op, set, threads, all, locked,
                     where == "" ? "-" : where }' "$results/locked"
}

show()
{
    if [[ $format == tsv ]]; then
        cat
    else
        awk -F '\t' '{ printf "%-6s %-16s %-7s %-24s %7s %13s %7s  %s\n", $1,
                              $2, $3, $4, $5, $6, $7, $8; fflush() }'
    fi
}

{
    printf '%s\n' "level	sharing	op	features	threads	instructions	locked	locked_in"
    for level in "${levels[@]}"; do
        for sharing in "${sharings[@]}"; do
            for set in "${features[@]}"; do
                measure "$level" "$sharing" "$set"
            done
        done
    done
} | show
