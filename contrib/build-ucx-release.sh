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
# Sonames are those of the packaged UCX, so packaged programs run on it with
# LD_LIBRARY_PATH. Running the script again does nothing if PREFIX is complete.
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"

if [[ $# != 1 || $1 == -* ]]; then
    echo "usage: ${0##*/} PREFIX" >&2
    exit 2
fi
mkdir -p "$1"
prefix=$(cd "$1" && pwd)

flags=(--disable-logging --disable-debug --disable-assertions
       --disable-params-check --disable-static --enable-mt --with-verbs
       --without-go --without-java --disable-doxygen-doc)

sep_install_deps build bench
source_dir=$("$SEP_TOP/contrib/fetch-ucx-source.sh")

stamp="${source_dir##*/} ${flags[*]}"
if [[ $(cat "$prefix/.sep-ucx-release" 2> /dev/null) == "$stamp" ]]; then
    sep_say "$prefix is complete"
    exit 0
fi

# UCX's autogen.sh writes into its source tree; ours stays as it was unpacked.
work=$SEP_CACHE_DIR/ucx-release-build
rm -rf "$work"
mkdir -p "$work"
cp -a "$source_dir" "$work/source"
mkdir "$work/build"

step()
{
    local name=$1
    shift
    sep_say "UCX: $name"
    timeout --kill-after=30 1800 "$@" > "$work/$name.log" 2>&1 < /dev/null || {
        tail -n 40 "$work/$name.log" >&2
        sep_die "UCX: $name failed; see $work/$name.log"
    }
}

cd "$work/source"
step autogen ./autogen.sh
cd "$work/build"
step configure "$work/source/configure" --prefix="$prefix" "${flags[@]}"
step make make -j "$(sep_jobs)"
step install make install

echo "$stamp" > "$prefix/.sep-ucx-release"
rm -rf "$work"
sep_say "UCX in release configuration is in $prefix"
