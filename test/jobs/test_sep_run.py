# SPDX-License-Identifier: BSD-3-Clause
"""sep-run: what it says if there is nothing to run on, and which module it
takes."""

import os
import shutil
import subprocess
import tempfile
import unittest

from mainjob import jobs, lanes

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.realpath(__file__))))
BUILD = os.environ.get("SEP_BUILD_DIR", TOP)
SEP_RUN = os.path.join(BUILD, "bin/sep-run")
FIND_UCX = os.path.join(BUILD, "libexec/sep/sep_find_ucx")
SIM_RUN = [os.path.join(BUILD, "bin/mlx5sim-run"), "--private", "--"]


def run(*args, launcher=(), env=None):
    return subprocess.run(
        [*launcher, SEP_RUN, *args], capture_output=True, text=True, timeout=300,
        check=False,
        env={**{name: value for name, value in os.environ.items()
                if not name.startswith(("UCX_", "MLX5"))}, **(env or {})})


@unittest.skipUnless(os.access(SEP_RUN, os.X_OK), "sep-run is not built")
class NoDevice(unittest.TestCase):

    def expect_warning(self, result, what="reach no process of another node"):
        """It names the device that there could be, and goes on."""
        self.assertIn("no mlx5 device", result.stderr)
        self.assertIn(what, result.stderr)
        self.assertIn("mlx5sim-run sep-run --only sh", result.stderr)
        self.assertEqual((result.stdout, result.returncode), ("ran\n", 3))

    def expect_nothing(self, result):
        self.assertEqual((result.stderr, result.stdout, result.returncode),
                         ("", "ran\n", 3))

    COMMAND = ("sh", "-c", "echo ran; exit 3")

    @unittest.skipIf(os.path.exists("/sys/class/infiniband"),
                     "there may be a device")
    def test_without_a_device(self):
        self.expect_warning(run(*self.COMMAND))
        self.expect_warning(run("--only", *self.COMMAND), "no usable transports")
        for tls in ("tcp", "sep_mlx5,tcp", "all"):
            self.expect_nothing(run(*self.COMMAND, env={"UCX_TLS": tls}))
        self.expect_nothing(run("--keep-tls", *self.COMMAND,
                                env={"UCX_TLS": "tcp"}))
        self.expect_nothing(run("--keep-tls", *self.COMMAND))

    @unittest.skipIf(os.path.exists("/sys/class/infiniband"),
                     "there may be a device")
    def test_preload_of_the_software_device_is_lost(self):
        self.expect_warning(run(*self.COMMAND, launcher=[
            *SIM_RUN, "env", "-u", "LD_PRELOAD"]))
        self.expect_warning(run(*self.COMMAND, launcher=SIM_RUN,
                                env={"MLX5SIM_DISABLE": "y"}))

    def test_on_the_software_device(self):
        self.expect_nothing(run(*self.COMMAND, launcher=SIM_RUN))
        self.expect_nothing(run("--only", *self.COMMAND, launcher=SIM_RUN))
        for link in ("ib", "roce"):
            self.expect_nothing(run(*self.COMMAND, launcher=SIM_RUN,
                                    env={"MLX5SIM_LINK": link,
                                         "MLX5SIM_DEVICES": "2"}))


def shown(*args, **env):
    """What is set, as --show prints it."""
    result = run("--show", *args, env={"MPIR_CVAR_NOLOCAL": "", **env})
    assert (result.returncode, result.stderr) == (0, ""), result
    return dict(line.split("=", 1) for line in result.stdout.splitlines())


@unittest.skipUnless(os.access(SEP_RUN, os.X_OK), "sep-run is not built")
class Transports(unittest.TestCase):
    """Which ones are selected, and who carries what then."""

    MPICH = os.path.join(BUILD, "test/mpi/p2p.mpich")

    def test_processes_of_a_node_share_memory(self):
        settings = shown()
        self.assertEqual("sep_mlx5,sm,self", settings["UCX_TLS"])
        self.assertNotIn("MPIR_CVAR_NOLOCAL", settings)

    def test_only_is_nothing_else(self):
        settings = shown("--only")
        self.assertEqual("sep_mlx5", settings["UCX_TLS"])
        self.assertEqual("1", settings["MPIR_CVAR_NOLOCAL"])

    def test_what_the_user_has_set_stays(self):
        for option in [], ["--only"]:
            self.assertEqual("tcp", shown(*option, UCX_TLS="tcp")["UCX_TLS"])
        self.assertEqual("0", shown("--only", MPIR_CVAR_NOLOCAL="0")
                         ["MPIR_CVAR_NOLOCAL"])
        self.assertNotIn("UCX_TLS", shown("--keep-tls"))

    def test_options_that_contradict_each_other(self):
        result = run("--only", "--keep-tls", "true")
        self.assertEqual(2, result.returncode)
        self.assertIn("--only selects what --keep-tls", result.stderr)

    def lanes_between_ranks(self, *options):
        env = {**os.environ, **jobs.ENVIRONMENT, "UCX_LOG_LEVEL": "info"}
        for name in ("UCX_TLS", "MPIR_CVAR_NOLOCAL"):
            env.pop(name, None)
        done = subprocess.run(
            [*SIM_RUN, "mpirun.mpich", "-n", "2", SEP_RUN, *options, self.MPICH,
             "--quick"], capture_output=True, text=True, timeout=300,
            check=False, env=env)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn("PASS", done.stdout)
        return {lane.partition("/")[0] for lane in
                lanes.parse(done.stdout + done.stderr)}

    @unittest.skipUnless(os.access(MPICH, os.X_OK) and
                         shutil.which("mpirun.mpich") and
                         not os.environ.get("SEP_SANITIZERS"),
                         "job-programs are not built, or sanitized")
    def test_ucp_uses_what_is_selected(self):
        """sm is an alias of UCX: its names are those of the transports."""
        self.assertEqual({"sep_mlx5"}, self.lanes_between_ranks("--only"))
        both = self.lanes_between_ranks()
        self.assertTrue(both & {"posix", "sysv"}, both)
        self.assertTrue({"sep_mlx5", "self"} < both, both)


@unittest.skipUnless(os.access(SEP_RUN, os.X_OK), "sep-run is not built")
class Debugger(unittest.TestCase):
    """Each doorbell of the software device is a SIGBUS."""

    ASK = ("-nx", "-batch", "-ex", "info signals SIGBUS")
    PASSES = "SIGBUS        No\tNo\tYes"

    @unittest.skipUnless(shutil.which("gdb") and
                         not os.environ.get("SEP_SANITIZERS"),
                         "no gdb, or it hangs with the sanitizer's library")
    def test_gdb_does_not_stop_at_doorbells(self):
        gdb = shutil.which("gdb")
        self.assertNotIn(self.PASSES, run("gdb", *self.ASK).stdout)
        for name in "gdb", gdb:
            for launcher in SIM_RUN, [*SIM_RUN, "env", "A=b"]:
                result = run(name, *self.ASK, launcher=launcher)
                self.assertIn(self.PASSES, result.stdout, result.stderr)

    def test_program_of_another_name_is_left_alone(self):
        result = run("echo", "gdb", launcher=SIM_RUN)
        self.assertEqual("gdb\n", result.stdout)


@unittest.skipUnless(os.access(SEP_RUN, os.X_OK) and shutil.which("ucx_info"),
                     "sep-run is not built, or there is no ucx_info")
class Elsewhere(unittest.TestCase):
    """All of it in a directory with a blank in its name."""

    def test_ucx_lists_the_transport(self):
        with tempfile.TemporaryDirectory(prefix="sep run ") as top:
            for name in "bin", "libexec/sep", "lib/sep":
                os.makedirs(os.path.join(top, name))
            shutil.copy(SEP_RUN, os.path.join(top, "bin"))
            shutil.copy(FIND_UCX, os.path.join(top, "libexec/sep"))
            shutil.copytree(os.path.join(BUILD, "lib/sep"),
                            os.path.join(top, "lib/sep"), dirs_exist_ok=True)
            result = subprocess.run(
                [*SIM_RUN, os.path.join(top, "bin/sep-run"), "ucx_info", "-d"],
                capture_output=True, text=True, timeout=300, check=False)
        self.assertIn("Transport: sep_mlx5", result.stdout)
        self.assertEqual(result.stderr, "")


UCS = 'const char *variables[] = {"MODULE_DIR", %s};'
UCP = 'const char *ucp_get_version_string(void) { return "%s"; }'
USER = ("const char *ucp_get_version_string(void);"
        "extern const char *variables[];"
        "int main(void) { return !ucp_get_version_string() || !variables[0]; }")


@unittest.skipUnless(os.access(FIND_UCX, os.X_OK) and shutil.which("gcc"),
                     "sep-run is not built, or there is no compiler")
class Choice(unittest.TestCase):
    """A tree as it is installed, with files that are only there, and libraries
    that know UCX's version, or not."""

    def setUp(self):
        # pylint: disable-next=consider-using-with
        self.directory = tempfile.TemporaryDirectory(prefix="sep-run.")
        self.addCleanup(self.directory.cleanup)
        self.top = os.path.realpath(self.directory.name)
        for name in ("bin", "libexec/sep", "lib/sep"):
            os.makedirs(os.path.join(self.top, name))
        shutil.copy(SEP_RUN, os.path.join(self.top, "bin"))
        shutil.copy(FIND_UCX, os.path.join(self.top, "libexec/sep"))
        self.touch("lib/sep/libsep_preload.so")

    def path(self, name):
        return os.path.join(self.top, name)

    def touch(self, name, text=""):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def add_module(self, version):
        series = ".".join(version.split(".")[:2])
        self.touch(f"lib/sep/ucx-{series}/libuct_sep.so.0")
        self.touch(f"lib/sep/ucx-{series}/version", version + "\n")
        return f"lib/sep/ucx-{series}"

    def compile(self, name, source, *flags):
        subprocess.run(["gcc", "-x", "c", "-", "-x", "none", "-o",
                        self.path(name), *flags],
                       input=source, text=True, check=True, timeout=300)

    def add_ucx(self, version, has_plugins, place="{}", more=""):
        """The directory of its libraries; with a place, the directories of each,
        with colons between them. more: source of libucs besides."""
        variable = "PLUGIN_PATH" if has_plugins else "TLS"
        places = []
        for lib, source in (("ucs", UCS % f'"{variable}"' + more),
                            ("ucp", UCP % version)):
            name = f"ucx-{version}/{place.format(lib)}" if place != "{}" else \
                f"ucx-{version}"
            os.makedirs(self.path(name), exist_ok=True)
            self.compile(f"{name}/lib{lib}.so.0", source, "-shared", "-fPIC",
                         f"-Wl,-soname,lib{lib}.so.0")
            if self.path(name) not in places:
                places.append(self.path(name))
        return ":".join(places)

    def run_it(self, *args, libraries="", **env):
        environ = {name: value for name, value in os.environ.items()
                   if not name.startswith(("UCX_", "SEP_")) and
                   name not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}
        environ.update(env, LD_LIBRARY_PATH=libraries)
        return subprocess.run([self.path("bin/sep-run"), *args],
                              capture_output=True, text=True, timeout=300,
                              check=False, env=environ)

    def variables(self, *args, libraries="", **env):
        """What is set, of that by which modules are loaded."""
        result = self.run_it("--show", *args, libraries=libraries, **env)
        self.assertEqual((result.stderr, result.returncode), ("", 0))
        lines = dict(line.split("=", 1) for line in result.stdout.splitlines())
        return {name: lines[name] for name in ("LD_PRELOAD", "UCX_PLUGIN_PATH")
                if name in lines}

    def expect_error(self, result, *texts):
        self.assertEqual((result.stdout, result.returncode), ("", 2))
        for text in texts:
            self.assertIn(text, result.stderr)

    def test_ucx_with_a_path_of_plugins_loads_the_module(self):
        ucx = self.add_ucx("1.22.0", True)
        self.add_module("1.18.1")
        module = self.path(self.add_module("1.22.0"))
        self.assertEqual(self.variables(libraries=ucx),
                         {"UCX_PLUGIN_PATH": module})
        self.assertEqual(self.variables(libraries=ucx, UCX_PLUGIN_PATH="/there"),
                         {"UCX_PLUGIN_PATH": f"{module}:/there"})
        os.remove(self.path("lib/sep/libsep_preload.so")) # Has no use for it
        self.assertEqual(self.variables(libraries=ucx),
                         {"UCX_PLUGIN_PATH": module})

    def test_ucx_without_one_is_made_to(self):
        ucx  = self.add_ucx("1.18.1", False)
        shim = self.path("lib/sep/libsep_preload.so")
        self.add_module("1.18.1")
        self.assertEqual(self.variables(libraries=ucx), {"LD_PRELOAD": shim})
        os.remove(shim)
        self.expect_error(self.run_it("true", libraries=ucx), shim,
                          "half installed")

    def test_what_ucx_says_when_it_is_loaded_is_no_version(self):
        """As it does, on standard output, where there is no /proc."""
        ucx = self.add_ucx("1.22.0", True, more=(
            "\n#include <unistd.h>\n"
            "__attribute__((constructor)) static void complain(void)"
            "{ if (write(1, \"[0] UCX ERROR no maps\\n\", 22) < 0) _exit(9); }"))
        module = self.path(self.add_module("1.22.0"))
        self.assertEqual(self.variables(libraries=ucx),
                         {"UCX_PLUGIN_PATH": module})

    def move(self, name):
        """Install it in another directory."""
        top = os.path.join(self.top, name)
        os.mkdir(top)
        for each in "bin", "libexec", "lib":
            os.rename(self.path(each), os.path.join(top, each))
        self.top = top

    def test_a_path_with_a_blank(self):
        """LD_PRELOAD ends there."""
        ucx = self.add_ucx("1.18.1", False)
        self.move("a b")
        self.add_module("1.18.1")
        result = self.run_it("--show", libraries=ucx)
        self.assertEqual((result.stderr, result.returncode), ("", 0))
        lines = result.stdout.splitlines()
        self.assertIn("LD_PRELOAD=libsep_preload.so", lines)
        self.assertIn(f"LD_LIBRARY_PATH={ucx}:{self.path('lib/sep')}", lines)

    def test_a_path_that_nobody_can_name(self):
        ucx = self.add_ucx("1.18.1", False)
        self.add_module("1.18.1")
        for name in "a;b c", "a:b":
            self.move(name)
            self.expect_error(self.run_it("true", libraries=ucx), name,
                              "install it elsewhere")

    def test_what_the_command_is_linked_with_counts(self):
        self.add_module("1.18.1")
        module = self.path(self.add_module("1.22.0"))
        older  = self.add_ucx("1.18.1", False)
        newer  = self.add_ucx("1.22.0", True)
        flags  = [f"{newer}/libucp.so.0", f"{newer}/libucs.so.0",
                  "-Wl,--disable-new-dtags", f"-Wl,-rpath,{newer}"]
        self.compile("bin/user", USER, *flags)
        self.assertEqual(self.variables(self.path("bin/user"), libraries=older),
                         {"UCX_PLUGIN_PATH": module})
        self.assertEqual(self.variables("sh", libraries=older),
                         {"LD_PRELOAD": self.path("lib/sep/libsep_preload.so")})

    def test_libraries_where_ucx_was_built(self):
        """There, each is in a directory of its own. Beside an installed UCX of
        another version, which must not be asked in its place."""
        other = self.add_ucx("1.18.1", False)
        tree  = self.add_ucx("1.22.0", True, "src/{}/.libs")
        self.add_module("1.18.1")
        module = {"UCX_PLUGIN_PATH": self.path(self.add_module("1.22.0"))}
        self.assertEqual(self.variables(libraries=f"{tree}:{other}"), module)
        ucs, ucp = tree.split(":")
        self.assertEqual(self.variables(libraries=f"{ucs}:{other}"), module)

        libraries = [f"{ucp}/libucp.so.0", f"{ucs}/libucs.so.0"]
        self.compile("bin/user", USER, *libraries, "-Wl,--disable-new-dtags",
                     f"-Wl,-rpath,{ucs}:{ucp}")
        self.assertEqual(self.variables(self.path("bin/user"), libraries=other),
                         module)

        # A program that is not installed yet, as libtool leaves it
        os.makedirs(self.path("bin/.libs"))
        self.compile("bin/.libs/wrapped", USER, *libraries)
        self.touch("bin/wrapped",
                   f'#! /bin/sh\n  LD_LIBRARY_PATH="{tree}:$LD_LIBRARY_PATH"\n')
        os.chmod(self.path("bin/wrapped"), 0o755)
        self.assertEqual(self.variables(self.path("bin/wrapped"),
                                        libraries=other), module)

    def test_library_that_the_command_is_linked_with_knows_the_version(self):
        """Wherever it is: not every UCX has the directories of its build."""
        other = self.add_ucx("1.18.1", False)
        tree  = self.add_ucx("1.22.0", True, "{}-is-here")
        ucs, ucp = tree.split(":")
        self.add_module("1.18.1")
        module = self.path(self.add_module("1.22.0"))
        self.compile("bin/user", USER, f"{ucp}/libucp.so.0", f"{ucs}/libucs.so.0",
                     "-Wl,--disable-new-dtags", f"-Wl,-rpath,{ucs}:{ucp}")
        self.assertEqual(self.variables(self.path("bin/user"), libraries=other),
                         {"UCX_PLUGIN_PATH": module})

    def test_no_module_fits(self):
        ucx = self.add_ucx("1.20.0", False)
        self.add_module("1.13.1")
        self.add_module("1.22.0")
        self.expect_error(self.run_it("true", libraries=ucx),
                          "no module for UCX 1.20.0", f"{ucx}/libucs.so.0",
                          "1.13.1, 1.22.0")

    def test_a_module_is_for_the_whole_series(self):
        ucx    = self.add_ucx("1.22.1", True)
        module = self.path(self.add_module("1.22.0"))
        self.assertEqual(self.variables(libraries=ucx),
                         {"UCX_PLUGIN_PATH": module})

    def test_a_series_that_begins_alike_is_another_one(self):
        ucx = self.add_ucx("1.2.0", True)
        self.add_module("1.22.0")
        self.expect_error(self.run_it("true", libraries=ucx),
                          "no module for UCX 1.2.0", "--with-ucx-source")

    def test_half_installed(self):
        ucx = self.add_ucx("1.22.0", True)
        self.expect_error(self.run_it("true", libraries=ucx), "there is no module",
                          "half installed")
        self.add_module("1.18.1")
        module = self.add_module("1.22.0")
        os.remove(self.path(f"{module}/libuct_sep.so.0"))
        self.expect_error(self.run_it("true", libraries=ucx),
                          self.path(f"{module}/libuct_sep.so.0 is missing"))
        os.remove(self.path("libexec/sep/sep_find_ucx"))
        self.expect_error(self.run_it("true", libraries=ucx),
                          "sep_find_ucx is missing")

    def test_a_module_that_is_named_is_taken(self):
        ucx = self.add_ucx("1.22.0", True)
        self.touch("other.so")
        self.assertEqual(self.variables(libraries=ucx,
                                        SEP_MODULE=self.path("other.so")),
                         {"LD_PRELOAD": self.path("lib/sep/libsep_preload.so")})
        self.expect_error(self.run_it("true", SEP_MODULE="/not/there.so"),
                          "/not/there.so: no such file")


@unittest.skipUnless(os.access(FIND_UCX, os.X_OK) and shutil.which("gcc"),
                     "the transport is not built, or there is no compiler")
class Refusal(unittest.TestCase):
    """The preload library, in a process with a UCX that nothing is for."""

    UCT = ("signed char uct_query_components(void ***c, unsigned *n)"
           "{ *c = 0; *n = 7; return 0; }")
    PROGRAM = ("#include <stdio.h>\n"
               "signed char uct_query_components(void ***c, unsigned *n);"
               "const char *ucp_get_version_string(void);"
               "int main(void) { void **c; unsigned n;"
               "if (!ucp_get_version_string()) return 1;"
               "int status = uct_query_components(&c, &n);"
               "printf(\"%d %u\", status, n);"
               "return 0; }")

    def test_no_module_for_the_ucx_of_the_process(self):
        with tempfile.TemporaryDirectory(prefix="sep-run.") as top:
            for lib, source in (("uct", self.UCT), ("ucp", UCP % "9.8.7")):
                subprocess.run(["gcc", "-x", "c", "-", "-shared", "-fPIC",
                                f"-Wl,-soname,lib{lib}.so.0", "-o",
                                f"{top}/lib{lib}.so.0"], input=source, text=True,
                               check=True, timeout=300)
            subprocess.run(["gcc", "-x", "c", "-", "-x", "none", "-o", f"{top}/user",
                            "-Wl,--no-as-needed",
                            f"{top}/libuct.so.0", f"{top}/libucp.so.0"],
                           input=self.PROGRAM, text=True, check=True,
                           timeout=300)
            shutil.copy(os.path.join(BUILD, "lib/sep/libsep_preload.so"), top)
            os.makedirs(f"{top}/ucx-1.2")
            result = subprocess.run(
                [f"{top}/user"], capture_output=True, text=True, timeout=300,
                check=False, env={"LD_LIBRARY_PATH": top,
                                  "LD_PRELOAD": f"{top}/libsep_preload.so"})
        self.assertEqual((result.stdout, result.returncode), ("0 7", 0))
        self.assertIn("this is UCX 9.8.7", result.stderr)
        self.assertIn(f"{top}/ucx-9.8/libuct_sep.so.0", result.stderr)
        self.assertIn("Installed are modules for: UCX 1.2", result.stderr)
