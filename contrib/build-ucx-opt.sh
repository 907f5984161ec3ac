#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Build UCX 1.13.1, 1.18.1 or 1.22.0 with the optimisations of src/ucp/opt and
# the sep_mlx5 transport as one of its modules, in release configuration, and
# install it to PREFIX:
#
#   contrib/build-ucx-opt.sh $PWD/build/ucx-opt
#   contrib/build-ucx-opt.sh --ucx-source ucx-1.22.0.tar.xz $PWD/build/ucx-opt-1.22.0
#   LD_LIBRARY_PATH=$PWD/build/ucx-opt/lib UCX_TLS=sep mpiexec -n 2 ./a.out
#
# Sonames and ABI are those of the same UCX without them. Running the script again
# does nothing if PREFIX is complete and nothing has changed.
#
# Options: --ucx-source WHAT  a source tree of UCX, or an archive of one (default:
#                         Debian's source package of 1.13.1, see fetch-source.sh);
#                         it is copied, not changed. Which release it is, it says
#                         itself
#          --stock        leave the optimisations out: the peer to compare with
#          --work DIR     where to build; kept afterwards, for development
#          --configure "OPTION..."  instead of the release configuration
#          --check        for tests: the libraries alone, with assertions and
#                         checks of parameters, compiled fast
#          --asan         the same with AddressSanitizer and
#                         UndefinedBehaviorSanitizer
set -euo pipefail
# shellcheck source=contrib/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=contrib/ucx.sh
. "$(dirname "$0")/ucx.sh"

usage()
{
    sed -n '4,/^set -/p' "$0" | sed -n 's/^# \{0,1\}//p'
}

which=all
ucx_source=
work=
flags=("${SEP_UCX_RELEASE[@]}")
prefix=
parts=()
while [[ $# -gt 0 ]]; do
    case $1 in
    --stock)     which=stock; shift ;;
    --ucx-source|--source)
                 ucx_source=${2:?$1 needs a directory or archive}; shift 2 ;;
    --work)      mkdir -p "${2:?--work needs a directory}"
                 work=$(cd "$2" && pwd); shift 2 ;;
    --configure) read -r -a flags <<< "${2:?--configure needs options}"
                 shift 2 ;;
    --check)     parts=("${SEP_UCX_LIBRARIES[@]}")
                 # With what would end a release build
                 flags=("${SEP_UCX_CHECKED[@]}"
                        "CFLAGS=$SEP_UCX_FAST -Werror=shadow"); shift ;;
    # configure of the tests asks ucx_info which UCX it has
    --asan)      parts=("${SEP_UCX_LIBRARIES[@]}" src/tools/info)
                 flags=("${SEP_UCX_CHECKED[@]}" "CFLAGS=$SEP_UCX_SANITIZED")
                 shift ;;
    --help|-h)   usage; exit 0 ;;
    -*)          usage >&2; exit 2 ;;
    *)           [[ -z $prefix ]] || { usage >&2; exit 2; }
                 prefix=$1; shift ;;
    esac
done
if [[ -z $prefix ]]; then
    usage >&2
    exit 2
fi
mkdir -p "$prefix"
prefix=$(cd "$prefix" && pwd)

sep_install_deps build bench
sep_use_ccache
if [[ -n $ucx_source ]]; then
    source_dir=$(sep_ucx_tree "$ucx_source")
else
    # What Debian 12 has
    source_dir=$("$SEP_TOP/contrib/fetch-source.sh" --version 1.13.1)
fi
release=$(sep_ucx_release "$source_dir")
sep_ucx_opt_series "$release" > /dev/null

# What the result depends on.
stamp="${source_dir##*/} $release $which ${flags[*]} $(sep_ucx_opt_fingerprint)"
if [[ $(cat "$prefix/.sep-ucx-opt" 2> /dev/null) == "$stamp" ]]; then
    sep_say "$prefix is complete"
    exit 0
fi

keep=$work
: "${work:=$prefix/.sep-ucx-build}"
rm -rf "$work/source" "$work/build"
mkdir -p "$work"
sep_ucx_copy "$source_dir" "$work/source"
sep_say "Adding the transport and, of the patches, what is wanted: $which"
sep_ucx_patch "$work/source" "$release" "$which" "$work/patch.log"
sep_ucx_add_files "$work/source"
sep_ucx_configure "$work" "$prefix" "${flags[@]}"
sep_ucx_make "$work" "${parts[@]}"

echo "$stamp" > "$prefix/.sep-ucx-opt"
[[ -n $keep ]] || rm -rf "$work"
sep_say "UCX $release ($which) is in $prefix"
