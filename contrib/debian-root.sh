#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A Debian of another release in a directory, and commands run in it: how this
# machine finds out whether the project builds and works there.
#
#   contrib/debian-root.sh [OPTIONS] DIRECTORY [COMMAND...]
#
#   --suite SUITE     trixie (Debian 13, the default), sid, ...
#   --groups "NAMES"  groups of contrib/deps.txt whose packages are installed
#                     (default: build test jobs)
#   --bind PATH       show a directory of this machine in the root, under the
#                     same name; may be repeated. This checkout and the cache
#                     always are, and commands start in the checkout
#   --update          bring the packages of the root up to date
#
# The root is made by debootstrap, from where this machine's apt gets Debian;
# that is asked from apt. A root that is there is used as it is, apart from
# packages that deps.txt has gained. Packages are kept in $SEP_CACHE_DIR, so the
# next root only reads lists from the network. A command sees the root as /,
# with its own /proc, /dev/shm and process numbers: processes and mounts that it
# leaves behind end with it. build/ of the checkout is DIRECTORY-build there.
#
# Where contrib/check.sh keeps things for all checkouts, in $SEP_KEPT_DIR, packages
# are kept there, as well as what ccache knows of that Debian, and for two weeks a
# root, bare and with packages: the next one is a copy of it, brought up to date if
# it is of another day.
#
# Exit status: that of the command; without one, 0 if the root is there, 1 if
# making it failed although it should work, and 77 if it can't be made on this
# machine. Then the last line on standard error says why, "skipped: REASON: ...":
# privilege, debootstrap, network or suite.
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"

say()
{
    echo "${0##*/}: $*" >&2
}

# usage: cannot REASON EXPLANATION
cannot()
{
    local reason=$1
    shift
    say "skipped: $reason: $*"
    exit 77
}

suite=trixie
groups="build test jobs"
update=no
mkdir -p "$SEP_CACHE_DIR"
binds=("$(cd "$SEP_CACHE_DIR" && pwd)")
while [[ ${1:-} == -* ]]; do
    case $1 in
    --suite)   suite=${2:?--suite needs a value}; shift 2 ;;
    --groups)  groups=${2?--groups needs a value}; shift 2 ;;
    --bind)    binds+=("$(cd "${2:?--bind needs a value}" && pwd)"); shift 2 ;;
    --update)  update=yes; shift ;;
    --help|-h) sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'; exit 0 ;;
    *)         say "unknown option $1; see --help"; exit 2 ;;
    esac
done
if [[ $# == 0 ]]; then
    say "which directory? see --help"
    exit 2
fi
root=$(realpath -m "$1")
shift
mark=$root/.sep-debian-root
cache=${SEP_KEPT_DIR:-${binds[0]}}/debian-$suite
# What is kept has the packages of these groups, or none
bare=$cache/root-bare
kept=$bare
[[ -z $groups ]] || kept=$cache/root-${groups// /-}

[[ $(id -u) == 0 ]] ||
    cannot privilege "mounting and chroot are for root, and this is $(id -un)"
unshare --mount --pid --fork true 2> /dev/null ||
    cannot privilege "this root user may not make namespaces (a container?)"

# What is deleted or filled must be ours.
if [[ -d $root && ! -e $mark && -n $(ls -A "$root") ]]; then
    sep_die "$root is not empty and was not made by this script"
fi
if [[ -e $mark && $(head -n 1 "$mark") != "$suite" ]]; then
    sep_die "$root is Debian $(head -n 1 "$mark"), not $suite"
fi

# Run a command in the root. Mounts are made in a namespace of their own, so
# that whoever deletes the root deletes nothing else.
# usage: in_root [DIRECTORY:PLACE-IN-ROOT...] -- COMMAND...
in_root()
{
    local file
    for file in resolv.conf hosts; do
        [[ ! -e /etc/$file ]] || cat "/etc/$file" > "$root/etc/$file"
    done
    # shellcheck disable=SC2016 # expanded by the inner shell
    "${limit[@]}" unshare --mount --propagation private --pid --fork \
        --kill-child bash -euc '
            mount --bind "$0" "$0"
            mount -t proc proc "$0/proc"
            mount --rbind /sys "$0/sys"
            mount --rbind /dev "$0/dev"
            mount -t tmpfs -o mode=1777 tmpfs "$0/dev/shm"
            while [[ $1 != -- ]]; do
                mkdir -p "$0${1#*:}"
                mount --bind "${1%%:*}" "$0${1#*:}"
                shift
            done
            shift
            cd "$0"
            pivot_root . .
            exec env -C / -u CCACHE_DIR HOME=/root LC_ALL=C.UTF-8 \
                PATH=/usr/local/sbin:\
/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
                bash -euc "umount -l .; cd /; exec \"\$@\"" bash "$@"' \
        "$root" "$@"
}

# "URI SUITE" of each part of Debian that this machine's apt uses, with the
# wanted suite in place of the machine's. Updates and security updates are suites
# of their own, with their own mirrors; sid has none.
derive_sources()
{
    local uri codename
    # shellcheck disable=SC2016 # expanded by apt-get
    apt-get indextargets \
            --format '$(ORIGIN) $(COMPONENT) $(CODENAME) $(REPO_URI)' \
            'Created-By: Packages' 2> /dev/null |
        awk '$1 == "Debian" && $2 == "main" { print $4, $3 }' |
        while read -r uri codename; do
            case $codename in
            *-updates|*-security)
                [[ $suite == sid ]] || echo "$uri $suite-${codename#*-}" ;;
            *-*)
                ;;
            *)
                echo "$uri $suite" ;;
            esac
        done | sort -u
}

# What debootstrap's log says about why it can't work here, if it does.
explain_debootstrap()
{
    local log=$1
    if grep -q -i 'Failed getting release' "$log"; then
        cannot network "debootstrap could not read Debian $suite from the" \
               "mirror of this machine's apt"
    elif grep -q -i "Couldn't download" "$log"; then
        cannot network "debootstrap could not download all packages"
    elif grep -q -i 'signature\|unknown key' "$log"; then
        cannot suite "the keys of Debian $suite are not in this machine's" \
               "package debian-archive-keyring"
    elif grep -q -i 'No such script' "$log"; then
        cannot suite "this machine's debootstrap does not know $suite"
    elif grep -q -i 'mknod\|noexec or nodev' "$log"; then
        cannot privilege "this root user may not make devices (a container?)"
    fi
}

# Have apt in the root ask whom this machine's apt asks.
# usage: configure_apt SOURCES
configure_apt()
{
    local uri suite_part
    while read -r uri suite_part; do
        echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
             "$uri $suite_part main"
    done <<< "$1" > "$root/etc/apt/sources.list"
    # After a power failure, a root is made again
    echo force-unsafe-io > "$root/etc/dpkg/dpkg.cfg.d/sep"
    {
        cat << CONF
APT::Install-Recommends "false";
APT::Keep-Downloaded-Packages "true";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "3";
CONF
        apt-config dump Acquire::http
        apt-config dump Acquire::https
        apt-config dump Acquire::Check-Valid-Until
        apt-config dump Acquire::Check-Date
    } > "$root/etc/apt/apt.conf.d/90sep"
    printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d"
    chmod a+x "$root/usr/sbin/policy-rc.d"
}

bootstrap()
{
    local sources uri proxy='' log=$cache/debootstrap.log

    command -v debootstrap > /dev/null 2>&1 ||
        cannot debootstrap "the Debian package of that name is not installed"
    sources=$(derive_sources)
    if [[ -z $sources ]]; then
        (sep_apt_get update) || true
        sources=$(derive_sources)
    fi
    uri=$(awk -v suite="$suite" '$2 == suite { print $1; exit }' \
              <<< "$sources")
    [[ -n $uri ]] || cannot network "this machine's apt knows no mirror of Debian"

    say "making Debian $suite in $root"
    rm -rf --one-file-system "$root"
    mkdir -p "$root"
    echo "$suite" > "$mark"

    # As apt does it: debootstrap's own downloads only know the variable
    eval "$(apt-config shell proxy Acquire::http::Proxy)"
    if [[ -n $proxy && $proxy != DIRECT ]]; then
        export http_proxy=${http_proxy:-$proxy}
    fi
    timeout --kill-after=30 1200 \
        unshare --mount --propagation private --pid --fork --kill-child \
        --mount-proc debootstrap --variant=minbase \
        --cache-dir="$cache/bootstrap" \
        --keyring=/usr/share/keyrings/debian-archive-keyring.gpg \
        "$suite" "$root" "$uri" > "$log" 2>&1 < /dev/null || {
        tail -n 20 "$log" >&2
        explain_debootstrap "$log"
        sep_die "debootstrap failed; see $log"
    }

    configure_apt "$sources"
    printf '%s\nbootstrapped\n' "$suite" > "$mark"
    [[ -z ${SEP_KEPT_DIR-} ]] || keep_root "$bare"
}

# usage: root_apt COMMAND...
root_apt()
{
    local log=$cache/apt.log
    say "apt-get $1 in $root"
    in_root "$cache/archives:/var/cache/apt/archives" -- \
        env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@" \
        > "$log" 2>&1 < /dev/null || {
        tail -n 20 "$log" >&2
        ! grep -q -E '^E: Failed to fetch|Could not (resolve|connect)' "$log" ||
            cannot network "apt in the root could not download"
        sep_die "apt-get $1 failed in the root; see $log"
    }
}

# Packages of the groups that are not in the root, in the names that the suite
# has for them.
missing_packages()
{
    local package installed
    # shellcheck disable=SC2016 # expanded by dpkg-query
    installed=$(chroot "$root" dpkg-query -W \
                    -f '${Package} ${db:Status-Status}\n')
    # shellcheck disable=SC2086 # words
    for package in $(sep_deps $groups); do
        [[ $'\n'$installed$'\n' == *$'\n'"$package installed"$'\n'* ]] ||
            echo "$package"
    done
}

install_packages()
{
    local missing
    mapfile -t missing < <(missing_packages)
    if [[ $update == yes || ${#missing[@]} != 0 ]]; then
        root_apt update
    fi
    [[ $update == no ]] || root_apt dist-upgrade
    [[ ${#missing[@]} == 0 ]] || root_apt install "${missing[@]}"
}

# A copy of the root that is kept, if it is not too old.
# usage: copy_kept KEPT
copy_kept()
{
    local sources kept=$1
    [[ -n ${SEP_KEPT_DIR-} && -n $(find "$kept" -maxdepth 0 -mtime -14 \
        2> /dev/null) ]] || return
    say "copying what is kept of Debian $suite to $root"
    rm -rf --one-file-system "$root"
    mkdir -p "${root%/*}"
    rm -rf --one-file-system "$root.new"
    cp -a "$kept" "$root.new" && mv "$root.new" "$root" || return
    sources=$(derive_sources)
    [[ -z $sources ]] || configure_apt "$sources" || return
    [[ -n $(find "$kept" -maxdepth 0 -mtime -1) ]] || update=yes
}

# usage: keep_root KEPT
keep_root()
{
    local kept=$1
    rm -rf "$kept" "$kept.new"
    cp -a --one-file-system "$root" "$kept.new"
    touch "$kept.new"
    mv "$kept.new" "$kept"
}

mkdir -p "$cache"/{archives/partial,bootstrap}
limit=(timeout --kill-after=30 1500)
exec 9> "$cache/.lock"
flock -w 1800 9 || sep_die "another run holds $cache/.lock"
made=no
if ! grep -q -s -x bootstrapped "$mark"; then
    copy_kept "$kept" || { copy_kept "$bare" || bootstrap; made=yes; }
fi
install_packages
[[ -z ${SEP_KEPT_DIR-} || $made == no || $kept == "$bare" ]] ||
    keep_root "$kept"
exec 9>&-
say "Debian $suite is in $root"
[[ $# != 0 ]] || exit 0

limit=()
mkdir -p "$root-build" "$SEP_TOP/build"
mounts=("$SEP_TOP:$SEP_TOP" "$root-build:$SEP_TOP/build")
for bind in "${binds[@]}"; do
    mounts+=("$bind:$bind")
done
if [[ -n ${SEP_KEPT_DIR-} ]]; then
    # Another release of ccache may not understand this machine's cache
    mkdir -p "$cache/ccache"
    mounts+=("$(cd "$cache" && pwd)/ccache:/root/.cache/ccache")
fi
# shellcheck disable=SC2016 # expanded by the inner shell
in_root "${mounts[@]}" -- \
    /bin/bash -c 'cd "$0" && exec "$@"' "$SEP_TOP" "$@"
