#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Check that the tarball has every file that git has, and that another one made with
# another umask has the same bytes (contrib/dist.sh --check compares those of two
# clones).
#
#   contrib/check-tarball.sh BUILD-DIRECTORY
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"

build=${1:?which build directory?}
if [[ ! -e $SEP_TOP/.git ]]; then
    echo "not a checkout: nothing to compare with"
    exit 0
fi

# Of use in a checkout only
not_in_tarball='^(\.gitignore|\.gitattributes)$'

# make distcheck may run at the same time, with a lock on this file: the
# directory is the same
exec 9> "$build/distdir.lock"
flock 9
archive()
{
    umask "$1"
    make -C "$build" --no-print-directory dist-gzip \
        > "$build/dist.log" 2>&1 || {
        tail -n 20 "$build/dist.log" >&2
        return 1
    }
    sha256sum < "$(echo "$build"/sep-*.tar.gz)"
}
rm -f "$build"/sep-*.tar.gz
one=$(archive 022)
two=$(archive 077)
if [[ $one != "$two" ]]; then
    echo "the tarball's bytes depend on the umask" >&2
    exit 1
fi
packed=$(tar -tf "$(echo "$build"/sep-*.tar.gz)" | sed 's|^[^/]*/||')
absent=$(git -c safe.directory='*' -C "$SEP_TOP" ls-files |
    { grep -v -E "$not_in_tarball" || true; } |
    LC_ALL=C sort | LC_ALL=C comm -23 - <(LC_ALL=C sort <<< "$packed"))
if [[ -n $absent ]]; then
    printf 'not in the tarball (see EXTRA_DIST and the sources.am):\n%s\n' \
        "$absent" >&2
    exit 1
fi
