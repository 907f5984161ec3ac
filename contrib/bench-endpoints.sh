#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# MPI+threads with an endpoint per thread, on the software device.
#
#   contrib/bench-endpoints.sh            jobs of 1 to 16 threads on all categories
#                                         and settings: data, and resources next
#                                         to the plan; fails if anything differs
#   contrib/bench-endpoints.sh --connect  what connecting takes of sep_mlx5 and
#                                         rc_mlx5: 1 to 16 interfaces, 2 to 16
#                                         processes
#   contrib/bench-endpoints.sh --locks    LOCKed instructions per message, by
#                                         library and function, counted by
#                                         callgrind: a table per category
#   contrib/bench-endpoints.sh --tsv ...  with tabs
#
# MPICH needs more than one interface for it: where the installed one has a single
# one (Debian 12), contrib/build-mpich.sh builds another. Options:
#
#   --mpich PREFIX   an MPICH to use ("" for the installed one)
#   --build DIR      a build directory to use as it is (default: build/release)
#
# All others are those of test/jobs/endpoints, see its --help.
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"

usage()
{
    sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'
}

build=
mpich=auto
mode=all
tsv=
options=()
while [[ $# -gt 0 ]]; do
    case $1 in
    --mpich)   mpich=${2?--mpich needs a directory}; shift 2 ;;
    --build)   build=$(cd "${2:?--build needs a directory}" && pwd); shift 2 ;;
    --connect) mode=connect; options+=("$1"); shift ;;
    --locks)   mode=locks; shift ;;
    --tsv)     tsv=y; options+=("$1"); shift ;;
    --help|-h) usage; exec "$SEP_TOP/test/jobs/endpoints" --help ;;
    *)         options+=("$1"); shift ;;
    esac
done

# Standard output is for the result.
{
    sep_install_deps build bench jobs
    if [[ -z $build ]]; then
        build=$SEP_TOP/build/release
        sep_build "$build" all "$SEP_TOP/contrib/configure-release" \
            --disable-gtest
    fi
    if [[ $mpich == auto ]]; then
        mpich=
        if "$SEP_TOP/contrib/build-mpich.sh" --needed; then
            mpich=$SEP_TOP/build/mpich
            "$SEP_TOP/contrib/build-mpich.sh" --prefix "$mpich"
        fi
    fi
} >&2

mpicc=mpicc.mpich
mpiexec=mpiexec.mpich
if [[ -n $mpich ]]; then
    mpicc=$mpich/bin/mpicc
    mpiexec=$mpich/bin/mpiexec
fi

# Programs for this MPI library, next to those of the build for others.
programs=$build/endpoints
mkdir -p "$programs"
compile()
{
    "$mpicc" -std=gnu11 -O2 -g -I "$SEP_TOP/test" -o "$programs/$1.mpich" \
        "$SEP_TOP/$2" -lpthread >&2
}
compile endpoints test/mpi/endpoints.c
compile connect test/mpi/connect.c
compile mpi_rate bench/mpi_rate.c

export MPIR_CVAR_NOLOCAL=1

# LOCKed instructions of one rank while the other runs as it is.
# usage: locks CATEGORY ROLE
locks()
{
    local category=$1 role=$2 threads=2 windows=20 window=64 dir count
    local -a measure plain first second
    dir=$programs/locks.$category.$role
    rm -rf "$dir"
    mkdir "$dir"
    plain=("$build/bin/sep-run" --only "$programs/mpi_rate.mpich"
           -t "$threads" -n "$windows" -w "$window")
    measure=("$build/bin/sep-run" --only valgrind --tool=callgrind -q
             "--callgrind-out-file=$dir/callgrind.out.%p" --dump-instr=yes
             --collect-atstart=no "--toggle-collect=measure_*"
             --px-default=allregs-at-mem-access
             --px-file-backed=allregs-at-mem-access "${plain[@]:2}")
    first=("${measure[@]}") second=("${plain[@]}")
    if [[ $role == receiver ]]; then
        first=("${plain[@]}") second=("${measure[@]}")
    fi
    UCX_TLS=sep_mlx5 UCX_SEP_CATEGORY=$category \
        MPIR_CVAR_CH4_NUM_VCIS=$threads timeout --kill-after=15 600 \
        "$build/bin/mlx5sim-run" --private -- \
        "$mpiexec" -n 1 "${first[@]}" : -n 1 "${second[@]}" \
        > "$dir/log" 2>&1 < /dev/null || {
        tail -n 20 "$dir/log" >&2
        sep_die "$category, $role: failed; see $dir/log"
    }
    count=$((threads * windows * window))
    "$SEP_TOP/bench/callgrind_locked.py" "$count" "$dir"/callgrind.out.* |
        sed "s/^/$category\t$role\t/"
}

if [[ $mode == locks ]]; then
    mapfile -t categories < <("$build/bin/sep_info" -l |
                              awk 'NF == 0 { exit } { print $1 }')
    [[ ${#categories[@]} -gt 0 ]] || sep_die "sep_info -l printed nothing"
    {
        printf 'category\trole\tlibrary\tfunction\tper message\n'
        for category in "${categories[@]}"; do
            locks "$category" sender
            locks "$category" receiver
        done
    } | if [[ -n $tsv ]]; then cat; else
        awk -F '\t' '{ printf "%-15s %-9s %-24s %-36s %s\n", $1, $2, $3, $4, $5 }'
    fi
    exit
fi

if [[ $mode == connect ]]; then
    options=(--transport all --category dynamic --cq-sharing 1 --postlist 1
             --ranks "2,4,8,16" "${options[@]}")
fi
exec "$SEP_TOP/test/jobs/endpoints" --build-dir "$build" --programs "$programs" \
    --mpiexec "$mpiexec" "${options[@]}"
