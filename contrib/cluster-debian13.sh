#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Build the project in a Debian 13 and run the tests between nodes there, with its
# UCX 1.18.1, MPICH 4.2.1 and Open MPI 5.
#
#   contrib/cluster-debian13.sh DIRECTORY [ARGUMENT...]
#
# DIRECTORY is the root that contrib/debian-root.sh makes or has made. The
# arguments are those of test/cluster/run, by default "jobs". SEP_UCX_SOURCE has to
# name the source of UCX 1.18.1 if the mirror of apt does not have it. It needs
# root.
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"

case ${1:---help} in
-*) sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'; exit 0 ;;
esac
root=$1
shift
[[ $# != 0 ]] || set -- jobs
options=()
if [[ -n ${SEP_UCX_SOURCE-} ]]; then
    SEP_UCX_SOURCE=$(realpath "$SEP_UCX_SOURCE")
    export SEP_UCX_SOURCE
    options+=(--bind "$(dirname "$SEP_UCX_SOURCE")")
fi

sep_use_ccache
# shellcheck disable=SC2016 # expanded in the root
exec "$SEP_TOP/contrib/debian-root.sh" "${options[@]}" "$root" bash -euc '
    . contrib/lib.sh
    sep_use_ccache
    [[ -x configure && Makefile.in -nt Makefile.am ]] || ./autogen.sh
    mkdir -p build/cluster
    cd build/cluster
    [[ -e config.status ]] || ../../configure --enable-werror
    make -j"$(nproc)" all job-programs
    SEP_BUILD_DIR=$PWD exec ../../test/cluster/run "$@"' bash "$@"
