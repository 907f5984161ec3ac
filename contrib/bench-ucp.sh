#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Instructions per operation of UCP with and without the optimisations of
# src/ucp/opt, on rc_mlx5 and sep_mlx5, with both versions of UCP's protocols.
# Both UCX are release builds made in the same way (contrib/build-ucx-opt.sh);
# callgrind counts, on the software mlx5 device, whose own instructions are left
# out.
#
#   contrib/bench-ucp.sh              a table
#   contrib/bench-ucp.sh --tsv        row, stock, patched, ratio
#   contrib/bench-ucp.sh --breakdown  row, build, instructions in UCP and below
#   contrib/bench-ucp.sh --functions  where each row spends its instructions
#
# Options: --ucx-source WHAT  a source tree of UCX, or an archive of one (default:
#               Debian's source package): of a release for which
#               src/ucp/opt/patches has patches
#          --stock PREFIX  --patched PREFIX
#               what contrib/build-ucx-opt.sh installed with and without
#               --stock (default: build/ucx-stock and build/ucx-opt, with the
#               release behind if there is --ucx-source, built if they are not
#               there)
#          --count N      calls per operation (default 64)
#          --quick        only rc_mlx5 with version 1 of the protocols
#
# Rows without a suffix are rc_mlx5 (and ud_mlx5, which it is connected with) and
# version 1 (UCX_PROTO_ENABLE=n). ucp_put_above_uct: what libucp executes for
# put_8. flush_one_put: from the call until one put is flushed, repeatedly;
# flush_two_puts: the same for two, which no flush expects. progress_idle_N:
# ucp_worker_progress() with N interfaces open and nothing to do; rc_mlx5 cannot
# be alone, so the first has ud_mlx5 for connecting only. put_rate: millions of
# puts per second, flushed after every 256, in wall-clock time: the median of
# alternating runs of the two UCX. UCX 1.22 has no puts, gets and keys with version
# 1 of the protocols; their rows are "-".
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=contrib/ucx.sh
. "$(dirname "$0")/ucx.sh"

usage()
{
    sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'
}

format=table
declare -A prefix=()
ucx_source=
count=64
quick=
while [[ $# -gt 0 ]]; do
    case $1 in
    --tsv|--breakdown|--functions) format=${1#--}; shift ;;
    --ucx-source) ucx_source=${2:?--ucx-source needs a directory or archive}
                  shift 2 ;;
    --stock|--patched) prefix[${1#--}]=$(cd "${2:?$1 needs a directory}" && pwd)
                       shift 2 ;;
    --count)   count=${2:?--count needs a number}; shift 2 ;;
    --quick)   quick=1; shift ;;
    --help|-h) usage; exit 0 ;;
    *)         usage >&2; exit 2 ;;
    esac
done

suffix=
release=1.13.1
if [[ -n $ucx_source ]]; then
    ucx_source=$(sep_ucx_tree "$ucx_source")
    release=$(sep_ucx_release "$ucx_source")
    sep_ucx_opt_series "$release" > /dev/null
    suffix=-$release
fi
: "${prefix[stock]:=$SEP_TOP/build/ucx-stock$suffix}"
: "${prefix[patched]:=$SEP_TOP/build/ucx-opt$suffix}"
build=$SEP_TOP/build/bench-ucp$suffix
results=$build/ucp-insn
operations=(put_8 put_1k get_8 get_1k fadd tag_send tag_recv_post
            tag_recv_progress am_send am_recv_progress flush_one_put
            flush_two_puts flush_nothing worker_flush_one_put
            worker_flush_nothing rkey_unpack)

# Standard output is for the result.
{
    sep_install_deps build bench
    sep_build_stock_and_patched "${prefix[stock]}" "${prefix[patched]}" \
        "$ucx_source"
    for which in stock patched; do
        sep_ucx_expect_release "${prefix[$which]}" "$release"
    done
    sep_build "$build" "all bench-programs" \
        "$SEP_TOP/contrib/configure-release" --with-ucx="${prefix[stock]}" \
        ${ucx_source:+--with-ucx-source="$ucx_source"} --disable-gtest
} >&2

# Run a command on one of the two UCX, on a device of its own.
# usage: run WHICH TLS PROTO COMMAND...
run()
{
    local which=$1 tls=$2 proto=$3 libdir
    shift 3
    libdir=$(dirname "$(find "${prefix[$which]}" -name libucp.so.0 |
                        head -n 1)")
    # Atomics by the adapter, where the transport has all that UCP wants:
    # sep_mlx5. rc_mlx5 has ADD and CSWAP only on the software device, and UCP
    # carries out all of them by active messages then.
    LD_LIBRARY_PATH=$libdir UCX_TLS=$tls UCX_PROTO_ENABLE=$proto \
        UCX_ATOMIC_MODE=device UCX_WARN_UNUSED_ENV_VARS=n \
        timeout --kill-after=15 600 \
        "$build/bin/mlx5sim-run" --private -- "$@" < /dev/null
}

# usage: measure WHICH TLS PROTO SUFFIX RENAME OPERATION...
measure()
{
    local which=$1 tls=$2 proto=$3 suffix=$4 rename=$5 dir row
    shift 5
    dir=$results/runs/$which$suffix$rename
    rm -rf "$dir"
    mkdir -p "$dir"

    # As in bench-insn.sh.
    sep_say "$which UCX, $tls, protocols '$proto'" >&2
    if ! run "$which" "$tls" "$proto" \
             valgrind --tool=callgrind -q \
             --callgrind-out-file="$dir/callgrind.out" \
             --instr-atstart=no --collect-atstart=no \
             "--toggle-collect=measure_*" \
             --px-default=allregs-at-mem-access \
             --px-file-backed=allregs-at-mem-access \
             "$build/bench/ucp_insn" -n "$count" "$@" \
             > "$dir/counts" 2> "$dir/log"; then
        tail -n 30 "$dir/log" >&2
        sep_die "$which UCX could not be measured on $tls; see $dir/log"
    fi

    if [[ $format == functions ]]; then
        printf '\n%s UCX, %s, protocols %s\n' "$which" "$tls" "$proto"
        "$SEP_TOP/bench/callgrind_insn.py" functions "$dir/counts" \
            "$dir"/callgrind.out*
        return
    fi

    "$SEP_TOP/bench/callgrind_insn.py" objects "$dir/counts" \
        "$dir"/callgrind.out* |
        awk -F '\t' -v OFS='\t' -v suffix="$suffix" -v rename="$rename" '
            { row = (rename == "") ? $1 : rename
              all[row] += $3
              if ($2 ~ /^libucp/) ucp[row] += $3
              if (!(row in seen)) { seen[row] = 1; order[++rows] = row } }
            END {
                for (i = 1; i <= rows; ++i) {
                    row = order[i]
                    printf "%s\t%.1f\t%.1f\n", row suffix, all[row], ucp[row]
                    if (row == "put_8")
                        printf "%s\t%.1f\t%.1f\n", "ucp_put_above_uct" suffix,
                               ucp[row], ucp[row]
                }
            }' >> "$results/$which"

    # What the interface has of it that only connects.
    case $* in
    progress_idle)       row=wireup_idle ;;
    progress_connecting) row=wireup_connecting ;;
    *)                   return 0 ;;
    esac
    [[ $rename == progress_idle_1 || $rename == "" ]] || return 0
    "$SEP_TOP/bench/callgrind_insn.py" part=^uct_ud_ "$dir/counts" \
        "$dir"/callgrind.out* |
        awk -v row="$row$suffix" '{ printf "%s\t%s\t\n", row, $2 }' \
        >> "$results/$which"
}

# usage: rate TLS PROTO SUFFIX
rate()
{
    local tls=$1 proto=$2 suffix=$3 which turn value
    for turn in 1 2 3 4 5; do
        for which in stock patched; do
            run "$which" "$tls" "$proto" "$build/bench/ucp_insn" -r \
                > "$results/rate.$which.$turn"
        done
    done
    for which in stock patched; do
        value=$(sort -n "$results/rate.$which".* | sed -n 3p)
        printf 'put_rate%s\t%s\t\n' "$suffix" "$value" >> "$results/$which"
    done
}

# Of some operations, those that the release has with a version of the protocols.
# usage: there_are PROTO OPERATION...
there_are()
{
    local proto=$1 operation
    shift
    for operation in "$@"; do
        case $release:$proto:$operation in
        1.22.*:n:*put*|1.22.*:n:get_*|1.22.*:n:rkey_unpack) ;;
        *) echo "$operation" ;;
        esac
    done
}

# Rows for the others.
# usage: missing SUFFIX PROTO OPERATION...
missing()
{
    local suffix=$1 proto=$2 which operation
    shift 2
    for operation in "$@"; do
        [[ -z $(there_are "$proto" "$operation") ]] || continue
        for which in stock patched; do
            printf '%s\t-\t\n' "$operation$suffix" >> "$results/$which"
            [[ $operation != put_8 ]] ||
                printf 'ucp_put_above_uct%s\t-\t\n' "$suffix" \
                    >> "$results/$which"
        done
    done
}

# usage: measure_set TRANSPORT PROTO SUFFIX
measure_set()
{
    local transport=$1 proto=$2 suffix=$3 which tls one two four there
    case $transport in
    rc_mlx5) tls=rc_mlx5,ud_mlx5
             one=rc_mlx5,ud_mlx5:aux
             two=$tls
             four=$tls,rc_verbs,ud_verbs ;;
    *)       tls=$transport
             one=$tls
             two=$tls,ud_mlx5
             four=$tls,ud_mlx5,rc_mlx5,rc_verbs ;;
    esac

    mapfile -t there < <(there_are "$proto" "${operations[@]}")
    for which in stock patched; do
        measure "$which" "$tls" "$proto" "$suffix" "" "${there[@]}"
        measure "$which" "$one" "$proto" "$suffix" progress_idle_1 progress_idle
        measure "$which" "$two" "$proto" "$suffix" progress_idle_2 progress_idle
        measure "$which" "$four" "$proto" "$suffix" progress_idle_4 \
            progress_idle
        [[ $transport != rc_mlx5 ]] ||
            measure "$which" "$tls" "$proto" "$suffix" "" progress_connecting
    done
    if [[ $format == functions ]]; then
        return
    elif [[ -n $(there_are "$proto" put_rate) ]]; then
        rate "$tls" "$proto" "$suffix"
    fi
    missing "$suffix" "$proto" "${operations[@]}" put_rate
}

mkdir -p "$results"
rm -f "$results/stock" "$results/patched"
measure_set rc_mlx5 n ""
if [[ -z $quick ]]; then
    measure_set rc_mlx5 y :rc_mlx5:y
    measure_set sep_mlx5 n :sep_mlx5:n
    measure_set sep_mlx5 y :sep_mlx5:y
fi

table()
{
    printf 'row\tstock\tpatched\tratio\n'
    awk -F '\t' '
        NR == FNR { stock[$1] = $2; next }
        $2 == "-" { printf "%s\t-\t-\t-\n", $1; next }
        { printf "%s\t%s\t%s\t%.2f\n", $1, stock[$1], $2,
                 (stock[$1] == $2) ? 1 : $2 / stock[$1] }' \
        "$results/stock" "$results/patched"
}

columns()
{
    awk -F '\t' '{ printf "%-36s", $1
                   for (i = 2; i <= NF; ++i) printf "%10s", $i
                   print "" }'
}

case $format in
tsv)   table ;;
table) table | columns ;;
breakdown)
    {
        printf 'row\tbuild\ttotal\tUCP\tbelow\n'
        for which in stock patched; do
            awk -F '\t' -v which="$which" '
                $3 != "" && $1 !~ /^ucp_put_above/ {
                    printf "%s\t%s\t%.1f\t%.1f\t%.1f\n", $1, which, $2, $3,
                           $2 - $3 }' "$results/$which"
        done | sort -s -k 1,1
    } | columns
    ;;
esac
