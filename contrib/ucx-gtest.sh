#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Run UCX's own unit tests on sep_mlx5 and on rc_mlx5, and compare.
#
#   contrib/ucx-gtest.sh                everything: an hour or more
#   contrib/ucx-gtest.sh --quick        a representative part: a few minutes
#   contrib/ucx-gtest.sh --group uct    uct, md (memory domains) or ucp only
#   contrib/ucx-gtest.sh --tests REGEX  tests whose 'suite.test' matches
#   contrib/ucx-gtest.sh --tsv          one line per test
#   contrib/ucx-gtest.sh --resume       continue where an earlier run stopped
#   contrib/ucx-gtest.sh --only sep --set UCX_SEP_CATEGORY=static ...
#   contrib/ucx-gtest.sh --set SEP_UCX_SINGLE=y  workers of one thread, where a test
#                                       does not ask for several as all of UCX's do
#
# Copies the UCX source package of the installed version, or the source of another
# one (the original is not changed), adds the transport to the lists in UCX's
# tests, builds UCX and its tests with assertions, parameter checks and
# statistics, and the transport for that UCX. Later runs use what is built.
#
# Exit status is 0 if sep_mlx5 is nowhere worse than rc_mlx5. docs/conformance.md
# has the results, and says what is not run and why.
#
# Options: --ucx-source WHAT  a source tree of UCX, or an archive of one (default:
#                             obtained with apt); give it its own --build
#          --build DIR        where to build (default build/ucx-gtest), the
#                             transport in DIR-sep
#          --results DIR      where to write (default results/ in it)
#          --build-only       build and run nothing
#          --device DIR       with what is about UCX's own transports for InfiniBand
#                             alone (--group rc, dc and so on), on the device of that
#                             build and without the transport
#                             (default of --build: build/ucx-gtest-device)
#          --ucx-opt          with the optimisations of src/ucp/opt and the
#                             transport as one of UCX's modules
#                             (default of --build: build/ucx-gtest-opt)
# All others are those of test/conformance/ucx_gtest, see its --help.
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=contrib/ucx.sh
. "$(dirname "$0")/ucx.sh"

usage()
{
    sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'
}

driver=$SEP_TOP/test/conformance/ucx_gtest
dir=
opt=
device=
ucx_source=
results=
build_only=
quick=
groups=()
options=()
while [[ $# -gt 0 ]]; do
    case $1 in
    --ucx-source) ucx_source=$(realpath -e \
                      "${2:?--ucx-source needs a directory or archive}")
                  shift 2 ;;
    --build)      dir=${2:?--build needs a directory}; shift 2 ;;
    --results)    results=${2:?--results needs a directory}; shift 2 ;;
    --build-only) build_only=1; shift ;;
    --device)     device=$(realpath -e "${2:?--device needs a build}")
                  options+=(--module); shift 2 ;;
    --ucx-opt)    opt=1; options+=(--module); shift ;;
    --quick)      quick=1; options+=(--quick); shift ;;
    --group)      groups+=("${2:?--group needs a name}")
                  options+=(--group "$2"); shift 2 ;;
    --help|-h)    usage; "$driver" --help; exit 0 ;;
    *)            options+=("$1"); shift ;;
    esac
done

: "${dir:=$SEP_TOP/build/ucx-gtest${opt:+-opt}${device:+-device}}"
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
# Where UCX's source, build and installation are
tree=$dir
: "${results:=$dir/results${quick:+-quick}}"

# How much of the tests is needed: all, some of each group, of these no UCP's, or
# all of UCP's alone
kind=all
if [[ -n $quick ]]; then
    kind=some
    [[ ${#groups[@]} -eq 0 || -n $device || " ${groups[*]} " == *" ucp "* ]] ||
        kind=uct
elif [[ ${#groups[@]} -gt 0 && -z $device && " ${groups[*]} " =~ ^( ucp[^ ]*)+\ $ ]]; then
    kind=ucp
fi

# Debian's own options and statistics. The compiler has optimised Debian's UCX
# more; here building takes longer than running. contrib/build-ucx-opt.sh --check
# compiles the same, and what is not patched comes from ccache then.
flags=(--enable-mt --with-verbs --disable-logging --enable-devel-headers
       --enable-cma --enable-gtest --enable-stats --disable-static
       --without-go --without-java --disable-doxygen-doc
       "CFLAGS=$SEP_UCX_FAST")
# The tests are compiled as fast as can be: half of the time is optimisation,
# and half of the rest is the same headers again and again.
test_flags="-O0 -g0 -include sep_precompiled.h"
# Macros with paths are for tests that are left out. Without them, ccache knows an
# object that was compiled elsewhere.
nowhere=(abs_top_srcdir=. abs_builddir=.)
ucx_parts=(src/ucm src/ucs src/uct src/ucp src/tools/info)

# usage: step NAME DIRECTORY COMMAND...
step()
{
    local name=$1 where=$2 log=$dir/log-${1// /-}.txt
    shift 2
    sep_say "UCX's tests: $name" >&2
    (cd "$where" && timeout --kill-after=30 3600 "$@") > "$log" 2>&1 \
        < /dev/null || {
        tail -n 40 "$log" >&2
        sep_die "$name failed; see $log"
    }
}

# Run make in several directories.
# usage: make_in TARGET DIRECTORY...
make_in()
{
    local target=$1 part
    shift
    for part in "$@"; do
        # shellcheck disable=SC2046 # one word or none
        make -C "$part" --no-print-directory $(sep_parallel) "$target" ||
            return 1
    done
}

# Objects of the test program that are of use: no tests of UCX's own utilities
# and other transports, nothing that needs a device with tag matching. With
# --quick, only what has tests of the representative part, and of its groups.
gtest_objects()
{
    local about_rdma='-(test_(ud|dc|rc|devx|cqe_zipping|ib|cq_mod)|ud_base)'
    local object
    # shellcheck disable=SC2016 # expanded by make
    printf 'include Makefile\nsep-objects:\n\t@echo $(gtest_OBJECTS)\n' |
        make -C test/gtest --no-print-directory -s -f - sep-objects |
        tr ' ' '\n' | while IFS= read -r object; do
        if [[ -n $device && $object =~ $about_rdma ]]; then
            echo "$object"
            continue
        fi
        case $object in
        ucs/*|ucm/*|uct/tcp/*|*-test_tag.o|*-test_ud*.o|*-ud_base.o|\
        *-test_dc.o|*-test_rc.o|*-test_devx.o|*-test_mm*.o|*sockaddr.o|\
        *-test_srd.o|*-test_cqe_zipping.o|*-test_ucp_proto_mock.o|\
        *-test_ucp_tl_info.o|*-test_ucp_wireup_lane_info.o|\
        *-test_atomic_key_reg_rdma_mem_type.o|*-test_ucp_tag_offload.o) ;;
        *-test_ucp_tag_xfer.o|*-test_ucp_tag_m[et]*.o|*-test_ucp_tag_perf.o|\
        *-test_ucp_tag_cancel.o|*-test_ucp_perf.o|*-test_ucp_proto.o|\
        *-test_ucp_dt.o|*-test_ucp_mem_type.o|*-test_ucp_mmap.o|\
        *-test_ucp_rma_mt.o|*-test_ucp_tls.o|*-test_ucp_request.o|\
        *-test_ucp_fault_tolerance.o|*-test_ucp_ep_reconfig.o|*-test_perf.o)
            [[ $kind != all && $kind != ucp ]] || echo "$object" ;;
        *-test_ib.o|*-test_ib_event.o|*-test_ib_pkey.o|*-test_cq_moderation.o|\
        *-test_mem.o|*-test_uct_perf.o|*-test_zcopy_comp.o|*-test_obj_size.o|\
        *-test_watchdog.o|*-test_gtest_cmn.o)
            [[ $kind != all ]] || echo "$object" ;;
        ucp/*|*-ucp_test.o|*-ucp_datatype.o)
            [[ $kind == uct ]] || echo "$object" ;;
        uct/*) [[ $kind == ucp ]] || echo "$object" ;;
        *)  echo "$object" ;;
        esac
    done
}

# Compile what all tests include, with what the Makefile compiles them with. They
# give way to others at each call of progress, which on a machine with much to do
# takes the time of all others each time: one test went on for 16 minutes, of
# which it had 5 seconds. Both ends are in one process, so nobody needs that.
# usage: precompile_headers [VARIABLE-OF-MAKE...]
precompile_headers()
{
    # shellcheck disable=SC2016 # expanded by make
    local compile='$(CXX) $(DEFS) $(DEFAULT_INCLUDES) $(INCLUDES)'
    # shellcheck disable=SC2016
    compile+=' $(gtest_CPPFLAGS) $(CPPFLAGS) $(gtest_CXXFLAGS) $(CXXFLAGS)'
    compile+=' -x c++-header -o sep_precompiled.h.gch sep_precompiled.h'

    {
        printf '#include <%s.h>\n' sched common/test common/test_helpers
        echo '#define sched_yield() ((void)0)'
    } > test/gtest/sep_precompiled.h
    printf 'include Makefile\nsep-precompile:\n\t%s\n' "$compile" |
        make -C test/gtest --no-print-directory -f - sep-precompile \
            "CXXFLAGS=${test_flags% -include *}" "$@"
}

# A copy of UCX's source with the transport in its tests, configured.
prepare_ucx()
{
    rm -rf "$tree/source" "$tree/build" "$tree/ucx"
    mkdir "$tree/build"
    sep_ucx_copy "$ucx_source" "$tree/source"
    if [[ -n $opt ]]; then
        sep_ucx_patch "$tree/source" "$(sep_ucx_release "$tree/source")" all \
            "$dir/log-patch.txt"
        sep_ucx_add_files "$tree/source"
    fi
    "$driver" --adapt "$tree/source"
    step autogen "$tree/source" ./autogen.sh
    step configure "$tree/build" "$tree/source/configure" \
        --prefix="$tree/ucx" "${flags[@]}"
    sep_ucx_hide_paths "$tree" "$tree/ucx"
}

# Build in what is kept for other checkouts, if anything is, and have the build
# directory refer to that. Tests with the optimisations depend on the transport's
# sources, which are seldom those of an earlier run.
# usage: use_kept_tree STAMP
use_kept_tree()
{
    local name scripts
    [[ -z $opt ]] || return 0
    scripts=$(cat "$SEP_TOP"/contrib/{ucx-gtest,ucx}.sh | cksum)
    sep_ucx_keep ucx-gtest "$1 $kind $scripts" || return 0
    tree=$sep_kept
    export CCACHE_BASEDIR=$tree
    for name in source build ucx; do
        rm -rf "${dir:?}/$name"
        ln -s "$tree/$name" "$dir/$name"
    done
}

build_ucx()
{
    local stamp
    [[ -n $ucx_source ]] ||
        ucx_source=$(sep_ucx_source)
    # What the build depends on: source, options, and what is put into the tests
    stamp="$(sep_ucx_sum "$ucx_source") ${flags[*]} $test_flags $(cksum < \
        "$SEP_TOP/test/conformance/conformance/adapt.py") $(declare -f gtest_objects | cksum)${opt:+ $(sep_ucx_opt_fingerprint)}${device:+ device}"
    use_kept_tree "$stamp"
    case $(cat "$tree/.complete" 2> /dev/null) in
    "$stamp all")  return ;;
    # The rest of the tests is missing, or that and UCP's
    "$stamp some") [[ $kind == all ]] || return 0 ;;
    "$stamp uct")  [[ $kind != uct ]] || return 0 ;;
    "$stamp ucp")  [[ $kind != ucp ]] || return 0 ;;
    *)             rm -f "$tree/.complete"
                   prepare_ucx ;;
    esac

    cd "$tree/build"
    export -f make_in sep_jobs sep_parallel precompile_headers
    export test_flags
    step "make UCX" . bash -c 'make_in all "$@"' make_in "${ucx_parts[@]}"
    step "make install" . bash -c 'make_in install "$@"' make_in \
        "${ucx_parts[@]}"
    step "make test libraries" . bash -c 'make_in all "$@"' make_in \
        src/tools/perf test/gtest/common/googletest test/gtest/ucs/test_module \
        test/gtest/ucm/test_dlopen
    [[ -e test/gtest/sep_precompiled.h.gch ]] ||
        step "precompile headers" . bash -c 'precompile_headers "$@"' \
            precompile_headers "${nowhere[@]}"
    # shellcheck disable=SC2046 # one word or none
    step "make gtest" . make -C test/gtest --no-print-directory \
        $(sep_parallel) gtest "CXXFLAGS=$test_flags" \
        "gtest_OBJECTS=$(gtest_objects | tr '\n' ' ')" "${nowhere[@]}"
    cd "$SEP_TOP"
    echo "$stamp $kind" > "$tree/.complete"
}

# Standard output is for the result.
{
    sep_install_deps build bench
    sep_use_ccache
    build_ucx
    sep_ucx_leave
    # The transport's sources are in the checkout
    [[ -z ${CCACHE_BASEDIR-} ]] || export CCACHE_BASEDIR=$SEP_TOP
    # As deep as other builds, so that ccache knows what does not depend on UCX
    [[ -n $device ]] ||
        sep_build "$dir-sep" all "$SEP_TOP/configure" --with-ucx="$tree/ucx" \
            --with-ucx-source="$tree/source" --disable-gtest
} >&2
[[ -z $build_only ]] || exit 0

exec "$driver" --gtest "$dir/build/test/gtest/gtest" --sep-build "${device:-$dir-sep}" \
    --source "$dir/source" \
    --results "$results" --jobs "$(sep_jobs)" "${options[@]}"
