#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Which layer spends the instructions of an 8-byte MPI_Put and of an MPI_Win_flush
# of one put: MPI, UCP, UCT, UCS, libibverbs and libmlx5. For UCX as it is, with the
# optimisations of src/ucp/opt and, if its source is given, a newer UCX; by MPICH and
# Open MPI; on rc_mlx5, sep_mlx5, and their kin that call libibverbs. All UCX are
# release builds. callgrind counts, on the software mlx5 device, whose own
# instructions are left out.
#
#   contrib/bench-layers.sh        a table
#   contrib/bench-layers.sh --tsv  operation, mpi, ucx, transport, total, and a column
#                                  for each layer
#
# Options: --newer SOURCE      source of a newer UCX, a source tree or an archive
#          --stock PREFIX  --patched PREFIX
#                              what contrib/build-ucx-opt.sh installed with and
#                              without --stock (default: build/ucx-stock and
#                              build/ucx-opt, built if they are not there)
#          --build DIR         a build directory to use as it is, for the UCX that is
#                              installed and no other ("system")
#          --only WORD         only rows with this MPI, UCX or transport; may be
#                              repeated, and then all must be there
#          --count N           calls per operation (default 64)
#          --quick             only MPICH, and no transport that calls libibverbs
#
# A put is from the call of MPI_Put until it returns, when it has been posted; a flush
# from the call of MPI_Win_flush until it returns, with as many polls as it takes if
# the adapter has answered before each of them. "system" is libc and the dynamic
# linker, "other" any other library. Transports "sep_mlx5 (wr)" and rc_verbs post by libibverbs.
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"

usage()
{
    sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'
}

tsv=
newer=
given=
count=64
quick=
only=()
stock=$SEP_TOP/build/ucx-stock
patched=$SEP_TOP/build/ucx-opt
while [[ $# -gt 0 ]]; do
    case $1 in
    --tsv)     tsv=1; shift ;;
    --quick)   quick=1; shift ;;
    --newer)   newer=$(realpath -e "${2:?--newer needs a source}"); shift 2 ;;
    --stock)   stock=$(cd "${2:?--stock needs a directory}" && pwd); shift 2 ;;
    --patched) patched=$(cd "${2:?--patched needs a directory}" && pwd)
               shift 2 ;;
    --build)   given=$(cd "${2:?--build needs a directory}" && pwd); shift 2 ;;
    --only)    only+=("${2:?--only needs a word}"); shift 2 ;;
    --count)   count=${2:?--count needs a number}; shift 2 ;;
    --help|-h) usage; exit 0 ;;
    *)         usage >&2; exit 2 ;;
    esac
done
[[ $count =~ ^[1-9][0-9]*$ ]] || sep_die "--count: '$count' is no number of calls"

# UCX, by the name in the table: its prefix, and the build of ours for it
names=(stock patched)
declare -A prefix=([stock]=$stock [patched]=$patched [system]="")
declare -A build=([stock]=$SEP_TOP/build/bench-ucp
                  [patched]=$SEP_TOP/build/bench-ucp [system]=$given)
# Standard output is for the result.
if [[ -n $given ]]; then
    names=(system)
else
    {
        sep_install_deps build bench jobs
        sep_build_stock_and_patched "$stock" "$patched"
        sep_build "${build[stock]}" "all bench-programs" \
            "$SEP_TOP/contrib/configure-release" --with-ucx="$stock" \
            --disable-gtest
        if [[ -n $newer ]]; then
            name=$(sep_source_name "$newer")
            names+=("$name")
            prefix[$name]=$SEP_TOP/build/ucx-release-$name
            build[$name]=${prefix[$name]}-bench
            sep_build_release "${build[$name]}" "all bench-programs" \
                "${prefix[$name]}" "$newer"
        fi
    } >&2
fi
results=$(mktemp -d "${TMPDIR:-/tmp}/sep-layers.XXXXXX")
trap 'rm -rf "$results"' EXIT

for mpi in mpich openmpi; do
    "mpicc.$mpi" -std=gnu11 -O2 -g -o "$results/mpi_insn.$mpi" \
        "$SEP_TOP/bench/mpi_insn.c" "$SEP_TOP/bench/sim_uar.c" \
        -Wl,--export-dynamic -ldl >&2
done

# Which transport a name of the table is, for a UCX
# usage: choose UCX TRANSPORT; sets tls, api and launcher
choose()
{
    tls=${2% (*}
    api=dv
    launcher=()
    case $2 in
    rc_mlx5)  tls=rc_mlx5,ud_mlx5:aux ;;
    rc_verbs) tls=rc_verbs,ud_verbs:aux ;;
    *)        [[ $2 != *"(wr)" ]] || api=wr
              # A module of the UCX that we build; others need it loaded
              [[ $1 == stock || $1 == patched ]] ||
                  launcher=("${build[$1]}/bin/sep-run" --only) ;;
    esac
}

# usage: measure MPI UCX TRANSPORT; prints lines of TSV
measure()
{
    local mpi=$1 ucx=$2 transport=$3 dir libdir program tls api
    local -a launcher mpiexec
    choose "$ucx" "$transport"
    program=$results/mpi_insn.$mpi
    dir=$results/runs/$mpi.$ucx.${transport// /}
    rm -rf "$dir"
    mkdir -p "$dir"
    libdir=
    [[ -z ${prefix[$ucx]} ]] ||
        libdir=$(dirname "$(find "${prefix[$ucx]}" -name libucp.so.0 |
                            head -n 1)")
    mpiexec=(mpiexec.mpich -bind-to none)
    [[ $mpi == mpich ]] ||
        mpiexec=(mpiexec.openmpi --oversubscribe --bind-to none
                 --mca pml ucx --mca osc ucx --mca btl self
                 --mca pml_ucx_tls any --mca pml_ucx_devices any
                 --mca opal_common_ucx_tls any
                 --mca opal_common_ucx_devices any)

    sep_say "$mpi, $ucx UCX, $transport" >&2
    # Only rank 0 is counted. MPICH would use its own shared memory, and Open MPI
    # refuses to run as root.
    if ! LD_LIBRARY_PATH=$libdir${libdir:+:}${LD_LIBRARY_PATH-} \
             UCX_TLS=$tls UCX_SEP_API=$api \
             UCX_WARN_UNUSED_ENV_VARS=n MPIR_CVAR_NOLOCAL=1 \
             OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
             timeout --kill-after=15 300 \
             "${build[$ucx]}/bin/mlx5sim-run" --private -- "${launcher[@]}" \
             "${mpiexec[@]}" -n 1 \
             valgrind --tool=callgrind -q \
             --callgrind-out-file="$dir/callgrind.out" \
             --instr-atstart=no --collect-atstart=no \
             "--toggle-collect=measure_*" \
             --px-default=allregs-at-mem-access \
             --px-file-backed=allregs-at-mem-access "$program" "$count" \
             : -n 1 "$program" > "$dir/counts" 2> "$dir/log" < /dev/null; then
        tail -n 30 "$dir/log" >&2
        sep_die "$mpi on $ucx UCX could not be measured on $transport"
    fi

    "$SEP_TOP/bench/callgrind_insn.py" layers "$dir/counts" \
        "$dir"/callgrind.out* |
        awk -F '\t' -v OFS='\t' -v mpi="$mpi" -v ucx="$ucx" \
            -v transport="$transport" '
            NR > 1 { $1 = $1 OFS mpi OFS ucx OFS transport; print }'
}

# Whether a row is wanted
wanted()
{
    local word
    for word in "${only[@]}"; do
        [[ $'\n'$1$'\n'$2$'\n'$3$'\n' == *$'\n'"$word"$'\n'* ]] || return 1
    done
}

mpis=(mpich openmpi)
transports=(rc_mlx5 sep_mlx5 rc_verbs "sep_mlx5 (wr)")
if [[ -n $quick ]]; then
    mpis=(mpich)
    transports=(rc_mlx5 sep_mlx5)
fi

table()
{
    local mpi ucx transport
    printf 'operation\tmpi\tucx\ttransport\t%s\n' \
        "$(tr ' ' '\t' <<< "total MPI UCP UCT UCS verbs system other")"
    for mpi in "${mpis[@]}"; do
        for ucx in "${names[@]}"; do
            for transport in "${transports[@]}"; do
                if wanted "$mpi" "$ucx" "$transport"; then
                    measure "$mpi" "$ucx" "$transport"
                fi
            done
        done
    done
}

if [[ -n $tsv ]]; then
    table
else
    table | awk -F '\t' '{ printf "%-14s %-8s %-8s %-17s", $1, $2, $3, $4
                           for (i = 5; i <= NF; ++i) printf "%9s", $i
                           print "" }'
fi
