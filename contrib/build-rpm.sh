#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Build the RPM packages ucx-sep and mlx5sim, as packaging/rpm has them, for the UCX
# of this machine, and packages of their debug files. Have rpmlint look at them, and
# compare the files of both with those of Debian's packages, if contrib/build-deb.sh
# has made them.
#
#   contrib/build-rpm.sh [DIRECTORY]
#
# They are made of the archive that contrib/dist.sh makes, in DIRECTORY (build/rpm by
# default), and are left there. It needs rpmbuild and rpmlint, which Debian has, too.
# SEP_UCX_SOURCE may name the source of UCX. It ends with an error if rpmlint has
# one, or a warning, or if a file is in the packages of one kind only.
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=contrib/ucx.sh
. "$(dirname "$0")/ucx.sh"

case ${1:-} in
--help|-h) sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'; exit 0 ;;
esac

# Files of both kinds of packages are where their systems want them: libraries, and
# what a package has to say of itself.
# usage: in_common < LIST
in_common()
{
    sed -n -E -e 's|^\./|/|' -e 's|^/usr/lib(64\|/x86_64-linux-gnu)/|LIBDIR/|' \
        -e 's|\.gz$||' -e '/\/$/d' \
        -e '/\.build-id|\/licenses\/|\/lintian\/|\/copyright$|\/LICENSE$/d' \
        -e '/\/doc\/[^/]*\/changelog/d' -e '/^LIBDIR|^\/usr\//p' |
        LC_ALL=C sort -u
}

# usage: compare PACKAGE
compare()
{
    local deb rpm
    deb=("$SEP_TOP"/build/deb/"$1"_*.deb)
    rpm=("$out"/"$1"-[0-9]*.rpm)
    if [[ ! -e ${deb[0]} ]]; then
        echo "$1: not compared, there is no ${deb[0]}"
        return
    fi
    rpm -qp --qf '[%{FILEMODES:perms} %{FILENAMES}\n]' "${rpm[0]}" |
        awk '$1 !~ /^d/ { print $2 }' | in_common > "$out/$1.rpm.files"
    dpkg-deb --fsys-tarfile "${deb[0]}" | tar -tf - | in_common \
        > "$out/$1.deb.files"
    diff -u "$out/$1.deb.files" "$out/$1.rpm.files" ||
        sep_die "$1: other files than in Debian's package"
    echo "$1: $(wc -l < "$out/$1.rpm.files") files, as in Debian's package"
}

# What Fedora's rpmbuild does by itself, and Debian's does not: debug files of each
# package become one of their own, and sources of all another one.
# usage: split_debug_files: prints the file of macros for rpmbuild to load
split_debug_files()
{
    cat > "$out/debug.macros" << 'MACROS'
%_enable_debug_packages 1
%_debuginfo_subpackages 1
%_debugsource_packages 1
%install %{?buildsubdir:%{debug_package}}\
%%install\
%{nil}
MACROS
    echo "$out/debug.macros"
}

out=$(realpath -m "${1:-$SEP_TOP/build/rpm}")
sep_install_deps build rpm
sep_use_ccache
version=$(pkg-config --modversion ucx)
tree=$(sep_ucx_source)
archive=$("$SEP_TOP/contrib/dist.sh" "$out/dist")

rm -rf "$out"/{top,*.rpm}
mkdir -p "$out/top/SOURCES"
cp "$archive" "$out/top/SOURCES"
# What is needed of it: its release, and headers
(cd "${tree%/*}" && find "${tree##*/}" \( -name '*.h' -o -name '*.inl' -o \
     -path '*/configure.ac' \) -print0 |
     tar --null -T - -czf "$out/top/SOURCES/ucx-$version.tar.gz")
load=()
[[ -n $(rpm --eval '%{?_enable_debug_packages}') ]] ||
    load=(--load "$(split_debug_files)")
sep_step "RPM packages" "$out" rpmbuild rpmbuild -bb --nodeps "${load[@]}" \
    --define "_topdir $out/top" --define "ucx_version $version" \
    "$SEP_TOP/packaging/rpm/sep.spec"
mv "$out"/top/RPMS/*/*.rpm "$out"
rm -rf "$out/top"
for name in ucx-sep mlx5sim; do
    debug=("$out/$name"-debuginfo-*.rpm)
    [[ -e ${debug[0]} && -n $(rpm -qlp "${debug[0]}" | grep '\.debug$') ]] ||
        sep_die "$name has no debug files: see $out/rpmbuild.log"
done
sep_step "RPM packages" "$out" rpmlint rpmlint --strict \
    -c "$SEP_TOP/packaging/rpm/rpmlint.toml" \
    "$SEP_TOP/packaging/rpm/sep.spec" "$out"/*.rpm
tail -n 1 "$out/rpmlint.log"
compare ucx-sep
compare mlx5sim
ls "$out"/*.rpm
