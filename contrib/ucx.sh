# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# How the scripts of this directory build UCX's source package. Source it after
# lib.sh; it runs nothing.

# Release configuration: no logging, assertions, parameter checks.
# shellcheck disable=SC2034 # for the scripts that source this
SEP_UCX_RELEASE=(--disable-logging --disable-debug --disable-assertions
                 --disable-params-check --disable-static --enable-mt
                 --with-verbs --without-go --without-java
                 --disable-doxygen-doc)

# For tests: what UCX can check of itself, and only the libraries.
# shellcheck disable=SC2034
SEP_UCX_CHECKED=(--disable-logging --enable-assertions --enable-params-check
                 --enable-stats --disable-static --enable-mt --with-verbs
                 --without-go --without-java --disable-doxygen-doc)
# shellcheck disable=SC2034
SEP_UCX_LIBRARIES=(src/ucm src/ucs src/uct src/ucp)
# Compiling takes longer than running, so nothing is optimised. The compiler warns
# then of what it would otherwise see to be right, in code of UCX.
# shellcheck disable=SC2034
SEP_UCX_FAST="-O0 -g0 -Wno-error"
# The compiler warns of more when it instruments, in code of UCX as well. UCX
# packs addresses and keys without alignment, counts from null pointers, and
# copies nothing from them.
# shellcheck disable=SC2034
SEP_UCX_SANITIZED="-O1 -g1 -Wno-error -fno-omit-frame-pointer"
SEP_UCX_SANITIZED+=" -fsanitize=address -fsanitize=undefined"
SEP_UCX_SANITIZED+=" -fno-sanitize=alignment -fno-sanitize=pointer-overflow"
SEP_UCX_SANITIZED+=" -fno-sanitize=nonnull-attribute"
SEP_UCX_SANITIZED+=" -fno-sanitize-recover=undefined"

# One step of the build.
# usage: sep_ucx_step LOG-DIRECTORY NAME COMMAND [ARGUMENT...]
sep_ucx_step()
{
    sep_step UCX "$@"
}

# Print where the source of the system's UCX is: what SEP_UCX_SOURCE names, as
# for configure, or else the source package.
sep_ucx_source()
{
    if [[ ${SEP_UCX_SOURCE:-auto} == auto ]]; then
        "$SEP_TOP/contrib/fetch-source.sh"
    elif [[ -d $SEP_UCX_SOURCE ]]; then
        realpath "$SEP_UCX_SOURCE"
    else
        "$SEP_TOP/contrib/fetch-source.sh" --archive "$SEP_UCX_SOURCE"
    fi
}

# What tells one source tree, or archive of one, from another.
# usage: sep_ucx_sum TREE-OR-ARCHIVE
sep_ucx_sum()
{
    if [[ -d $1 ]]; then
        (cd "$1" && find . -type f -print0 | LC_ALL=C sort -z |
            xargs -0 sha256sum)
    else
        cat "$1"
    fi | sha256sum | cut -c 1-16
}

# What a build takes from the system: compilers, all packages with headers, those
# of deps.txt, and the variables that configure looks at. Fails where there is no
# dpkg to ask.
sep_ucx_system()
{
    local name
    dpkg-query -W | grep -E '^(gcc|g\+\+|cpp|binutils)|^[^:[:space:]]*-dev\>' ||
        return
    # shellcheck disable=SC2046 # words
    dpkg-query -W $(sep_deps build bench) || return
    for name in CC CXX CPP CFLAGS CXXFLAGS CPPFLAGS LDFLAGS LIBS \
                PKG_CONFIG_PATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH CPATH \
                LIBRARY_PATH LD_LIBRARY_PATH; do
        echo "$name=${!name-}"
    done
    "${CC:-cc}" --version && "${CXX:-c++}" --version
}

# Set sep_kept to the directory of something that is built once for all checkouts
# of this user, in $SEP_KEPT_DIR, and lock it until sep_ucx_leave. Its name follows
# from all that it is built from: STAMP, and the system. What is complete there is
# never changed, and goes when nobody has asked for it in two weeks. Fails if
# nothing is to be kept.
# usage: sep_ucx_keep NAME STAMP
sep_ucx_keep()
{
    local sum
    [[ -n ${SEP_KEPT_DIR-} ]] && sum=$(sep_ucx_system 2> /dev/null) || return
    sum=$(sha256sum <<< "$2 $sum")
    mkdir -p "$SEP_KEPT_DIR"
    sep_kept=$(cd "$SEP_KEPT_DIR" && pwd)/$1-${sum:0:16}
    exec {sep_kept_lock}> "$sep_kept.lock"
    flock -w 3600 "$sep_kept_lock" ||
        sep_die "another run holds $sep_kept.lock for more than an hour"
    mkdir -p "$sep_kept"
    touch "$sep_kept" "$sep_kept.lock"
    find "$SEP_KEPT_DIR" -maxdepth 1 -mtime +14 -name "$1-*" \
        -exec rm -rf {} +
}

# Let others have what sep_ucx_keep has locked, if anything.
sep_ucx_leave()
{
    [[ -z ${sep_kept_lock-} ]] || exec {sep_kept_lock}>&-
}

# Copy a source tree, or unpack an archive of one.
# usage: sep_ucx_copy TREE-OR-ARCHIVE DIRECTORY
sep_ucx_copy()
{
    if [[ -d $1 ]]; then
        cp -a "$1" "$2" && chmod -R u+w "$2"
    else
        mkdir "$2" && tar -xf "$1" -C "$2" --strip-components=1
    fi
}

# Tell only those files of a configured tree where UCX is installed that say so.
# So ccache knows all others, wherever they were compiled.
# usage: sep_ucx_hide_paths WORK PREFIX
sep_ucx_hide_paths()
{
    local config=$1/build/config.h paths=$1/build/sep_paths.h
    {
        grep '^#define UCX_CONFIGURE_FLAGS ' "$config"
        printf '#define %s "%s"\n' UCX_MODULE_DIR "$2/lib/ucx" \
            UCX_CONFIG_DIR "$2/etc/ucx"
    } > "$paths"
    grep -rlwE --include='*.c' -e UCX_CONFIGURE_FLAGS -e UCX_MODULE_DIR \
        -e UCX_CONFIG_DIR "$1/source/src" |
        xargs -d '\n' sed -i "1i #include \"$paths\""
    sed -i '/^#define UCX_CONFIGURE_FLAGS /d' "$config"
    sed -i '/-DUCX_\(MODULE\|CONFIG\)_DIR=/d' "$1/build/src/ucs/Makefile"
}

# Configure the tree in WORK/source, in WORK/build.
# usage: sep_ucx_configure WORK PREFIX [CONFIGURE-OPTION...]
sep_ucx_configure()
{
    local work=$1 prefix=$2
    shift 2
    mkdir -p "$work/build"
    (
        cd "$work/source" || exit
        sep_ucx_step "$work" autogen ./autogen.sh
        cd "$work/build" || exit
        sep_ucx_step "$work" configure "$work/source/configure" \
            --prefix="$prefix" "$@"
    )
    sep_ucx_hide_paths "$work" "$prefix"
}

# Build and install all of it, or some of its directories in this order.
# usage: sep_ucx_make WORK [DIRECTORY...]
sep_ucx_make()
{
    local work=$1 part name
    shift
    [[ $# != 0 ]] || set -- .
    for part in "$@"; do
        name=${part#.}
        name=${name:+-${name//\//-}}
        # shellcheck disable=SC2046 # one word or none
        sep_ucx_step "$work" "make$name" \
            make -C "$work/build/$part" $(sep_parallel)
        sep_ucx_step "$work" "install$name" \
            make -C "$work/build/$part" install
    done
}

# What a patched tree depends on.
sep_ucx_opt_fingerprint()
{
    (cd "$SEP_TOP" &&
        find src/ucp/opt src/uct/ib/sep -type f ! -name '*.o' ! -name '*.lo' \
             ! -path '*/.*' -print0 | sort -z | xargs -0 cat |
        sha256sum | cut -c 1-16)
}

# The tree of a UCX source that a user names: the tree itself, or the one that is
# unpacked from an archive, in the cache.
# usage: sep_ucx_tree TREE-OR-ARCHIVE
sep_ucx_tree()
{
    [[ -e $1 ]] || sep_die "$1: no such directory or archive of UCX's source"
    if [[ -f $1 ]]; then
        "$SEP_TOP/contrib/fetch-source.sh" --archive "$1"
    elif [[ -e $1/configure.ac && -e $1/src/uct/base/uct_iface.h ]]; then
        realpath "$1"
    else
        sep_die "$1 is no source of UCX: it has no configure.ac or no" \
                "src/uct/base/uct_iface.h"
    fi
}

# Print which release a tree of UCX's source is, as it says itself.
# usage: sep_ucx_release TREE
sep_ucx_release()
{
    local part value release=
    for part in major minor patch; do
        value=$(sed -n "s/.*define(\[ucx_ver_$part\], *\([0-9]*\)).*/\1/p" \
                    "$1/configure.ac")
        [[ $value =~ ^[0-9]+$ ]] ||
            sep_die "$1/configure.ac does not say which release of UCX it is" \
                    "(ucx_ver_$part)"
        release+=${release:+.}$value
    done
    echo "$release"
}

# Print which release of UCX is installed in a directory; nothing if that can't be
# seen.
# usage: sep_ucx_installed_release PREFIX
sep_ucx_installed_release()
{
    sed -n 's/^#define UCT_VERNO_STRING *"\([^"]*\)".*/\1/p' \
        "$1/include/uct/api/version.h" 2> /dev/null || true
}

# Fail unless the UCX that is installed in a directory is of a release.
# usage: sep_ucx_expect_release PREFIX RELEASE
sep_ucx_expect_release()
{
    local release
    release=$(sep_ucx_installed_release "$1")
    [[ $release == "$2" ]] ||
        sep_die "$1 has UCX ${release:-of an unknown release}, but $2 is" \
                "wanted: both builds and --ucx-source have to be of one release"
}

# Print the releases for which there are optimisations, separated by commas.
sep_ucx_opt_releases()
{
    (cd "$SEP_TOP/src/ucp/opt/patches" && printf '%s\n' */series) | sort -V |
        sed 's|/series||' | paste -s -d , | sed 's/,/, /g'
}

# Print the series of patches for a release, or fail and say which there are.
# usage: sep_ucx_opt_series RELEASE
sep_ucx_opt_series()
{
    local series=$SEP_TOP/src/ucp/opt/patches/$1/series
    [[ -e $series ]] ||
        sep_die "there are no optimisations for UCX $1, only for" \
                "$(sep_ucx_opt_releases)"
    echo "$series"
}

# What the log of a patch that did not apply says of its hunks, in one line.
# usage: sep_ucx_failed_hunks LOG
sep_ucx_failed_hunks()
{
    awk '
        /^(patching|checking) file / { file = $3 }
        /^can.t find file to patch/ { print "no file for a hunk" }
        /^Reversed .or previously applied/ { print file " is patched already" }
        /^Hunk #[0-9]+ (FAILED|ignored)/ {
            sub("#", "", $2)
            printf "hunk %s of %s (line %s)\n", $2, file, $NF + 0 }' "$1" |
        paste -s -d , | sed 's/,/, /g'
}

# Apply the patches of a release, in order. With "stock", only those that build
# the transport.
# usage: sep_ucx_patch TREE RELEASE all|stock LOG
sep_ucx_patch()
{
    local tree=$1 release=$2 which=$3 log=$4 series patch kind line lines hunks
    series=$(sep_ucx_opt_series "$release") || exit 1
    : > "$log"
    mapfile -t lines < <(grep -v '^#' "$series")
    for line in "${lines[@]}"; do
        read -r patch kind <<< "$line"
        if [[ $which == stock && $kind != stock ]]; then
            continue
        fi
        # No fuzz: the patches are for this source and no other.
        patch --directory="$tree" --strip=1 --fuzz=0 --forward --batch \
            < "${series%/*}/$patch" > "$log.$patch" 2>&1 || {
            cat "$log.$patch" >&2
            hunks=$(sep_ucx_failed_hunks "$log.$patch")
            sep_die "$patch, which is for UCX $release, does not apply to" \
                    "$tree: ${hunks:-see above}"
        }
        cat "$log.$patch" >> "$log"
        rm -f "$log.$patch"
    done
}

# Add our files to UCX's tree: those of src/ucp/opt/tree where they are there,
# and the transport's with a list that its Makefile.am includes.
# usage: sep_ucx_add_files TREE
sep_ucx_add_files()
{
    local tree=$1 file files
    cp -rT "$SEP_TOP/src/ucp/opt/tree" "$tree"

    mapfile -t files < <(
        sed -n 's|^[[:space:]]src/uct/ib/sep/\([^ ]*\).*|\1|p' \
            "$SEP_TOP/src/uct/ib/sep/sources.am")
    for file in "${files[@]}"; do
        mkdir -p "$tree/src/uct/ib/sep/${file%/*}"
        cp "$SEP_TOP/src/uct/ib/sep/$file" "$tree/src/uct/ib/sep/$file"
    done
    files+=(sep_ucx_abi.h sep_ucx_features.h)
    {
        printf 'libuct_sep_la_SOURCES ='
        printf ' \\\n\t%s' "${files[@]}"
        printf '\n'
    } > "$tree/src/uct/ib/sep/files.am"
}
