#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Find out in one run whether an adapter does what the transport takes for granted.
#
#   contrib/on-adapter.sh [OPTIONS]
#
#   --port DEVICE:PORT  the port to try (default mlx5_0:1)
#   --peer DEVICE:PORT  the port that it talks to (default: itself). It is another
#                       one of this machine, or of the one that --host names
#   --host NAME         the peer is on that machine, with the same installation
#   --shell COMMAND     how to run a command there: COMMAND NAME TEXT (default ssh)
#   --tcp PORT          TCP port by which both sides find each other (default 18800)
#   --prefix DIRECTORY  where the project is installed (default: what is in PATH)
#   --messages N        of each kind in each step (default 100000)
#   --rates ADAPTER     measure rates as well, beside those that the model has for
#                       ADAPTER (cx4, cx6), for some minutes. The port is busy then
#   --down COMMAND, --up COMMAND
#                       how to cut the port off and to bring it back, while data are
#                       under way. Without them that is not done: it would cut off
#                       all others on the port
#   --from STEP         leave out those before
#   --all               go on behind the first difference
#   --names             leave names and addresses in the archive as they are
#   --output FILE       the archive (default on-adapter.tar.gz)
#   --list              print the steps
#
# Steps go from the safest to the most daring: each adds one thing to those before
# it. The first one that fails, or has wrong data, names what to suspect. Nothing is
# changed on adapter and machine. See docs/first-run-on-hardware.md. Exit status: 0,
# 1 if something differs, 2 for wrong arguments.
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"

# Libibverbs alone, as simple as it gets; the transport the same; then more
plain="--features no-postlist+unsignaled+inline+blueflame"
theirs="--features no-postlist+unsignaled+inline"      # the rest is libmlx5's
slow="TX_POST=db TX_MAX_INLINE=0 TX_INLINE_RESP=0 RX_INLINE=0"
fast="RX_INLINE=32 TX_INLINE_RESP=32"
few="write:8 read:4000 send:8 atomic:8"
many="write:8 write:4000 write:200000 read:8 read:4000 send:8 send:4000 atomic:8"

# NAME | KIND | UCX_SEP_... | OPERATION:BYTES ... or words | of sep_perf | SUSPECT
# KIND: here, with another process on the same port; peer, with the peer, if that is
# another port; both, with whichever there is; or the function of that name
steps()
{
    cat << END
port|port|||| the port is not active, or has no address (GID): cable, subnet manager, ibdev2netdev, RoCE switched off
verbs|here||$many|--level verbs -s static $plain|limits (ulimit -l), libibverbs, driver or firmware: no code of this project was in use
rc_mlx5|here||$few|--level uct --tl rc_mlx5 $plain|UCX: its own transport has the same trouble
connect|here|API=verbs|write:8|--level uct -s static $theirs|how the transport connects: address (UCX_SEP_GID_INDEX), P_Key, path
sep-verbs|here|API=verbs|$many|--level uct -s static $theirs|the transport, apart from what it does without libibverbs
sep-wr|here|API=wr|$few|--level uct -s static $theirs|libibverbs' extended way to post (UCX_SEP_API=wr)
doorbell|here|$slow|$many|--level uct -s static $plain|work requests, doorbells or completions of the transport's own
inline|here|TX_POST=db TX_INLINE_RESP=0 RX_INLINE=0|write:8 write:200 send:8 send:200|--level uct -s static --features no-postlist+unsignaled+blueflame|data in work requests (UCX_SEP_TX_MAX_INLINE)
lists|here|TX_POST=db TX_INLINE_RESP=0 RX_INLINE=0|$few|--level uct -s static --features no-blueflame|a doorbell for several requests, or requests without a completion
inline-receive|here|TX_POST=db $fast|read:8 read:32 send:8 atomic:8|--level uct -s static --features no-blueflame|short data in completions (UCX_SEP_RX_INLINE, _TX_INLINE_RESP)
inline-receive-64|here|TX_POST=db RX_INLINE=64|send:8 send:48|--level uct -s static --features no-blueflame|completions of 128 bytes (UCX_SEP_RX_INLINE=64)
write-combining|says||BlueFlame register: +[1-9]|-d|no write combining, so no BlueFlame and no pages of a worker's own: virtual machine, or a kernel that found none
blueflame|here|TX_POST=bf $fast|write:8|--level uct -s static --features no-postlist+unsignaled|BlueFlame: requests of 64 bytes that come otherwise
blueflame-long|here|TX_POST=bf $fast|write:60 write:120 write:200 send:200|--level uct -s static --features no-postlist|BlueFlame with requests of several times 64 bytes
categories|plan|||-w 16|what a category takes is not what the plan says: UAR pages of this kernel or firmware
pages|here|TX_POST=bf $fast|write:8 send:8|--level uct -t 2 -s mpi_everywhere -s 2xdynamic -s dynamic -s shared_dynamic|UAR pages and contexts of a worker's own
two-verbs|peer||$few|--level verbs -s static $plain|the way between both ports: switch, MTU, firewall, routing
two-sep|peer|$fast|$many|--level uct -s static --features no-postlist|the transport between two ports: its address or path
threads|both|$fast|$few|--level uct -t 4 -s 2xdynamic -s shared_dynamic -s static --features no-postlist|workers of several threads: what they share
mpi_threads|both|CATEGORY=mpi_threads|write:8 send:8|--level uct -t 4 -s mpi_threads --features no-postlist|the one queue pair of all workers (UCX_SEP_CATEGORY=mpi_threads)
killed|killed|TIMEOUT=100ms|write:4000|--level uct -s dynamic --features no-postlist|the death of a peer is not noticed, or does harm to what comes later
down|down|TIMEOUT=1s|write:4000|--level uct -s dynamic --features no-postlist|a port that goes down and comes back under load
relaxed|both|PCI_RELAXED_ORDERING=on $fast|write:8 write:4000 write:200000 read:4000 send:4000|--level uct -s dynamic --features no-postlist|relaxed ordering (UCX_SEP_PCI_RELAXED_ORDERING): leave it off
atomics-4|says||atomics, 32 bits: +add|-d|no masked atomics, so none of 4 bytes: UCX emulates them
rings|rings|EAGER=y||-w 2 -c dynamic|writes may be placed out of order: there is no eager channel here
eager|both|EAGER=y $fast|send:8 send:200 send:900|--level uct -s dynamic -d 16 -n $((messages * 100)) --features no-postlist|the eager channel: the end of a write was there before its beginning (PCI_WR_ORDERING). Leave UCX_SEP_EAGER off
END
}

port=mlx5_0:1 peer='' host='' shell=ssh tcp=18800 prefix='' messages=100000
from='' adapter='' down='' up='' all=no names=no output=on-adapter.tar.gz
usage()
{
    echo "${0##*/}: $*: see --help" >&2
    exit 2
}

while [[ $# -gt 0 ]]; do
    case $1 in
    --help|-h)   sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'; exit 0 ;;
    --list)      steps | sed -E 's/^([^|]*).*\| *([^|]*)$/\1: \2/'; exit 0 ;;
    --all|--names) declare "${1#--}=yes"; shift; continue ;;
    esac
    [[ $# -gt 1 ]] || usage "$1 needs a value, or is unknown"
    case $1 in
    --rates)     adapter=$2 ;;
    --port|--peer|--host|--shell|--tcp|--prefix|--messages|--from|--down|--up|\
    --output)    declare "${1#--}=$2" ;;
    *)           usage "$1" ;;
    esac
    shift 2
done
for name in sep_perf sep_info; do
    path=$(command -v "${prefix:+$prefix/bin/}$name") ||
        usage "there is no $name, which --prefix may name"
done
grep -q "^$from" <<< "$(steps)" || usage "there is no step $from"
bin=$(dirname "$path")
[[ $port == *:* && ${peer:=$port} == *:* ]] || usage "a port is like mlx5_0:1"
[[ -n $down && -n $up || -z $down$up ]] || usage "--down and --up belong together"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$work/on-adapter
mkdir "$out"
limit=300

# The peer, in the environment of the step: it lives as long as descriptor 4
# usage: start NAME=VALUE...
start()
{
    local text="exec 3<&0; { read -r line <&3; kill -KILL \$\$; } > /dev/null 2>&1 &"
    text+=" exec env $* $bin/sep_perf --listen $tcp -D ${peer%:*} --port ${peer#*:} 3<&-"
    if [[ -n $host ]]; then
        exec 4> >($shell "$host" "$text" 2>&1)
    else
        exec 4> >(sh -c "$text" 2>&1)
    fi
    server=$!
    local end=$((SECONDS + limit))
    until (: < "/dev/tcp/${host:-localhost}/$tcp") 2> /dev/null; do
        kill -0 "$server" 2> /dev/null || { echo "the peer has ended"; return 1; }
        ((SECONDS < end)) || { echo "the peer does not answer"; return 1; }
        sleep 0.1
    done
}

stop()
{
    exec 4>&-
    wait "$server" || true
}

# usage: perf OPERATION:BYTES OPTION...
perf()
{
    local message=$1
    shift
    local command=("$bin/sep_perf" -D "${port%:*}" --port "${port#*:}"
        --no-latency -t 1 -n "$messages" -o "${message%:*}" -b "${message#*:}" "$@")
    echo "\$ ${command[*]}"
    env "${environment[@]}" timeout -k 5 "$limit" "${command[@]}" 4>&-
}

here()
{
    local message
    for message in $words; do
        # shellcheck disable=SC2086 # several words
        perf "$message" $options || return 1
    done
}

both()
{
    local options="$options --host ${host:-localhost}:$tcp" status=0
    start "${environment[@]}" && here || status=1
    stop
    return $status
}

peer()
{
    [[ -n $host || $peer != "$port" ]] || return 77
    both
}

port()
{
    local text
    text=$(ibv_devinfo -v -d "${port%:*}" -i "${port#*:}") || return 1
    echo "$text"
    [[ $text == *PORT_ACTIVE* && $text == *GID\[* ]]
}

info()
{
    # shellcheck disable=SC2086 # several words
    env "${environment[@]}" timeout -k 5 "$limit" "$bin/sep_info" $options
}

plan()
{
    options="-t -D ${port%:*} $options"
    info
}

# What must be among what sep_info says
says()
{
    local text
    text=$(info) || return 1
    echo "$text"
    grep -qE -e "$words" <<< "$text"
}

rings()
{
    words='ring_sent +[1-9]'
    options="-t -D ${port%:*} $options"
    says
}

# Whether a process that talks to the peer has a connection, or has ended
# usage: connected PID
connected()
{
    grep -qis ":$(printf %04X "$tcp") 01 " /proc/net/tcp /proc/net/tcp6 ||
        ! kill -0 "$1" 2> /dev/null
}

# Something happens while data are under way, which has no end of its own. What is
# left must end in time, and what comes then must be as if nothing had been.
# usage: trouble WHAT...
trouble()
{
    local messages=1000000000 client status=0
    start "${environment[@]}" || return 1
    # shellcheck disable=SC2086 # several words
    perf "$words" $options --host "${host:-localhost}:$tcp" 4>&- &
    client=$!
    until connected $client; do
        sleep 0.1
    done
    sleep 2
    "$@"
    wait $client || status=$?
    echo "status $status of what was under way"
    stop
    [[ $status == 3 ]]      # an error, of which it was told
}

killed()
{
    trouble eval 'exec 4>&-' && both
}

down()
{
    [[ -n $down ]] || return 77
    trouble eval "$down; sleep 1; $up; sleep 1; exec 4>&-" && both
}

# What there is. What can't be asked is no difference.
inventory()
{
    local pci command
    pci=$(basename "$(readlink -f "/sys/class/infiniband/${port%:*}/device")")
    while read -r command; do
        printf '\n$ %s\n' "$command"
        timeout -k 5 60 bash -c "$command" 2>&1 || echo "(not known)"
    done << END
uname -srm
grep -h PRETTY_NAME /etc/os-release
grep -m1 'model name' /proc/cpuinfo; nproc; cat /sys/hypervisor/type
grep -h . /proc/cmdline | tr ' ' '\n' | grep -e iommu -e pci
ulimit -l
ucx_info -v
dpkg-query -W '*ibverbs*' 'libucx*' '*ofed*' || rpm -qa '*rdma-core*' 'libibverbs*' 'ucx*' '*ofed*'
ofed_info -s
cat /sys/module/mlx5_core/version /sys/module/mlx5_ib/srcversion
ibv_devinfo -v -d ${port%:*}
ibv_devinfo -v -d ${peer%:*}
$bin/sep_info -d
cat /sys/class/infiniband/${port%:*}/board_id /sys/class/infiniband/${port%:*}/fw_ver
rdma link; rdma system; rdma resource
ls /sys/class/infiniband; grep -h . /sys/kernel/debug/mlx5/$pci/lag/*
lspci -s $pci -vv | grep -e LnkSta -e MaxPayload -e RlxdOrd -e AtomicOps
mlxconfig -d $pci query | grep -iE 'WR_ORDERING|ATOMIC|SELECTIVE_REPEAT|ADAPTIVE_ROUTING|RETRANS|LAG|ROCE|UAR|NUM_OF_VFS'
mlxreg -d $pci --reg_name ROCE_ACCEL --get
UCX_SEP_EAGER=y UCX_LOG_LEVEL=debug $bin/sep_perf -D ${port%:*} --port ${port#*:} --level uct -s dynamic -t 1 -o send -n 1000 --no-latency 2>&1 | grep -E 'order|service level|opened interface|QP 0x.* sends through|GID'
END
}

# Rates as the model's data were measured, the model's, and how far a fit gets
rates()
{
    local to=()
    [[ -z $host && $peer == "$port" ]] || to=(--host "${host:-localhost}:$tcp")
    start || return 1
    for operation in write read; do
        # shellcheck disable=SC2086 # several words
        "$bin/sep_perf" -D "${port%:*}" --port "${port#*:}" "${to[@]}" --tsv --turns \
            $plain -b 8 -d 8 -o $operation \
            -t 1,2,4,8,16,32 -s ctx=all,td=none -s dynamic -s mpi_threads \
            -n $((messages * 10)) --no-latency --adapter "$adapter" 4>&- | tee "$out/$operation.tsv" ||
            return 1
    done
    stop
    for operation in write read; do
        "$SEP_TOP/contrib/fit-model.py" --adapter "$adapter" --check \
            --sep-info "$bin/sep_info" "$out/$operation.tsv" || return 1
    done
}

# Whoever reads the archive needs no names and addresses
mask()
{
    [[ $names == no ]] || return 0
    # Before its dots, too
    local each me expressions=()
    for me in "$(hostname)" "$(id -un)" $host; do
        for each in "$me" "${me%%.*}"; do
            [[ $each == root || $each == localhost ]] ||
                expressions+=(-e "s/\\b${each//[.\/]/\\&}\\b/NAME/g")
        done
    done
    find "$out" -type f -exec sed -Ei "${expressions[@]}" \
        -e 's/\b([0-9]{1,3}\.){3}[0-9]{1,3}\b/ADDRESS/g' \
        -e 's/\b[0-9a-fA-F]{1,4}(:[0-9a-fA-F]{1,4}){4,7}\b/ADDRESS/g' \
        -e 's/[0-9a-fA-F:]*::[0-9a-fA-F:.]+/ADDRESS/g' \
        -e 's/(guid:?\s+)\S+/\1GUID/g' {} +
}

sep_say "What there is"
inventory > "$out/inventory.txt"
first='' suspect=''
while IFS='|' read -r name kind settings words options about; do
    [[ -z $from || $from == "$name" ]] || continue
    from=''
    read -ra settings <<< "$settings"
    environment=("${settings[@]/#/UCX_SEP_}")
    status=0
    (export SEP_STEP=$name; $kind) > "$out/$name.log" 2>&1 < /dev/null || status=$?
    case $status in
    0)  result=agrees ;;
    77) result="not asked for" ;;
    *)  result=DIFFERS
        first=${first:-$name} suspect=${suspect:-${about# }}
        tail -n 5 "$out/$name.log" | sed 's/^/    /' ;;
    esac
    printf '%-20s %s\n' "$name" "$result" | tee -a "$out/summary.txt"
    [[ -z $first || $all == yes ]] || break
done < <(steps)
if [[ -n $adapter && ( -z $first || $all == yes ) ]]; then
    sep_say "Rates beside the model's"
    rates 2>&1 | tee "$out/rates.txt" ||
        first=${first:-rates} suspect=${suspect:-see rates.txt}
fi
if [[ -n $first ]]; then
    echo "First difference: $first. Suspect: $suspect"
else
    echo "No difference"
fi | tee -a "$out/summary.txt"
mask
tar -czf "$output" -C "$work" on-adapter
echo "All of it is in $output: look through it before you give it to others"
[[ -z $first ]]
