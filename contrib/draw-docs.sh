#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Make the pictures of docs/pictures, with graphviz (contrib/deps.txt, group
# docs): first the .dot files that are written from tables, then of each .dot
# file the .svg beside it. Both are committed.
set -euo pipefail
cd "$(dirname "$0")/.."

# What graphviz adds that is not of the picture: its version, the address of a
# document type, names of nodes, a namespace that is not used.
# usage: strip_svg < IN > OUT
strip_svg()
{
    python3 -c '
import re, sys
text = sys.stdin.read()
text = re.sub(r"<!DOCTYPE.*?>\n|<!--.*?-->\n?", "", text, flags=re.S)
text = re.sub(r"<title>.*?</title>\n", "", text, flags=re.S)
sys.stdout.write(re.sub(r" xmlns:xlink=\"[^\"]*\"", "", text))'
}

contrib/draw_house.py src/uct/ib/sep > docs/pictures/transport.dot
contrib/draw_house.py src/sim > docs/pictures/device.dot
for dot in docs/pictures/*.dot; do
    dot -Tsvg "$dot" | strip_svg > "${dot%.dot}.svg"
done
