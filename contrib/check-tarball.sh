#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Check that the tarball has every file that git has.
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
make -C "$build" --no-print-directory distdir > "$build/distdir.log" 2>&1 || {
    tail -n 20 "$build/distdir.log" >&2
    exit 1
}
distdir=$(echo "$build"/sep-*/)
absent=$(git -c safe.directory='*' -C "$SEP_TOP" ls-files |
    grep -v -E "$not_in_tarball" |
    while IFS= read -r file; do
        [[ -e $distdir/$file ]] || echo "$file"
    done)
chmod -R u+w "$distdir"
rm -rf "$distdir"
if [[ -n $absent ]]; then
    printf 'not in the tarball (see EXTRA_DIST and the sources.am):\n%s\n' \
        "$absent" >&2
    exit 1
fi
