#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Test a UCX that contrib/build-ucx-opt.sh installed: the tests of test/gtest/ucp
# on sep_mlx5, rc_mlx5 and rc_verbs, with both versions of UCP's protocols, with
# the optimisations and without; and that the libraries' public ABI is that of a
# build without them.
#
#   contrib/test-ucx-opt.sh [--ucx-source WHAT] [PREFIX [STOCK-PREFIX]]
#
#   contrib/test-ucx-opt.sh --asan [--ucx-source WHAT] [PREFIX]
#
# Default: build/ucx-opt and build/ucx-stock, built if they are not there.
#
# --ucx-source WHAT: a source tree of UCX, or an archive of one, of a release for
# which src/ucp/opt/patches has patches (default: Debian's source package). The
# default directories have the release behind their names then.
#
# --asan: the tests on sep_mlx5 and rc_mlx5 on a UCX with AddressSanitizer and
# UndefinedBehaviorSanitizer, and assertions (default: build/ucx-asan). A test
# program fails if a sanitizer reports anything.
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=contrib/ucx.sh
. "$(dirname "$0")/ucx.sh"

asan=
ucx_source=
while [[ ${1-} == -* ]]; do
    case $1 in
    --asan)       asan=y; shift ;;
    --ucx-source) ucx_source=${2:?--ucx-source needs a directory or archive}
                  shift 2 ;;
    *) sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p' >&2
       exit 2 ;;
    esac
done
suffix=
release=1.13.1
if [[ -n $ucx_source ]]; then
    ucx_source=$(sep_ucx_tree "$ucx_source")
    release=$(sep_ucx_release "$ucx_source")
    sep_ucx_opt_series "$release" > /dev/null
    suffix=-$release
fi

if [[ -n $asan ]]; then
    patched=${1:-$SEP_TOP/build/ucx-asan$suffix}
    stock=
    build=$SEP_TOP/build/test-ucx-asan$suffix
    "$SEP_TOP/contrib/build-ucx-opt.sh" --asan \
        ${ucx_source:+--ucx-source "$ucx_source"} "$patched"
    sep_build "$build" "all test/gtest/ucp_gtest" "$SEP_TOP/configure" \
        --enable-gtest --enable-asan --enable-ubsan
else
    patched=${1:-$SEP_TOP/build/ucx-opt$suffix}
    stock=${2:-$SEP_TOP/build/ucx-stock$suffix}
    build=$SEP_TOP/build/bench-ucp$suffix
    sep_install_deps build bench test abi
    sep_build_stock_and_patched "$stock" "$patched" "$ucx_source"
    for prefix in "$stock" "$patched"; do
        sep_ucx_expect_release "$prefix" "$release"
    done
    sep_build "$build" "all test/gtest/ucp_gtest" \
        "$SEP_TOP/contrib/configure-release" --with-ucx="$stock" \
        ${ucx_source:+--with-ucx-source="$ucx_source"}
fi

passed=0
failed=()

# usage: result NAME STATUS
result()
{
    if [[ $2 == 0 ]]; then
        passed=$((passed + 1))
        printf 'pass  %s\n' "$1"
    else
        failed+=("$1")
        printf 'FAIL  %s\n' "$1"
    fi
}

# usage: run_tests TLS VARIABLE=VALUE...
run_tests()
{
    local tls=$1 log status=0
    shift
    log=$build/ucp_gtest.log
    env LD_LIBRARY_PATH="$patched/lib" UCX_TLS="$tls" \
        UCX_WARN_UNUSED_ENV_VARS=n SEP_BUILD_DIR="$build" "$@" \
        timeout --kill-after=15 300 "$build/bin/mlx5sim-run" --private -- \
        "$build/test/gtest/ucp_gtest" > "$log" 2>&1 < /dev/null || status=$?
    [[ $status == 0 ]] || tail -n 40 "$log" >&2
    result "tests: $tls $*" "$status"
}

# All optimisations, and each version of UCP's protocols.
for tls in sep rc_mlx5,ud_mlx5; do
    for proto in n y; do
        run_tests "$tls" UCX_PROTO_ENABLE=$proto
    done
done

if [[ -z $asan ]]; then
    run_tests rc_verbs,ud_verbs UCX_PROTO_ENABLE=n
    run_tests rc_verbs,ud_verbs UCX_PROTO_ENABLE=y
    for tls in sep rc_mlx5,ud_mlx5 rc_verbs,ud_verbs; do
        run_tests "$tls" UCX_OPT_ONDEMAND=y
        run_tests "$tls" UCX_OPT_RKEY=n UCX_OPT_FLUSH=n UCX_OPT_IDLE_TX=n \
            UCX_OPT_FLUSH_SIGNAL=n UCX_OPT_WIREUP=n UCX_OPT_EAGER=n \
            UCX_OPT_RECV=n UCX_OPT_PROGRESS=n
    done

    # Several lanes, and keys for shared memory. What is left out fails on stock
    # UCX as well: who attaches to the shared memory of a process that is gone,
    # or, with version 2 of the protocols, waits for one that computes: there
    # shared memory carries puts, as messages that the peer has to receive.
    run_tests sep,shm UCX_PROTO_ENABLE=n GTEST_FILTER='-*OneThatIsGone*'
    run_tests sep,shm UCX_PROTO_ENABLE=y \
        GTEST_FILTER='-*OneThatIsGone*:*Computes*'

    for library in ucp uct ucs; do
        status=0
        abidiff --no-added-syms --headers-dir1 "$stock/include" \
            --headers-dir2 "$patched/include" "$stock/lib/lib$library.so.0" \
            "$patched/lib/lib$library.so.0" || status=$?
        result "ABI of lib$library" "$status"
    done
fi

printf '%d passed, %d failed\n' "$passed" "${#failed[@]}"
[[ ${#failed[@]} == 0 ]]
