# SPDX-License-Identifier: BSD-3-Clause
"""What there is to test: builds, and the parts with what each runs.

To add a part, add a row to PARTS.
"""

import dataclasses
import os
import re


@dataclasses.dataclass(frozen=True)
class Build:
    """A build of the project; each target is made when something needs it."""
    directory: str              # below build/
    options: tuple = ()


@dataclasses.dataclass(frozen=True)
class Script:
    """A build of something else, by a script that does nothing if it is
    there."""
    name: str
    command: tuple
    variable: str = ""          # environment: last word of the command
    ucx: str = ""               # the version of the installed UCX that it needs


# Names the source of the UCX of Debian 13, for its root and for UCX's tests
DEBIAN13_UCX_SOURCE = "SEP_DEBIAN13_UCX_SOURCE"
# Names the source of the newest UCX that src/ucp/opt has patches for
NEWEST_UCX_SOURCE = "SEP_NEWEST_UCX_SOURCE"

# As by default, with lines alone for what fails: variables take a third of the
# time to compile.
PLAIN = Build("check", ("CFLAGS=-O2 -g1",))
SANITIZED = Build("check-sanitized", ("--enable-asan", "--enable-ubsan",
                                      "CFLAGS=-O1 -g1"))
THREADS = Build("check-threads", ("--enable-tsan", "CFLAGS=-O1 -g1"))
# As users' package managers compile: for the processor at hand, with all its
# registers, and with what is inlined from one file into another
NATIVE = Build("check-native", ("CFLAGS=-O3 -march=native -flto -g1",))
UCX_GTEST = Script("ucx-gtest", ("contrib/ucx-gtest.sh", "--quick",
                                 "--build-only"))
UCX_GTEST_DEBIAN13 = Script("ucx-gtest-debian13", (
    "contrib/ucx-gtest.sh", "--quick", "--build-only", "--group", "uct",
    "--group", "md", "--build", "build/ucx-gtest-debian13", "--ucx-source"),
    DEBIAN13_UCX_SOURCE)
UCX_RELEASE = Script("ucx-release", ("contrib/build-ucx-release.sh",
                                     "build/ucx-release"), ucx="1.13.1")
UCX_OPT = Script("check-ucx-opt", ("contrib/build-ucx-opt.sh", "--check",
                                   "build/check-ucx-opt"), ucx="1.13.1")
UCX_OPT_NEWEST = Script("check-ucx-opt-newest", (
    "contrib/build-ucx-opt.sh", "--check", "build/check-ucx-opt-newest",
    "--ucx-source"), NEWEST_UCX_SOURCE)


# GoogleTest programs, and where in test/gtest their sources are, beside common
PROGRAMS = {"sim_gtest": "sim", "device_gtest": "device", "sep_gtest": "sep",
            "model_gtest": "model", "scale_gtest": "scale",
            "ucp_gtest": "ucp", "caps_gtest": "sep"}
# What they need of their build, if not all
NEEDS = {"sim_gtest": "device-programs", "device_gtest": "device-programs"}


@dataclasses.dataclass(frozen=True)
class Gtest:
    """Tests of a GoogleTest program, run in one way."""
    run: str                    # name of this way
    program: str
    build: Build = PLAIN
    tests: str = "*"            # as for --gtest_filter
    environment: tuple = ()     # NAME=VALUE; @TOP@ is the top directory
    tool: str = ""              # see config/run-test
    sanitizers: str = ""
    apart: str = ""             # suites with a process of their own
    needs: tuple = ()           # builds besides its own
    chunk: int = 60             # tests per process
    patience: int = 1           # how many times the limit of a test
    random_seed: bool = False   # another one in each run
    waits: bool = False         # for a third of its time: runs beside the rest


@dataclasses.dataclass(frozen=True)
class Check:
    """A command that succeeds or does not."""
    run: str
    command: tuple
    limit: int = 1800
    build: Build = None         # made before, if any: all of it
    targets: tuple = ()         # of it, besides
    needs: tuple = ()           # scripts that build what else it takes
    waits: bool = False         # as of Gtest


@dataclasses.dataclass(frozen=True)
class CheckEach:
    """A check for each word that the command prints with --list."""
    run: str
    command: tuple
    limit: int


@dataclasses.dataclass(frozen=True)
class Jobs:
    """Rows of test/jobs/main_job."""
    run: str = "job"
    build: Build = PLAIN
    rows: tuple = ()            # names; none: all
    options: tuple = ()         # of main_job
    environment: tuple = ()


@dataclasses.dataclass(frozen=True)
class Conformance:
    """UCX's unit tests, a representative part with these options of
    test/conformance/ucx_gtest. Left out if a variable is needed for the build
    and not set."""
    run: str
    options: tuple = ()
    build: Script = UCX_GTEST
    strict: bool = False        # what fails on rc_mlx5 has failed, too
    lists: tuple = ()           # of conformance/cases.py, which must not name
                                # what is not there
    lists_of: str = "any"       # ... if this is the version of the system's UCX
    waits: bool = False         # as of Gtest


@dataclasses.dataclass(frozen=True)
class Debian:
    """The demo, packages and tests in a root of another Debian, which is made if
    that is possible."""
    run: str
    suite: str
    directory: str              # of the root, below build/
    source_variable: str        # absolute path of the source of its UCX, if any
    rows: tuple                 # of test/jobs/main_job
    endpoints: tuple            # options of test/jobs/endpoints, a tuple for
                                # each run
    tests: tuple                # as for --one
    transport_tests: tuple = () # the same, if the transport was built


@dataclasses.dataclass(frozen=True)
class Part:
    """What the command line calls a part."""
    name: str
    about: str
    rows: tuple
    by_name: bool = False       # run only if it is named: too long, for what it
                                # finds, to be run on each commit


# Suites that look at what the process as a whole has, and would see what others
# have left in caches.
_APART = {"sep_gtest": "test_sep_account"}


def _unit(build, suffix="", **how):
    return tuple(Gtest(program + suffix, program, build,
                       apart=_APART.get(program, ""), **how)
                 for program in PROGRAMS
                 if program not in ("ucp_gtest", "caps_gtest"))


def _categories():
    """Sharing categories. There is no sep_info to ask before it is built."""
    rows = os.path.join(os.path.dirname(__file__), "..", "..", "..",
                        "src/uct/ib/sep/category/sep_category.h")
    with open(rows, encoding="utf-8") as file:
        return re.findall(r"_macro\(\w+, (\w+), \w+,", file.read())


# The unit tests use the default category, or name one. Here the functional tests run in each of them, with one
# way to post and one API, as categories are about what is below that.
_MODES = tuple((name, f"UCX_SEP_CATEGORY={name}") for name in _categories()
               if name != "dynamic") + (
                   ("cq_by_2", "UCX_SEP_CQ_SHARING=2"),
                   ("eager", "UCX_SEP_EAGER=y"),
                   ("legacy_uars", "MLX5SIM_UAR_MODE=legacy"))
_MODE_TESTS = ("*test_sep_uct_mixed.*/bf:*test_sep_uct_flow.*/dv:"
               "*test_sep_uct_error.*/dv:test_sep_uct_fault.*:test_sep_fc.*:"
               "-*.sixty_four_*")

# All that runs in several threads of a process: workers of every category that
# send to each other, share completion queues or a hub, open and close.
_THREAD_TESTS = ("*test_sep_uct_threads.*:*test_sep_workers.*:test_sep_hub.*:"
                 "test_sep_cq_sharing.*:*.workers_in_threads_*:"
                 "test_sep_uct_asleep.*")

# Who is killed at each instruction is so once; with other compilers and settings
# at some of them, which takes a tenth of the time. A sanitizer has ten times as
# many.
KILL_SOMETIMES = "MLX5SIM_RUN_KILL_STRIDE=500"
_KILL_SANITIZED = "MLX5SIM_RUN_KILL_STRIDE=5000"

# Crowds, the same schedules with packets lost at other times, categories that
# differ in what the device is asked for, and programs that are not ours do once
# more what others do, and take a fifth of the time.
_SANITIZED_TESTS = {
    "sep_gtest": (
        "*:-*.sixty_four_*:*.twenty_four_*:*.fifty_clients_*:"
        "test_sep_conn_schedules.*_split:*test_sep_uct_wc.*:"
        "*test_sep_workers.*/2xdynamic:*test_sep_workers.*/shared_dynamic:"
        "*test_sep_workers.*/static:*test_sep_workers.*/cq_by_8:*.rc_mlx5_*"),
    "device_gtest": "*:-networks/test_device_capture_net.*"}

# One test of each kind: valgrind is 20 to 50 times slower, and crowds add
# nothing to what it looks at.
_MEMCHECK_TESTS = ("*test_sep_uct_error.*/dv:api/test_sep_uct_flow.*/dv:"
                   "*test_sep_uct_mixed.*/bf:*test_sep_uct_mixed.*/list:"
                   "*test_sep_uct_fault.*kill*:"
                   "-*.*while_connecting*")


# Deferred execution: seeds that all that is left to chance depends on, and the
# tests that run with each. Left out are those that look at what the device has
# done when a doorbell returns, or step through it. More seeds are what
# contrib/soak.sh is for.
_SEEDS = (1, 2)
_DEFERRED_DEVICE_TESTS = (
    "*:-test_device_wc.*:test_device_kill.at_each_instruction_*:"
    "test_device_strict.sq_overrun:test_device_strict.cq_overrun*:"
    "test_device_strict.cq_ci")


# What knows neither pages nor seeds: repeated in no other way than as it is
_DEVICE_TESTS_ONCE = (
    "test_device_rdmacm.*:*test_device_capture*:test_device_path.*:"
    "test_device_environment.*:*test_device_port*")


# Of main_job, with each seed: all libraries, messages of all protocols,
# collectives, one-sided operations, threads; on sep_mlx5, and on rc_mlx5 to see
# that the device is fair
_DEFERRED_JOBS = {
    1: ("MPICH 2 ranks p2p", "MPICH 4 ranks collectives",
        "Open MPI 2 ranks collectives", "OpenSHMEM 2 ranks put_get"),
    2: ("UCP tag_lat 64 KB", "MPICH 2 ranks rma", "Open MPI 2 ranks p2p",
        "Open MPI 2 ranks threads", "OpenSHMEM 2 ranks atomics"),
}


# Jobs whose writes reach memory in any order: packets of a queue pair, and pieces
# of each. rc_mlx5 is the witness that who waits for completions need not know.
_DEFERRED_ORDER_JOBS = ("UCP tag_lat 64 KB", "MPICH 2 ranks rma")
_DEFERRED_ORDER      = ("MLX5SIM_DATA_IN_ORDER=n",
                        "MLX5SIM_PCI_WR_ORDERING=force_relax")


# Of UCX's tests of UCT: short and long messages, atomics, fences, flushes,
# errors, in less than a minute each; rc_mlx5 takes longer to cancel reads. On
# sep_mlx5 and rc_mlx5, with one of the seeds on ud_mlx5.
_DEFERRED_UCT = "|".join((
    "^uct_flush_test", "^uct_fence_test", r"^uct_cancel_test\.am_", "^uct_amo",
    "^uct_p2p_am_", "^uct_p2p_err_", "^uct_p2p_mix_test", "^test_many2one",
    r"^test_uct_ep\b", r"^test_uct_progress\b", r"^test_uct_stats\b",
    r"^test_uct_peer_failure\b"))


# With one seed more of the transport's tests, and a device that takes receives
# beforehand and time for commands: the tests of the device set themselves what
# they are about. For the time it takes, one category of workers and one API are
# enough.
_DEFERRED_MORE = {
    1: (":*test_sep_uct_async.*:*test_sep_uct_order*:test_sep_uct_messages.*:"
        "*test_sep_uct_mixed*:*test_sep_uct_settings*:*fragments*:"
        "*test_sep_uct_relaxed*:"
        "test_sep_hub.*:test_sep_hub_ops.*:test_sep_cq_sharing.*:"
        "test_sep_cq_group.*:*test_sep_workers.*/static:"
        "*test_sep_workers.*sleep*",
        ("MLX5SIM_SRQ_PREFETCH=8", "MLX5SIM_CMD_DELAY=200")),
}


# With a seed, the eager channel as well, in all but UCX's own tests
_DEFERRED_EAGER = {2: (":*test_sep_uct_eager*", ("UCX_SEP_EAGER=y",))}


def _deferred(seed):
    environment = ("MLX5SIM_EXEC=deferred", f"MLX5SIM_SEED={seed}")
    more, settings = _DEFERRED_MORE.get(seed, ("", ()))
    eager_tests, eager = _DEFERRED_EAGER.get(seed, ("", ()))
    tests, exceptions = _MODE_TESTS.split(":-")
    return (Gtest(f"device_gtest-seed_{seed}", "device_gtest", patience=2,
                  tests=_DEFERRED_DEVICE_TESTS if seed == 1 else
                  f"{_DEFERRED_DEVICE_TESTS}:{_DEVICE_TESTS_ONCE}",
                  environment=environment + (KILL_SOMETIMES,)),
            Gtest(f"sep_gtest-seed_{seed}", "sep_gtest", patience=2,
                  tests=f"{tests}{more}{eager_tests}:-{exceptions}",
                  environment=environment + settings + eager),
            # A stranger does not repeat what is lost
            Gtest(f"sep_gtest-loss-seed_{seed}", "sep_gtest", patience=2,
                  tests="*.workers_share_it:"
                        f"{_MODE_TESTS}:*.requests_that_fail_*",
                  environment=environment + settings + eager +
                  ("MLX5SIM_LOSS=5",)),
            Conformance(f"ucx-seed_{seed}", (
                "--group", "ud" if seed == 2 else "uct",
                "--tests", _DEFERRED_UCT,
                *(word for each in environment for word in ("--set", each))),
                strict=True),
            Jobs(f"job-seed_{seed}", rows=_DEFERRED_JOBS[seed],
                 options=("--quick",), environment=environment + eager),
            Jobs(f"job-order-seed_{seed}", rows=_DEFERRED_ORDER_JOBS,
                 options=("--quick",),
                 environment=environment + _DEFERRED_ORDER))


# Of UCX's tests with the eager channel: active messages and tags, sleeping,
# peers that fail. Not test_ucp_am, which gives up the processor with each call of
# progress, and takes as long as all of this together.
_EAGER_UCX = "|".join((
    "^uct_p2p_am_", "^test_many2one", r"^test_uct_event\b",
    r"^test_uct_pending\b", r"^test_uct_peer_failure\b",
    r"^test_ucp_tag_match\b", r"^test_ucp_tag_probe\b",
    r"^test_ucp_am_nbx\b", r"^test_ucp_wakeup\b"))


# Of UCX's tests through libibverbs: each kind of operation, and errors
_VERBS_UCX = "|".join(("^uct_p2p_am_", "^uct_p2p_rma_", "^uct_amo",
                       "^uct_p2p_err_"))


# Of main_job with the eager channel: what sends many short messages, in threads
# as well. With one ring, it goes from peer to peer.
_EAGER_JOBS = (
    Jobs("job-eager", rows=(
        "UCP tag_lat 8 B", "MPICH 2 ranks p2p", "MPICH 4 ranks threads",
        "Open MPI 4 ranks p2p", "Open MPI 2 ranks threads",
        "MPICH 2 ranks pingpong", "Open MPI 2 ranks pingpong",
        "MPICH 2 ranks kernels", "Open MPI 4 ranks kernels",
        "OpenSHMEM 2 ranks atomics"),
        options=("--quick", "--transport", "sep_mlx5"),
        environment=("UCX_SEP_EAGER=y",)),
    Jobs("job-eager_set_of_1", rows=(
        "MPICH 4 ranks p2p", "MPICH 4 ranks collectives",
        "MPICH 4 ranks kernels",
        "Open MPI 4 ranks threads", "OpenSHMEM 4 ranks sync"),
        options=("--quick", "--transport", "sep_mlx5"),
        environment=("UCX_SEP_EAGER=y", "UCX_SEP_EAGER_POLL_SET=1")),
)


# Of main_job with other compiler options: every kind of operation, checked byte by
# byte. The unit tests are made of the same C++ in each build, which would take
# most of the time.
_COMPILED_ROWS = (
    "UCT put_lat short 8 B", "UCT am_lat short 8 B", "UCT get bcopy 8 B",
    "UCT fadd 8 B", "UCT cswap 8 B", "UCP tag_lat 8 B", "UCP tag_lat 64 KB",
    "UCP tag_lat 4 MB", "MPICH 2 ranks p2p", "MPICH 2 ranks collectives",
    "MPICH 2 ranks rma", "Open MPI 2 ranks p2p", "Open MPI 2 ranks rma",
    "Open MPI 2 ranks threads", "OpenSHMEM 2 ranks atomics")
_COMPILED = (Jobs("job-native", NATIVE, rows=_COMPILED_ROWS,
                  options=("--quick", "--transport", "sep_mlx5")),)


# Kernels of applications, the work and the resources of each; the main job has
# them on other libraries. With 16 threads, the resources are also those of the
# paper on sharing.
def _kernels(name, *options):
    return Check(f"kernels of applications, {name}", (
        "test/jobs/app_kernels", "--build-dir", "build/check", "--quick",
        "--api", "ucp", *options), build=PLAIN, targets=("job-programs",))


_KERNELS = (
    _kernels("16 threads", "--kernel", "dgemm", "--sided", "1", "--shape",
             "1.16"),
    _kernels("4 processes of 2 threads", "--kernel", "stencil", "--shape",
             "2.2"),
    _kernels("today's UAR pages", "--category", "2xdynamic,static",
             "--sided", "2", "--regime", "dynamic"),
)


# The optimisations of UCP, in a UCX that is built for it with assertions: on
# sep_mlx5 with both versions of UCP's protocols, of which the newest UCX has the
# second one, on rc_mlx5 with that of each UCX; and flushes on ud_mlx5, which has
# assertions about them that the others have not, and of endpoints with two lanes
# and with four.
def _ucp():
    rows = []
    flushes = "UcpFlush.*:UcpFlushLanes.*"
    for script, suffix, protos in ((UCX_OPT, "", "ny"),
                                   (UCX_OPT_NEWEST, "-newest", "y")):
        prefix = f"build/{script.name}"
        for name, tls, tests, environment in (
                ("sep", "sep", "*", ()),
                ("rc_mlx5", "rc_mlx5,ud_mlx5", "*", ()),
                ("ud_mlx5", "ud_mlx5", flushes, ()),
                ("lanes", "sep", flushes, ("MLX5SIM_DEVICES=2",)),
                ("four_lanes", "sep", flushes, (
                    "MLX5SIM_DEVICES=4", "UCX_MAX_RNDV_RAILS=4"))):
            rows += [Gtest(
                f"ucp_gtest-{name}-proto_{proto}{suffix}", "ucp_gtest",
                tests=tests, needs=(script,), environment=(
                    f"LD_LIBRARY_PATH=@TOP@/{prefix}/lib",
                    f"UCX_TLS={tls}", f"UCX_PROTO_ENABLE={proto}",
                    "UCX_WARN_UNUSED_ENV_VARS=n", *environment)) for proto in
                (protos[0] if name == "rc_mlx5" else protos)]
        # Another UCX than the system's, although of the same release
        rows.append(Check(
            f"processes with different UCX{suffix}", (
                "test/jobs/mixed", "--build-dir", "build/check", "--transport",
                "sep_mlx5", "--ucx", "system", "--ucx", prefix),
            build=PLAIN, targets=("job-programs",), needs=(script,)))
    return tuple(rows)


# Ranks whose budgets of queue pairs differ, and are less than their peers
_BUDGETS = (
    Check("ranks with different budgets", (
        "test/jobs/budget", "--build-dir", "build/check", "--ranks", "4",
        "--max-qps", "2,3,inf", "--row", "MPICH p2p", "--row",
        "Open MPI collectives"), build=PLAIN, targets=("job-programs",)),
)


# Tests between nodes that mlx5sim-cluster makes: test/cluster/test_*.py
def _cluster(module, about, waits=True):
    return Check(f"nodes: {about}", ("test/cluster/run", module),
                 build=PLAIN, targets=("job-programs",), waits=waits)


_CLUSTER = (
    _cluster("verbs", "programs on libibverbs"),
    _cluster("jobs", "MPI and OpenSHMEM", waits=False),
    _cluster("hostile", "a neighbour that sends what it should not"),
    _cluster("faults", "processes that die, servers that are missing",
             waits=False),
    _cluster("capture", "what tshark says of packets"),
    _cluster("rdmacm", "programs on librdmacm"),
    _cluster("adapter", "contrib/on-adapter.sh on the device"),
)


PARTS = (
    Part("unit", "unit tests", _unit(PLAIN) + (
        Check("the main job's own tests", ("test/jobs/unit_tests",),
              build=PLAIN, limit=3600, waits=True),
        Check("the conformance driver's own tests",
              ("test/conformance/unit_tests",), waits=True),
        Check("the test runner's own tests", ("test/runner/unit_tests",),
              waits=True),
        Check("litmus tests of what has no lock", ("test/litmus/run",
                                                   "build/check"), build=PLAIN),
        Check("the tests of the checks of the sources",
              ("test/sources/unit_tests",)))),

    Part("sanitized", "the same under AddressSanitizer and "
         "UndefinedBehaviorSanitizer",
         tuple(dataclasses.replace(row, tests=_SANITIZED_TESTS.get(
             row.program, "*")) for row in _unit(
                 SANITIZED, "-sanitized", sanitizers="asan ubsan", patience=3,
                 environment=(_KILL_SANITIZED,)))),

    Part("modes", "the transport's tests once per sharing category, and the "
         "device's with the UAR pages of old kernels", tuple(
             Gtest(f"sep_gtest-{name}", "sep_gtest", tests=_MODE_TESTS,
                   environment=(variable,), waits=True)
             for name, variable in _MODES) + (
             # Of a queue pair without a thread domain, libmlx5 locks what it
             # posts to
             Gtest("sep_gtest-static_verbs", "sep_gtest",
                   tests="*test_sep_uct_mixed.*/verbs:"
                         "*test_sep_uct_mixed.*/wr",
                   environment=("UCX_SEP_CATEGORY=static",)),
             Gtest("device_gtest-legacy_uars", "device_gtest",
                   tests=f"*:-{_DEVICE_TESTS_ONCE}:*devx*:*_dc.*:*_xrc.*:"
                         "*_odp.*:*_window.*:*_dm.*:*_deferred.*:*_order.*",
                   environment=("MLX5SIM_UAR_MODE=legacy", KILL_SOMETIMES)),)),

    Part("deferred", "tests of device and transport, and jobs, with a device that "
         "takes its time, and loses packets", tuple(
             row for seed in _SEEDS for row in _deferred(seed))),

    Part("threads", "tests with threads under ThreadSanitizer", (
        Gtest("sep_gtest-threads", "sep_gtest", THREADS, _THREAD_TESTS,
              tool="tsan", sanitizers="tsan", patience=3, needs=(PLAIN,),
              chunk=30, waits=True),
        Gtest("sep_gtest-threads-eager", "sep_gtest", THREADS,
              "*test_sep_workers.*:test_sep_hub.*:*test_sep_uct_eager_kill.*",
              environment=("UCX_SEP_EAGER=y",), tool="tsan",
              sanitizers="tsan", patience=3, needs=(PLAIN,), chunk=30,
              waits=True))),

    Part("memcheck", "a representative part of the transport's tests under "
         "valgrind", (
             Gtest("sep_gtest-memcheck", "sep_gtest", tests=_MEMCHECK_TESTS,
                   tool="memcheck", patience=3, chunk=10),)),

    # test/gtest/common/seed.h holds the names to this
    Part("fuzz", "random tests with another seed", tuple(
        # Two tests with schedules go on for so long
        Gtest(f"{program}-random_seed", program, tests="*fuzz*:*random*",
              random_seed=True, environment=("SEP_TEST_SECONDS=30",))
        for program in ("sim_gtest", "device_gtest", "sep_gtest",
                        "model_gtest", "scale_gtest"))),

    Part("jobs", "MPI, OpenSHMEM and ucx_perftest jobs",
         (Jobs(),) + _EAGER_JOBS + _KERNELS + _BUDGETS + (
             Check("a network with faults", (
                 "test/jobs/cluster_faults", "--build-dir", "build/check",
                 "--seeds", "1", "--fault", "mixed", "--suite", "mpi",
                 "--suite", "ucx"), build=PLAIN, targets=("job-programs",)),)),

    Part("cluster", "jobs, verbs and faults between nodes", _CLUSTER),

    # As the package index of Python has them: left out where it can't be reached
    Part("clients", "programs of others on the device: NIXL, Mooncake's transfer "
         "engine", (
             Check("NIXL and Mooncake", (
                 "contrib/device-suites.sh", "--build", "build/check", "--quick",
                 "nixl", "mooncake"), 900, PLAIN),)),

    # Of the chapters that are counted, those that take seconds
    Part("counts", "instructions per operation and of the eager channel, as the "
         "book has them", (
             Check("counted chapters of the book", (
                 "contrib/book.sh", "--build", "build/check", "--check",
                 "--only", "instructions", "--only", "eager"), build=PLAIN,
                   needs=(UCX_RELEASE,)),), by_name=True),

    Part("compilers", "jobs with a transport that is compiled for this processor "
         "and across files (-O3 -march=native -flto)", _COMPILED, by_name=True),

    Part("conformance", "a representative part of UCX's own unit tests", (
        Conformance("as good as rc_mlx5:", lists=("EXCLUDED", "NOTES", "QUICK"),
                    lists_of="1.13.1", waits=True),
        # A layer of its own, with the endpoints' statistics that only UCX's
        # tests can look at
        Conformance("mpi_threads:", (
            "--group", "uct", "--only", "sep",
            "--set", "UCX_SEP_CATEGORY=mpi_threads")),
        # Messages and what waits for them, with one ring for all
        Conformance("eager channel:", (
            "--group", "uct", "--group", "ucp", "--only", "sep",
            "--tests", _EAGER_UCX, "--set", "UCX_SEP_EAGER=y",
            "--set", "UCX_SEP_EAGER_POLL_SET=1")),
        *(Conformance(f"{api}:", ("--group", "uct", "--only", "sep",
                                  "--tests", _VERBS_UCX,
                                  "--set", f"UCX_SEP_API={api}"))
          for api in ("verbs", "wr")))),

    # The UCX that most clusters are nearer to than to Debian 12's: it takes five
    # minutes to build. contrib/matrix.sh has all releases, and jobs.
    Part("releases", "the same of UCX 1.18.1's", (
        Conformance("UCX 1.18.1:", ("--group", "uct", "--group", "md"),
                    UCX_GTEST_DEBIAN13, lists=("RC_MLX5_DEFECTS",
                                               "EXCLUDED_LATER")),),
         by_name=True),

    Part("ucp", "tests of a UCX that is built with the optimisations of "
         "src/ucp/opt", _ucp()),

    # Both libraries with what they do on two ranks, and what they stand on; and
    # an endpoint per thread, for which Debian 12's MPICH has too few interfaces
    Part("debian13", "build, demo, MPI with an endpoint per thread, packages and "
         "tests of the device in a Debian 13, which is made for that by "
         "debootstrap", (
             Debian("Debian 13", "trixie", "debian-trixie",
                    DEBIAN13_UCX_SOURCE, rows=(
                 "ucx_info lists it", "UCT put_lat short 8 B",
                 "UCT get bcopy 8 B", "UCP tag_lat 64 KB", "UCP ucp_fadd 8 B",
                 "UCP stream_bw 64 KB", "MPICH 2 ranks p2p",
                 "MPICH 2 ranks rma", "MPICH 2 ranks threads",
                 "Open MPI 2 ranks p2p", "Open MPI 2 ranks collectives",
                 "Open MPI 2 ranks rma", "OpenSHMEM 2 ranks put_get",
                 "OpenSHMEM 2 ranks atomics",
                 # Where UCX knows interfaces that reach no other node
                 "MPICH 2 ranks, 2 nodes p2p", "Open MPI 2 ranks, 2 nodes p2p",
                 "Open MPI 4 ranks, 2 nodes collectives"), endpoints=(
                     ("--threads", "1,4", "--cq-sharing", "1", "--postlist",
                      "1"),
                     ("--streams", "--threads", "2", "--cq-sharing", "1",
                      "--postlist", "1"),
                     # More interfaces than there are pages for
                     ("--pages", "6", "--threads", "8", "--cq-sharing", "1",
                      "--postlist", "1")), tests=(
                     "unit/device_gtest/*",),
                 transport_tests=("caps/caps_gtest/*",
                                  "cluster/nodes: MPI and OpenSHMEM")),)),

    Part("caps", "what UCP is told of the transport, which each version of UCX "
         "has more of: some of the unit tests, in a program of their own", (
             Gtest("caps_gtest", "caps_gtest"),), by_name=True),

    Part("sources", "shell scripts, what is committed, the tarball", (
        CheckEach("check-sources.sh", ("contrib/check-sources.sh",), 1800),
        Check("locks are held where they are needed", (
            "contrib/check_locks.py", "build/check"), 600, PLAIN),
        Check("tarball is complete", (
            "contrib/check-tarball.sh", "build/check"), 3600, PLAIN))),

    # What is in the tarball has been built and run by the other parts: this is
    # for changes of the build itself
    Part("dist", "what is in the tarball configures, builds, installs and "
         "uninstalls", (
             Check("make distcheck", (
                 "flock", "build/check/distdir.lock",
                 "make", "-C", "build/check", "--no-print-directory",
                 "distcheck", "TESTS=",
                 "DISTCHECK_CONFIGURE_FLAGS=--disable-gtest CFLAGS=-O0"),
                   3600, PLAIN),), by_name=True),
)
