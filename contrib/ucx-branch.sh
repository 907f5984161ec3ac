#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Make a git tree of UCX 1.22.0 in which the optimisations of src/ucp/opt and the
# transport are commits as UCX's contribution rules ask for them: the release,
# the optimisations, each alone, and the transport in steps that each build.
#
#   contrib/ucx-branch.sh ucx-1.22.0.tar.xz DIR
#   contrib/ucx-branch.sh --check DIR
#   contrib/ucx-branch.sh --check DIR FIRST..LAST [--no-build | --tests]
#
# SOURCE is an archive of the release or a tree of it; DIR must not exist yet. Prints
# the commits with the lines that each adds and removes. The last one has what
# contrib/build-ucx-opt.sh builds, and tests (contrib/ucx-branch/tests).
# contrib/ucx-branch-cover.txt is the cover text, as the description of the branch:
# git format-patch --cover-letter --cover-from-description=subject has it.
#
# With --check, looks at each commit of DIR, or at some, as UCX's reviewers and CI do:
# its title, its size, blanks, what clang-format would change, and that it builds (in
# DIR-check, which is kept: what has been built is not built again). With --tests, the
# tests that a commit adds or changes are compiled with it, not linked.
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=contrib/ucx.sh
. "$(dirname "$0")/ucx.sh"

usage()
{
    sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'
}

case ${1-} in
--help|-h) usage; exit 0 ;;
--check)   command -v git > /dev/null ||
               sep_die "git is needed: apt-get install git"
           sep_use_ccache
           shift
           exec python3 -B "$SEP_TOP/contrib/ucx_branch_check.py" "$@" \
               --parts "${SEP_UCX_LIBRARIES[*]}" --jobs "$(sep_jobs)" ;;
-*)        usage >&2; exit 2 ;;
esac
if [[ $# != 2 ]]; then
    usage >&2
    exit 2
fi

# The only release for which there are messages of commits
supported=1.22.0
source=$1 tree=$2
command -v git > /dev/null || sep_die "git is needed: apt-get install git"
[[ ! -e $tree ]] || sep_die "$tree exists already"
source=$(sep_ucx_tree "$source")
release=$(sep_ucx_release "$source")
[[ $release == "$supported" ]] ||
    sep_die "$1 is UCX $release; a branch can be made of UCX $supported only"

mkdir -p "$(dirname "$tree")"
final=$(mktemp -d)
trap 'rm -rf "$final"' EXIT
sep_ucx_copy "$source" "$tree"
sep_ucx_copy "$source" "$final/source"
# The mark of a tree that has been unpacked in the cache
rm -f "$tree/.sep-complete" "$final/source/.sep-complete"
sep_ucx_patch "$final/source" "$release" all "$final/patch.log"
sep_ucx_add_files "$final/source"
# What patch leaves where lines of a file have moved
find "$final/source" -name "*.orig" -delete
python3 -B "$SEP_TOP/contrib/ucx_branch.py" "$release" "$(realpath "$tree")" \
    "$final/source"
