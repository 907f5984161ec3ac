#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The software device and Linux's rdma_rxe, on one bridge: programs of verbs,
# perftest and UCX between them, both ways, and the frames that they exchange. See
# docs/rxe.md.
#
#   contrib/rxe-check.sh [OPTIONS] DIR [TEST...]
#
#   --build DIR   a build of this checkout with mlx5sim-wire (default: build/rxe,
#                 made if it is missing)
#   --alone       without our device: two guests
#   --mtu BYTES   of all interfaces (default: 1500)
#   --keep        let guests and node be, for contrib/rxe-vm.sh exec
#
# DIR is that of contrib/rxe-vm.sh, which makes what is missing there. A TEST is a
# part of a test's name; without one, all run. Names of tests that compare their data
# end in a star.
#
# Exit status 77, and a reason, if it can't be done on this machine.
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"
sep_use_ccache

build='' alone=no mtu=1500 keep=no
while [[ ${1:-} == -* ]]; do
    case $1 in
    --build)   build=$(realpath "${2:?--build needs a value}"); shift 2 ;;
    --alone)   alone=yes; shift ;;
    --mtu)     mtu=${2:?--mtu needs a value}; shift 2 ;;
    --keep)    keep=yes; shift ;;
    --help|-h) sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'; exit 0 ;;
    *)         sep_die "unknown option $1; see --help" ;;
    esac
done
[[ $# != 0 ]] || sep_die "which directory? see --help"
dir=$(realpath -m "$1")
shift

vm=$SEP_TOP/contrib/rxe-vm.sh
rxe=$SEP_TOP/contrib/rxe
instance=/dev/shm/sep-rxe.$$
node='' wire='' capture=''

# shellcheck disable=SC2317 # called by trap
finish()
{
    local pid
    for pid in $capture $wire $node; do
        kill "$pid" 2> /dev/null || true
    done
    # shellcheck disable=SC2086 # numbers
    wait $capture $wire $node 2> /dev/null || true
    rm -rf "$instance" "$dir/node"
    "$vm" stop "$dir"
}

# A node: a network namespace with eth0 on the bridge, an instance of the device,
# and the server that carries its packets.
start_node()
{
    local bridge_net
    bridge_net=$(cat "$dir/net")
    unshare --net sleep infinity < /dev/null > /dev/null 2>&1 &
    node=$!
    until [[ $(readlink "/proc/$node/ns/net") != \
             "$(readlink /proc/self/ns/net)" ]]; do
        kill -0 "$node" || sep_die "cannot make a network namespace"
        sleep 0.05
    done
    nsenter --net="$bridge_net" ip link add node0 type veth peer name eth0 \
            netns "$node"
    nsenter --net="$bridge_net" ip link set node0 mtu "$mtu" master br0 up
    # shellcheck disable=SC2016 # expanded by the inner shell
    nsenter --net="/proc/$node/ns/net" bash -euc '
        # An address is used at once
        echo 0 > /proc/sys/net/ipv6/conf/eth0/accept_dad
        ip link set lo up
        ip link set eth0 mtu "$0" up
        ip address add 10.77.0.2/24 dev eth0
        ip address add fd77::2/64 dev eth0' "$mtu"
    mkdir "$instance"
    echo "/proc/$node/ns/net $instance $build/bin/mlx5sim-run $dir/patterns" \
        > "$dir/node"
    MLX5SIM_DIR=$instance MLX5SIM_LINK=roce MLX5SIM_WIRE=eth0 \
        nsenter --net="/proc/$node/ns/net" nice -n 15 \
        "$build/bin/mlx5sim-wire" < /dev/null > "$dir/wire.log" 2>&1 &
    wire=$!
    sleep 1
    kill -0 "$wire" || { cat "$dir/wire.log" >&2; sep_die "mlx5sim-wire ended"; }
}

"$vm" build "$dir"
gcc -O1 -g -Wall "$rxe/patterns.c" -libverbs -o "$dir/patterns"
mapfile -t wire_sources < <(find "$SEP_TOP/src/sim/wire" -name 'roce*.c' -o \
                                -name 'crc*.c')
gcc -O2 -shared -fPIC -I"$SEP_TOP/src" "$rxe/icrc.c" "${wire_sources[@]}" \
    "$SEP_TOP"/src/sim/engine/{opcode,grh}.c -o "$dir/icrc.so"
if [[ $alone == no && -z $build ]]; then
    build=$SEP_TOP/build/rxe
    sep_build "$build" "all" "$SEP_TOP/contrib/configure-devel"
fi

trap finish EXIT
guests=1
[[ $alone == no ]] || guests="1 2"
for guest in $guests; do
    "$vm" run --guest "$guest" --mtu "$mtu" "$dir"
    # shellcheck disable=SC2016 # expanded in the guest
    "$vm" exec --guest "$guest" "$dir" \
        sh -c 'cat > /usr/bin/patterns; chmod a+x /usr/bin/patterns' \
        < "$dir/patterns"
done
"$vm" net "$dir" true
nsenter --net="$(cat "$dir/net")" tcpdump -i br0 -U -Z root \
    -w "$dir/frames.pcap" udp port 4791 > "$dir/tcpdump.log" 2>&1 &
capture=$!
if [[ $alone == yes ]]; then
    pairs=(rxe1-rxe2)
else
    start_node
    pairs=(device-rxe1 rxe1-device)
fi

status=0
python3 "$rxe/check.py" "$dir" "$mtu" "${pairs[@]}" -- "$@" || status=1
kill "$capture"
wait "$capture" || true
capture=''
python3 "$rxe/frames.py" "$dir/icrc.so" "$dir/frames.pcap" || status=1
if [[ $keep == yes ]]; then
    trap - EXIT
    echo "Kept; end with: kill $wire $node; rm -r $instance; $vm stop $dir"
fi
exit "$status"
