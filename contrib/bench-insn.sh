#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Instructions per operation of the transport and of rc_mlx5, both in release
# builds on the same UCX in release configuration, counted by callgrind on the
# software mlx5 device. The device's own instructions are not counted.
#
#   contrib/bench-insn.sh              a table
#   contrib/bench-insn.sh --tsv        op, sep_mlx5, rc_mlx5, ratio
#   contrib/bench-insn.sh --functions  where each operation spends them
#
# Options: --ucx PREFIX   a UCX that contrib/build-ucx-release.sh installed
#                         (default: build/ucx-release, built if it is not there)
#          --count N      calls per operation (default 256)
#          --peer TL      the transport to compare with (default rc_mlx5)
#          --only TL      measure only this one, on any device (for development)
#          --category C,...  measure sep_mlx5 in these sharing categories, or in
#                         all of them: a column each, without a comparison
#          --apis         direct verbs and libibverbs: a column each for sep_mlx5
#                         with UCX_SEP_API=dv and =verbs, rc_mlx5 and rc_verbs
#
# put_short, am_short, get_bcopy, fadd64: 8 bytes. put_bcopy, am_bcopy: 1 KB,
# with the copy. recv: progress that receives an 8-byte active message.
# completion: progress that completes a put_zcopy. progress_idle: progress with
# nothing to do. flush: from the call of uct_ep_flush until one put is flushed.
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"

usage()
{
    sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'
}

format=table
ucx=$SEP_TOP/build/ucx-release
count=256
peer=rc_mlx5
only=
categories=()
apis=
while [[ $# -gt 0 ]]; do
    case $1 in
    --tsv)       format=tsv; shift ;;
    --functions) format=functions; shift ;;
    --apis)      apis=yes; shift ;;
    --ucx)       ucx=$(cd "${2:?--ucx needs a directory}" && pwd); shift 2 ;;
    --count)     count=${2:?--count needs a number}; shift 2 ;;
    --peer)      peer=${2:?--peer needs a transport}; shift 2 ;;
    --only)      only=${2:?--only needs a transport}; shift 2 ;;
    --category)  IFS=, read -r -a categories <<< "${2:?--category needs a name}"
                 shift 2 ;;
    --help|-h)   usage; exit 0 ;;
    *)           usage >&2; exit 2 ;;
    esac
done

build=$SEP_TOP/build/bench
results=$build/insn
transports=(sep_mlx5 "$peer")
[[ -z $only ]] || transports=("$only")
# Standard output is for the result.
{
    sep_install_deps build bench
    if [[ ! -e $ucx/.sep-ucx-release ]]; then
        "$SEP_TOP/contrib/build-ucx-release.sh" "$ucx"
    fi
    sep_build "$build" "all bench-programs" \
        "$SEP_TOP/contrib/configure-release" --with-ucx="$ucx" \
        --disable-gtest
} >&2

if [[ ${categories[*]} == all ]]; then
    mapfile -t categories < <("$build/bin/sep_info" -l | awk '{ print $1 }')
fi
# A column is a transport, which the API may follow, or sep_mlx5 in a category.
columns=("${transports[@]}")
[[ ${#categories[@]} == 0 ]] || columns=("${categories[@]}")
[[ -z $apis ]] || columns=("sep_mlx5 (dv)" "sep_mlx5 (verbs)" rc_mlx5 rc_verbs)

# usage: measure COLUMN
measure()
{
    local transport=${1%% (*} dir=$results/$1 command category="" api=dv
    [[ $1 != *"(verbs)" ]] || api=verbs
    if [[ ${#categories[@]} -gt 0 ]]; then
        transport=sep_mlx5
        category=$1
    fi
    rm -rf "$dir"
    mkdir -p "$dir"

    # Callgrind: collect inside measure_*() only. The registers must be right
    # at every access to memory, for the device's signal handler reads them.
    command=(valgrind --tool=callgrind -q
             --callgrind-out-file="$dir/callgrind.out"
             --instr-atstart=no --collect-atstart=no
             "--toggle-collect=measure_*"
             --px-default=allregs-at-mem-access
             --px-file-backed=allregs-at-mem-access
             "$build/bench/uct_insn" -t "$transport" -n "$count")
    case $transport in
    sep_*)   command=("$build/bin/sep-run" "${command[@]}" -d mlx5_0:1) ;;
    *_mlx5|*_verbs) command+=(-d mlx5_0:1) ;;
    esac
    case $transport in
    *_mlx5|*_verbs)
        command=("$build/bin/mlx5sim-run" --private "${command[@]}") ;;
    esac

    if [[ -n $category ]]; then
        command=(env UCX_SEP_CATEGORY="$category" "${command[@]}")
    fi

    sep_say "Counting the instructions of $transport${category:+, $category}" >&2
    if ! LD_LIBRARY_PATH=$(dirname "$(find "$ucx" -name libuct.so.0 |
                                      head -n 1)") \
         UCX_WARN_UNUSED_ENV_VARS=n UCX_SEP_API=$api timeout --kill-after=15 600 \
         "${command[@]}" > "$dir/counts" 2> "$dir/log" < /dev/null; then
        tail -n 30 "$dir/log" >&2
        sep_die "$transport could not be measured; see $dir/log"
    fi
    if [[ ! -s $dir/counts ]]; then
        sep_die "$transport supports none of the operations"
    fi
    "$SEP_TOP/bench/callgrind_insn.py" sum "$dir/counts" \
        "$dir"/callgrind.out* > "$dir/insn"
}

for column in "${columns[@]}"; do
    measure "$column"
done

case $format in
functions)
    for column in "${columns[@]}"; do
        printf '\n%s\n' "$column"
        "$SEP_TOP/bench/callgrind_insn.py" functions \
            "$results/$column/counts" "$results/$column"/callgrind.out*
    done
    exit 0
    ;;
esac

# Operations of the first column, and what all columns have of them.
columns_table()
{
    local column files=()
    for column in "${columns[@]}"; do
        files+=("$results/$column/insn")
    done
    (IFS=$'\t'; printf 'op\t%s\n' "${columns[*]}")
    awk -F '\t' -v count="${#columns[@]}" '
        FNR == 1 { ++file }
        file == 1 { ops[++num] = $1 }
        { insn[file, $1] = $2 }
        END { for (i = 1; i <= num; ++i) {
                  printf "%s", ops[i]
                  for (c = 1; c <= count; ++c) {
                      key = c SUBSEP ops[i]
                      printf "\t%s", (key in insn) ? insn[key] : "n/a"
                  }
                  print ""
              } }' "${files[@]}"
}

table()
{
    if [[ -n $only$apis || ${#categories[@]} -gt 0 ]]; then
        columns_table
        return
    fi
    printf 'op\t%s\t%s\tratio\n' "${transports[@]}"
    awk -F '\t' -v OFS='\t' '
        NR == FNR { ours[$1] = $2; next }
        { printf "%s\t%s\t%s\t", $1, ($1 in ours) ? ours[$1] : "n/a", $2
          if ($1 in ours) printf "%.2f\n", ours[$1] / $2; else print "n/a" }' \
        "$results/sep_mlx5/insn" "$results/$peer/insn"
}

if [[ $format == tsv ]]; then
    table
else
    table | awk -F '\t' '{ printf "%-16s", $1
                           for (i = 2; i <= NF; ++i) printf "%18s", $i
                           print "" }'
fi
