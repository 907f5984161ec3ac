#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Jobs of processes that have different versions of UCX, each with the transport
# that was built for it: tagged and active messages, puts, gets and atomics, on
# sep_mlx5 and on UCX's own rc_mlx5, every pair in both orders.
#
#   contrib/mixed-ucx.sh --ucx system --ucx ucx-1.18.1.tar.xz
#
#   --ucx WHAT     as for contrib/matrix.sh, which builds it: system, a source
#                  tree of UCX or an archive of one; two or more
#   --work DIR     where to build (default: build/matrix)
#   --transport, --steps   as for test/jobs/mixed, which runs the jobs
#
# Exit status: 0 if all jobs on sep_mlx5 passed.
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"

work=$SEP_TOP/build/matrix
ucx=()
options=()
while [[ $# -gt 0 ]]; do
    case $1 in
    --ucx)     ucx+=("${2:?--ucx needs a value}"); shift 2 ;;
    --work)    work=$(realpath -m "${2:?--work needs a value}"); shift 2 ;;
    --transport|--steps)
               options+=("$1" "${2:?$1 needs a value}"); shift 2 ;;
    --help|-h) sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'; exit 0 ;;
    *)         echo "${0##*/}: unknown option $1; see --help" >&2; exit 2 ;;
    esac
done
[[ ${#ucx[@]} -gt 1 ]] || sep_die "two versions are needed; see --help"

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

sep_say "Pairs of processes"
exec "$SEP_TOP/test/jobs/mixed" --build-dir "${builds[0]}" "${options[@]}"
