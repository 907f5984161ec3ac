#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Instructions per operation of the transport and of rc_mlx5, both in release
# builds on the same UCX in release configuration, counted by callgrind on the
# software mlx5 device. The device's own instructions are not counted. Then, what
# instructions do not show: memory touched, and traffic with the device.
#
#   contrib/bench-insn.sh              tables
#   contrib/bench-insn.sh --tsv        op, sep_mlx5, rc_mlx5, ratio; then two
#                                      columns, sep_mlx5 and rc_mlx5, for each
#                                      of lines, code, reads, writes, mmio
#   contrib/bench-insn.sh --functions  where each operation spends them
#   contrib/bench-insn.sh --check      the tables; fails if sep_mlx5 is worse
#                                      than rc_mlx5 in any column
#
# Options: --ucx PREFIX   a UCX that contrib/build-ucx-release.sh installed
#                         (default: build/ucx-release, built if it is not there)
#          --ucx-source WHAT  its source, if it is not that of the system's UCX: a
#                         source tree or an archive. Without --ucx, it is built
#                         from that, in build/ucx-release-NAME
#          --count N      calls per operation (default 256)
#          --peer TL      the transport to compare with (default rc_mlx5)
#          --only TL      measure only this one, on any device (for development)
#          --category C,...  measure sep_mlx5 in these sharing categories, or in
#                         all of them: a column each, without a comparison
#          --apis         direct verbs and libibverbs: a column each for sep_mlx5
#                         with UCX_SEP_API=dv, =wr and =verbs, rc_mlx5 and
#                         rc_verbs
#
# put_short, am_short, get_bcopy, fadd64: 8 bytes. put_bcopy, am_bcopy: 1 KB,
# with the copy. recv: progress that receives an 8-byte active message.
# completion: progress that completes a put_zcopy. progress_idle: progress with
# nothing to do. flush: from the call of uct_ep_flush until one put is flushed.
#
# lines, code: lines of 64 bytes that a call touches if none is in a cache, of
# data and of instructions: misses in large caches that callgrind simulates.
# reads, writes: pieces of memory that the device reads and writes (work
# requests, payload, completions), mmio: stores to the device; counted by the
# device for the whole operation, from posting to its completion on both sides.
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"

usage()
{
    sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'
}

format=table
ucx=
source=
count=256
peer=rc_mlx5
only=
check=
categories=()
apis=
while [[ $# -gt 0 ]]; do
    case $1 in
    --tsv)       format=tsv; shift ;;
    --functions) format=functions; shift ;;
    --check)     check=yes; shift ;;
    --apis)      apis=yes; shift ;;
    --ucx)       ucx=$(cd "${2:?--ucx needs a directory}" && pwd); shift 2 ;;
    --ucx-source) source=$(realpath -e "${2:?--ucx-source needs a value}")
                 shift 2 ;;
    --count)     count=${2:?--count needs a number}; shift 2 ;;
    --peer)      peer=${2:?--peer needs a transport}; shift 2 ;;
    --only)      only=${2:?--only needs a transport}; shift 2 ;;
    --category)  IFS=, read -r -a categories <<< "${2:?--category needs a name}"
                 shift 2 ;;
    --help|-h)   usage; exit 0 ;;
    *)           usage >&2; exit 2 ;;
    esac
done
[[ -z $check || ( -z $only$apis && ${#categories[@]} == 0 ) ]] ||
    sep_die "--check is for comparisons of two transports"

build=$SEP_TOP/build/bench
if [[ -n $source ]]; then
    : "${ucx:=$SEP_TOP/build/ucx-release-$(sep_source_name "$source")}"
    # The transport is compiled for each UCX
    build=$ucx-bench
fi
: "${ucx:=$SEP_TOP/build/ucx-release}"
results=$build/insn
transports=(sep_mlx5 "$peer")
[[ -z $only ]] || transports=("$only")
# Standard output is for the result.
{
    sep_install_deps build bench
    sep_build_release "$build" "all bench-programs" "$ucx" "$source"
} >&2

if [[ ${categories[*]} == all ]]; then
    mapfile -t categories < <("$build/bin/sep_info" -l |
                                awk 'NF == 0 { exit } { print $1 }')
fi
# A column is a transport, which the API may follow, or sep_mlx5 in a category.
columns=("${transports[@]}")
[[ ${#categories[@]} == 0 ]] || columns=("${categories[@]}")
[[ -z $apis ]] || columns=("sep_mlx5 (dv)" "sep_mlx5 (wr)" "sep_mlx5 (verbs)"
                          rc_mlx5 rc_verbs)

# Whether two transports are compared, and not ways or categories of one.
compares()
{
    [[ -z $only$apis && ${#categories[@]} == 0 ]]
}

# Run uct_insn for a transport, with options=(...).
# usage: run TRANSPORT CATEGORY API COUNT OUTPUT LOG [TOOL...]
run()
{
    local transport=$1 category=$2 api=$3 count=$4 output=$5 log=$6 command
    shift 6
    command=("$@" "$build/bench/uct_insn" -t "$transport" -n "$count"
             "${options[@]}")
    case $transport in
    sep_*)   command=("$build/bin/sep-run" --only "${command[@]}" -d mlx5_0:1) ;;
    *_mlx5|*_verbs) command+=(-d mlx5_0:1) ;;
    esac
    case $transport in
    *_mlx5|*_verbs)
        command=("$build/bin/mlx5sim-run" --private "${command[@]}") ;;
    esac

    if [[ -n $category ]]; then
        command=(env UCX_SEP_CATEGORY="$category" "${command[@]}")
    fi

    if ! LD_LIBRARY_PATH=$(dirname "$(find "$ucx" -name libuct.so.0 |
                                      head -n 1)") \
         UCX_WARN_UNUSED_ENV_VARS=n UCX_SEP_API=$api timeout --kill-after=15 600 \
         "${command[@]}" > "$output" 2> "$log" < /dev/null; then
        tail -n 30 "$log" >&2
        sep_die "$transport could not be measured; see $log"
    fi
    if [[ ! -s $output ]]; then
        sep_die "$transport supports none of the operations"
    fi
}

# usage: measure COLUMN
measure()
{
    local transport=${1%% (*} dir=$results/$1 category="" api=dv callgrind
    local options=()
    if [[ $1 == *" ("* ]]; then
        api=${1##* \(}
        api=${api%)}
    fi
    if [[ ${#categories[@]} -gt 0 ]]; then
        transport=sep_mlx5
        category=$1
    fi
    rm -rf "$dir"
    mkdir -p "$dir"

    # Callgrind: collect inside measure_*() only. The registers must be right
    # at every access to memory, for the device's signal handler reads them.
    callgrind=(valgrind --tool=callgrind -q --instr-atstart=no
               --collect-atstart=no "--toggle-collect=measure_*"
               --px-default=allregs-at-mem-access
               --px-file-backed=allregs-at-mem-access)

    sep_say "Counting the instructions of $transport${category:+, $category}" >&2
    run "$transport" "$category" "$api" "$count" "$dir/counts" "$dir/log" \
        "${callgrind[@]}" --callgrind-out-file="$dir/callgrind.out"
    "$SEP_TOP/bench/callgrind_insn.py" sum "$dir/counts" \
        "$dir"/callgrind.out* > "$dir/insn"
    if ! compares || [[ $format == functions ]]; then
        return
    fi

    # Caches without limits: each line misses once. They are emptied before
    # each call, which takes long; a queue's signalling period shows all there
    # is.
    sep_say "Counting the lines that $transport touches" >&2
    options=(-l)
    run "$transport" "$category" "$api" 64 "$dir/line-counts" "$dir/line-log" \
        "${callgrind[@]}" --callgrind-out-file="$dir/lines.out" \
        --cache-sim=yes --I1=1048576,16,64 --D1=1048576,16,64 \
        --LL=2097152,16,64
    "$SEP_TOP/bench/callgrind_insn.py" lines "$dir/line-counts" \
        "$dir"/lines.out* > "$dir/lines"

    sep_say "Counting what the device does for $transport" >&2
    mkdir -p "$dir/counters"
    options=(-s "'$build/bin/mlx5sim-stat' --json" -o "$dir/counters/of")
    run "$transport" "$category" "$api" "$count" "$dir/device-counts" \
        "$dir/device-log"
    "$SEP_TOP/bench/device_counts.py" "$dir/device-counts" \
        "$dir/counters/of" > "$dir/device"
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

if compares; then
    show()
    {
        "$SEP_TOP/bench/insn_table.py" "$1" "$results" "${transports[@]}"
    }
    case $format in
    tsv)   show tsv ;;
    table) show text ;;
    esac
    if [[ -n $check ]]; then
        show check >&2 || sep_die "${transports[0]} is worse there"
    fi
elif [[ $format == tsv ]]; then
    columns_table
else
    columns_table | awk -F '\t' '{ printf "%-16s", $1
                                   for (i = 2; i <= NF; ++i) printf "%18s", $i
                                   print "" }'
fi
