#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Build the Debian packages ucx-sep and mlx5sim, as packaging/debian has them, for
# the Debian of this machine, and have lintian look at them.
#
#   contrib/build-deb.sh [--built BUILD] [DIRECTORY]
#
# They are made of the archive that contrib/dist.sh makes, in DIRECTORY (build/deb
# by default), and are left there. SEP_UCX_SOURCE may name the source of UCX. It
# ends with an error if lintian has one, or a warning.
#
# With --built, nothing is compiled: what is in BUILD, such as build/demo, becomes
# the packages, with that build's options instead of Debian's. It is not changed.
#
# For another Debian, run it in one (the checkout's build/ is ROOT-build there):
#   contrib/debian-root.sh --groups "build package" ROOT contrib/build-deb.sh
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"

built=
while [[ ${1:-} == -* ]]; do
    case $1 in
    --help|-h) sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'; exit 0 ;;
    --built)   built=$(realpath -e "${2:?--built needs a directory}"); shift 2 ;;
    *)         sep_die "unknown option $1; see --help" ;;
    esac
done

out=$(realpath -m "${1:-$SEP_TOP/build/deb}")

sep_install_deps build package
sep_use_ccache
if [[ -n ${CCACHE_BASEDIR-} ]]; then
    # debhelper has a home of its own
    CCACHE_DIR=$(ccache --get-config cache_dir)
    export CCACHE_DIR
fi
if [[ -n ${SEP_UCX_SOURCE-} ]]; then
    SEP_UCX_SOURCE=$(realpath "$SEP_UCX_SOURCE")
    export SEP_UCX_SOURCE
fi

rm -rf "$out"/sep-*/ "$out"/*.deb "$out"/*.changes "$out"/*.buildinfo
if [[ -n $built ]]; then
    [[ -e $built/config.status ]] || sep_die "$built: nothing is configured there"
    copy=$out/sep-built
    mkdir -p "$copy"
    cp -r "$SEP_TOP/packaging/debian" "$copy/debian"
    # As deep as the build, whose paths may be relative. What has paths of the
    # installation in it is made again, for packages, if the Makefile is newer.
    SEP_BUILT=$built.deb
    export SEP_BUILT
    rm -rf "$SEP_BUILT"
    trap 'rm -rf "$SEP_BUILT"' EXIT
    cp -a "$built" "$SEP_BUILT"
    touch "$SEP_BUILT/Makefile"
else
    archive=$("$SEP_TOP/contrib/dist.sh" "$out/dist")
    tar -xf "$archive" -C "$out"
    copy=$out/$(basename "$archive" .tar.gz)
    cp -r "$copy/packaging/debian" "$copy/debian"
fi

cd "$copy"
sep_step "Debian packages" "$out" dpkg-buildpackage \
    dpkg-buildpackage -b -us -uc -j"$(sep_jobs)"
# The project has no address, and these are not uploaded to Debian
sep_step "Debian packages" "$out" lintian \
    lintian --allow-root --fail-on error,warning --suppress-tags \
    bogus-mail-host,bogus-mail-host-in-debian-changelog,\
initial-upload-closes-no-bugs "$out"/*.deb
cat "$out/lintian.log"
ls "$out"/*.deb
