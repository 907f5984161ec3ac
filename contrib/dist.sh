#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Make the archive of a release, sep-VERSION.tar.gz, and print where it is.
#
#   contrib/dist.sh [DIRECTORY]   in DIRECTORY (build/dist by default), of the
#                                 files that are here
#   contrib/dist.sh --check       of two clones of what is committed, with other
#                                 umasks and times: the bytes have to be the same
#
# Nothing is compiled, and no UCX is needed.
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"

# One archive of a clone, whose files are as old as the number of days.
# usage: of_clone DIRECTORY UMASK DAYS
of_clone()
{
    umask "$2"
    git -c safe.directory='*' clone -q "$SEP_TOP" "$1"
    find "$1" -path "$1/.git" -prune -o -type f \
        -exec touch -d "$3 days ago" {} +
    "$1/contrib/dist.sh" > "$1.log" 2>&1 || {
        tail -n 20 "$1.log" >&2
        sep_die "no archive of the clone: see above"
    }
}

check()
{
    local one two
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    (of_clone "$work/one" 022 0)
    (of_clone "$work/two-of-another-name" 077 40)
    one=("$work"/one/build/dist/sep-*.tar.gz)
    two=("$work"/two*/build/dist/sep-*.tar.gz)
    (cd "${one[0]%/*}" && sha256sum "${one[0]##*/}")
    cmp "${one[0]}" "${two[0]}" ||
        sep_die "another archive of the same commit has other bytes"
}

case ${1:-} in
--help|-h) sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'; exit 0 ;;
--check)   check; exit 0 ;;
esac

out=$(realpath -m "${1:-$SEP_TOP/build/dist}")
mkdir -p "$out"
sep_autogen >&2
cd "$out"
rm -f sep-*.tar.gz
sep_step "archive" "$out" configure "$SEP_TOP/configure" --without-ucx \
    --disable-gtest >&2
sep_step "archive" "$out" dist make dist-gzip >&2
ls "$out"/sep-*.tar.gz
