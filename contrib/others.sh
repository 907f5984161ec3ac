#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Programs of other projects that need an RDMA adapter, and their tests, on the
# software device, as their CI would run them. See docs/ci.md.
#
#   contrib/others.sh [--build DIR] [NAME...]
#
#   rdma-core  its tests of verbs and connections in Python: InfiniBand and RoCE,
#              with old UARs, with DC and ODP
#   qperf      18 measurements of a second, with RC, UC and UD
#   libfabric  fi_pingpong on the provider verbs;ofi_rxd, data compared
#   mooncake   the transfer engine: 1 MB to another process and back
#   nixl       the same between two agents, by the UCX that the package brings
#   sideway    a package of Rust: its tests of verbs and connections, on RoCE
#   ibverbs    another one: its example
#
#   --build DIR   a build of this checkout (default: build/others, made if it is
#                 missing)
#
# Without names, all run, those in Rust only if there is a cargo, which has to be newer
# than Debian 12's. The first three are Debian's, the next two Python's: these and
# Rust's are built in a directory of the build. Exit status is 0 if all passed.
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"

build=''
while [[ ${1:-} == -* ]]; do
    case $1 in
    --build)   build=$(realpath -e "${2:?--build needs a directory}"); shift 2 ;;
    --help|-h) sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'; exit 0 ;;
    *)         echo "${0##*/}: unknown option $1; see --help" >&2; exit 2 ;;
    esac
done
if [[ $# == 0 ]]; then
    set -- rdma-core qperf libfabric mooncake nixl
    ! type cargo > /dev/null 2>&1 || set -- "$@" sideway ibverbs
fi
here=$SEP_TOP/contrib/others
failed=0

# usage: result NAME VERSION WHAT STATUS, which is "ok" or what went wrong
result()
{
    printf '%-10s %-13s %s: %s\n' "$@"
    [[ $4 == ok ]] || failed=1
}

# Upstream version of an installed package of Debian.
version_of()
{
    dpkg-query -W -f '${source:Upstream-Version}' "$1"
}

# A server that listens on a port of TCP, and a client; both must succeed.
# usage: pair LOG PORT SERVER CLIENT
pair()
{
    # shellcheck disable=SC2016 # expanded by the inner shell
    timeout 300 "$device" --private bash -c '
        $1 & server=$!
        trap "kill $server 2> /dev/null" EXIT
        port=$(printf ":%04X " "$0")
        until cat /proc/net/tcp* | grep -q "$port.* 0A "; do
            sleep 0.1
            kill -0 $server || exit 1
        done
        $2 && wait $server' "$2" "$3" "$4" > "$1" 2>&1
}

# How many tests passed and were skipped, as Python's unittest says it.
# usage: rdma_core NAME GID-INDEX [VARIABLE=VALUE...]
rdma_core()
{
    local name=$1 gid=$2 log=$work/rdma-core-$1.log status=0 count
    shift 2
    (cd "$work/rdma-core" && timeout 600 env "$@" "$device" --private \
        /usr/bin/python3 tests/run_tests.py -v --dev mlx5_0 --gid "$gid") \
        > "$log" 2>&1 || status=$?
    count=$(awk '/^Ran [0-9]+ tests/ { ran = $2 }
                 match($0, /skipped=[0-9]+/) {
                     skipped = substr($0, RSTART + 8, RLENGTH - 8) }
                 END { print ran - skipped " run, " skipped + 0 " skipped" }' \
                "$log")
    [[ $status != 0 ]] || status=ok
    result rdma-core "$(version_of python3-pyverbs)" "$name, $count" \
        "$status"
}

run_rdma_core()
{
    local tests=/usr/share/doc/rdma-core/tests
    rm -rf "$work/rdma-core"
    mkdir "$work/rdma-core"
    cp -r "$tests" "$work/rdma-core"
    gunzip "$work"/rdma-core/tests/*.gz
    rdma_core InfiniBand 0
    rdma_core RoCE 3 MLX5SIM_LINK=roce
    rdma_core "old UARs" 0 MLX5SIM_UAR_MODE=legacy
    rdma_core "DC, ODP" 0 MLX5SIM_DC=y MLX5SIM_ODP=y
}

run_qperf()
{
    local tests status=ok
    tests="rc_lat rc_bw rc_bi_bw rc_rdma_read_lat rc_rdma_read_bw
        rc_rdma_write_lat rc_rdma_write_bw rc_rdma_write_poll_lat
        rc_compare_swap_mr rc_fetch_add_mr ver_rc_compare_swap
        ver_rc_fetch_add uc_lat uc_bw uc_rdma_write_bw
        uc_rdma_write_poll_lat ud_lat ud_bw"
    pair "$work/qperf.log" 19765 qperf \
        "qperf -t 1 localhost ${tests//$'\n'/ } quit" || status=$?
    result qperf "$(version_of qperf)" \
        "$(grep -cE '^(rc|uc|ud|ver)_[a-z_]+:$' "$work/qperf.log") of 18" \
        "$status"
}

run_libfabric()
{
    local size status=ok options
    for size in 16 1024 65536; do
        options="-p verbs;ofi_rxd -e rdm -d mlx5_0-dgram -c -I 20 -S $size"
        pair "$work/libfabric-$size.log" 47592 "fi_pingpong $options" \
            "fi_pingpong $options localhost" || status="$size bytes failed"
    done
    result libfabric "$(version_of libfabric-bin)" "verbs;ofi_rxd" "$status"
}

# Install packages of Python, once, without what they depend on.
# usage: python_packages NAME PACKAGE==VERSION...
python_packages()
{
    local name=$1
    shift
    [[ $(cat "$work/$name/.packages" 2> /dev/null) != "$*" ]] || return 0
    rm -rf "${work:?}/$name"
    python3 -m venv "$work/$name"
    "$work/$name/bin/pip" install -q --no-deps "$@" > "$work/$name.pip" 2>&1 || {
        cat "$work/$name.pip" >&2
        sep_die "$name: its packages can't be installed"
    }
    echo "$*" > "$work/$name/.packages"
}

# usage: run_python NAME PROGRAM PACKAGE==VERSION...
run_python()
{
    local name=$1 program=$2 status=ok
    python_packages "$name" "${@:3}"
    timeout 300 env UCX_TLS=rc,ud,self "$device" --private \
        "$work/$name/bin/python" "$here/$program" > "$work/$name.log" 2>&1 ||
        status=$?
    result "$name" "${3#*==}" "1 MB there and back" "$status"
}

run_mooncake()
{
    run_python mooncake mooncake_transfer.py \
        mooncake-transfer-engine-non-cuda==0.3.13.post1
}

run_nixl()
{
    run_python nixl nixl_transfer.py nixl-cu12==1.5.1 numpy==2.2.6
}

# Have the sources of a package of Rust in $work/NAME-VERSION/source, where cargo may
# build: it takes those that it keeps itself for read-only.
# usage: rust_package NAME VERSION
rust_package()
{
    local dir=$work/$1-$2 manifest
    [[ ! -d $dir/source ]] || return 0
    rm -rf "$dir/source.new"
    mkdir -p "$dir/src"
    touch "$dir/src/lib.rs"
    printf '%s\n' '[package]' 'name = "others"' 'version = "0.0.0"' \
        '[dependencies]' "$1 = \"=$2\"" > "$dir/Cargo.toml"
    manifest=$(cd "$dir" && cargo metadata --format-version 1 |
        python3 -c 'import json, sys
print(*(package["manifest_path"] for package in json.load(sys.stdin)["packages"]
        if package["name"] == sys.argv[1]))' "$1") ||
        sep_die "$1: its packages can't be had"
    cp -r "${manifest%/*}" "$dir/source.new"
    mv "$dir/source.new" "$dir/source"
}

# The test of what must not compile has no need of a device
run_sideway()
{
    local version=0.4.3 status=ok
    rust_package sideway "$version"
    (cd "$work/sideway-$version/source" && timeout 1800 env MLX5SIM_LINK=roce "$device" \
        --private cargo test --lib --tests --no-fail-fast -- \
        --skip compile_test) > "$work/sideway.log" 2>&1 || status=$?
    result sideway "$version" "$(awk '/^test result:/ { n += $4; f += $6 }
        END { print n + 0 " passed, " f + 0 " failed" }' "$work/sideway.log")" \
        "$status"
}

run_ibverbs()
{
    local version=0.9.2 status=ok
    rust_package ibverbs "$version"
    (cd "$work/ibverbs-$version/source" && timeout 1800 env MLX5SIM_LINK=roce "$device" \
        --private cargo run --example loopback) > "$work/ibverbs.log" 2>&1 ||
        status=$?
    result ibverbs "$version" "example loopback" "$status"
}

sep_install_deps build others >&2
if [[ -z $build ]]; then
    build=$SEP_TOP/build/others
    sep_use_ccache
    sep_build "$build" all "$SEP_TOP/configure" --without-ucx --disable-gtest >&2
fi
device=$build/bin/mlx5sim-run
[[ -x $device ]] || sep_die "there is no $device: build there, or elsewhere"
work=$build/others-work
mkdir -p "$work"
for name in "$@"; do
    case $name in
    rdma-core) run_rdma_core ;;
    qperf)     run_qperf ;;
    libfabric) run_libfabric ;;
    mooncake)  run_mooncake ;;
    nixl)      run_nixl ;;
    sideway)   run_sideway ;;
    ibverbs)   run_ibverbs ;;
    *)         sep_die "there is nothing called $name; see --help" ;;
    esac
done
echo "Logs are in $work"
exit $failed
