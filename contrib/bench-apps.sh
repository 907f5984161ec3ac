#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Direct verbs against verbs under MPI programs, on the software mlx5 device
# (docs/applications.md): sep_mlx5 with UCX_SEP_API=dv, =wr and =verbs, and UCX's
# own rc_mlx5 and rc_verbs. Release builds, and UCX in release configuration.
#
#   contrib/bench-apps.sh --sweep         point to point and collectives by size:
#                                         instructions, then times
#   contrib/bench-apps.sh --netpipe       NetPIPE (Debian's netpipe-mpich2 and
#                                         netpipe-openmpi): times
#   contrib/bench-apps.sh --applications  LAMMPS (Debian's lammps) melting a
#                                         crystal, and HPC Challenge (hpcc), with
#                                         2 and 4 ranks: results that are right and
#                                         the same, times, work of the device
#
# Options: --tsv          row, unit, the five, and their ratios
#          --counts, --times  only these of --sweep
#          --only NAME    only this; may be repeated: pingpong, rate, barrier,
#                         bcast, allreduce, alltoall, allgather; mpich, openmpi;
#                         LAMMPS, HPCC
#          --quick        fewer sizes and runs, 2 ranks of applications
#          --library NAME mpich (default) or openmpi for --sweep
#          --count N      calls that are counted per operation (default 64)
#          --repeat N     runs of each time, of which the median counts (default 5)
#          --ucx PREFIX   a UCX that contrib/build-ucx-release.sh installed
#                         (default: build/ucx-release, built if it is not there)
#          --build DIR    a build directory to use as it is, on the UCX that it is
#                         for (default: build/bench, which is built)
#          --logs DIR     where to keep what callgrind writes (default: apps/ in
#                         the build directory)
#
# Instructions are those of rank 0, of MPI, UCP and the transport, without those of
# the device. pingpong: per message, of sender and receiver together. rate_send,
# rate_recv: per message in windows of 64, of either. Collectives: per call of 4
# ranks, of which the one that is counted comes last and so waits for nobody;
# bcast: on average over the roots.
#
# Times: us per message or call, as many ranks as there are processors, 2 to 4. The
# five alternate within a run. On the software device they are worth something only
# as ratios, and on a busy machine nothing.
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
groups=(build bench jobs)
while [[ $# -gt 0 ]]; do
    case $1 in
    --ucx)     ucx=$(cd "${2:?--ucx needs a directory}" && pwd); shift 2 ;;
    --build)   build=$(cd "${2:?--build needs a directory}" && pwd); shift 2 ;;
    --logs)    logs=$(realpath "${2:?--logs needs a directory}"); shift 2 ;;
    --only|--count|--repeat|--library)
               options+=("$1" "${2:?$1 needs a value}"); shift 2 ;;
    --tsv|--quick|--sweep|--counts|--times)
               options+=("$1"); shift ;;
    --netpipe|--applications)
               options+=("$1"); groups+=(apps); shift ;;
    --help|-h) usage; exit 0 ;;
    *)         usage >&2; exit 2 ;;
    esac
done

sep_prepare_bench "all bench-programs" "${groups[@]}"
[[ -z $ucx ]] || options+=(--ucx "$ucx")
exec "$SEP_TOP/test/jobs/apps" --build-dir "$build" \
    --log-dir "${logs:-$build/apps}" "${options[@]}"
