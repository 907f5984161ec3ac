#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Generate ./configure and the Makefile.in files from their sources.
set -e

cd "$(dirname "$0")"

for tool in autoreconf:autoconf automake:automake libtoolize:libtool \
            pkg-config:pkg-config; do
    if ! command -v "${tool%%:*}" > /dev/null 2>&1; then
        echo "autogen.sh: ${tool%%:*} is missing:" \
             "install the Debian package ${tool##*:}" >&2
        exit 1
    fi
done

autoreconf --install --warnings=all
echo "Now run ./configure, contrib/configure-devel or" \
     "contrib/configure-release (out-of-tree builds work too)."
