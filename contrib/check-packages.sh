# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# What contrib/check-deb.sh and contrib/check-rpm.sh do with packages, whoever has
# installed them. To be sourced after contrib/lib.sh.

# usage: says WORDS COMMAND...: it has to print the words
says()
{
    local words=$1 output
    shift
    output=$(timeout -k 5 300 "$@" 2>&1 < /dev/null) || true
    if [[ $output != *"$words"* ]]; then
        tail -n 20 <<< "$output" >&2
        sep_die "'$*' does not say '$words'"
    fi
    echo "$*: $words"
}

# Use both packages: the device, the transport, an MPI job
use_packages()
{
    says "hca_id:	mlx5_0" mlx5sim-run ibv_devinfo
    says "Transport: sep_mlx5" mlx5sim-run sep-run ucx_info -d
    mlx5sim-run sep_info -t -w 4 > /dev/null || sep_die "sep_info -t failed"
    says "sep_mlx5/mlx5_0" mlx5sim-run mpiexec -n 2 env UCX_LOG_LEVEL=info \
        sep-run --only NPmpich2 -u 64 -n 10 -o /tmp/np
    grep -q . /tmp/np || sep_die "the MPI job has measured nothing"
}
