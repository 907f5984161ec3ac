#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Build the MPICH of this distribution from its source package, with more than
# one virtual communication interface (VCI), so that threads can have UCX
# workers of their own, and install it.
#
#   contrib/build-mpich.sh                 to build/mpich
#   contrib/build-mpich.sh --vcis 16       at most so many interfaces (default 64)
#   contrib/build-mpich.sh --prefix DIR    install it there
#   contrib/build-mpich.sh --source DIR    use this source (default: fetched with
#                                          apt, see fetch-source.sh)
#   contrib/build-mpich.sh --needed        exit status 0 if the installed MPICH
#                                          has one interface only, 1 if it has
#                                          more
#
# Debian 12's MPICH 4.0.2 is built for one interface: it ends in MPI_Init if
# MPIR_CVAR_CH4_NUM_VCIS is above 1. Debian 13's 4.2.1 has up to 64 as it is. The
# result uses the UCX of the system, and differs from Debian's package in little
# else: no Fortran, no C++, no MPI-IO, and derived types are packed by code that
# is not optimised.
# Compile with PREFIX/bin/mpicc and run with PREFIX/bin/mpiexec. Programs keep the
# place of the library (RUNPATH) and find it without LD_LIBRARY_PATH, which would
# come first:
#
#   MPIR_CVAR_CH4_NUM_VCIS=8 PREFIX/bin/mpiexec -n 2 sep-run ./program
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"

usage()
{
    sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'
}

prefix=$SEP_TOP/build/mpich
source_dir=
vcis=64
needed=
while [[ $# -gt 0 ]]; do
    case $1 in
    --prefix) mkdir -p "${2:?--prefix needs a directory}"
              prefix=$(cd "$2" && pwd); shift 2 ;;
    --source) source_dir=$(cd "${2:?--source needs a directory}" && pwd)
              shift 2 ;;
    --vcis)   vcis=${2:?--vcis needs a number}; shift 2 ;;
    --needed) needed=y; shift ;;
    --help|-h) usage; exit 0 ;;
    *)        usage >&2; exit 2 ;;
    esac
done

[[ $vcis =~ ^[0-9]+$ && $vcis -ge 2 && $vcis -le 64 ]] ||
    sep_die "--vcis $vcis: from 2 to 64 are possible"

# The number of interfaces is not among what mpichversion prints. The variable is
# there in either case, and one that is too large ends the program.
if [[ -n $needed ]]; then
    command -v mpichversion > /dev/null 2>&1 ||
        sep_die "mpichversion is missing: install the Debian package mpich"
    ! mpichversion | grep -q -- '--with-ch4-max-vcis=' || exit 1
    version=$(mpichversion | sed -n 's/^MPICH Version:[[:space:]]*//p')
    # From 4.1 on the default is 64
    [[ $(printf '%s\n4.1\n' "$version" | sort -V | head -n 1) != 4.1 ]] ||
        exit 1
    exit 0
fi

sep_install_deps build jobs >&2
[[ -n $source_dir ]] ||
    source_dir=$("$SEP_TOP/contrib/fetch-source.sh" --of libmpich12)
# Debian's own options, as far as they are about what is built here. Without
# --with-wrapper-dl-type=none, which is one of them: mpicc gives programs the place
# of this library.
options=(--prefix="$prefix" --with-device=ch4:ucx --with-ucx=/usr
         --enable-thread-cs=per-vci --with-ch4-max-vcis="$vcis"
         --with-pm=hydra --with-hwloc-prefix=/usr
         --enable-shared --disable-static --without-yaksa --enable-fast=O2
         --disable-fortran --disable-cxx --disable-romio
         --disable-maintainer-mode --disable-dependency-tracking)
ucx=$(pkg-config --modversion ucx)
stamp="$source_dir $ucx ${options[*]}"
if [[ $(cat "$prefix/.sep-complete" 2> /dev/null) == "$stamp" ]]; then
    sep_say "$prefix is up to date" >&2
    exit 0
fi

work=$prefix/.build
rm -rf "$work" "$prefix/.sep-complete"
mkdir -p "$work/build"
{
    (
        cd "$work/build" || exit
        sep_step MPICH "$work" configure "$source_dir/configure" \
            "${options[@]}"
    )
    # The engine for derived types is 400 files of generated code, which take an
    # hour to optimise
    # shellcheck disable=SC2046 # one word or none
    sep_step MPICH "$work" datatypes make -C "$work/build/modules/yaksa" \
        $(sep_parallel) "CFLAGS=-std=c11 -fvisibility=hidden -O0"
    # shellcheck disable=SC2046
    sep_step MPICH "$work" make make -C "$work/build" $(sep_parallel)
    sep_step MPICH "$work" install make -C "$work/build" install
} >&2
rm -rf "$work"
echo "$stamp" > "$prefix/.sep-complete"
sep_say "MPICH with up to $vcis interfaces is in $prefix" >&2
