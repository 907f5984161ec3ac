#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Install the packages that contrib/build-rpm.sh has made in a bare Debian 12 with
# Debian's rpm, use them, and remove them: nothing may be left.
#
#   contrib/check-rpm.sh ROOT
#
# contrib/debian-root.sh makes the Debian in ROOT. What the packages require goes by
# names that Debian does not have; so rpm is told to ignore that, and it is printed.
# It ends with the first line that says what is wrong, or with "all is well".
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=contrib/check-packages.sh
. "$(dirname "$0")/check-packages.sh"

rpms=$SEP_TOP/build/rpm
case ${1:-} in
--help|-h) sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'; exit 0 ;;
esac
if [[ ${1:-} != --inside ]]; then
    exec "$SEP_TOP/contrib/debian-root.sh" --suite bookworm --groups "" \
        --bind "$rpms" "${1:?which root? see --help}" contrib/check-rpm.sh --inside
fi

# What there is, but for what rpm keeps of it
state()
{
    find / -xdev -path /var/lib -prune -o -path /var/cache -prune -o \
        -path /var/log -prune -o -path /tmp -prune -o -path /root -prune -o \
        -path "$SEP_TOP" -prune -o -print | LC_ALL=C sort
}

sep_apt_get update
sep_apt_get install -y rpm ucx-utils ibverbs-providers ibverbs-utils libjson-c5 \
    python3 mpich netpipe-mpich2
# What a run that failed has left
rpm -e --force-debian --nodeps ucx-sep mlx5sim > /dev/null 2>&1 || true
packages=("$rpms"/{ucx-sep,mlx5sim}-[0-9]*.rpm)
echo "Required, and for a system of RPM packages to say:"
rpm -qp --requires "${packages[@]}" | grep -v -e '^rpmlib' -e '^lib.*()(64bit)$' \
    -e '^lib.*(.*)(64bit)$' -e '^ld-linux' | sort -u
state > /tmp/before

rpm -i --force-debian --nodeps "${packages[@]}"
rpm -V --nodeps ucx-sep mlx5sim || sep_die "rpm -V: other files than in the packages"
use_packages

# One after the other, and the one that is left goes on
rpm -e --force-debian --nodeps ucx-sep
says "hca_id:	mlx5_0" mlx5sim-run ibv_devinfo
rpm -e --force-debian --nodeps mlx5sim
state > /tmp/after
diff /tmp/before /tmp/after || sep_die "this is left, or gone"
echo "all is well"
