# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# What the scripts in this directory share. Source it; it runs nothing.

SEP_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# One copy of the UCX source for all build directories.
: "${SEP_CACHE_DIR:=$SEP_TOP/build/cache}"
export SEP_CACHE_DIR

sep_say()
{
    printf '\n==> %s\n' "$*"
}

sep_die()
{
    printf '%s: error: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# Compilers behind ccache, if it is there: what was compiled once, in another
# checkout too, is taken from the user's cache. Compile nothing for the processor
# of this machine with it: a cache may move to another one. What is built whole is
# kept as well (sep_ucx_keep). SEP_CCACHE=n is without both.
sep_use_ccache()
{
    if [[ ${SEP_CCACHE-y} != n && -n ${HOME-} ]]; then
        : "${SEP_KEPT_DIR=${XDG_CACHE_HOME:-$HOME/.cache}/sep/kept}"
        export SEP_KEPT_DIR
    fi
    if [[ ${SEP_CCACHE-y} != n && -d /usr/lib/ccache &&
          :$PATH: != *:/usr/lib/ccache:* ]]; then
        export PATH=/usr/lib/ccache:$PATH
        # Paths in the checkout are relative to it; precompiled headers are hashed.
        # The contents of files are, rather than the output of the preprocessor:
        # that alone does not define the macros of a #pragma GCC target.
        export CCACHE_BASEDIR=$SEP_TOP CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1
        export CCACHE_SLOPPINESS=pch_defines,time_macros
        CCACHE_SLOPPINESS+=,include_file_mtime,include_file_ctime
    fi
}

# Packages of the given groups of deps.txt, each once.
sep_deps()
{
    local group
    for group in "$@"; do
        awk -v group="$group" '$1 == group { print $2 }' \
            "$SEP_TOP/contrib/deps.txt"
    done | sort -u
}

# Run a command as root.
sep_as_root()
{
    if [[ $(id -u) == 0 ]]; then
        "$@"
    elif command -v sudo > /dev/null 2>&1; then
        sudo "$@"
    else
        sep_die "not root and no sudo; as root, run: $*"
    fi
}

# Install what is missing of the given groups of deps.txt, and nothing else. Where
# there is no dpkg, nobody here knows the names, and what asks for a thing that is
# missing, such as configure, says so.
sep_install_deps()
{
    local package missing=() installed
    if ! command -v dpkg-query > /dev/null 2>&1; then
        # shellcheck disable=SC2046 # words
        echo "no dpkg here: going on, as if what Debian calls" $(sep_deps "$@") \
             "were installed" >&2
        return
    fi
    # shellcheck disable=SC2016 # expanded by dpkg-query
    local format='${Package} ${db:Status-Status}\n'

    # shellcheck disable=SC2046 # one word per package
    installed=$(dpkg-query -W -f "$format" $(sep_deps "$@") 2> /dev/null) ||
        true
    for package in $(sep_deps "$@"); do
        [[ $'\n'$installed$'\n' == *$'\n'"$package installed"$'\n'* ]] ||
            missing+=("$package")
    done

    if [[ ${#missing[@]} == 0 ]]; then
        sep_say "All Debian packages needed are installed"
        return
    fi

    command -v apt-get > /dev/null 2>&1 ||
        sep_die "no apt-get here; install by hand what Debian calls:" \
                "${missing[*]}"
    sep_say "Installing Debian packages: ${missing[*]}"
    # A repository that is of no interest here may be out of order; what counts
    # is whether the packages can be installed.
    (sep_apt_get update) ||
        echo "apt-get update did not succeed for every repository; going on" >&2
    sep_apt_get install -y --no-install-recommends "${missing[@]}"
}

# Quiet unless it fails.
sep_apt_get()
{
    local log
    log=$(mktemp)
    if ! sep_as_root env DEBIAN_FRONTEND=noninteractive \
             timeout --kill-after=30 1500 apt-get -q -o DPkg::Lock::Timeout=300 \
             -o Acquire::Retries=3 "$@" > "$log" 2>&1 < /dev/null; then
        cat "$log" >&2
        rm -f "$log"
        sep_die "apt-get $1 failed"
    fi
    rm -f "$log"
}

# Number of parallel compilations: one per core, and memory for each.
sep_jobs()
{
    local cores memory
    cores=$(nproc)
    memory=$(awk '$1 == "MemAvailable:" { print int($2 / 1000000) }' \
                 /proc/meminfo)
    if [[ ${memory:-1} -lt $cores ]]; then
        cores=$((memory > 0 ? memory : 1))
    fi
    echo "$cores"
}

# Option of make: that many compilations at a time, unless a make or the test
# runner above us limits them all.
sep_parallel()
{
    [[ ${MAKEFLAGS-} == *--jobserver-auth* ]] || echo "-j$(sep_jobs)"
}

# Make ./configure if it is not there or is older than what it is made from.
sep_autogen()
{
    local source stale=no
    for source in "$SEP_TOP"/configure.ac "$SEP_TOP"/config/m4/sep_*.m4; do
        [[ $source -ot $SEP_TOP/configure ]] || stale=yes
    done
    if [[ ! -x $SEP_TOP/configure || $stale == yes ]]; then
        sep_say "Generating configure"
        "$SEP_TOP/autogen.sh" > "$SEP_TOP/autogen.log" 2>&1 || {
            cat "$SEP_TOP/autogen.log" >&2
            sep_die "autogen.sh failed"
        }
    fi
}

# One step of building something else, quiet unless it fails.
# usage: sep_step WHAT LOG-DIRECTORY NAME COMMAND [ARGUMENT...]
sep_step()
{
    local what=$1 logs=$2 name=$3
    shift 3
    sep_say "$what: $name"
    timeout --kill-after=30 3600 "$@" > "$logs/$name.log" 2>&1 < /dev/null || {
        tail -n 40 "$logs/$name.log" >&2
        sep_die "$what: $name failed; see $logs/$name.log"
    }
}

# Configure (only if the options are new) and build.
# usage: sep_build DIRECTORY "TARGETS" CONFIGURE-SCRIPT [OPTIONS]
sep_build()
{
    local dir=$1 targets=$2 configure=$3
    shift 3
    local wanted="$configure $*${SEP_UCX:+ SEP_UCX=$SEP_UCX}" target log
    local why
    [[ "$*" != *-march=native* ]] || local -x CCACHE_DISABLE=1
    wanted+=${SEP_UCX_SOURCE:+ SEP_UCX_SOURCE=$SEP_UCX_SOURCE}

    sep_autogen
    mkdir -p "$dir"
    if [[ ! -e $dir/Makefile ]] ||
       [[ $(cat "$dir/.sep-configured" 2> /dev/null) != "$wanted" ]]; then
        sep_say "Configuring ${dir#"$SEP_TOP"/}: ${configure##*/} $*"
        rm -f "$dir/.sep-configured"
        (cd "$dir" && timeout --kill-after=30 900 "$configure" "$@") \
            > "$dir/configure.out" 2>&1 < /dev/null || {
            tail -n 30 "$dir/configure.out" >&2
            why=$(sed -n 's/^configure: error: //p' "$dir/configure.out" |
                      tail -n 1)
            sep_die "configure failed (see $dir/config.log)${why:+: $why}"
        }
        sed -n '/^=====/,$p' "$dir/configure.out"
        echo "$wanted" > "$dir/.sep-configured"
    fi

    sep_say "Building ${dir#"$SEP_TOP"/}: make $targets"
    for target in $targets; do
        log=$dir/make-${target//\//-}.log
        # shellcheck disable=SC2046 # one word or none
        timeout --kill-after=30 1800 \
            make -C "$dir" --no-print-directory $(sep_parallel) "$target" \
            > "$log" 2>&1 < /dev/null || {
            tail -n 40 "$log" >&2
            sep_die "make $target failed; see $log"
        }
    done
}

# "h:mm:ss" of a number of seconds.
sep_duration()
{
    printf '%d:%02d:%02d' $(($1 / 3600)) $(($1 / 60 % 60)) $(($1 % 60))
}
