#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The eager channel (UCX_SEP_EAGER=y, docs/eager.md) beside send/receive, on the
# software mlx5 device: instructions counted by callgrind, what the device reads
# and writes, and times. Both are measured in the same run, on release builds and
# UCX in release configuration.
#
#   contrib/bench-eager.sh             a table, rc_mlx5 beside it
#   contrib/bench-eager.sh --tsv       row, send_receive, ring, ring/send_receive
#   contrib/bench-eager.sh --polling   idle progress by the number of rings
#   contrib/bench-eager.sh --jobs      MPICH, Open MPI and OpenSHMEM: programs of
#                                      test/mpi and test/shmem, in us or millions
#                                      of messages per second
#   contrib/bench-eager.sh --lengths   by the length of rings (2 to 100), percent of
#                                      the messages for a ring that found a slot:
#                                      kernels of test/mpi/kernels.c, and LAMMPS
#                                      (Debian's lammps) melting a crystal if it is
#                                      installed
#
# Options: --only ROW     only this row; may be repeated (not of --jobs)
#          --quick        fewer runs, fewer rings
#          --count N      calls that are counted per operation (default 256)
#          --repeat N     runs of each time, of which the median counts
#          --ucx PREFIX   a UCX that contrib/build-ucx-release.sh installed
#                         (default: build/ucx-release, built if it is not there)
#          --build DIR    a build directory to use as it is, on the UCX that it is
#                         for (default: build/bench, which is built)
#          --logs DIR     where to keep what the programs print (default: eager/ in
#                         the build directory)
#
# am_short, am_pingpong: 8 bytes of UCT, in one direction and back and forth;
# am_bcopy_1k: 1 KB in one direction, with the copy; tag_pingpong: 8 bytes of UCP.
# _send: instructions of the call that sends; _recv: of progress that receives, and
# of posting the receive where there is one. _dma_reads, _dma_writes, _mmio: of the
# device for a message, both sides together, requests and completions included.
# poll_per_ring: instructions that each ring adds to progress with nothing to do.
# That of send_receive is all of progress with nothing to do, and the ratio is by
# that.
# am_lat, am_lat_1k (8 bytes, 1 KB), tag_lat: us, by ucx_perftest between two
# processes; am_rate, tag_rate: millions of 8-byte messages per second. Runs of
# send/receive and ring alternate. On a busy machine, only the counts are worth
# anything.
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"

usage()
{
    sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'
}

build=
logs=
ucx=
options=()
groups=(build bench)
targets="all bench-programs"
while [[ $# -gt 0 ]]; do
    case $1 in
    --ucx)     ucx=$(cd "${2:?--ucx needs a directory}" && pwd); shift 2 ;;
    --build)   build=$(cd "${2:?--build needs a directory}" && pwd); shift 2 ;;
    --logs)    logs=$(realpath "${2:?--logs needs a directory}"); shift 2 ;;
    --only|--count|--repeat)
               options+=("$1" "${2:?$1 needs a value}"); shift 2 ;;
    --tsv|--quick|--polling) options+=("$1"); shift ;;
    --jobs|--lengths) options+=("$1"); groups+=(jobs); targets+=" job-programs"
               shift ;;
    --help|-h) usage; exit 0 ;;
    *)         usage >&2; exit 2 ;;
    esac
done

sep_prepare_bench "$targets" "${groups[@]}"
[[ -z $ucx ]] || options+=(--ucx "$ucx")
exec "$SEP_TOP/test/jobs/eager" --build-dir "$build" \
    --log-dir "${logs:-$build/eager}" "${options[@]}"
