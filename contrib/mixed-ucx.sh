#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Jobs of processes that have different versions of UCX, each with the transport
# that was built for it: tagged and active messages, puts, gets and atomics, on
# sep_mlx5 and on UCX's own rc_mlx5, every pair in both orders.
#
#   contrib/mixed-ucx.sh --ucx system --ucx ucx-1.18.1.tar.xz
#   contrib/mixed-ucx.sh --ucx ucx-1.22.0.tar.xz --ucx-opt ucx-1.22.0.tar.xz
#
#   --ucx WHAT     as for contrib/matrix.sh, which builds it: system, a source
#                  tree of UCX or an archive of one; two or more
#   --ucx-opt WHAT the same with the optimisations of src/ucp/opt, which
#                  contrib/build-ucx-opt.sh builds: a source tree of UCX or an
#                  archive of one, of a release that has them
#   --work DIR     where to build (default: build/matrix)
#   --transport, --steps   as for test/jobs/mixed, which runs the jobs
#
# Exit status: 0 if all jobs on sep_mlx5 passed.
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=contrib/ucx.sh
. "$(dirname "$0")/ucx.sh"

work=$SEP_TOP/build/matrix
ucx=()
patched=()
options=()
while [[ $# -gt 0 ]]; do
    case $1 in
    --ucx)     ucx+=("${2:?--ucx needs a value}"); shift 2 ;;
    --ucx-opt) patched+=("${2:?--ucx-opt needs a value}"); shift 2 ;;
    --work)    work=$(realpath -m "${2:?--work needs a value}"); shift 2 ;;
    --transport|--steps)
               options+=("$1" "${2:?$1 needs a value}"); shift 2 ;;
    --help|-h) sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'; exit 0 ;;
    *)         echo "${0##*/}: unknown option $1; see --help" >&2; exit 2 ;;
    esac
done
[[ ${#ucx[@]} -gt 0 && $((${#ucx[@]} + ${#patched[@]})) -gt 1 ]] ||
    sep_die "two versions are needed, one of them with --ucx; see --help"

builds=()
for what in "${ucx[@]}"; do
    "$SEP_TOP/contrib/matrix.sh" --debian this --part build --work "$work" \
        --ucx "$what" ||
        sep_die "$what could not be built; see above, and the logs in $work"
    if [[ $what == system ]]; then
        name=$(pkg-config --modversion ucx)
        options+=(--ucx "system,$work/$name/sep")
    else
        # As contrib/matrix.sh calls it
        name=${what##*/}
        name=${name%.tar.*}
        name=${name#ucx-}
        options+=(--ucx "$work/$name/ucx,$work/$name/sep")
    fi
    builds+=("$work/$name/sep")
done

# The transport is a module of them.
for what in "${patched[@]}"; do
    tree=$(sep_ucx_tree "$what")
    prefix=$work/opt-$(sep_ucx_release "$tree")
    "$SEP_TOP/contrib/build-ucx-opt.sh" --ucx-source "$tree" "$prefix"
    options+=(--ucx "$prefix")
done

sep_say "Pairs of processes"
exec "$SEP_TOP/test/jobs/mixed" --build-dir "${builds[0]}" "${options[@]}"
