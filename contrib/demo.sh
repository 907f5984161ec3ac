#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# From a fresh checkout to the main job: install what is missing, build the
# release configuration into build/demo, run the jobs on the software mlx5
# device (no hardware needed) and print what passed, then what 16 workers take
# from the device next to what sep_info predicts. Nothing outside this
# directory is changed, apart from Debian packages being installed. Run it again
# at any time; only what changed is rebuilt.
#
# The transport needs the source of the installed UCX. Where apt cannot provide it,
# this ends with an error: set SEP_UCX_SOURCE to a directory or an archive of it.
# With SEP_UCX=auto the device alone is shown then, with UCX's own transport on it.
#
# SEP_DEMO_CONFIGURE has more options of configure, e.g. --enable-werror, which
# makes errors of the compiler's warnings.
#
#   contrib/demo.sh [OPTIONS OF test/jobs/main_job]
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"

case ${1:-} in
--help|-h) sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'; exit 0 ;;
esac

build=$SEP_TOP/build/demo
start=$SECONDS

sep_install_deps build jobs
sep_use_ccache
read -r -a options <<< "${SEP_DEMO_CONFIGURE-}"
sep_build "$build" "all job-programs" "$SEP_TOP/contrib/configure-release" \
    --disable-gtest "${options[@]}"

# Not what an earlier build has left there, but what this one has made
transport=$(sed -n 's/^ *transport  *//p' "$build/configure.out")
only=()
if [[ $transport == "not built"* ]]; then
    sep_say "The transport was $transport: on rc_mlx5 only"
    only=(--transport rc_mlx5)
fi

sep_say "Running the main job"
status=0
SEP_BUILD_DIR=$build PYTHONUNBUFFERED=1 \
    timeout --kill-after=30 "${SEP_JOBS_TIMEOUT:-7200}" \
    "$SEP_TOP/test/jobs/main_job" --build-dir "$build" "${only[@]}" "$@" \
    < /dev/null | tee "$build/demo.log" || status=$?
why=$(sed -n 's/^ *FAIL /: /p' "$build/demo.log" | head -n 1)

case $status in
0)       verdict="The main job passed" ;;
77)      verdict="The main job skipped all of these rows" ;;
124|137) verdict="The main job hung and was killed" ;;
*)       verdict="The main job failed (exit status $status)$why" ;;
esac

if [[ ${#only[@]} == 0 ]]; then
    sep_say "What 16 workers of the default category take"
    if ! timeout --kill-after=5 120 "$build/bin/mlx5sim-run" --private \
            "$build/bin/sep_info" -t -w 16 -c dynamic < /dev/null; then
        echo "It is not what sep_info says"
        if [[ $status == 0 ]]; then
            status=1
            verdict="What 16 workers take is not what sep_info says"
        fi
    fi
else
    verdict+=", of rc_mlx5 alone: the transport was $transport, set \
SEP_UCX_SOURCE to the source of UCX"
fi
printf '\nWall time, with installing and building: %s\n' \
    "$(sep_duration $((SECONDS - start)))"
# What was wrong first is the last line
sep_say "$verdict"
exit "$status"
