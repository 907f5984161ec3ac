#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Install what is missing, build, run all tests, and close with a line
# "N passed, N failed". Run it again at any time; only what changed is rebuilt.
#
#   contrib/check.sh                 everything
#   contrib/check.sh unit jobs       only these parts
#   contrib/check.sh --quick         fewer sizes and iterations in the jobs
#
# Parts: unit (unit tests), sanitized (the same under AddressSanitizer and
# UndefinedBehaviorSanitizer), modes (the transport's tests once per sharing
# category, and all on a device with the UAR pages of old kernels), threads
# (tests with threads under ThreadSanitizer), memcheck (a representative part of
# the transport's tests under valgrind), jobs (MPI, OpenSHMEM and ucx_perftest
# jobs), conformance (a representative part of UCX's own unit tests), ucp (tests
# of a UCX that is built with the optimisations of src/ucp/opt), sources (shell
# scripts, what is committed, the tarball).
#
# A test that hangs is killed and counts as failed: unit tests have
# SEP_SUITE_TIMEOUT seconds per suite (default 180, three times that with
# sanitizers and valgrind), the jobs SEP_JOBS_TIMEOUT in all (default 1200),
# UCX's tests with their build SEP_CONFORMANCE_TIMEOUT (default 2400).
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"

build_plain=$SEP_TOP/build/check
build_sanitized=$SEP_TOP/build/check-sanitized
build_threads=$SEP_TOP/build/check-threads
build_ucx=$SEP_TOP/build/check-ucx-opt
results=$SEP_TOP/build/check-results
suite_limit=${SEP_SUITE_TIMEOUT:-180}
jobs_limit=${SEP_JOBS_TIMEOUT:-1200}
conformance_limit=${SEP_CONFORMANCE_TIMEOUT:-2400}
jobs_options=()
# What the tests of a mode have in their environment, see part_modes
test_env=()
modes=(mpi_everywhere:UCX_SEP_CATEGORY=mpi_everywhere
       2xdynamic:UCX_SEP_CATEGORY=2xdynamic
       shared_dynamic:UCX_SEP_CATEGORY=shared_dynamic
       static:UCX_SEP_CATEGORY=static
       mpi_threads:UCX_SEP_CATEGORY=mpi_threads
       cq_by_2:UCX_SEP_CQ_SHARING=2
       legacy_uars:MLX5SIM_UAR_MODE=legacy)
mode_tests='*test_sep_uct_ops.*/bf:*test_sep_uct_flow.*/dv'
mode_tests+=':*test_sep_uct_error.*/dv:test_sep_uct_fault.*:test_sep_fc.*'
mode_tests+=':-*.sixty_four_*'
thread_tests='*test_sep_uct_threads.*:*test_sep_workers.*:test_sep_hub.*'
thread_tests+=':test_sep_cq_sharing.*:*.workers_in_threads_*'
memcheck_tests='*test_sep_uct_error.*/dv:*test_sep_uct_flow.*/dv'
memcheck_tests+=':*test_sep_uct_ops.*/bf:*test_sep_uct_ops.*/list'
memcheck_tests+=':*test_sep_uct_fault.*kill*:*.workers_in_threads_*/verbs'
memcheck_tests+=':-*.small_queues_*:*.a_fence_costs_*:*.*while_connecting*'
passed=0
failed=0
failures=()

usage()
{
    sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'
}

# Record one result. usage: result pass|fail NAME [WHY]
result()
{
    if [[ $1 == pass ]]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        failures+=("$2${3:+: $3}")
    fi
}

# Run one check that either succeeds or not.
# usage: check NAME LIMIT COMMAND...
check()
{
    local name=$1 limit=$2 status=0
    local log=$results/${name//[^A-Za-z0-9_.-]/_}.log
    shift 2

    timeout --kill-after=15 "$limit" "$@" > "$log" 2>&1 < /dev/null ||
        status=$?
    case $status in
    0)       result pass "$name"
             echo "  ok      $name" ;;
    124|137) result fail "$name" "killed after $limit s, see $log"
             echo "  KILLED  $name after $limit s"
             tail -n 15 "$log" ;;
    *)       result fail "$name" "exit status $status, see $log"
             echo "  FAILED  $name, exit status $status"
             tail -n 15 "$log" ;;
    esac
}

# Count the tests of one suite by what its log says about each, so that a suite
# that crashed or was killed half way is counted as well.
# usage: count_suite LABEL LOG STATUS LIMIT TEST...
count_suite()
{
    local label=$1 log=$2 status=$3 limit=$4
    local test good=0 bad=0 skipped=0 why verdict
    local -A seen=()
    shift 4

    while read -r verdict test; do
        seen[$test]=$verdict
    done < <(sed -n -E \
        -e 's/^\[       OK \] ([^ ]+) .*/ok \1/p' \
        -e 's/^\[  SKIPPED \] ([^ ]+) .*/skipped \1/p' \
        -e 's/^\[  FAILED  \] ([^ ,]+)(,.*)? \([0-9]+ ms\)$/failed \1/p' "$log")

    for test in "$@"; do
        why=
        case ${seen[$test]:-none} in
        ok)      good=$((good + 1))
                 result pass "$label $test"
                 continue ;;
        skipped) skipped=$((skipped + 1))
                 continue ;;
        failed)  why="see $log" ;;
        none)    if [[ $status == 124 || $status == 137 ]]; then
                     why="not finished when the suite was killed after $limit s"
                 else
                     why="no result, exit status $status, see $log"
                 fi ;;
        esac
        bad=$((bad + 1))
        result fail "$label $test" "$why"
        echo "  FAILED  $test ($why)"
    done

    # All tests may have passed, and the process may still have crashed or
    # leaked at its end.
    if [[ $status != 0 && $bad == 0 ]]; then
        bad=1
        result fail "$label" "exit status $status after its tests, see $log"
        echo "  FAILED  exit status $status after the tests, see $log"
    fi

    if [[ $bad != 0 ]]; then
        grep -a -m 5 -A 6 -E 'Failure$|ERROR: |runtime error|mlx5sim: ' \
            "$log" | head -n 40 || true
    fi
    printf '  %-50s %4d passed %3d failed' "$label" "$good" "$bad"
    [[ $skipped == 0 ]] || printf ' %3d skipped' "$skipped"
    printf '\n'
}

# Run a GoogleTest program suite by suite, each in a process of its own, so that
# a crash or a hang costs only the rest of its suite.
# usage: run_gtest LABEL BUILD-DIRECTORY PROGRAM LIMIT [FILTER]
run_gtest()
{
    local label=$1 build=$2 program=$3 limit=$4 filter=${5:-*}
    local list line suite='' log status selected device=$build
    local -A tests=()
    local suites=()

    [[ $tool != tsan ]] || device=$build_plain

    if ! list=$(cd "$build" && timeout --kill-after=5 60 \
                "$program" --gtest_list_tests --gtest_filter="$filter" \
                2> "$results/list.log"); then
        result fail "$label" "cannot list its tests"
        echo "  FAILED  $label cannot list its tests:"
        tail -n 5 "$results/list.log"
        return
    fi

    # "Suite." then "  test"; parameterised ones have a comment behind.
    while IFS= read -r line; do
        line=${line%%  #*}
        line=${line%% #*}
        if [[ $line == "  "* ]]; then
            line=${line#  }
            # GoogleTest runs a disabled test only when asked to.
            if [[ $line != DISABLED_* && $suite != *DISABLED_* ]]; then
                [[ -n ${tests[$suite]:-} ]] || suites+=("$suite")
                tests[$suite]+="$suite.$line "
            fi
        elif [[ $line == *. ]]; then
            suite=${line%.}
        fi
    done <<< "$list"

    if [[ ${#suites[@]} == 0 ]]; then
        result fail "$label" "contains no test"
        echo "  FAILED  $label contains no test"
        return
    fi

    for suite in "${suites[@]}"; do
        log=$results/$label-${suite//\//_}.log
        status=0
        selected="$suite.*"
        if [[ $filter != '*' ]]; then
            selected=${tests[$suite]% }
            selected=${selected// /:}
        fi
        (cd "$build" && env "${test_env[@]}" \
         SEP_TEST_TIMEOUT="$limit" SEP_BUILD_DIR="$build" \
         SEP_SANITIZERS="$sanitizers" \
         SEP_TEST_TOOL="$tool" SEP_DEVICE_DIR="$device" \
         "$SEP_TOP/config/run-test" "$program" \
             --gtest_filter="$selected") \
            > "$log" 2>&1 < /dev/null || status=$?
        # shellcheck disable=SC2086 # test names have no spaces
        count_suite "$label $suite" "$log" "$status" "$limit" ${tests[$suite]}
    done
}

# Build without sanitizers; parts have the directory in common.
# usage: make_plain WHAT-FOR TARGETS
make_plain()
{
    (sep_build "$build_plain" "$2" "$SEP_TOP/configure" --enable-gtest \
         --enable-werror) && return
    result fail "$1"
    return 1
}

part_unit()
{
    sanitizers=
    tool=
    sep_say "Unit tests"
    make_plain "build" "all tests" || return 0
    run_gtest sim_gtest "$build_plain" test/gtest/sim_gtest "$suite_limit"
    run_gtest device_gtest "$build_plain" test/gtest/device_gtest \
        "$suite_limit"
    run_gtest sep_gtest "$build_plain" test/gtest/sep_gtest "$suite_limit"
    check "the main job's own tests" 300 "$SEP_TOP/test/jobs/unit_tests"
    check "the conformance driver's own tests" 300 \
        "$SEP_TOP/test/conformance/unit_tests"
}

part_sanitized()
{
    sanitizers="asan ubsan"
    tool=
    sep_say "Unit tests with AddressSanitizer and UndefinedBehaviorSanitizer"
    if ! (sep_build "$build_sanitized" \
              "all unit-programs" \
              "$SEP_TOP/configure" --enable-gtest --enable-werror \
              --enable-asan --enable-ubsan); then
        result fail "build with sanitizers"
        return
    fi
    run_gtest sim_gtest-sanitized "$build_sanitized" test/gtest/sim_gtest \
        $((suite_limit * 3))
    run_gtest device_gtest-sanitized "$build_sanitized" \
        test/gtest/device_gtest $((suite_limit * 3))
    run_gtest sep_gtest-sanitized "$build_sanitized" test/gtest/sep_gtest \
        $((suite_limit * 3))
}

# The unit tests use the default category, which depends on the number of
# workers, or name one. Here the functional tests run in each of them, with one
# way to post and one API, as categories are about what is below that.
part_modes()
{
    local mode
    sanitizers=
    tool=
    sep_say "Tests of the transport in each mode"
    make_plain "build for the modes" "all unit-programs" || return 0
    for mode in "${modes[@]}"; do
        test_env=("${mode#*:}")
        run_gtest "sep_gtest-${mode%%:*}" "$build_plain" test/gtest/sep_gtest \
            "$suite_limit" "$mode_tests"
    done
    run_gtest device_gtest-legacy_uars "$build_plain" test/gtest/device_gtest \
        "$suite_limit"
    test_env=()
}

# All that runs in several threads of a process: workers of every category that
# send to each other, share completion queues or a hub, open and close.
part_threads()
{
    sanitizers=tsan
    tool=tsan
    sep_say "Tests with threads under ThreadSanitizer"
    make_plain "build for the threads" "all" || return 0
    if ! (sep_build "$build_threads" "thread-programs" "$SEP_TOP/configure" \
              --enable-gtest --enable-werror --enable-tsan); then
        result fail "build with ThreadSanitizer"
        return
    fi
    run_gtest sep_gtest-threads "$build_threads" test/gtest/sep_gtest \
        $((suite_limit * 3)) "$thread_tests"
}

# One test of each kind: valgrind is 20 to 50 times slower, and crowds add
# nothing to what it looks at.
part_memcheck()
{
    sanitizers=
    tool=memcheck
    sep_say "Tests of the transport under valgrind"
    make_plain "build for valgrind" "all unit-programs" || return 0
    run_gtest sep_gtest-memcheck "$build_plain" test/gtest/sep_gtest \
        $((suite_limit * 3)) "$memcheck_tests"
}

part_jobs()
{
    sep_say "Jobs"
    make_plain "build of the jobs" "all job-programs" || return 0
    run_jobs
}

# The driver prints a table as it goes and writes the results as JSON; each row
# counts once per transport.
run_jobs()
{
    local status=0 verdict name
    local json=$results/jobs.json list=$results/jobs.results
    rm -f "$json" "$list"
    timeout --kill-after=30 "$jobs_limit" \
        "$SEP_TOP/test/jobs/main_job" --build-dir "$build_plain" \
        --json "$json" --log-dir "$results/jobs" "${jobs_options[@]}" \
        < /dev/null || status=$?

    if [[ -e $json ]]; then
        python3 - "$json" > "$list" << 'EOF'
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    document = json.load(file)
for row in document["rows"]:
    for transport, cell in row["cells"].items():
        print(cell["status"], transport, row["name"])
EOF
        while read -r verdict name; do
            if [[ $verdict != skip ]]; then
                result "$verdict" "job $name" "see $results/jobs"
            fi
        done < "$list"
    fi
    if [[ $status == 124 || $status == 137 ]]; then
        result fail "jobs" "killed after $jobs_limit s"
    elif [[ ! -s $list ]]; then
        result fail "jobs" "no job ran, exit status $status"
    elif [[ $status != 0 ]] && ! grep -q '^fail' "$list"; then
        result fail "jobs" "exit status $status although no job failed"
    fi
}

# Each test that was run on both transports counts once; it fails if sep_mlx5 is
# worse than rc_mlx5. Without rc_mlx5, all that does not pass and is not skipped.
# usage: conformance TITLE NAME OPTION...
conformance()
{
    local status=0 suite name verdict ours theirs reason
    local title=$1 table=$results/$2.tsv good=0 bad=0
    shift 2
    timeout --kill-after=30 "$conformance_limit" \
        "$SEP_TOP/contrib/ucx-gtest.sh" --quick --tsv "$@" > "$table" \
        < /dev/null || status=$?

    while IFS=$'\t' read -r _ suite name ours theirs verdict reason _; do
        if [[ $verdict == worse ]]; then
            bad=$((bad + 1))
            result fail "$title: $suite.$name" "$ours, rc_mlx5 $theirs: $reason"
            echo "  FAILED  $suite.$name ($ours: $reason)"
        elif [[ $ours == ok ]]; then
            good=$((good + 1))
            result pass "$title: $suite.$name"
        fi
    done < <(tail -n +2 "$table")
    if [[ $bad == 0 && ($status != 0 || $good == 0) ]]; then
        result fail "UCX's unit tests, $title" "exit status $status, $good passed"
    fi
    printf '  %-50s %4d passed %3d failed\n' "$title" $good $bad
}

part_conformance()
{
    sep_say "UCX's own unit tests, a representative part"
    conformance "as good as rc_mlx5" conformance
    # A layer of its own, with the endpoints' statistics that only UCX's tests
    # can look at
    conformance "mpi_threads" conformance-mpi_threads --group uct --only sep \
        --set UCX_SEP_CATEGORY=mpi_threads \
        --results "$SEP_TOP/build/ucx-gtest/results-mpi_threads"
}

# The optimisations of UCP, in a UCX that is built for it with assertions: on
# sep_mlx5 and rc_mlx5, with both versions of UCP's protocols; and flushes on
# ud_mlx5, which has assertions about them that the others have not.
part_ucp()
{
    local tls proto tests
    sanitizers=
    tool=
    sep_say "Tests of the optimised UCX"
    make_plain "build of UCP's tests" "all test/gtest/ucp_gtest" || return 0
    if ! ("$SEP_TOP/contrib/build-ucx-opt.sh" --check "$build_ucx"); then
        result fail "build of the optimised UCX"
        return
    fi
    for tls in sep rc_mlx5,ud_mlx5 ud_mlx5; do
        tests='*'
        [[ $tls != ud_mlx5 ]] || tests='UcpFlush.*'
        for proto in n y; do
            test_env=(LD_LIBRARY_PATH="$build_ucx/lib" UCX_TLS="$tls"
                      UCX_PROTO_ENABLE="$proto" UCX_WARN_UNUSED_ENV_VARS=n)
            run_gtest "ucp_gtest-${tls%,*}-proto_$proto" "$build_plain" \
                test/gtest/ucp_gtest "$suite_limit" "$tests"
        done
    done
    test_env=()
}

part_sources()
{
    local part
    sep_say "Sources"
    for part in $("$SEP_TOP/contrib/check-sources.sh" --list); do
        check "check-sources.sh $part" 120 \
            "$SEP_TOP/contrib/check-sources.sh" "$part"
    done
    make_plain "build for the tarball" "all" || return 0
    # The unit tests of the tarball are built; they have been run.
    check "make distcheck" 900 env GTEST_FILTER='-*' \
        make -C "$build_plain" --no-print-directory -j "$(sep_jobs)" distcheck
}

parts=()
for argument in "$@"; do
    case $argument in
    unit|sanitized|modes|threads|memcheck|jobs|conformance|ucp|sources)
        parts+=("$argument") ;;
    --quick) jobs_options+=(--quick) ;;
    --help|-h) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
    esac
done
[[ ${#parts[@]} != 0 ]] ||
    parts=(unit sanitized modes threads memcheck jobs conformance ucp sources)

start=$SECONDS
mkdir -p "$results"
sep_install_deps build test jobs bench
for part in "${parts[@]}"; do
    "part_$part"
done

sep_say "Done in $(sep_duration $((SECONDS - start))); logs are in" \
    "${results#"$SEP_TOP"/}"
if [[ $failed != 0 ]]; then
    printf 'failed: %s\n' "${failures[@]}"
fi
echo "$passed passed, $failed failed"
[[ $failed == 0 && $passed != 0 ]]
