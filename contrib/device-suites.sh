#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Programs of other projects that need an RDMA adapter, and their tests, on the
# software device, as their CI would run them. See docs/device-conformance.md.
#
#   contrib/device-suites.sh [--build DIR] [--ucx-source WHAT] [--tsv] [--quick] [NAME...]
#
#   rdma-core   its tests of verbs and connections in Python: InfiniBand and RoCE,
#               with old UARs, with DC and ODP, with DEVX, and with all of these,
#               device memory and two ports that are bonded
#   examples    ibv_*, with all of their options
#   librdmacm   its programs, at the loopback address, on RoCE
#   perftest    all that need no raw Ethernet, with most of their options
#   qperf       18 measurements of a second, with RC, UC and UD
#   libfabric   fi_pingpong on the providers verbs, verbs;ofi_rxm and verbs;ofi_rxd, data
#               compared
#   openmpi     Open MPI's own transport, openib: programs of test/mpi of four processes
#   mooncake    the transfer engine: 1 MB to another process and back, and its
#               benchmark in two processes
#   nixl        64 bytes to 16 MB between agents of two processes, by the UCX that the
#               package brings
#   sideway     a package of Rust: its tests of verbs and connections, on RoCE
#   ibverbs     another one: its example
#   go          UCX's bindings for Go: their tests, and goperftest in two processes
#   java        UCX's bindings for Java: their tests
#   ucx         UCX's own tests on rc_mlx5, ud_mlx5, dc_mlx5, rc_verbs and ud_verbs, by
#               contrib/ucx-gtest.sh (ucx-dc_mlx5: only on that one); only if it is
#               named, as it takes hours
#   fabtests    libfabric's own tests on verbs and verbs;ofi_rxm, runfabtests.sh -t quick
#   lci         LCI's own tests
#   rdma-unit-test   google's tests of verbs, a device for each
#
#   --build DIR   a build of this checkout (default: build/device-suites, made if it
#                 is missing). If it has the transport, go and java are run on it, too
#   --ucx-source WHAT   the source of another UCX for go, java and ucx than of
#                 the installed one, a directory or an archive
#   --fabtests DIR, --lci DIR, --rdma-unit-test DIR   the sources of these suites, which
#                 no package has. They are copied, and run only if they are named
#   --tsv         a line for each suite, with tabs: name, and how many tests passed,
#                 failed, and were refused by the device or skipped themselves
#   --quick       less of mooncake and nixl, as in CI: InfiniBand, and rc_x alone; of
#                 ucx, a representative part
#
# Without names, all run, those in Rust only if there is a cargo, which has to be newer
# than Debian 12's. Up to openmpi they are Debian's, the next two Python's: these and
# Rust's are built in a directory of the build. Variables of the device that are set
# hold for all: MLX5SIM_EXEC=deferred MLX5SIM_SEED=1 for instance. Exit status is 0 if
# none failed, and 77 if none ran, as packages of Python could not be had.
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=contrib/ucx.sh
. "$(dirname "$0")/ucx.sh"

build='' tsv='' quick='' ucx_source=''
declare -A sources
while [[ ${1:-} == -* ]]; do
    case $1 in
    --build)   build=$(realpath -e "${2:?--build needs a directory}"); shift 2 ;;
    --ucx-source) ucx_source=$(realpath -e \
                   "${2:?--ucx-source needs a directory or archive}"); shift 2 ;;
    --fabtests|--lci|--rdma-unit-test)
        sources[${1#--}]=$(realpath -e "${2:?$1 needs a directory}"); shift 2 ;;
    --tsv)     tsv=y; shift ;;
    --quick)   quick=y; shift ;;
    --help|-h) sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'; exit 0 ;;
    *)         echo "${0##*/}: unknown option $1; see --help" >&2; exit 2 ;;
    esac
done
if [[ $# == 0 ]]; then
    set -- rdma-core examples librdmacm perftest qperf libfabric openmpi \
        mooncake nixl go java
    ! type cargo > /dev/null 2>&1 || set -- "$@" sideway ibverbs
fi
here=$SEP_TOP/contrib/device-suites
failed=0 ran=0 cannot=''
ucx_tree='' ucx_release='' ucx_path='' ucx_flags=()
# shellcheck source=contrib/device-suites/ucx.sh
. "$here/ucx.sh"
# shellcheck source=contrib/device-suites/sources.sh
. "$here/sources.sh"

# usage: result SUITE VERSION PASSED FAILED REFUSED
result()
{
    ran=1
    if [[ $tsv ]]; then
        printf '%s\t%s\t%s\t%s\n' "$1" "$3" "$4" "$5"
    else
        printf '%-24s %-13s %4s passed, %s failed, %s refused\n' "$@"
    fi
    [[ $4 == 0 ]] || failed=1
}

# The same of a suite that is one test. usage: result_of SUITE VERSION STATUS
result_of()
{
    if [[ $3 == 0 ]]; then
        result "$1" "$2" 1 0 0
    else
        result "$1" "$2" 0 1 0
    fi
}

# Upstream version of an installed package of Debian.
version_of()
{
    dpkg-query -W -f '${source:Upstream-Version}' "$1"
}

# A server, and a client as soon as the server listens on a port of TCP; both must
# succeed. A port of 0: the server does not say when it listens, and the client comes
# again until it is heard. A device has to be left in order, too.
# usage: pair LOG PORT SERVER CLIENT
pair()
{
    # shellcheck disable=SC2016 # expanded by the inner shell
    timeout 300 "$device" --private bash -c '
        $1 & server=$!
        trap "kill $server 2> /dev/null" EXIT
        if [[ $0 == 0 ]]; then
            for i in 1 2 3 4 5 6 7 8 9 10; do
                sleep 0.5
                kill -0 $server || break
                if $2; then
                    wait $server
                    exit
                fi
            done
            exit 1
        fi
        port=$(printf ":%04X " "$0")
        until cat /proc/net/tcp* | grep -q "$port.* 0A "; do
            sleep 0.1
            kill -0 $server || exit 1
        done
        $2 && wait $server' "$2" "$3" "$4" > "$1" 2>&1
}

# Programs of a suite, one after the other: begin_suite, some of pair_test and
# one_test, and end_suite.
begin_suite()
{
    suite=$1 passed=() bad=() refused=()
    rm -rf "${work:?}/$suite"
    mkdir -p "$work/$suite"
}

# What is the log's to say: the device names what it does not have.
# usage: judge NAME STATUS
judge()
{
    local log=$work/$suite/${1//\//-}.log why
    why=$(sed -n -e 's/.*not emulated: \([^(;,]*[^(;, ]\).*/\1/p' \
        -e 's/^failed to open UMAD port .*/user MADs/p' "$log" | head -n 1)
    if [[ $2 == 0 ]]; then
        passed+=("$1")
    elif [[ $why ]]; then
        refused+=("$1: $why")
    else
        bad+=("$1")
    fi
}

# usage: pair_test NAME PORT SERVER CLIENT
pair_test()
{
    local status=0
    pair "$work/$suite/${1//\//-}.log" "$2" "$3" "$4" || status=$?
    judge "$1" "$status"
}

# usage: one_test NAME COMMAND...
one_test()
{
    local status=0
    timeout 300 "$device" --private "${@:2}" > "$work/$suite/${1//\//-}.log" 2>&1 ||
        status=$?
    judge "$1" "$status"
}

end_suite()
{
    result "$suite" "$1" ${#passed[@]} ${#bad[@]} ${#refused[@]}
    [[ ! $tsv ]] || return 0
    [[ ${#bad[@]} == 0 ]] || printf '    failed: %s\n' "${bad[@]}"
    [[ ${#refused[@]} == 0 ]] || printf '    refused: %s\n' "${refused[@]}"
}

# A number of unittest's last lines. usage: number LOG EXPRESSION
number()
{
    sed -nE "s/$2/\\1/p" "$1" | tail -n 1 | grep . || echo 0
}

# usage: rdma_core NAME GID-INDEX [VARIABLE=VALUE...]
rdma_core()
{
    local name=$1 gid=$2 log=$work/rdma-core-$1.log ran bad skipped
    shift 2
    (cd "$work/rdma-core" && timeout 600 env "$@" "$device" --private \
        /usr/bin/python3 tests/run_tests.py -v --dev mlx5_0 --gid "$gid") \
        > "$log" 2>&1 || true
    ran=$(number "$log" '^Ran ([0-9]+) tests.*')
    bad=$(($(number "$log" '^FAILED.*failures=([0-9]+).*') +
           $(number "$log" '^FAILED.*errors=([0-9]+).*')))
    skipped=$(number "$log" '^[A-Z]+ .*skipped=([0-9]+).*')
    [[ $ran != 0 ]] || bad=1
    result "rdma-core $name" "$(version_of python3-pyverbs)" \
        $((ran > bad + skipped ? ran - bad - skipped : 0)) "$bad" "$skipped"
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
    rdma_core DEVX 0 MLX5SIM_DEVX=y
    local all=(MLX5SIM_DEVX=y MLX5SIM_DC=y MLX5SIM_ODP=y MLX5SIM_DM=y)
    rdma_core "InfiniBand, all" 0 "${all[@]}"
    rdma_core "RoCE, all" 3 "${all[@]}" MLX5SIM_LINK=roce MLX5SIM_LAG=2
}

run_examples()
{
    local program options
    export MLX5SIM_ODP=y MLX5SIM_DM=y
    begin_suite examples
    one_test ibv_devices ibv_devices
    one_test ibv_devinfo ibv_devinfo -v
    for program in rc uc ud srq xsrq; do
        options=("" -e "-n 20 -s 4000")
        case $program in
        rc)   options+=(-c "-c -s 100000 -n 50" -t "-o -c" "-o -P -c" "-o -O -c"
                        "-j -c" -N "-N -c" "-m 4096") ;;
        uc)   options+=(-c "-m 256") ;;
        ud)   options=("" -e "-s 2000" -c) ;;
        srq)  options+=("-q 4" "-o" "-c") ;;
        xsrq) options+=("-m 256") ;;
        esac
        for options in "${options[@]}"; do
            program=ibv_${program#ibv_}
            program=${program%_pingpong}_pingpong
            pair_test "$program $options" 18515 "$program $options" \
                "$program $options localhost"
        done
    done
    unset MLX5SIM_ODP MLX5SIM_DM
    end_suite "$(version_of ibverbs-utils)"
}

run_librdmacm()
{
    local at=127.0.0.1 option
    export MLX5SIM_LINK=roce
    begin_suite librdmacm
    for option in "" -V "-V -S 20000"; do
        pair_test "rping $option" 0 "rping -s -a $at -C 10 $option" \
            "rping -c -a $at -C 10 $option"
    done
    for option in "" "-c 20" -m "-C 5 -S 4000" "-t 8"; do
        pair_test "ucmatose $option" 0 "ucmatose $option" \
            "ucmatose -s $at $option"
    done
    for option in "" "-C 20 -S 1000"; do
        pair_test "udaddy $option" 0 "udaddy $option" "udaddy -s $at $option"
    done
    # all sizes, of which there are many, take minutes
    for option in "" "-T v" "-T b" "-T a" "-T n" "-T r" "-T f" "-I 10 -k 1"; do
        pair_test "rstream $option" 0 "rstream -S 4096 -C 50 $option" \
            "rstream -S 4096 -C 50 -s $at $option"
    done
    for option in "" "-T a" "-T v"; do
        pair_test "riostream $option" 0 "riostream -S 4096 -C 50 $option" \
            "riostream -S 4096 -C 50 -s $at $option"
    done
    pair_test "rdma_server" 0 rdma_server "rdma_client -s $at"
    pair_test "rdma_xserver" 0 "rdma_xserver -c r" "rdma_xclient -s $at -c r"
    # its server stays
    one_test cmtime bash -c "cmtime & trap 'kill \$!' EXIT
        sleep 2
        cmtime -s $at -c 50"
    pair_test "mckey" 0 "mckey -m 239.1.1.1 -b $at" "mckey -m 239.1.1.1 -b $at -s"
    unset MLX5SIM_LINK
    end_suite "$(version_of rdmacm-utils)"
}

# usage: perftest PROGRAM OPTIONS...
perftest()
{
    local option
    for option in "${@:2}"; do
        pair_test "$1 $option" 18515 "$1 -F $option" "$1 -F $option localhost"
    done
}

# The same by the connection manager.
cm_perftest()
{
    local option
    for option in "${@:2}"; do
        pair_test "$1 $option" 0 "$1 -F -n 100 $option" \
            "$1 -F -n 100 $option 127.0.0.1"
    done
}

run_perftest()
{
    local program link mapped=$work/perftest.mapped
    local common=("-n 100" "-n 20 -s 1000000" "-n 5 -a" "-n 100 -m 1024"
        "-n 100 --use_old_post_send" "-n 100 -c DC" "-n 100 --odp"
        "-n 100 -S 1 -u 10 --pkey_index=0")
    export MLX5SIM_DC=y MLX5SIM_ODP=y
    begin_suite perftest
    head -c 20000000 /dev/zero > "$mapped"
    for program in write read send atomic; do
        local only=() bw=("-n 100 -b" "-n 100 -b --report-both" "-n 100 -q 2"
            "-n 128 -l 4" "-n 100 -Q 8" "-n 100 --mr_per_qp -q 2" "-n 100 -t 16 -N"
            "-D 1" "-D 1 --cpu_util")
        case $program in
        write)  only=("-n 100 -c UC" "-n 100 -I 64" "-n 100 -c XRC") ;;
        read)   only=("-n 100 -o 4" "-n 100 -c XRC" "-n 100 -e") ;;
        send)   only=("-n 100 -c UC" "-n 100 -c UD -s 1000" "-n 100 -I 64"
                      "-n 100 -r 256" "-n 100 --use-srq" "-n 100 -c XRC"
                      "-n 100 -e" "-n 100 -g") ;;
        atomic) only=("-n 100 -A CMP_AND_SWAP" "-n 100 -A FETCH_AND_ADD") ;;
        esac
        if [[ $program == atomic ]]; then
            common=("-n 100" "-n 100 -m 1024" "-n 100 -c DC")
        fi
        perftest "ib_${program}_bw" "${common[@]}" "${bw[@]}" "${only[@]}"
        # all sizes take minutes where processors are busy: both sides spin
        perftest "ib_${program}_lat" "${common[@]/-n 5 -a/-n 100 -s 5000}" \
            "-n 100 -H" "-n 100 -C" "-n 100 -U" "-D 1" "${only[@]}"
    done
    perftest ib_write_bw "-n 100 --reversed" "-n 100 --mmap=$mapped" \
        "-n 100 -W counters/port_xmit_data" "-n 100 --disable_pcie_relaxed" \
        "-n 100 --rate_limit=1 --rate_limit_type=SW" \
        "-n 100 --rate_limit=10 --rate_limit_type=HW" "-n 100 --wait_destroy=1" \
        "-n 100 -w 0.000001 -y 0.000001 --report_gbits --output=bandwidth" \
        "-n 100 -c DC --log_dci_streams=1"
    perftest ib_write_lat "-n 100 --latency_gap=10"
    perftest ib_send_bw "-n 100 --inline_recv=32 -s 32" "-n 100 --recv_post_list=4" \
        "-n 100 -e -X 1" "-n 100 -x 0 --tclass=8"
    perftest ib_read_bw "-n 100 --perform_warm_up"
    export MLX5SIM_PORTS=2
    perftest ib_write_bw "-n 100 -i 2" "-n 100 -O" "-D 1 -O --report-per-port"
    unset MLX5SIM_PORTS
    # by the connection manager
    export MLX5SIM_LINK=roce
    for program in ib_write_bw ib_write_lat ib_read_bw ib_read_lat ib_send_bw \
                   ib_send_lat ib_atomic_bw ib_atomic_lat; do
        cm_perftest "$program" -R
        perftest "$program" "-n 100 -x 3" "-n 100 -x 1 --ipv6"
    done
    cm_perftest ib_write_bw -z "-R -T 8" "-R -q 2 --retry_count=3"
    cm_perftest ib_send_bw "-R -c UD -s 1000"
    unset MLX5SIM_LINK MLX5SIM_DC MLX5SIM_ODP
    rm "$mapped"
    end_suite "$(version_of perftest)"
}

run_qperf()
{
    local tests count
    tests="rc_lat rc_bw rc_bi_bw rc_rdma_read_lat rc_rdma_read_bw
        rc_rdma_write_lat rc_rdma_write_bw rc_rdma_write_poll_lat
        rc_compare_swap_mr rc_fetch_add_mr ver_rc_compare_swap
        ver_rc_fetch_add uc_lat uc_bw uc_rdma_write_bw
        uc_rdma_write_poll_lat ud_lat ud_bw"
    pair "$work/qperf.log" 19765 qperf \
        "qperf -t 1 localhost ${tests//$'\n'/ } quit" || true
    count=$(grep -cE '^(rc|uc|ud|ver)_[a-z_]+:$' "$work/qperf.log" || true)
    result qperf "$(version_of qperf)" "$count" $((18 - count)) 0
}

# usage: fabric PROVIDER TYPE DOMAIN SIZE...
fabric()
{
    local size options
    for size in "${@:4}"; do
        options="-p $1 -e $2 -d $3 -c -I 20 -S $size"
        pair_test "$1 $2 $size" 47592 "fi_pingpong $options" \
            "fi_pingpong $options 127.0.0.1"
    done
}

run_libfabric()
{
    export MLX5SIM_LINK=roce
    begin_suite libfabric
    fabric verbs msg mlx5_0 16 1024 65536 1048576
    fabric verbs dgram mlx5_0-dgram 16 1024
    fabric "verbs;ofi_rxm" rdm mlx5_0 16 1024 65536 1048576
    fabric "verbs;ofi_rxd" rdm mlx5_0-dgram 16 1024 65536
    unset MLX5SIM_LINK
    end_suite "$(version_of libfabric-bin)"
}

# Have packages of Python, without what they depend on, in $python; or say why not, and
# leave the suite out. usage: python_packages SUITE PACKAGE==VERSION...
python_packages()
{
    local log=$work/$1.pip why
    python=$work/python/bin/python
    if { [[ -e $work/python/made ]] || python3 -m venv "$work/python"; } \
            > "$log" 2>&1 &&
       touch "$work/python/made" &&
       timeout 200 "$python" -m pip install -q --no-compile --no-deps "${@:2}" \
            >> "$log" 2>&1; then
        return 0
    fi
    why=$(grep -E '^ERROR' "$log" | tail -n 1)
    cannot="$1: its packages can't be had: ${why:-$(tail -n 1 "$log")}"
    echo "SKIPPED $cannot" >&2
    return 1
}

# InfiniBand only: Debian's openib can't connect by rdma_cm, which RoCE needs. p2p is left
# out, as Open MPI writes a message that is too long beyond the buffer, by TCP as well.
# So is rma, as openib's compare-and-swap crashes.
run_openmpi()
{
    local program
    # shellcheck disable=SC2054 # a list of MCA
    local run=(mpirun --oversubscribe -np 4 --mca pml ob1 --mca btl openib,self
               --mca btl_openib_allow_ib 1)
    [[ $(id -u) != 0 ]] || run+=(--allow-run-as-root)
    begin_suite openmpi
    for program in collectives threads app_kernels growth connect; do
        mpicc.openmpi -O1 -o "$work/openmpi/$program" "$SEP_TOP/test/mpi/$program.c" -lm \
            > "$work/openmpi/build.log" 2>&1 ||
            sep_die "openmpi: see $work/openmpi/build.log"
        one_test "$program" "${run[@]}" "$work/openmpi/$program"
    done
    end_suite "$(version_of libopenmpi3)"
}

run_mooncake()
{
    local version=0.3.13.post1 link what links=(ib roce)
    [[ ! $quick ]] || links=(ib)
    python_packages mooncake "mooncake-transfer-engine-non-cuda==$version" || return 0
    begin_suite mooncake
    for link in "${links[@]}"; do
        export MLX5SIM_LINK=$link
        one_test "transfer $link" "$python" -B "$here/mooncake_transfer.py"
        for what in write read; do
            one_test "benchmark $what $link" "$python" -B "$here/mooncake_bench.py" "$what"
        done
    done
    unset MLX5SIM_LINK
    end_suite "$version"
}

run_nixl()
{
    local version=1.5.1 tls
    python_packages nixl "nixl-cu12==$version" numpy==2.2.6 || return 0
    begin_suite nixl
    export UCX_TLS=rc_x,self
    one_test rc_x "$python" -B "$here/nixl_transfer.py" 0
    if [[ ! $quick ]]; then
        one_test "rc_x 8 threads" "$python" -B "$here/nixl_transfer.py" 8
        for tls in rc_v ud_x; do
            export UCX_TLS=$tls,self
            one_test $tls "$python" -B "$here/nixl_transfer.py" 0
        done
    fi
    unset UCX_TLS
    end_suite "$version"
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
    local version=0.4.3 counts
    rust_package sideway "$version"
    (cd "$work/sideway-$version/source" && timeout 1800 env MLX5SIM_LINK=roce "$device" \
        --private cargo test --lib --tests --no-fail-fast -- \
        --skip compile_test) > "$work/sideway.log" 2>&1 || true
    counts=$(awk '/^test result:/ { n += $4; f += $6; i += $8 }
        END { print n + 0, (n ? f + 0 : 1), i + 0 }' "$work/sideway.log")
    # shellcheck disable=SC2086 # three words
    result sideway "$version" $counts
}

run_ibverbs()
{
    local version=0.9.2 status=0
    rust_package ibverbs "$version"
    (cd "$work/ibverbs-$version/source" && timeout 1800 env MLX5SIM_LINK=roce "$device" \
        --private cargo run --example loopback) > "$work/ibverbs.log" 2>&1 ||
        status=$?
    result_of ibverbs "$version" "$status"
}

# Most need few of them
groups=(build clients)
suites=" $* "
suites=${suites/ nixl / }
suites=${suites/ mooncake / }
for name in "$@"; do
    case $name in
    openmpi) groups+=(jobs) ;;
    go|java|fabtests|lci|rdma-unit-test) groups+=("$name") ;;
    ucx*)    groups+=(bench) ;;
    *)       continue ;;
    esac
    suites=${suites/ $name / }
done
[[ $suites != *[a-z]* ]] || groups+=(suites)
sep_install_deps "${groups[@]}" >&2
if [[ -z $build ]]; then
    build=$SEP_TOP/build/device-suites
    sep_use_ccache
    sep_build "$build" all "$SEP_TOP/configure" --without-ucx --disable-gtest >&2
fi
device=$build/bin/mlx5sim-run
[[ -x $device ]] || sep_die "there is no $device: build there, or elsewhere"
work=$build/device-suites-work
mkdir -p "$work"
for name in "$@"; do
    case $name in
    rdma-core) run_rdma_core ;;
    examples)  run_examples ;;
    librdmacm) run_librdmacm ;;
    perftest)  run_perftest ;;
    qperf)     run_qperf ;;
    libfabric) run_libfabric ;;
    openmpi)   run_openmpi ;;
    mooncake)  run_mooncake ;;
    nixl)      run_nixl ;;
    sideway)   run_sideway ;;
    ibverbs)   run_ibverbs ;;
    go)        run_go ;;
    java)      run_java ;;
    ucx)       run_ucx ;;
    ucx-*)     run_ucx "${name#ucx-}" ;;
    fabtests)  run_fabtests ;;
    lci)       run_lci ;;
    rdma-unit-test) run_rdma_unit_test ;;
    *)         sep_die "there is nothing called $name; see --help" ;;
    esac
done
echo "Logs are in $work" >&2
if [[ $ran == 0 ]]; then
    echo "$cannot" >&2
    exit 77
fi
exit $failed
