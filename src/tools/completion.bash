# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Completion of the project's programs in bash. It is installed once under each of
# their names, where bash-completion looks for it. What their options are, their
# --help says: nothing is listed here.

# Lines "OPTION [HINT]" of a program's help: each option at the beginning of a line,
# with what is said of its value, if it has one: --link ib|roce.
_sep_options()
{
    "$1" --help 2> /dev/null < /dev/null | awk '
        function tell(list, hint,    names, n, i) {
            n = split(list, names, /, /)
            for (i = 1; i <= n; ++i) {
                sub(/[=[].*/, "", names[i])
                print names[i], hint
            }
        }
        match($0, /^ ? ?(--?[A-Za-z][^ ,:]*, )*--?[A-Za-z][^ ,:]*/) {
            list = substr($0, RSTART, RLENGTH)
            rest = substr($0, RSTART + RLENGTH)
            if (rest ~ /^:/) {
                next # A heading
            }
            sub(/^ +/, "", list)
            hint = ""
            if (rest ~ /^ [^ ]/) {
                split(rest, words, " ")
                hint = words[1]
            }
            tell(list, hint)
        }'
}

# The hint of the value of an option, if it takes one.
_sep_hint()
{
    awk -v option="$2" '$1 == option && NF > 1 { print $2; exit }' <<< "$1"
}

_sep_complete()
{
    local program=$1 cur=$2 options hint i
    COMPREPLY=()
    options=$(_sep_options "$program") || return

    # These run a command, which has a completion of its own
    case ${program##*/} in
    sep-run|mlx5sim-run|mlx5sim-cluster)
        for ((i = 1; i < COMP_CWORD; ++i)); do
            case ${COMP_WORDS[i]} in
            --)  ((++i)); break ;;
            -*)  [[ -z $(_sep_hint "$options" "${COMP_WORDS[i]}") ]] || ((++i)) ;;
            *)   break ;;
            esac
        done
        if ((i <= COMP_CWORD)) && [[ ${COMP_WORDS[i]} != -* ]]; then
            if declare -F _command_offset > /dev/null; then
                _command_offset "$i"
            else
                compopt -o default
                mapfile -t COMPREPLY < <(compgen -c -- "$cur")
            fi
            return
        fi ;;
    esac

    hint=$(_sep_hint "$options" "${COMP_WORDS[COMP_CWORD - 1]}")
    case $hint in
    *[Ff][Ii][Ll][Ee]*|*DIR*|*SOCKET*)
        compopt -o default ;;
    *'|'*)
        mapfile -t COMPREPLY < <(compgen -W "${hint//|/ }" -- "$cur") ;;
    '')
        mapfile -t COMPREPLY < <(
            compgen -W "$(awk '{ print $1 }' <<< "$options")" -- "$cur") ;;
    esac
}

complete -F _sep_complete mlx5sim-cluster mlx5sim-run mlx5sim-stat \
    mlx5sim-switch mlx5sim-wire sep-run sep_info sep_perf
