# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Suites that are in no package: from sources that the user has. Part of
# device-suites.sh, which has the functions and variables that are used here.

# Have a copy of the user's source in $work/NAME.source.
# usage: have_source NAME SUBDIRECTORY FILE-THAT-IS-THERE
have_source()
{
    local dir=${sources[$1]-}
    [[ $dir ]] || sep_die "$1: where is its source? --$1 DIR"
    [[ -e $dir/$3 ]] || dir=$dir/$2
    [[ -e $dir/$3 ]] || sep_die "$1: there is no $3 in ${sources[$1]}"
    rm -rf "$work/$1.source"
    cp -r "$dir" "$work/$1.source"
}

# Build in $work/NAME.build, unless the source is the one that is there. usage:
# build_source NAME COMMAND...
build_source()
{
    mkdir -p "$work/$1.build"
    (cd "$work/$1.build" && "${@:2}") > "$work/$1.build.log" 2>&1 ||
        sep_die "$1: see $work/$1.build.log"
}

# Its script kills all that is called fi_* when one hangs, so it has processes of its
# own only. The address is one of an interface, as some tests have a socket of TCP, too:
# a server that has the loopback's does not listen on the port that it is asked for, in
# libfabric 1.17. What does not end when it is told is killed: libpsm's handler of
# SIGTERM, which Debian's libfabric brings, calls exit(), and may wait for itself.
run_fabtests()
{
    local provider log name state as_root=() at configs
    have_source fabtests fabtests functional/msg.c
    # shellcheck disable=SC2016 # expanded by the inner shell
    build_source fabtests bash -c 'cd ../fabtests.source && ./autogen.sh &&
        ./configure --prefix="$1" CFLAGS="-O1 -w" && make -j2 install' fabtests \
        "$work/fabtests.build"
    [[ $(id -u) == 0 ]] || as_root=(--map-root-user)
    at=$(hostname -I)
    at=${at%% *}
    [[ $at ]] || sep_die "fabtests: this machine has no address but the loopback's"
    configs=$work/fabtests.build/share/fabtests/test_configs
    export MLX5SIM_LINK=roce
    begin_suite fabtests
    for provider in verbs "verbs;ofi_rxm"; do
        log=$work/fabtests/$provider.log
        name=${provider#*;}
        # its leftovers are files in the working directory
        (cd "$work/fabtests" && timeout 1800 env PATH="$work/fabtests.build/bin:$PATH" \
            unshare "${as_root[@]}" --pid --fork --mount-proc "$device" --private \
            runfabtests.sh -t quick -T "-k 5 20" -f "$configs/$name/$name.exclude" \
            -s $at -c $at "$provider") > "$log" 2>&1 || true
        while IFS=$'\t' read -r name state; do
            case $state in
            Pass)   passed+=("$name") ;;
            Fail*)  bad+=("$name") ;;
            Notrun) refused+=("$name: it is not run") ;;
            esac
        done < <(sed -nE 's/^(fi_.*): +([A-Z][a-z]+).*$/\1\t\2/p' "$log")
        grep -q '^# Total Pass' "$log" || bad+=("$provider: has not come to its end")
    done
    unset MLX5SIM_LINK
    end_suite "$(sed -n 's/^AC_INIT(.*, \[\([0-9][^],]*\)\].*/\1/p' \
        "$work/fabtests.source/configure.ac" | head -n 1)"
}

# It is built by bazel, which Debian has not, with an Abseil that is newer: two types
# for views of strings, which are one there, meet in these files of the copy.
run_rdma_unit_test()
{
    local name line status patience made=$work/rdma-unit-test.build
    have_source rdma-unit-test . unit/rc_test.cc
    sed -i -E 's/(std|absl)::string_view/std::string/g' \
        "$work"/rdma-unit-test.source/internal/introspection_* \
        "$work"/rdma-unit-test.source/public/introspection.*
    build_source rdma-unit-test make -j2 -f "$here/rdma-unit-test/build.mk" \
        HERE="$here/rdma-unit-test" SOURCE="$work/rdma-unit-test.source"
    export MLX5SIM_LINK=${MLX5SIM_LINK-roce}
    begin_suite rdma-unit-test
    "$made/rdma-unit-test" --gtest_list_tests > "$work/rdma-unit-test/list"
    while IFS= read -r line; do
        line=${line%%  #*}
        if [[ $line != "  "* ]]; then
            name=$line
            continue
        fi
        line=$name${line#  } status=0 patience=1
        # these wait 2 s for what they give 6.4 s themselves: 6 timeouts
        case $line in
        RemoteRcQpStateTest*|AdvancedLoopbackTest.RcSendToUd) patience=6 ;;
        esac
        # RoCE's frames carry 1024 bytes
        timeout 30 "$device" --private "$made/rdma-unit-test" --verbs_mtu=1024 \
            --completion_wait_multiplier="$patience" "--gtest_filter=$line" \
            > "$work/rdma-unit-test/${line//\//-}.log" 2>&1 < /dev/null || status=$?
        if [[ $status == 0 ]] &&
           grep -aq '^\[  SKIPPED' "$work/rdma-unit-test/${line//\//-}.log"; then
            refused+=("$line: skips itself")
        elif [[ $status == 0 ]]; then
            passed+=("$line")
        else
            bad+=("$line")
        fi
    done < "$work/rdma-unit-test/list"
    unset MLX5SIM_LINK
    end_suite "source"
}

# Its build wants to get GoogleTest, which Debian has the source of, and has warnings
# be errors, of which compilers find more than its own did
run_lci()
{
    local line
    have_source lci . tests/unit/CMakeLists.txt.in
    sed -i -e '/GIT_TAG/d' -e \
        's|GIT_REPOSITORY .*|DOWNLOAD_COMMAND cp -r /usr/src/googletest/. <SOURCE_DIR>|' \
        "$work/lci.source/tests/unit/CMakeLists.txt.in"
    # shellcheck disable=SC2016 # expanded by the inner shell
    build_source lci bash -c 'cmake "$1" -DCMAKE_BUILD_TYPE=Release \
        -DLCI_BUILD_WARN_AS_ERROR=OFF -DLCI_NETWORK_BACKENDS=ibv \
        -DLCI_WITH_BENCHMARKS=OFF -DLCI_WITH_DOC=OFF &&
        make -j2' lci "$work/lci.source"
    begin_suite lci
    timeout 1800 "$device" --private ctest --test-dir "$work/lci.build" --timeout 600 \
        > "$work/lci/ctest.log" 2>&1 || true
    while read -r line; do
        case $line in
        *" Passed "*) passed+=("$line") ;;
        *)            bad+=("${line% *sec*}") ;;
        esac
    done < <(sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: //p' "$work/lci/ctest.log")
    [[ ${#passed[@]} != 0 ]] || bad+=("see $work/lci/ctest.log")
    end_suite "source"
}
