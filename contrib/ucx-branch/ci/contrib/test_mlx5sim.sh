#!/bin/bash -eE
# SPDX-License-Identifier: BSD-3-Clause
#
# Test the transports for mlx5 on a machine without an adapter: on mlx5sim, a
# software device which libibverbs and libmlx5 take for a ConnectX. Nothing of
# UCX knows it.
#
#   contrib/test_mlx5sim.sh install        install the device, unless it is there
#   contrib/test_mlx5sim.sh build          build UCX and its unit tests
#   contrib/test_mlx5sim.sh info           check that UCX finds the device
#   contrib/test_mlx5sim.sh gtest [TL...]  run unit tests (rc_mlx5 ud_mlx5
#                                          sep_mlx5) of UCT and UCP
#
# Environment:
#   BUILD_DIR        where UCX is built (build-mlx5sim)
#   DEVICE_RUN       starts a program on the device (mlx5sim-run)
#   GTEST_FILTER     tests to run, in place of all of a transport
#   MLX5SIM_PACKAGE  URL of a .deb or .rpm of mlx5sim for this distribution, as
#                    build-deb.sh and build-rpm.sh of its project make them

BUILD_DIR=${BUILD_DIR:-build-mlx5sim}
DEVICE_RUN=${DEVICE_RUN:-mlx5sim-run}

# As adapters have
export MLX5SIM_DEVX=y

# Tests that measure time
EXCLUDE="*.envelope*:*test_ucp_tag_perf*"
# It expects a warning of another module
EXCLUDE="$EXCLUDE:*test_ucp_devices_config.negate_nonexistent_device_warning*"

error() {
    echo "error: $*" >&2
    exit 1
}

install() {
    local file=mlx5sim.${MLX5SIM_PACKAGE##*.}

    if command -v "$DEVICE_RUN" > /dev/null; then
        return
    fi

    case $file in
    mlx5sim.deb|mlx5sim.rpm) ;;
    *) error "$DEVICE_RUN is missing: set MLX5SIM_PACKAGE to a .deb or .rpm" ;;
    esac

    curl -fsSL -o "$file" "$MLX5SIM_PACKAGE"
    case $file in
    *.deb) sudo apt-get install -y "./$file" ;;
    *.rpm) sudo yum install -y "./$file" ;;
    esac
}

need_device() {
    command -v "$DEVICE_RUN" > /dev/null ||
        error "$DEVICE_RUN is missing: see $0 install, or set DEVICE_RUN"
}

build() {
    ./autogen.sh
    mkdir -p "$BUILD_DIR"
    cd "$BUILD_DIR"
    ../contrib/configure-devel --enable-gtest --with-mlx5 --without-java \
        --without-go "$@"
    make -j"$(nproc)"
    make -C test/gtest -j"$(nproc)" gtest
}

info() {
    need_device
    "$DEVICE_RUN" --private "$BUILD_DIR"/src/tools/info/ucx_info -d |
        grep -E "Transport: (rc|ud|sep)_mlx5"
}

tests_of() {
    case $1 in
    rc_mlx5)  echo "rc_mlx5/*:rcx/*" ;;
    ud_mlx5)  echo "ud_mlx5/*:udx/*" ;;
    sep_mlx5) echo "sep/*:*test_sep*" ;;
    *)        error "no such transport: $1" ;;
    esac
}

run_gtest() {
    local filter tl

    need_device
    for tl in "$@"; do
        filter=${GTEST_FILTER:-$(tests_of "$tl")}
        echo "==== $tl on mlx5sim ===="
        make -C "$BUILD_DIR"/test/gtest test \
            LAUNCHER="$DEVICE_RUN --private" \
            GTEST_FILTER="$filter:-$EXCLUDE"
    done
}

[ -f ./autogen.sh ] || error "run it from UCX's root"

command=$1
shift || true
case $command in
install) install ;;
build)   build "$@" ;;
info)    info ;;
gtest)   [ $# -gt 0 ] || set -- rc_mlx5 ud_mlx5 sep_mlx5
         run_gtest "$@" ;;
*)       error "install, build, info or gtest" ;;
esac
