#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Run jobs and tests on a software device that takes its time (deferred
# execution, docs/software-device.md), with one seed after another, for hours.
#
#   contrib/soak.sh                       an hour
#   contrib/soak.sh --minutes 600         ten hours
#   contrib/soak.sh --replay SEED --row NAME
#                                         a run that failed, once more
#
# Builds what is needed first. A failure is printed with its seed and the command
# that repeats it; its logs are kept. The end is a table of seeds and failures.
# What a transport can't do (rc_mlx5 has no swap) is counted as skipped. Exit
# status is 0 if something passed and nothing failed, 77 if all was skipped. Not
# part of contrib/check.sh, as time is what it needs.
#
# Options: --build-only      build and run nothing
# All others are those of test/jobs/soak, see its --help.
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"

build=$SEP_TOP/build/soak
build_only=
options=()
while [[ $# -gt 0 ]]; do
    case $1 in
    --build-only)  build_only=1 ;;
    --build-dir)   build=${2:?--build-dir needs a directory}
                   options+=("$1" "$2"); shift ;;
    --build-dir=*) build=${1#*=}; options+=("$1") ;;
    --help|-h)     sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'
                   exec "$SEP_TOP/test/jobs/soak" --help ;;
    *)             options+=("$1") ;;
    esac
    shift
done

# Say what is wrong before building for minutes
"$SEP_TOP/test/jobs/soak" "${options[@]}" --list > /dev/null
{
    sep_install_deps build test jobs
    sep_build "$build" "all job-programs test/gtest/sep_gtest" "$SEP_TOP/configure"
} >&2
[[ -z $build_only ]] || exit 0

exec "$SEP_TOP/test/jobs/soak" "${options[@]}"
