# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Suites of UCX's source: its bindings for Go and Java, and its own tests. Part of
# device-suites.sh, which has the functions and variables that are used here.

# Have a UCX: its source in $ucx_tree, its release in $ucx_release, and what programs
# need to be linked with it in $ucx_flags, to run with it in $ucx_path. That is the
# installed one, and its source package, or else what the user has given.
have_ucx()
{
    local prefix
    [[ -z $ucx_tree ]] || return 0
    if [[ -z $ucx_source ]]; then
        ucx_tree=$(sep_ucx_source)
        ucx_path=/usr/lib/$(gcc -print-multiarch)
    else
        ucx_tree=$(sep_ucx_tree "$ucx_source")
        prefix=$work/ucx-$(sep_ucx_release "$ucx_tree")
        "$SEP_TOP/contrib/build-ucx-release.sh" --ucx-source "$ucx_source" \
            "$prefix" >&2
        ucx_path=$prefix/lib
        ucx_flags=(-I"$prefix/include" -L"$prefix/lib")
    fi
    ucx_release=$(sep_ucx_release "$ucx_tree")
}

# Transports that clients of UCX are run on: the one of UCX, and ours if the build has
# it for that UCX.
client_transports()
{
    echo rc_x
    [[ -n $ucx_source || ! -x $build/bin/sep-run ]] || echo sep_mlx5
}

# Run a function of tests on each of them. usage: on_transports FUNCTION
on_transports()
{
    local tls
    for tls in $(client_transports); do
        export UCX_TLS=$tls,self
        launch=()
        [[ $tls != sep_mlx5 ]] || launch=("$build/bin/sep-run" --keep-tls)
        "$1" "$tls"
    done
    unset UCX_TLS
}

# Compile the bindings with Debian's Go: a newer one refuses those before 1.18. From
# then on they are modules; before, there is one without a name at most.
go_with()
{
    local where=(GOPATH="$work/go" GO111MODULE=off)
    ! grep -qs "^require" "$work/go/tests/go.mod" ||
        where=(GOPATH="$work/go/path" GO111MODULE=on GOFLAGS=-mod=mod)
    env PATH="/usr/bin:$PATH" "${where[@]}" GOPROXY=off GOTOOLCHAIN=local \
        GOCACHE="$work/go.cache" CGO_CFLAGS="${ucx_flags[*]}" \
        CGO_LDFLAGS="${ucx_flags[*]} -lucp -lucs" go "$@"
}

# Not short messages of goperftest: its server counts one away at times, with TCP as
# well, and waits for ever.
go_tests()
{
    local name options client
    for name in $("$work/go/run-tests" -test.list ^Test); do
        one_test "$1 $name" "${launch[@]}" "$work/go/run-tests" -test.v \
            -test.run "^$name\$"
    done
    [[ $1 != sep_mlx5 ]] || return 0
    for options in "-n 20 -s 1000000" "-n 20 -t 4 -s 1000000"; do
        # another port each time: it asks for one that nobody had lately
        client="$work/go/goperftest -p $((20000 + RANDOM % 10000)) $options"
        pair_test "$1 goperftest $options" 0 "$client" "$client -i 127.0.0.1"
    done
}

run_go()
{
    local launch
    have_ucx
    begin_suite go
    cp -r "$ucx_tree/bindings/go/src" "$ucx_tree/bindings/go/tests" "$work/go"
    chmod -R u+w "$work/go"
    (cd "$work/go/tests" && go_with test -c -o ../run-tests .
     cd "$work/go/src/examples/perftest" && go_with build -o ../../../goperftest .) \
        > "$work/go/build.log" 2>&1 || sep_die "go: see $work/go/build.log"
    export LD_LIBRARY_PATH=$ucx_path
    on_transports go_tests
    unset LD_LIBRARY_PATH
    end_suite "$ucx_release"
}

# EachTest has a line for each test
java_tests()
{
    local class log status state name
    for class in Context Endpoint Listener Memory Request Worker; do
        log=$work/java/$1-$class.log status=0
        timeout 100 "$device" --private "${launch[@]}" java -cp "$java_classes" \
            "-Djava.library.path=$work/java:$ucx_path" EachTest \
            "org.openucx.jucx.Ucp${class}Test" > "$log" 2>&1 || status=$?
        while read -r state name; do
            name="$1 $class ${name%(*}"
            case $state in
            passed)  passed+=("$name") ;;
            failed)  bad+=("$name") ;;
            skipped) refused+=("$name: skips itself") ;;
            esac
        done < <(sed -n 's/^EachTest: //p' "$log")
        grep -q '^EachTest: end' "$log" || bad+=("$1 $class ended with $status")
    done
}

run_java()
{
    local launch jdk java_classes from files
    have_ucx
    begin_suite java
    from=$ucx_tree/bindings/java/src
    jdk=$(readlink -f "$(type -P javac)")
    jdk=${jdk%/bin/javac}
    java_classes=$work/java/classes:/usr/share/java/junit4.jar:/usr/share/java/hamcrest.jar
    # UCX knows its library by the second name, before 1.16 or so by the first
    {
        mapfile -t files < <(find "$from/main/java" "$from/test/java" -name '*.java')
        javac -nowarn -d "$work/java/classes" -h "$work/java/headers" \
            -cp "$java_classes" "$here/EachTest.java" "${files[@]}" \
            $(grep -rqs ai.rapids "$from/test" && echo "$here/Cuda.java")
        g++ -shared -fPIC -I"$jdk/include" -I"$jdk/include/linux" \
            -I"$work/java/headers" "${ucx_flags[@]}" -I"$ucx_tree/src" \
            -o "$work/java/libjucx.so" "$from"/main/native/*.cc \
            "${ucx_flags[@]}" -lucp -luct -lucs -lucm
        ln -s libjucx.so "$work/java/libjucx_$(dpkg --print-architecture).so"
    } > "$work/java/build.log" 2>&1 || sep_die "java: see $work/java/build.log"
    export LD_LIBRARY_PATH=$ucx_path
    on_transports java_tests
    unset LD_LIBRARY_PATH
    end_suite "$ucx_release"
}

# UCX's own tests of one of its transports; skipped ones have skipped themselves.
# usage: ucx_tests TRANSPORT OPTION-OF-UCX-GTEST...
ucx_tests()
{
    local table=$work/ucx-$1.tsv options=() counts
    [[ ! $quick ]] || options+=(--quick)
    [[ -z $ucx_source ]] || options+=(--ucx-source "$ucx_source")
    "$SEP_TOP/contrib/ucx-gtest.sh" --device "$build" \
        --build "$work/ucx-tests-$ucx_release" --results "$work/ucx-$1" \
        --tsv "${options[@]}" "${@:2}" > "$table" 2> "$work/ucx-$1.log" || true
    counts=$(awk -F '\t' 'NR > 1 { n[$5 == "ok" || $5 == "skipped" ? $5 : "failed"]++ }
        END { print n["ok"] + 0, (NR > 1 ? n["failed"] + 0 : 1), n["skipped"] + 0 }' \
        "$table")
    # shellcheck disable=SC2086 # three words
    result "ucx $1" "$ucx_release" $counts
    [[ $tsv ]] || awk -F '\t' 'NR > 1 && $5 != "ok" && $5 != "skipped" {
        print "    failed: " $2 "." $3 }' "$table"
}

# usage: run_ucx [TRANSPORT]
run_ucx()
{
    local source transport all=(rc_mlx5 ud_mlx5 dc_mlx5 rc_verbs ud_verbs)
    if [[ -z $ucx_source ]]; then
        source=$(sep_ucx_source)
    else
        source=$(sep_ucx_tree "$ucx_source")
    fi
    local ucx_release
    ucx_release=$(sep_ucx_release "$source")
    for transport in ${1:-"${all[@]}"}; do
        case $transport in
        rc_mlx5)  ucx_tests rc_mlx5 --only rc --group uct --group md --group ucp \
                      --group rc ;;
        ud_mlx5)  ucx_tests ud_mlx5 --group ud --group ucp-ud ;;
        dc_mlx5)  MLX5SIM_DC=y ucx_tests dc_mlx5 --group dc --group ucp-dc ;;
        rc_verbs) ucx_tests rc_verbs --group rc-verbs --group ucp-rc-verbs ;;
        ud_verbs) ucx_tests ud_verbs --group ud-verbs --group ucp-ud-verbs ;;
        *)        sep_die "there is no $transport; see --help" ;;
        esac
    done
}
