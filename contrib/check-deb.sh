#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Install the packages that contrib/build-deb.sh has made in a bare Debian, use them,
# break them, and remove them: nothing may be left.
#
#   contrib/check-deb.sh [--suite SUITE] [--debs DIRECTORY] ROOT
#
# The Debian is bookworm unless SUITE is another one; contrib/debian-root.sh makes it
# in ROOT, without packages of ours. The packages, in DIRECTORY (build/deb by
# default), have to be made for the series of UCX which that Debian has. It ends with
# the first line that says what is wrong, or with "all is well". Without the
# privilege for a root, or a network, the exit status is 77, as debian-root.sh has it.
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=contrib/check-packages.sh
. "$(dirname "$0")/check-packages.sh"

suite=bookworm
debs=$SEP_TOP/build/deb
inside=
while [[ ${1:-} == -* ]]; do
    case $1 in
    --help|-h) sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'; exit 0 ;;
    --suite)   suite=${2:?--suite needs a value}; shift 2 ;;
    --debs)    debs=$(realpath -e "${2:?--debs needs a directory}"); shift 2 ;;
    --inside)  inside=y; shift ;;
    *)         sep_die "unknown option $1; see --help" ;;
    esac
done
if [[ -z $inside ]]; then
    : "${1:?which root? see --help}"
    compgen -G "$debs/ucx-sep_*.deb" > /dev/null ||
        sep_die "no packages in $debs: contrib/build-deb.sh makes them"
    exec "$SEP_TOP/contrib/debian-root.sh" --suite "$suite" --groups "" \
        --bind "$debs" "$1" contrib/check-deb.sh --debs "$debs" --inside
fi

# What there is, but for what dpkg and apt keep of it
state()
{
    find / -xdev -path /var/lib/dpkg -prune -o -path /var/cache -prune -o \
        -path /var/lib/apt -prune -o -path /var/log -prune -o \
        -path /tmp -prune -o -path "$SEP_TOP" -prune -o -print |
        LC_ALL=C sort
    dpkg-query -W
}

install()
{
    dpkg -i "$debs"/mlx5sim_*.deb "$debs"/ucx-sep_*.deb > /tmp/dpkg.log 2>&1 ||
        { cat /tmp/dpkg.log >&2; sep_die "dpkg -i failed"; }
}

remove()
{
    dpkg -P ucx-sep mlx5sim > /tmp/dpkg.log 2>&1 ||
        { cat /tmp/dpkg.log >&2; sep_die "dpkg -P failed"; }
}

# What they need is there before and afterwards
sep_apt_get update
sep_apt_get install -y "$debs"/mlx5sim_*.deb "$debs"/ucx-sep_*.deb \
    ucx-utils ibverbs-utils mpich netpipe-mpich2
remove
state > /tmp/before

install
use_packages

# Another installation, by make install elsewhere
mkdir -p /opt/sep/bin /opt/sep/libexec
cp -a /usr/lib/*/sep /opt/sep/lib.sep
mkdir /opt/sep/lib && mv /opt/sep/lib.sep /opt/sep/lib/sep
cp -a /usr/libexec/sep /opt/sep/libexec/sep
cp -a /usr/bin/sep-run /opt/sep/bin
says "LD_PRELOAD=/opt/sep/lib/sep/libsep_preload.so" /opt/sep/bin/sep-run --show
says "Transport: sep_mlx5" mlx5sim-run sep-run /opt/sep/bin/sep-run ucx_info -d

# Half of one: removed by hand
module=$(echo /opt/sep/lib/sep/ucx-*/libuct_sep.so.0)
mv "$module" /tmp/module
says "half installed" /opt/sep/bin/sep-run ucx_info -d
mv /tmp/module "$module"
rm /opt/sep/lib/sep/libsep_preload.so
says "half installed" /opt/sep/bin/sep-run ucx_info -d
rm -r /opt/sep

# Removed by dpkg, in whatever order, and the other goes on
dpkg -P ucx-sep > /dev/null
says "hca_id:	mlx5_0" mlx5sim-run ibv_devinfo
install
dpkg -P mlx5sim > /dev/null
says "sep_mlx5 alone" sep-run --help
install

remove
state > /tmp/after
diff /tmp/before /tmp/after || sep_die "this is left, or gone"
echo "all is well"
