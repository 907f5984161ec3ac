#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Checks of the sources themselves.
#
#   check-sources.sh           all that follow
#   check-sources.sh shell     shellcheck on every shell script
#   check-sources.sh hosts     no network host is named: packages and sources
#                              come from wherever this machine's apt gets them
#   check-sources.sh foreign   no file of UCX or rdma-core, no build output
#   check-sources.sh licenses  every source file carries the license line
#   check-sources.sh layers    includes are as docs/architecture.md allows
#   check-sources.sh editorconfig
#                              files are as .editorconfig says
#   check-sources.sh format    C files are as .clang-format says, as far as
#                              contrib/check_format.py compares them
#   check-sources.sh pictures  those generated from tables match the tables
#   check-sources.sh --list    the names of these checks
set -euo pipefail
cd "$(dirname "$0")/.."

# The files of the project: what git has, or else what is in the tarball.
project_files()
{
    if [[ -e .git ]]; then
        git -c safe.directory='*' ls-files
    else
        find . -type f -not -path './build*' -not -path './config/lt*' |
            sed 's|^\./||'
    fi
}

# Fail and show the lines on standard input, if there are any.
# usage: expect_nothing MESSAGE
expect_nothing()
{
    local lines
    lines=$(cat)
    if [[ -n $lines ]]; then
        printf '%s:\n%s\n' "$1" "$lines" >&2
        return 1
    fi
}

shell_scripts()
{
    local file
    while IFS= read -r file; do
        [[ -f $file ]] || continue
        case $file in
        config/lt*|config/install-sh|config/missing|config/depcomp) continue ;;
        contrib/lib.sh) echo "$file" ;;
        *)  if head -n 1 "$file" | grep -a -q -E '^#!.*\b(ba)?sh$'; then
                echo "$file"
            fi ;;
        esac
    done < <(project_files)
}

case ${1:-} in
shell)
    mapfile -t scripts < <(shell_scripts)
    # SC2317: a function that only a trap calls is not unreachable.
    shellcheck -x --severity=info --exclude=SC2317 "${scripts[@]}"
    ;;
hosts)
    # What an SVG file says it is looks like an address, and nobody goes there.
    host='(https?|ftp|ssh)://[A-Za-z0-9]'
    project_files | tr '\n' '\0' |
        { xargs -0 grep -I -n -E "$host" -- || true; } |
        sed -e 's|xmlns="http://www.w3.org/2000/svg"||' \
            -e 's|xmlns:xlink="http://www.w3.org/1999/xlink"||' |
        { grep -E "$host" || true; } |
        expect_nothing "a network host is named"
    ;;
foreign)
    project_files |
        { grep -E -i '\.(o|lo|la|so|a|dsc|xz|gz)$|(^|/)(ucx|rdma-core)-[0-9]' ||
          true; } |
        expect_nothing "this does not belong in the repository"
    project_files | { grep -E '\.(c|h|inl|cc)$' || true; } | tr '\n' '\0' |
        { xargs -0 -r grep -l -i -E \
              'Copyright .*(Mellanox|NVIDIA|UT-Battelle|Intel|Huawei)' -- ||
          true; } |
        expect_nothing "this carries a copyright of somebody else"
    ;;
licenses)
    project_files |
        { grep -E '\.(c|h|inl|cc|am|m4|ac|sh|py|in)$' || true; } |
        while IFS= read -r file; do
            head -n 5 "$file" |
                grep -q 'SPDX-License-Identifier: BSD-3-Clause' || echo "$file"
        done |
        expect_nothing "no SPDX-License-Identifier line in the first five lines"
    ;;
layers)
    contrib/check_layers.py
    # Programs that a compiler's wrapper alone compiles have theirs beside them
    project_files |
        { grep -E '^(src/(sim|tools|uct)|test/gtest)/.*\.(c|h|inl|cc)$' ||
              true; } |
        xargs -r grep -E '^#[[:space:]]*include "' |
        { grep -vE '"(config|sep_ucx_abi)\.h"' || true; } |
        expect_nothing "this includes a header of ours in quotes"
    ;;
editorconfig)
    project_files | contrib/check_editorconfig.py
    ;;
pictures)
    contrib/draw_house.py src/uct/ib/sep --check docs/pictures/transport.dot
    contrib/draw_house.py src/sim --check docs/pictures/device.dot
    ;;
format)
    project_files | contrib/check_format.py
    ;;
'')
    failed=
    for check in $("./contrib/${0##*/}" --list); do
        "./contrib/${0##*/}" "$check" || failed+=" $check"
    done
    if [[ -n $failed ]]; then
        echo "failed:$failed" >&2
        exit 1
    fi
    ;;
--list)
    sed -n 's/^#   check-sources.sh \([a-z]*\).*/\1/p' "$0" | grep .
    ;;
*)
    sed -n 's/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
