#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# One installation of the transport, with a module for each of several UCX, and jobs
# with each of these. See docs/ucx-releases.md.
#
#   contrib/one-installation.sh [--work DIR] ARCHIVE...
#
#   contrib/one-installation.sh ucx-1.16.0.tar.xz ucx-1.20.1.tar.xz
#
# An ARCHIVE of UCX's source, or a source tree, is built by
# contrib/build-ucx-release.sh, in DIR/ucx (default of DIR: build/one-installation).
# The transport is built in DIR/sep for all of them and for the installed UCX, and
# installed in DIR/prefix. With each UCX, the installed sep-run has ucx_info list the
# transport, and test/jobs/main_job runs rows of ucx_perftest, Debian's MPICH and
# Open MPI on it. Exit status is 0 if all passed.
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=contrib/ucx.sh
. "$(dirname "$0")/ucx.sh"

work=$SEP_TOP/build/one-installation
while [[ ${1:-} == -* ]]; do
    case $1 in
    --work)    work=${2:?--work needs a directory}; shift 2 ;;
    --help|-h) sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'; exit 0 ;;
    *)         echo "${0##*/}: unknown option $1; see --help" >&2; exit 2 ;;
    esac
done
[[ $# != 0 ]] || sep_die "which UCX? see --help"
work=$(realpath -m "$work")
sep_use_ccache

rows=("ucx_info lists it" "UCT put_lat short 8 B" "UCT am_lat short 8 B"
      "UCT am_lat bcopy 4 KB" "UCT put_lat zcopy 64 KB" "UCT get bcopy 8 B"
      "UCT fadd 8 B" "UCP tag_lat 8 B" "UCP tag_lat 64 KB" "UCP ucp_put_lat 8 B"
      "UCP ucp_get 64 KB" "UCP ucp_am_lat 8 B" "UCP ucp_am_lat 64 KB"
      "UCP ucp_fadd 8 B" "UCP stream_bw 64 KB" "MPICH 2 ranks p2p"
      "MPICH 4 ranks collectives" "MPICH 2 ranks rma" "Open MPI 2 ranks p2p"
      "Open MPI 4 ranks collectives" "Open MPI 2 ranks rma"
      "OpenSHMEM 2 ranks put_get")

# usage: with_ucx PREFIX COMMAND...; no PREFIX: the installed UCX
with_ucx()
{
    local prefix=$1
    shift
    if [[ -n $prefix ]]; then
        LD_LIBRARY_PATH=$prefix/lib PATH=$prefix/bin:$PATH "$@"
    else
        "$@"
    fi
}

# usage: run_jobs NAME [PREFIX]
run_jobs()
{
    local name=$1 prefix=${2:-} log=$work/$1.log listed=no options=() row
    for row in "${rows[@]}"; do
        options+=(--row "$row")
    done
    with_ucx "$prefix" "$work/prefix/bin/mlx5sim-run" --private \
        "$work/prefix/bin/sep-run" ucx_info -d > "$log.info" 2>&1 || true
    ! grep -q 'Transport: sep_mlx5' "$log.info" || listed=yes
    with_ucx "$prefix" "$SEP_TOP/test/jobs/main_job" --build-dir "$work/sep" \
        --quick --transport sep_mlx5 "${options[@]}" > "$log" 2>&1 ||
        failed=1
    [[ $listed == yes ]] || failed=1
    printf '%-8s listed: %-4s %s\n' "$name" "$listed" "$(tail -n 1 "$log")"
}

sources=
releases=()
for archive in "$@"; do
    archive=$(realpath -e "$archive")
    tree=$(sep_ucx_tree "$archive")
    release=$(sep_ucx_release "$tree")
    "$SEP_TOP/contrib/build-ucx-release.sh" --ucx-source "$archive" \
        "$work/ucx/$release" >&2
    sources+=${sources:+,}$archive
    releases+=("$release")
done
mkdir -p "$work"
sep_build "$work/sep" "all job-programs install" \
    "$SEP_TOP/contrib/configure-release" --prefix="$work/prefix" --disable-gtest \
    --with-ucx-source="$sources" >&2

failed=0
run_jobs "$(pkg-config --modversion ucx)"
for release in "${releases[@]}"; do
    run_jobs "$release" "$work/ucx/$release"
done
exit $failed
