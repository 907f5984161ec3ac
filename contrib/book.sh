#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The book of evidence: docs/book.md, a page per figure of a paper, with its
# tables (docs/book/*.tsv) and figures (SVG).
#
#   contrib/book.sh                measure everything, and write it
#   contrib/book.sh --only NAME    measure this chapter only; may be repeated
#   contrib/book.sh --draw         write page and figures from the tables
#   contrib/book.sh --check        measure the exact chapters, and fail if
#                                  numbers are not those of the tables
#   contrib/book.sh --list         chapters
#
# Options: --build DIR   a build directory to use as it is for sep_info (default:
#                        build/release, which is built)
#          --out DIR     write there (default: docs)
#          --mpich PREFIX  an MPICH with several interfaces, as of
#                        bench-endpoints.sh
#          --quick       fewer rows where a chapter has many
#          --no-figures  draw no figures, for which matplotlib is needed
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"

usage()
{
    sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'
}

build=
figures=1
needs_build=1
options=()
while [[ $# -gt 0 ]]; do
    case $1 in
    --build)      build=$(cd "${2:?--build needs a directory}" && pwd)
                  shift 2 ;;
    --out)        mkdir -p "${2:?--out needs a directory}"
                  options+=(--out "$(cd "$2" && pwd)"); shift 2 ;;
    --newer)      options+=("$1" "$(realpath -e "${2:?--newer needs a source}")")
                  shift 2 ;;
    --mpich)      options+=("$1" "$(realpath -e "${2:?--mpich needs a directory}")")
                  shift 2 ;;
    --only)       options+=("$1" "${2:?$1 needs a name}"); shift 2 ;;
    --check|--no-figures) figures=; options+=("$1"); shift ;;
    --list|--draw) needs_build=; options+=("$1"); shift ;;
    --quick)      options+=("$1"); shift ;;
    --help|-h)    usage; exit 0 ;;
    *)            usage >&2; exit 2 ;;
    esac
done

# Debian's matplotlib is for Debian's python3
python=python3
if [[ -n $figures ]]; then
    sep_install_deps book >&2
    "$python" -c 'import matplotlib' 2> /dev/null || python=/usr/bin/python3
fi
if [[ -z $build ]]; then
    build=$SEP_TOP/build/release
    if [[ -n $needs_build ]]; then
        {
            sep_install_deps build bench
            sep_build "$build" all "$SEP_TOP/contrib/configure-release" \
                --disable-gtest
        } >&2
    fi
fi
exec "$python" "$SEP_TOP/bench/book/main.py" --build "$build" "${options[@]}"
