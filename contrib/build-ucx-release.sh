#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Build Debian's UCX source package in release configuration (no logging,
# assertions, parameter checks) and install it to PREFIX. It is the peer of
# every speed comparison, and what the transport is built for in one:
#
#   contrib/build-ucx-release.sh $PWD/build/ucx-release
#   contrib/configure-release --with-ucx=$PWD/build/ucx-release
#
# With --ucx-source WHAT, a source tree of UCX or an archive of one, that is built
# instead. Sonames are those of the packaged UCX, so packaged programs run on it with
# LD_LIBRARY_PATH. Running the script again does nothing if PREFIX is complete.
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=contrib/ucx.sh
. "$(dirname "$0")/ucx.sh"

source_dir=
if [[ ${1-} == --ucx-source && $# -gt 1 ]]; then
    source_dir=$(realpath -e "$2")
    shift 2
fi
if [[ $# != 1 || $1 == -* ]]; then
    echo "usage: ${0##*/} [--ucx-source WHAT] PREFIX" >&2
    exit 2
fi
mkdir -p "$1"
prefix=$(cd "$1" && pwd)

sep_install_deps build bench
work=$SEP_CACHE_DIR/ucx-release-build
if [[ -n $source_dir ]]; then
    stamp="$source_dir ${SEP_UCX_RELEASE[*]}"
    work=$prefix.build
else
    source_dir=$(sep_ucx_source)
    stamp="${source_dir##*/} ${SEP_UCX_RELEASE[*]}"
fi
if [[ $(cat "$prefix/.sep-ucx-release" 2> /dev/null) == "$stamp" ]]; then
    sep_say "$prefix is complete"
    exit 0
fi

# UCX's autogen.sh writes into its source tree; ours stays as it was unpacked.
rm -rf "$work"
mkdir -p "$work"
sep_ucx_copy "$source_dir" "$work/source"
# Compilers that are newer than a UCX warn of more in it, and have headers that
# include less of each other
sep_ucx_configure "$work" "$prefix" "${SEP_UCX_RELEASE[@]}" CFLAGS=-Wno-error \
    "CXX=g++ -include cstdint"
sep_ucx_make "$work"

echo "$stamp" > "$prefix/.sep-ucx-release"
rm -rf "$work"
sep_say "UCX in release configuration is in $prefix"
