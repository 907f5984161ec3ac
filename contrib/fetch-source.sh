#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Obtain the Debian source package that an installed library was built from, UCX
# unless told otherwise, with the machine's own apt configuration, and print the
# directory it was unpacked to. Works as root and as any other user. Nothing
# outside the cache directory is written: the source entries are derived from
# the configured binary ones into a private apt directory.
set -euo pipefail

usage()
{
    cat << EOF
usage: ${0##*/} [--of PACKAGE] [--version UPSTREAM] [--cache DIRECTORY]
       [--offline]
       ${0##*/} --archive FILE [--cache DIRECTORY]

  --archive FILE      unpack this archive of UCX's source instead, unless that
                      has been done
  --of PACKAGE        the installed library (default: libucx0)
  --version UPSTREAM  fail unless the package is of this version of the library
  --cache DIRECTORY   where to keep the source; default: \$SEP_CACHE_DIR, else
                      \${XDG_CACHE_HOME:-\$HOME/.cache}/sep
  --offline           only look in the cache
EOF
}

say()
{
    echo "${0##*/}: $*" >&2
}

die()
{
    say "error: $*"
    exit 1
}

need()
{
    command -v "$1" > /dev/null 2>&1 ||
        die "$1 is missing: install the Debian package $2"
}

library=libucx0
wanted=
archive=
offline=no
cache=${SEP_CACHE_DIR:-}
while [[ $# -gt 0 ]]; do
    case $1 in
    --of)      library=${2:?--of needs a package}; shift 2 ;;
    --version) wanted=${2:?--version needs a value}; shift 2 ;;
    --cache)   cache=${2:?--cache needs a value}; shift 2 ;;
    --archive) archive=${2:?--archive needs a value}; shift 2 ;;
    --offline) offline=yes; shift ;;
    --help|-h) usage; exit 0 ;;
    *)         usage >&2; exit 2 ;;
    esac
done
: "${cache:=${XDG_CACHE_HOME:-${HOME:?}/.cache}/sep}"

# Make the cache if need be, and know it by its full path.
open_cache()
{
    mkdir -p "$cache"
    cache=$(cd "$cache" && pwd)
}

# Nobody else changes the cache until this script ends.
lock_cache()
{
    need flock util-linux
    exec 9> "$cache/.lock"
    flock -w 600 9 ||
        die "another run holds $cache/.lock for more than 10 minutes"
}

# A directory for what is not finished, which goes with this script.
make_work()
{
    work=$(mktemp -d "$cache/.fetch.XXXXXX")
    trap 'rm -rf -- "$work"' EXIT
}

# An archive has one directory, whatever its name. What it is called here follows
# from its content, so another one of the same name is unpacked again.
unpack_archive()
{
    local file=$1 sum tree
    need tar tar
    need sha256sum coreutils
    sum=$(sha256sum < "$file") || die "$file can't be read"
    open_cache
    lock_cache
    tree=$cache/archive-${sum:0:16}
    if [[ ! -e $tree/.sep-complete ]]; then
        make_work
        say "unpacking $file"
        mkdir "$work/tree"
        tar -x -f "$file" -C "$work/tree" --strip-components=1 --no-same-owner ||
            die "tar could not unpack $file"
        [[ -e $work/tree/src/uct/base/uct_iface.h ]] ||
            die "$file is no source of UCX: it has no src/uct/base/uct_iface.h"
        rm -rf "$tree"
        mv "$work/tree" "$tree"
        touch "$tree/.sep-complete"
    fi
    echo "$tree"
}

if [[ -n $archive ]]; then
    unpack_archive "$archive"
    exit 0
fi

command -v dpkg-query > /dev/null 2>&1 ||
    die "no dpkg here, so there is no source package: set SEP_UCX_SOURCE to the" \
        "source of the installed UCX, a directory or an archive"
need apt-get apt

# Which source package and version the installed library was built from.
# shellcheck disable=SC2016 # expanded by dpkg-query
query='${db:Status-Status} ${source:Package} ${source:Version}'
read -r state package version \
    < <(dpkg-query -W -f "$query\n" "$library" 2> /dev/null || echo) || true
if [[ ${state:-} != installed ]]; then
    die "the Debian package $library is not installed, so there is no version" \
        "to match"
fi

# Debian versions are [epoch:]upstream[-revision].
upstream=${version#*:}
upstream=${upstream%-*}
upstream=${upstream%%+*}
if [[ -n $wanted && $wanted != "$upstream" ]]; then
    die "version $wanted is requested, but $library $version is installed:" \
        "give a source tree of $wanted instead"
fi

open_cache
tree=$cache/$package-${version//[:~]/_}

if [[ -e $tree/.sep-complete ]]; then
    echo "$tree"
    exit 0
fi
if [[ $offline == yes ]]; then
    die "$package $version is not in $cache, and --offline was given"
fi

need dpkg-source dpkg-dev
lock_cache
if [[ -e $tree/.sep-complete ]]; then
    echo "$tree"
    exit 0
fi

make_work
mkdir -p "$work"/{sources,lists/partial,cache/archives/partial,download}

# One-line style: "deb [options] URI suite components".
derive_from_list()
{
    sed -n -E 's/^[[:space:]]*deb(-src)?[[:space:]]+(.*)$/deb-src \2/p' "$1"
}

# deb822 style: stanzas of "Field: value", of which only Types changes. Stanzas
# that are switched off stay off.
derive_from_deb822()
{
    awk '
        /^#/ { next }
        tolower($0) ~ /^types[ \t]*:/ { print "Types: deb-src"; skip = 1; next }
        /^[ \t]/ && skip { next }
        { skip = 0; print }' "$1"
}

eval "$(apt-config shell main_list Dir::Etc::sourcelist/f \
                         list_dir Dir::Etc::sourceparts/d)"
entries=0
for file in "${main_list:-}" "${list_dir:-}"/*.list "${list_dir:-}"/*.sources; do
    [[ -f $file && -r $file ]] || continue
    name=$(printf '%03d' $entries)
    case $file in
    *.sources) derive_from_deb822 "$file" > "$work/sources/$name.sources" ;;
    *)         derive_from_list "$file" > "$work/sources/$name.list" ;;
    esac
    entries=$((entries + 1))
done
if ! grep -q -s -E '^(deb-src |Types: deb-src)' "$work"/sources/*; then
    die "apt has no package source configured (looked at ${main_list:-} and" \
        "${list_dir:-}), so none for source packages can be derived"
fi

# Hooks that the machine runs around an update are about the system's lists and
# cannot be run by a normal user. As root, apt would change to a user that may
# not be able to reach our directory.
cat > "$work/apt.conf" << EOF
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Dir::Etc::sourcelist "/dev/null";
Acquire::Languages "none";
Acquire::Retries "3";
APT::Sandbox::User "$(id -un)";
EOF

apt()
{
    local tool=$1
    shift
    # In a file, a path could not have a quote in it
    timeout --kill-after=10 900 "$tool" -c "$work/apt.conf" \
        -o "Dir::Etc::sourceparts=$work/sources" \
        -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache" "$@"
}

say "reading the list of source packages"
# A configured repository may have no sources at all; what matters is whether
# the version that is wanted turns up.
apt apt-get -q update > "$work/update.log" 2>&1 < /dev/null ||
    say "apt-get update did not succeed for every entry; going on"

available=$(apt apt-cache showsrc --only-source "$package" 2> /dev/null |
            awk '$1 == "Version:" { print $2 }' | sort -uV) || true
if ! grep -q -x -F "$version" <<< "$available"; then
    sed 's/^/    /' "$work/update.log" >&2
    die "apt offers no source of $package $version, which the installed" \
        "$library was built from (offered: ${available:-none}). After a point" \
        "release, bring $library up to date, or give a source tree of $upstream"
fi

say "downloading $package $version"
(cd "$work/download" &&
 apt apt-get -q source --only-source --download-only "$package=$version" \
     < /dev/null) > "$work/download.log" 2>&1 || {
    sed 's/^/    /' "$work/download.log" >&2
    die "apt-get could not download the source of $package $version"
}

# apt has checked the files against the signed index; dpkg-source checks them
# against the .dsc.
say "unpacking"
dsc=("$work"/download/*.dsc)
dpkg-source --no-copy -x "${dsc[0]}" "$work/tree" > "$work/unpack.log" 2>&1 || {
    sed 's/^/    /' "$work/unpack.log" >&2
    die "dpkg-source could not unpack ${dsc[0]##*/}"
}

rm -rf "$tree"
mv "$work/tree" "$tree"
touch "$tree/.sep-complete"
say "$package $upstream is in $tree"
echo "$tree"
