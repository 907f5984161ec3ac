#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What grows with the number of peers and of processes, for sep_mlx5 (direct verbs
# and libibverbs), rc_mlx5 and rc_verbs, on the software mlx5 device; release
# builds and UCX in release configuration.
#
#   contrib/bench-growth.sh --peers  one interface with 1, 2, 4 .. 1024 peers: its
#                                    process's memory, queue pairs, and the
#                                    instructions of connecting
#   contrib/bench-growth.sh --init   MPI jobs of 2 to 32 processes: from MPI_Init to
#                                    the first message, and queue pairs
#   contrib/bench-growth.sh --heap   the heap of rank 0 over time (massif) in jobs
#                                    of 2 to 32 processes
#
# Options: --ucp              --peers: one worker of UCP instead
#          --tsv              with tabs
#          --quick            fewer peers, processes and libraries
#          --only TRANSPORT   sep_mlx5, "sep_mlx5 wr", rc_mlx5 or rc_verbs; may be
#                             repeated (default: all; of --init, sep_mlx5 and
#                             rc_mlx5)
#          --count N          --peers: so many at most
#          --ranks LIST       --init, --heap: other numbers of processes
#          --library LIST     --init, --heap: mpich, openmpi (default: both; of
#                             --heap, mpich)
#          --repeat N         --init: runs of each, of which the median counts
#          --ucx PREFIX       a UCX that contrib/build-ucx-release.sh installed
#                             (default: build/ucx-release, built if it is not there)
#          --build DIR        a build directory to use as it is, on the UCX that it
#                             is for (default: build/bench, which is built)
#          --logs DIR         where to keep what the tools write (default: growth/
#                             in the build directory)
#
# --peers: endpoints exist from the start, and "used" of them have sent a message.
# heap, mapped, anonymous: bytes of the process beyond those of the open interface;
# in use on the heap as malloc rounds it up, mapped outside of it, and of both the
# part that was ever touched and belongs to the process alone. qps, cqs, uars: of
# the process. control: messages on UD queue pairs, which connect; where endpoints
# are connected by hand, as by rc_mlx5 here, the program carries the addresses.
# instructions: of all threads of the process for each endpoint more than in the
# row above, without those of the device and of waiting. A worker of UCP takes much
# with its first endpoint, and with the first that is used.
#
# --init: init_ms is the time of MPI_Init, first_ms that from there until the first
# message of a ring has come, of the slowest rank; medians of runs that alternate,
# and ratio is that of their sums, to the last transport's. On fewer processors than
# processes only the ratio says something. instructions: of rank 0 for both, as
# above, but for what it polls while it waits for others. qps: of a process, after
# MPI_Init, after a ring, and after each rank has sent to each other.
#
# --heap: bytes of rank 0, with malloc's own; at moments that the program names, the
# peak, and over time in percent of all instructions.
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"

usage()
{
    sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'
}

build=
logs=
mode=
ucx=
options=()
groups=(build bench)
targets="all bench-programs"
while [[ $# -gt 0 ]]; do
    case $1 in
    --ucx)     ucx=$(cd "${2:?--ucx needs a directory}" && pwd); shift 2 ;;
    --build)   build=$(cd "${2:?--build needs a directory}" && pwd); shift 2 ;;
    --logs)    logs=$(realpath "${2:?--logs needs a directory}"); shift 2 ;;
    --only|--count|--ranks|--library|--repeat)
               options+=("$1" "${2:?$1 needs a value}"); shift 2 ;;
    --tsv|--quick|--ucp) options+=("$1"); shift ;;
    --peers)   mode=$1; options+=("$1"); shift ;;
    --init|--heap) mode=$1; options+=("$1"); groups+=(jobs)
               targets+=" job-programs"; shift ;;
    --help|-h) usage; exit 0 ;;
    *)         usage >&2; exit 2 ;;
    esac
done
if [[ -z $mode ]]; then
    echo "${0##*/}: one of --peers, --init and --heap is needed" >&2
    exit 2
fi

sep_prepare_bench "$targets" "${groups[@]}"
: "${ucx:=$(sed -n 's/^UCX_PREFIX = *//p' "$build/Makefile")}"
[[ -z $ucx ]] || options+=(--ucx "$ucx")
exec "$SEP_TOP/test/jobs/growth" --build-dir "$build" \
    --log-dir "${logs:-$build/growth}" "${options[@]}"
