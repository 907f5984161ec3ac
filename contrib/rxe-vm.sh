#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A virtual machine with Linux's own RoCE driver, rdma_rxe: somebody else's
# implementation for the software device to talk to. See docs/rxe.md.
#
#   contrib/rxe-vm.sh build DIR         make kernel and image in DIR
#   contrib/rxe-vm.sh run [OPTIONS] DIR start a guest, and wait until it answers
#       --guest N       its number, 1 to 9 (default: 1). Its addresses are
#                       10.77.0.1N and fd77::1N
#       --net FILE      network namespace of the bridge, /proc/PID/ns/net or
#                       /run/netns/NAME (default: one of its own, kept in DIR)
#       --bridge NAME   the bridge there (default: br0, made if it is missing)
#       --mtu BYTES     of the guest's interface (default: 1500)
#       --memory MB     of the guest (default: 768)
#   contrib/rxe-vm.sh exec [OPTIONS] DIR COMMAND...
#                       run a command in a guest, with our standard input
#       --guest N       (default: 1)
#       --timeout S     seconds, after which its status is 124 (default: 600)
#   contrib/rxe-vm.sh net DIR COMMAND...
#                       run a command of this machine in the namespace of the
#                       bridge: net DIR tcpdump -i br0
#   contrib/rxe-vm.sh stop DIR          end all guests and the namespace
#
# The image is Debian 12 with the packages of group guest of contrib/deps.txt, made
# by contrib/debian-root.sh from where this machine's apt gets Debian. It is one
# initramfs, so nothing is mounted. QEMU emulates the processor: no /dev/kvm is
# needed. The bridge has no port to the world.
#
# Exit status 77, and a reason, if it can't be had on this machine.
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"
sep_use_ccache

suite=bookworm

say()
{
    echo "${0##*/}: $*" >&2
}

usage()
{
    sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'
}

cannot()
{
    say "skipped: $*"
    exit 77
}

# What the image is made from
image_key()
{
    {
        echo "$suite"
        sep_deps guest
        cat "$SEP_TOP"/contrib/rxe/{init,serve} "$SEP_TOP/contrib/rxe-vm.sh"
    } | sha256sum | head -c 16
}

# Modules that are wanted in the image, and those that they need. The kernel looks
# for the last one by another name.
guest_modules()
{
    chroot "$root" modprobe --dirname /kernel --set-version "$1" \
        --show-depends --all \
        virtio_pci virtio_net rdma_rxe ib_uverbs rdma_ucm ib_umad \
        crc32_generic |
        awk '$1 == "insmod" { print $2 }' | sort -u
}

# Unpack Debian's kernel beside the root: installed in it, it would make an initramfs
# of its own, which takes longer than all the rest.
get_kernel()
{
    # shellcheck disable=SC2016 # expanded by the inner shell
    env -u SEP_KEPT_DIR "$SEP_TOP/contrib/debian-root.sh" --suite "$suite" \
        --groups guest "$root" bash -euc '
        rm -rf /kernel
        mkdir /kernel
        cd /kernel
        package=$(apt-cache depends linux-image-amd64 |
            awk "\$1 == \"Depends:\" { print \$2; exit }")
        apt-get -q download "$package" > /dev/null
        dpkg-deb --extract "$package"_*.deb /kernel
        rm "$package"_*.deb
        depmod --basedir /kernel "${package#linux-image-}"'
}

# The root as an initramfs that is not compressed: an emulated processor takes
# longer to unpack it than QEMU to read it.
pack()
{
    local version module tree=$dir/tree
    version=$(cd "$root/kernel/boot" && echo vmlinuz-*)
    version=${version#vmlinuz-}
    [[ -e $root/kernel/boot/vmlinuz-$version ]] || sep_die "no kernel in $root"

    rm -rf --one-file-system "$tree"
    mkdir "$tree"
    tar -C "$root" --one-file-system -c \
        --exclude=./kernel --exclude=./usr/share/doc \
        --exclude=./usr/share/man --exclude=./usr/share/locale \
        --exclude=./usr/share/info --exclude=./usr/share/zoneinfo \
        --exclude=./usr/share/perl --exclude=./usr/lib/x86_64-linux-gnu/perl \
        --exclude=./var/cache --exclude=./var/lib/apt --exclude='./dev/*' \
        . | tar -C "$tree" -x
    for module in $(guest_modules "$version"); do
        install -D -m 644 "$root$module" "$tree/usr${module#/kernel}"
    done
    cp "$root/kernel/lib/modules/$version"/modules.{builtin,order}* \
       "$tree/usr/lib/modules/$version/"
    chroot "$tree" depmod "$version"
    install -m 755 "$SEP_TOP"/contrib/rxe/{init,serve} "$tree"
    mkdir -p "$tree/var/cache"
    mknod "$tree/dev/console" c 5 1
    mknod "$tree/dev/null" c 1 3
    (cd "$tree" && find . -xdev -print0 |
        cpio --null --create --format=newc --quiet) > "$dir/initrd.new"
    rm -rf --one-file-system "$tree"
    cp "$root/kernel/boot/vmlinuz-$version" "$dir/vmlinuz"
    echo "$version" > "$dir/version"
    mv "$dir/initrd.new" "$dir/initrd"
}

build()
{
    local key kept='' packages
    key=$(image_key)
    mkdir -p "$dir"
    if [[ $(cat "$dir/key" 2> /dev/null) == "$key" ]]; then
        say "it is in $dir"
        return
    fi
    [[ -z ${SEP_KEPT_DIR-} ]] || kept=$SEP_KEPT_DIR/rxe-vm-$key
    rm -f "$dir/key"
    if [[ -n $kept && -n $(find "$kept" -maxdepth 0 -mtime -14 \
            2> /dev/null) ]]; then
        say "copying what is kept"
        cp "$kept"/{vmlinuz,initrd,version} "$dir"
    else
        # The image is what is kept, not the root
        get_kernel
        packages=$(sep_deps guest | tr '\n' ' ')
        say "packing the image: $packages"
        pack
        if [[ -n $kept ]]; then
            rm -rf "$kept.new" "$kept"
            mkdir -p "$kept.new"
            cp "$dir"/{vmlinuz,initrd,version} "$kept.new"
            mv "$kept.new" "$kept"
        fi
    fi
    echo "$key" > "$dir/key"
    say "Linux $(cat "$dir/version"), image of" \
        "$(($(stat -c %s "$dir/initrd") / 1000000)) MB in $dir"
}

# Process and start time, so that a number that is used again is not taken for it.
# usage: process_is FILE
process_is()
{
    local pid start
    read -r pid start < "$1" || return
    [[ -n $start && $(started "$pid") == "$start" ]]
}

started()
{
    # The name may have spaces
    sed 's/.*) //' "/proc/$1/stat" 2> /dev/null | cut -d ' ' -f 20
}

in_net()
{
    nsenter --net="$(cat "$dir/net")" "$@"
}

make_net()
{
    local pid
    if [[ -z $net ]]; then
        if [[ ! -e $dir/net-holder ]] || ! process_is "$dir/net-holder"; then
            unshare --net sleep infinity < /dev/null > /dev/null 2>&1 9>&- &
            pid=$!
            disown
            until [[ $(readlink "/proc/$pid/ns/net") != \
                     "$(readlink /proc/self/ns/net)" ]]; do
                kill -0 "$pid" 2> /dev/null ||
                    cannot "this user may not make network namespaces"
                sleep 0.05
            done
            echo "$pid $(started "$pid")" > "$dir/net-holder"
        fi
        read -r pid _ < "$dir/net-holder"
        net=/proc/$pid/ns/net
    fi
    echo "$net" > "$dir/net"
    if ! in_net ip link show "$bridge" > /dev/null 2>&1; then
        in_net ip link add "$bridge" type bridge forward_delay 0 \
               mcast_snooping 0 ||
            cannot "the kernel makes no bridge"
        in_net ip address add 10.77.0.1/24 dev "$bridge"
        in_net ip link set lo up
        in_net ip link set "$bridge" mtu "$mtu" up
    fi
}

run()
{
    local state=$dir/guest$guest tap=rxe$guest pid begin=$SECONDS
    command -v qemu-system-x86_64 > /dev/null ||
        cannot "no qemu-system-x86_64; it is Debian's package qemu-system-x86"
    [[ -e $dir/key ]] || sep_die "no image in $dir; first: ${0##*/} build $dir"
    [[ ! -e $state/pid ]] || ! process_is "$state/pid" ||
        sep_die "guest $guest runs"
    mkdir -p "$state"
    make_net
    in_net ip link show "$tap" > /dev/null 2>&1 ||
        in_net ip tuntap add "$tap" mode tap ||
        cannot "no TAP devices here"
    in_net ip link set "$tap" mtu "$mtu" master "$bridge" up

    rm -f "$state/console"
    # The process is QEMU's own: a function would be in a shell
    nsenter --net="$net" nice -n 15 \
        qemu-system-x86_64 -machine pc -accel tcg,tb-size=256 \
        -cpu qemu64 -smp 1 -m "$memory" -nodefaults -no-user-config \
        -no-reboot -display none -serial "file:$state/console" \
        -kernel "$dir/vmlinuz" -initrd "$dir/initrd" \
        -append "console=ttyS0 quiet panic=-1 mitigations=off net.ifnames=0 \
sep.name=guest$guest sep.address=10.77.0.1$guest/24 \
sep.address6=fd77::1$guest/64 sep.mtu=$mtu" \
        -netdev "tap,id=net,ifname=$tap,script=no,downscript=no" \
        -device "virtio-net-pci,netdev=net,mac=02:00:0a:4d:00:1$guest" \
        < /dev/null > "$state/qemu" 2>&1 &
    pid=$!
    disown
    echo "$pid $(started "$pid")" > "$state/pid"
    until grep -q -s SEP-READY "$state/console"; do
        kill -0 "$pid" 2> /dev/null || {
            cat "$state/qemu" "$state/console" >&2
            sep_die "the virtual machine ended"
        }
        [[ $((SECONDS - begin)) -lt 600 ]] ||
            sep_die "it does not boot; see $state/console"
        sleep 0.2
    done
    ! grep SEP-FAILED "$state/console" >&2 || sep_die "see $state/console"
    until call 60 true < /dev/null > /dev/null 2>&1; do
        [[ $((SECONDS - begin)) -lt 660 ]] || sep_die "it does not answer"
        sleep 0.2
    done
    say "guest $guest is up after $((SECONDS - begin)) s"
}

# usage: call SECONDS COMMAND...
call()
{
    in_net python3 "$SEP_TOP/contrib/rxe/call.py" "10.77.0.1$guest" "$@"
}

# usage: end FILE
end()
{
    local pid
    if [[ -e $1 ]] && process_is "$1"; then
        read -r pid _ < "$1"
        kill "$pid"
        for _ in {1..100}; do
            process_is "$1" || break
            sleep 0.1
        done
        ! process_is "$1" || kill -9 "$pid"
    fi
    rm -f "$1"
}

stop()
{
    local file tap
    for file in "$dir"/guest*/pid; do
        end "$file"
        tap=${file%/pid}
        # In a namespace that is not ours it would stay
        in_net ip link delete "rxe${tap##*/guest}" > /dev/null 2>&1 || true
    done
    end "$dir/net-holder"
    rm -f "$dir/net"
}

what=${1-}
shift || true
net='' bridge=br0 guest=1 mtu=1500 memory=768 seconds=600
while [[ ${1:-} == -* ]]; do
    case $1 in
    --net)     net=${2:?--net needs a value}; shift 2 ;;
    --bridge)  bridge=${2:?--bridge needs a value}; shift 2 ;;
    --guest)   guest=${2:?--guest needs a value}; shift 2 ;;
    --mtu)     mtu=${2:?--mtu needs a value}; shift 2 ;;
    --memory)  memory=${2:?--memory needs a value}; shift 2 ;;
    --timeout) seconds=${2:?--timeout needs a value}; shift 2 ;;
    *)         say "unknown option $1; see --help"; exit 2 ;;
    esac
done
case $what in
--help|-h)               usage; exit 0 ;;
build|run|exec|net|stop) ;;
*)                       say "build, run, exec, net or stop? see --help"; exit 2 ;;
esac
[[ $guest == [1-9] ]] || sep_die "--guest is a number from 1 to 9"
[[ $# != 0 ]] || sep_die "which directory? see --help"
dir=$(realpath -m "$1")
root=$dir/root
shift
[[ $what == build || $what == stop || -d $dir ]] ||
    sep_die "no $dir; first: ${0##*/} build $dir"
[[ $(id -u) == 0 ]] || cannot "namespaces, TAP and chroot are for root"

case $what in
exec|net)
    [[ -e $dir/net ]] || sep_die "no guest runs; first: ${0##*/} run $dir"
    [[ $# != 0 ]] || sep_die "which command?"
    ;;&
exec)  call "$seconds" "$@" ;;
net)   in_net "$@" ;;
*)     "$what" ;;
esac
