#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Kernels of applications with an interface per thread, on the software device:
# DGEMM on a global array and the 5-point stencil, on UCP, MPICH, Open MPI and
# OpenSHMEM (docs/kernels.md). All data is compared with a serial run; what the
# processes take of the device with what sep_info -p plans for as many workers and,
# where it has the same, with the 2018 paper. Fails if anything differs.
#
#   contrib/kernels.sh            one-sided UCP with all categories, everything
#                                 else with 2xdynamic; all shapes
#   contrib/kernels.sh --tsv      the same with tabs, a line per job
#   contrib/kernels.sh --quick    small shapes, few steps: a minute or two
#   contrib/kernels.sh --kernel stencil --api ucp --shape 4.4 --sided 2 ...
#                                 some of it
#
# A shape is processes.threads of each of two nodes, both of which are this machine.
# Rates are predictions of a model (docs/model.md), not measured. Where the installed
# MPICH has a single interface (Debian 12), contrib/build-mpich.sh builds one with
# more. Options:
#
#   --mpich PREFIX   an MPICH to use ("" for the installed one)
#   --build DIR      a build directory to use as it is (default: build/release)
#
# All others, and the columns, are those of test/jobs/app_kernels:
#
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"

usage()
{
    sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'
}

build=
mpich=auto
options=()
while [[ $# -gt 0 ]]; do
    case $1 in
    --mpich)   mpich=${2?--mpich needs a directory}; shift 2 ;;
    --build)   build=$(cd "${2:?--build needs a directory}" && pwd); shift 2 ;;
    --help|-h) usage; mpich=; options=(--help); break ;;
    *)         options+=("$1"); shift ;;
    esac
done

if [[ ${options[0]-} != --help ]]; then
    # Standard output is for the result.
    {
        sep_install_deps build bench jobs
        if [[ -z $build ]]; then
            build=$SEP_TOP/build/release
            sep_build "$build" "all job-programs" \
                "$SEP_TOP/contrib/configure-release" --disable-gtest
        fi
        if [[ $mpich == auto ]]; then
            mpich=
            if "$SEP_TOP/contrib/build-mpich.sh" --needed; then
                mpich=$SEP_TOP/build/mpich
                "$SEP_TOP/contrib/build-mpich.sh" --prefix "$mpich"
            fi
        fi
    } >&2
    if [[ -n $mpich ]]; then
        # For this MPI library, next to those of the build for others.
        programs=$build/app_kernels
        mkdir -p "$programs"
        "$mpich/bin/mpicc" -std=gnu11 -O2 -g -I "$SEP_TOP/test" \
            -o "$programs/app_kernels.mpich" "$SEP_TOP/test/mpi/app_kernels.c" \
            -lpthread -lm "-Wl,-rpath,$mpich/lib" >&2
        options+=(--mpich "$mpich" --programs "$programs")
    fi
    if [[ -n $mpich ]] || ! "$SEP_TOP/contrib/build-mpich.sh" --needed; then
        options+=(--mpich-interfaces)
    fi
    options+=(--build-dir "$build")
fi
exec "$SEP_TOP/test/jobs/app_kernels" "${options[@]}"
