#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Build and try the transport with several versions of UCX, on this Debian and on
# others, and print one line for each pair and part: how much passed.
#
#   contrib/matrix.sh                              what this machine has
#   contrib/matrix.sh --ucx system --ucx ucx-1.18.1.tar.xz --part jobs
#   contrib/matrix.sh --debian this --whole --tsv  this Debian, all of UCX's tests
#
#   --ucx WHAT     system (the one that is installed; the default), or a source
#                  tree of UCX or an archive of one; may be repeated
#   --debian NAME  this (the system that runs this script), or the name of a
#                  release, for which contrib/debian-root.sh makes a root
#                  directory; may be repeated (default: this, and trixie)
#   --part NAME    build: UCX and the transport; jobs: the main job; conformance:
#                  UCX's own tests; may be repeated (default: all)
#   --quick        the quick part of jobs and conformance (the default)
#   --whole        all of them
#   --group NAME   only this group of UCX's tests, see contrib/ucx-gtest.sh
#   --work DIR     where to build (default: build/matrix)
#   --tsv          columns are separated by tabs: ucx, debian, part, passed,
#                  failed, skipped
#   --rc           three columns more: the same on rc_mlx5, beside which jobs
#                  and conformance are run
#   --list         print what would be run, and run nothing
#
# Numbers are those of sep_mlx5: rows of the main job, and tests; what UCX itself
# can't do on rc_mlx5 there is skipped, with a reason. What can't be had
# on this machine is named on standard error, with the reason, and counts as
# nothing. What is built is used again.
#
# Exit status: 0 if something was tried and nothing of it failed or was worse than
# on rc_mlx5, 77 if nothing could be had, 2 for wrong options, else 1.
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=contrib/ucx.sh
. "$(dirname "$0")/ucx.sh"

usage()
{
    sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'
}

wrong()
{
    echo "${0##*/}: $*; see --help" >&2
    exit 2
}

ucx=()
debian=()
parts=()
group=()
quick=(--quick)
work=
tsv=
rc=
list=
while [[ $# -gt 0 ]]; do
    case $1 in
    --ucx|--debian|--part|--group|--work)
        [[ $# -gt 1 ]] || wrong "$1 needs a value" ;;&
    --ucx)     if [[ $2 == system ]]; then
                   ucx+=(system)
               else
                   ucx+=("$(realpath -e "$2" 2> /dev/null)") ||
                       wrong "there is no $2"
               fi
               shift 2 ;;
    --debian)  [[ $2 =~ ^[a-z]+$ ]] || wrong "what release is $2?"
               debian+=("$2"); shift 2 ;;
    --part)    case $2 in
               build|jobs|conformance) parts+=("$2"); shift 2 ;;
               *) wrong "what part is $2?" ;;
               esac ;;
    --group)   group+=(--group "$2"); shift 2 ;;
    --work)    work=$2; shift 2 ;;
    --quick)   quick=(--quick); shift ;;
    --whole)   quick=(); shift ;;
    --tsv)     tsv=1; shift ;;
    --rc)      rc=1; shift ;;
    --list)    list=1; shift ;;
    --help|-h) usage; exit 0 ;;
    *)         wrong "unknown option $1" ;;
    esac
done
[[ ${#ucx[@]} -gt 0 ]] || ucx=(system)
[[ ${#debian[@]} -gt 0 ]] || debian=(this trixie)
[[ ${#parts[@]} -gt 0 ]] || parts=(build jobs conformance)
: "${work:=$SEP_TOP/build/matrix}"

release()
{
    # shellcheck source=/dev/null
    (. /etc/os-release && echo "${!1:-unknown}")
}

# usage: name_of UCX
name_of()
{
    local name=${1##*/}
    name=${name%.tar.*}
    name=${name#ucx-}
    case $1 in
    system) pkg-config --modversion ucx 2> /dev/null || echo system ;;
    *)      echo "$name" ;;
    esac
}

tried=
failed=

# usage: line CELL...
line()
{
    if [[ -n $tsv ]]; then
        (IFS=$'\t'; echo "$*")
    else
        printf '%-10s %-8s %-12s %6s %6s %7s' "${@:1:6}"
        printf '%10s %10s %10s' "${@:7}" | sed 's/ *$//'
        echo
    fi
}

# The last three numbers are those of rc_mlx5, if it is asked for.
# usage: row UCX-NAME DEBIAN PART PASSED FAILED SKIPPED [PASSED FAILED SKIPPED]
row()
{
    local cells=("$@")
    tried=1
    [[ $5 == 0 && ( $4 != 0 || $6 != 0 ) ]] || failed=1
    if [[ -z $rc ]]; then
        cells=("${cells[@]:0:6}")
    elif [[ $# == 6 ]]; then
        cells+=(- - -)
    fi
    line "${cells[@]}"
}

# usage: cannot UCX-NAME DEBIAN PART REASON
cannot()
{
    echo "${0##*/}: UCX $1, Debian $2: no $3: ${*:4}" >&2
}

# Run a step; what it prints goes to a file.
# usage: run LOG COMMAND...
run()
{
    local log=$1
    shift
    "$@" > "$log" 2>&1 < /dev/null || return
}

# UCX, if it is not the system's, and the transport for it.
# usage: build_pair UCX DIRECTORY
build_pair()
{
    local options=()
    if [[ $1 != system ]]; then
        if [[ ! -d $2/source ]]; then
            rm -rf "$2/unpacked"
            sep_ucx_copy "$1" "$2/unpacked" &&
                mv "$2/unpacked" "$2/source" || return
        fi
        "$SEP_TOP/contrib/build-ucx-release.sh" --ucx-source "$2/source" \
            "$2/ucx" || return
        options=("--with-ucx=$2/ucx" "--with-ucx-source=$2/source")
    else
        options=(--with-ucx=auto)
    fi
    sep_install_deps build jobs
    sep_build "$2/sep" "all job-programs" \
        "$SEP_TOP/contrib/configure-release" --disable-gtest "${options[@]}"
}

# The main job, on the UCX that the transport was built for.
# usage: run_jobs UCX DIRECTORY
run_jobs()
{
    if [[ $1 != system ]]; then
        export LD_LIBRARY_PATH=$2/ucx/lib PATH=$2/ucx/bin:$PATH
    fi
    timeout --kill-after=30 "${SEP_JOBS_TIMEOUT:-7200}" \
        "$SEP_TOP/test/jobs/main_job" --build-dir "$2/sep" "${quick[@]}" \
        --json "$2/jobs.json"
}

# usage: run_conformance UCX DIRECTORY
run_conformance()
{
    local source=()
    [[ $1 == system ]] || source=(--ucx-source "$2/source")
    "$SEP_TOP/contrib/ucx-gtest.sh" "${source[@]}" --build "$2/gtest" \
        --results "$2/conformance" "${quick[@]}" "${group[@]}"
}

# "PASSED FAILED SKIPPED" on sep_mlx5, and on rc_mlx5
count_jobs()
{
    python3 -c '
import json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    rows = json.load(file)["rows"]
for name in ("sep_mlx5", "rc_mlx5"):
    states = [row["cells"][name]["status"] for row in rows
              if name in row["cells"]]
    print(*(states.count(each) for each in ("pass", "fail", "skip")), end=" ")
' "$1"
}

count_conformance()
{
    awk -F '\t' '
        function state(text)
        {
            return text == "ok" || text == "skipped" ? text : "failed"
        }
        NR > 1 { count["sep", state($4)]++; count["rc", state($5)]++ }
        END    { split("sep rc", names, " ")
                 for (i = 1; i <= 2; i++)
                     printf "%d %d %d ", count[names[i], "ok"],
                            count[names[i], "failed"],
                            count[names[i], "skipped"] }' "$1"
}

wanted()
{
    [[ " ${parts[*]} " == *" $1 "* ]]
}

# All parts of one UCX on this system.
# usage: try UCX
try()
{
    local what=$1 name system dir status transport numbers
    name=$(name_of "$what")
    system=$(release VERSION_ID)
    dir=$work/$name
    mkdir -p "$dir"
    dir=$(cd "$dir" && pwd)

    sep_say "UCX $name, Debian $system: build (log: $dir/build.log)" >&2
    # A build that is there is brought up to date even if only used
    status=0
    (run "$dir/build.log" build_pair "$what" "$dir") || status=$?
    transport=$(sed -n 's/^ *transport  *//p' "$dir/sep/configure.out" \
                    2> /dev/null) || true
    if [[ $status == 0 && $transport == "not built"* ]]; then
        for part in "${parts[@]}"; do
            cannot "$name" "$system" "$part" "the transport was $transport"
        done
        return
    fi
    if [[ $status != 0 ]]; then
        tail -n 20 "$dir/build.log" >&2
        row "$name" "$system" build 0 1 0
        return
    fi
    ! wanted build || row "$name" "$system" build 1 0 0

    if wanted jobs; then
        sep_say "UCX $name, Debian $system: jobs (log: $dir/jobs.log)" >&2
        rm -f "$dir/jobs.json"
        status=0
        (run "$dir/jobs.log" run_jobs "$what" "$dir") || status=$?
        numbers=$(count_jobs "$dir/jobs.json" 2> /dev/null) || numbers="0 1 0"
        # shellcheck disable=SC2086 # three words
        row "$name" "$system" jobs $numbers
        [[ $status == 0 ]] || failed=1
        [[ $status == 0 ]] || tail -n 20 "$dir/jobs.log" >&2
    fi

    if wanted conformance; then
        if [[ $what == system ]] &&
           ! run "$dir/conformance.log" sep_ucx_source; then
            cannot "$name" "$system" conformance \
                "$(tail -n 1 "$dir/conformance.log")"
            return
        fi
        sep_say "UCX $name, Debian $system: conformance" \
                "(log: $dir/conformance.log)" >&2
        rm -f "$dir/conformance/table.tsv"
        status=0
        (run "$dir/conformance.log" run_conformance "$what" "$dir") || status=$?
        numbers=$(count_conformance "$dir/conformance/table.tsv" \
                      2> /dev/null) || numbers="0 1 0"
        # shellcheck disable=SC2086
        row "$name" "$system" conformance $numbers
        [[ $status == 0 ]] || failed=1
        [[ $status == 0 ]] || tail -n 20 "$dir/conformance.log" >&2
    fi
}

# Try on another Debian: this script runs there.
# usage: try_in RELEASE
try_in()
{
    local what part bind=() options=(--debian this --tsv) lines status=0
    for what in "${ucx[@]}"; do
        options+=(--ucx "$what")
        [[ $what == system ]] || bind+=(--bind "$(dirname "$what")")
    done
    for part in "${parts[@]}"; do
        options+=(--part "$part")
    done
    [[ ${#quick[@]} -gt 0 ]] || options+=(--whole)
    [[ -z $rc ]] || options+=(--rc)

    sep_say "Debian $1" >&2
    mkdir -p "$work"
    lines=$("$SEP_TOP/contrib/debian-root.sh" --suite "$1" \
                --groups "build test jobs bench" "${bind[@]}" \
                "$work/debian-$1" contrib/matrix.sh "${options[@]}" \
                "${group[@]}" < /dev/null 2> "$work/debian-$1.log") || status=$?
    grep '^matrix\.sh: ' "$work/debian-$1.log" >&2 || true
    if [[ $status == 77 ]]; then
        [[ -n $lines ]] || cannot any "$1" "${parts[*]}" \
            "$(tail -n 1 "$work/debian-$1.log")"
        return
    fi
    [[ $status == 0 ]] || failed=1
    if [[ -z $lines ]]; then
        tail -n 20 "$work/debian-$1.log" >&2
        row any "$1" "${parts[0]}" 0 1 0
        return
    fi
    while IFS=$'\t' read -r -a part; do
        row "${part[@]}"
    done <<< "$lines"
}

# What would be run on a system, one line per part.
# usage: show SYSTEM
show()
{
    local what part name
    for what in "${ucx[@]}"; do
        name=$(name_of "$what")
        [[ $1 == this || $what != system ]] || name="its own UCX"
        for part in "${parts[@]}"; do
            echo "$name, Debian $1: $part"
        done
    done
}

[[ -n $tsv || -n $list ]] ||
    line ucx debian part passed failed skipped ${rc:+rc-passed rc-failed} \
        ${rc:+rc-skipped}
for system in "${debian[@]}"; do
    [[ $system != "$(release VERSION_CODENAME)" ]] || system=this
    if [[ -n $list ]]; then
        show "$system"
    elif [[ $system == this ]]; then
        for what in "${ucx[@]}"; do
            try "$what"
        done
    else
        try_in "$system"
    fi
done
[[ -z $list ]] || exit 0
[[ -n $tried ]] || exit 77
[[ -z $failed ]]
