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
                 --disable-static --enable-mt --with-verbs --without-go
                 --without-java --disable-doxygen-doc)
# shellcheck disable=SC2034
SEP_UCX_LIBRARIES=(src/ucm src/ucs src/uct src/ucp)
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

# Apply the patches that a series file lists, in order. With "stock", only
# those that build the transport.
# usage: sep_ucx_patch TREE SERIES all|stock LOG
sep_ucx_patch()
{
    local tree=$1 series=$2 which=$3 log=$4 patch kind line lines dir
    dir=$(dirname "$series")
    mapfile -t lines < <(grep -v '^#' "$series")
    for line in "${lines[@]}"; do
        read -r patch kind <<< "$line"
        if [[ $which == stock && $kind != stock ]]; then
            continue
        fi
        # No fuzz: the patches are for this source and no other.
        patch --directory="$tree" --strip=1 --fuzz=0 --forward --batch \
            < "$dir/$patch" >> "$log" 2>&1 || {
            tail -n 20 "$log" >&2
            sep_die "$patch does not apply to $tree"
        }
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
    files+=(sep_ucx_abi.h)
    {
        printf 'libuct_sep_la_SOURCES ='
        printf ' \\\n\t%s' "${files[@]}"
        printf '\n'
    } > "$tree/src/uct/ib/sep/files.am"
}
