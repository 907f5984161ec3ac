#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Build the transport and its tools for AArch64 with Debian's cross compiler, and run
# what needs no device under qemu-user: tests of the model, of the device's pure
# parts, and of the transport's. Warnings are errors.
#
#   contrib/cross-aarch64.sh [OPTIONS] [DIRECTORY]
#
#   DIRECTORY      where to build (default: build/aarch64)
#   --part NAME    only this: packages, build, tests, or ucp, the optimisations of
#                  UCP in UCX's own source, with the transport as one of its
#                  modules; may be repeated (default: all)
#   --ucx-source PATH  UCX for part ucp, a directory or an archive (default: Debian's
#                  source package of the UCX that is installed)
#
# Libraries and headers of Debian's arm64 are unpacked below DIRECTORY, nothing is
# installed on this machine but the compiler and qemu-user. docs/aarch64.md says what
# is missing there. The last line is "N passed, N failed, N skipped".
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"

usage()
{
    sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'
}

parts=
ucx_source=${SEP_UCX_SOURCE-}
dir=$SEP_TOP/build/aarch64
while [[ $# -gt 0 ]]; do
    case $1 in
    --part)       case ${2:?--part needs a name} in
                  packages|build|tests|ucp) parts+=" $2 "; shift 2 ;;
                  *) sep_die "no part '$2'" ;;
                  esac ;;
    --ucx-source) ucx_source=$(realpath "${2:?--ucx-source needs a path}")
                  shift 2 ;;
    --help|-h)    usage; exit 0 ;;
    -*)           usage >&2; exit 2 ;;
    *)            dir=$1; shift ;;
    esac
done
: "${parts:= packages build tests ucp }"
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
root=$dir/root
tools=$dir/tools
host=aarch64-linux-gnu

# Debian's own packages for arm64, from where this machine's apt gets its own. What
# they need is worked out as for a machine that has nothing, and only unpacked.
get_packages()
{
    local wanted package packages=$dir/packages
    wanted=$(sep_deps arm64 | paste -s -d ' ')
    [[ $(cat "$root/.sep-complete" 2> /dev/null) != "$wanted" ]] || return 0

    mkdir -p "$packages"/{state/lists,cache/archives}/partial
    : > "$packages/status"
    cat > "$packages/apt.conf" << EOF
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Post-Invoke;
#clear DPkg::Pre-Install-Pkgs;
#clear APT::Architectures;
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "$(id -un)";
Acquire::Languages "none";
Acquire::Retries "3";
Dir::State "$packages/state";
Dir::State::status "$packages/status";
Dir::Cache "$packages/cache";
Debug::NoLocking "true";
EOF
    sep_step "Debian's arm64" "$packages" update \
        apt-get -q -c "$packages/apt.conf" update
    # shellcheck disable=SC2086 # one word per package
    sep_step "Debian's arm64" "$packages" download \
        apt-get -q -y -c "$packages/apt.conf" install --download-only \
        --no-install-recommends $wanted
    rm -rf "$root"
    mkdir -p "$root"
    for package in "$packages"/cache/archives/*.deb; do
        dpkg-deb -x "$package" "$root"
    done
    echo "$wanted" > "$root/.sep-complete"
}

# usage: write_tool NAME COMMAND...
write_tool()
{
    printf '#!/bin/sh\nexec %s "$@"\n' "${*:2}" > "$tools/$1"
    chmod a+x "$tools/$1"
}

# Compilers that see the headers of arm64, and ucx_info, which configure asks
write_tools()
{
    local lib=$root/usr/lib/$host
    mkdir -p "$tools"
    write_tool gcc "$host-gcc --sysroot='$root'"
    write_tool g++ "$host-g++ --sysroot='$root'"
    write_tool ucx_info "qemu-aarch64 -L '$root' '$root/usr/bin/ucx_info'"
    write_tool pkg-config "env PKG_CONFIG_SYSROOT_DIR='$root'" \
        "PKG_CONFIG_LIBDIR='$lib/pkgconfig:$root/usr/share/pkgconfig'" \
        pkg-config
}

build()
{
    UCX_INFO=$tools/ucx_info PKG_CONFIG=$tools/pkg-config SEP_UCX_SOURCE='' \
        sep_build "$dir/sep" "all unit-programs" "$SEP_TOP/configure" \
        "--host=$host" "CC=$tools/gcc" "CXX=$tools/g++" --enable-gtest \
        --enable-werror "CXXFLAGS=-O0 -g1"
}

# Tests that need a device are skipped by themselves. Not run are those that start
# the program again, for which the kernel would have to know of qemu-user; those of
# owners of locks that die, which qemu-user does not tell the others; one that needs a
# device in a child process, where it can't be skipped; and those that take minutes.
exceptions=(test_seed.\* test_lock.\* test_sep_uuar.is_left_before_\*
            \*test_sep_conn_schedules.\* \*random_valid_packets_\*)

run_tests()
{
    local program log status
    for program in model sim sep; do
        sep_say "Running ${program}_gtest under qemu-aarch64"
        log=$dir/${program}_gtest.log
        status=0
        (cd "$dir/sep" &&
         timeout --kill-after=15 1800 qemu-aarch64 -L "$root" \
             "test/gtest/${program}_gtest" "--gtest_filter=-$(IFS=:; echo "${exceptions[*]}")") \
            > "$log" 2>&1 < /dev/null || status=$?
        grep -E '^\[  (FAILED|PASSED|SKIPPED) ' "$log" | tail -n 40 |
            grep -v -E 'SKIPPED .*test_sep' || true
        count "$log" PASSED passed
        count "$log" FAILED failed
        count "$log" SKIPPED skipped
        # One that crashed has not said so
        if [[ $status != 0 ]] && ! grep -q '^\[  FAILED ' "$log"; then
            echo "${program}_gtest ended with status $status; see $log" >&2
            failed=$((failed + 1))
        fi
    done
}

# Add the number in a closing line of GoogleTest.
# usage: count LOG WORD VARIABLE
count()
{
    local -n sum=$3
    local number
    number=$(sed -n "s/^\[  $2 *\] \([0-9]*\) tests\?[.,].*/\1/p" "$1")
    sum=$((sum + ${number:-0}))
}

# Only the libraries, which have all our files in them
build_ucp()
{
    local options=("--host=$host" "CC=$tools/gcc" "CXX=$tools/g++"
                   "--with-verbs=$root/usr" --disable-logging --disable-static
                   --enable-mt --without-go --without-java --without-rdmacm
                   --disable-doxygen-doc --disable-numa)
    local args=(--check --configure "${options[*]}" "$dir/ucx-opt")
    [[ -z $ucx_source ]] || args=(--ucx-source "$ucx_source" "${args[@]}")
    "$SEP_TOP/contrib/build-ucx-opt.sh" "${args[@]}"
    [[ -e $dir/ucx-opt/lib/ucx/libuct_sep.so.0 ]] ||
        sep_die "$dir/ucx-opt has no transport"
}

passed=0
failed=0
skipped=0
sep_install_deps build test cross
sep_use_ccache
if [[ $parts == *" packages "* ]]; then
    get_packages
    write_tools
fi
if [[ $parts == *" build "* ]]; then
    build
fi
if [[ $parts == *" ucp "* ]]; then
    build_ucp
fi
if [[ $parts == *" tests "* ]]; then
    run_tests
    echo "$passed passed, $failed failed, $skipped skipped"
fi
[[ $failed == 0 ]]
