#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: gen-ucx-config.sh UCX_INFO UCX_LIBDIR OUTPUT_DIRECTORY [VERSION]
#        gen-ucx-config.sh --show UCX_INFO UCX_LIBDIR
#        gen-ucx-config.sh --version UCX_INFO UCX_LIBDIR
#        gen-ucx-config.sh --source-version UCX_SOURCE_DIRECTORY
#
# Writes what the transport must know about the UCX that will load it:
#   ucx-config.h   that UCX's own config.h, as far as its headers look at it
#   sep_ucx_abi.h  its version and the settings that decide structure layout,
#                  as strings for error messages; the version may be another one
#                  than that of the UCX that is asked for its configuration
# Files that would not change are left alone, so that nothing is rebuilt.
# --show prints the settings in one line, --version the version of a UCX that is
# installed, --source-version that of a source tree.
set -eu

mode='write'
case $1 in
--show|--version|--source-version)
    mode=${1#--}
    shift
    ;;
esac

if [ "$mode" = source-version ]; then
    sed -n 's/^define(\[ucx_ver_\(major\|minor\|patch\)\], *\([0-9]*\)).*/\2/p' \
        "$1/configure.ac" | tr '\n' '.' | sed 's/\.$//'
    exit 0
fi

ucx_info=$1
libdir=$2

run_ucx_info()
{
    LD_LIBRARY_PATH="$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
        "$ucx_info" "$@"
}

version=$(run_ucx_info -v |
          sed -n 's/^# \(Library version:\|Version\) *\([0-9.]*\).*/\2/p' |
          head -n 1)
if [ "$mode" = version ]; then
    echo "$version"
    exit 0
fi

defines=$(run_ucx_info -b | grep '^#define')
if [ -z "$defines" ]; then
    echo "gen-ucx-config.sh: $ucx_info -b prints no configuration" >&2
    exit 1
fi

# The value of macro $1, or 0 if it is not defined.
value()
{
    printf '%s\n' "$defines" |
        awk -v name="$1" '$2 == name { v = $3 } END { print v == "" ? 0 : v }'
}

build_config="stats=$(value ENABLE_STATS)"
build_config="$build_config assert=$(value ENABLE_ASSERT)"
build_config="$build_config params_check=$(value ENABLE_PARAMS_CHECK)"
build_config="$build_config debug_data=$(value ENABLE_DEBUG_DATA)"
build_config="$build_config mt=$(value ENABLE_MT)"
build_config="$build_config log=$(value UCS_MAX_LOG_LEVEL |
                                  sed 's/UCS_LOG_LEVEL_//' | tr '[:upper:]' '[:lower:]')"

if [ "$mode" = show ]; then
    echo "$build_config"
    exit 0
fi

outdir=$3
version=${4:-$version}

# Replace file $1 by standard input if they differ.
update()
{
    cat > "$1.tmp"
    if cmp -s "$1.tmp" "$1"; then
        rm -f "$1.tmp"
    else
        mv -f "$1.tmp" "$1"
    fi
}

mkdir -p "$outdir"

# Left out: what names the package or its files rather than the platform, and
# "restrict", which is a keyword of our dialect.
{
    echo "/* Generated from '$ucx_info -b'. Included by config.h only. */"
    printf '%s\n' "$defines" | awk '
        $2 ~ /^(PACKAGE|VERSION$|LT_OBJDIR$|UCX_CONFIGURE_FLAGS$|restrict$)/ ||
        $2 ~ /(_MODULES|_CONFIG_H)$/ { next }
        {
            value = $0
            sub(/^#define +[^ ]+ */, "", value)
            printf "#undef %s\n#define %s %s\n", $2, $2, value
        }'
} | update "$outdir/ucx-config.h"

{
    echo "/* Generated from '$ucx_info -v' and '$ucx_info -b'. */"
    echo "#ifndef SEP_UCX_ABI_H_"
    echo "#define SEP_UCX_ABI_H_"
    echo
    echo "#define SEP_UCX_VERSION_STRING \"$version\""
    echo "#define SEP_UCX_BUILD_CONFIG   \"$build_config\""
    echo
    echo "#endif"
} | update "$outdir/sep_ucx_abi.h"
