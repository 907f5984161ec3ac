/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * mlx5sim-run.
 */

#include <sim/launcher.h>

#include <common/sanitizer.h>

#include <cstring>
#include <fstream>
#include <utility>

#include <elf.h>
#include <sys/mman.h>
#include <sys/stat.h>

using namespace launcher_helpers;

namespace {

class test_launcher : public ::testing::Test {
protected:
    void SetUp() override
    {
        char name[] = "/tmp/mlx5sim-test.XXXXXX";

        ASSERT_EQ(0, access(build_file("lib/sep/libmlx5sim.so").c_str(), F_OK))
                << "run 'make' first, and set SEP_BUILD_DIR";
        ASSERT_NE(nullptr, mkdtemp(name));
        m_dir = name;
    }

    void TearDown() override
    {
        let_go();
        EXPECT_EQ(0, system(("rm -rf '" + m_dir + "'").c_str()));
    }

    /** Name of a file that vanishes with the test. */
    std::string file(const std::string &name) const
    {
        return m_dir + "/" + name;
    }

    std::string read(const std::string &name) const
    {
        std::ifstream stream(file(name));

        return std::string(std::istreambuf_iterator<char>(stream), {});
    }

    void write(const std::string &name, const std::string &content,
               mode_t mode) const
    {
        std::ofstream(file(name), std::ios::binary) << content;
        EXPECT_EQ(0, chmod(file(name).c_str(), mode));
    }

    /** Wait until @a what is true. */
    template<typename T> static bool wait_for(T what)
    {
        for (int i = 0; i < time_limit_ms / 10; ++i) {
            if (what()) {
                return true;
            }
            usleep(10000);
        }
        return false;
    }

    /** Whether a process has ended; who started it may not have looked yet. */
    static bool is_gone(pid_t pid)
    {
        std::ifstream stream("/proc/" + std::to_string(pid) + "/stat");
        std::string line;

        return !std::getline(stream, line) ||
               (line.find(") Z ") != std::string::npos);
    }

    /** Kill a private instance's mlx5sim-run with its whole process group, so
     *  that nobody is left to clean up. This process needs the instance until
     *  let_go(): the mlx5sim-run of any other test removes what nobody needs.
     *  @return the instance's directory. */
    /** A script in an instance and a process group of its own. */
    pid_t start(const char *script)
    {
        pid_t pid = fork();

        if (pid == 0) {
            setpgid(0, 0);
            execl(build_file("bin/mlx5sim-run").c_str(), "mlx5sim-run",
                  "--private", "sh", file(script).c_str(), (char*)nullptr);
            _exit(127);
        }
        return pid;
    }

    std::string leave_instance()
    {
        std::string script = "echo $MLX5SIM_DIR >" + file("left") +
                             "; echo $$ >" + file("command") +
                             "; sleep 1000; true";
        pid_t command, pid;
        std::string dir;
        int status;

        unlink(file("command").c_str());
        write("leave", script, 0755);
        pid = start("leave");

        EXPECT_TRUE(wait_for([&] {
            return read("command").find('\n') != std::string::npos;
        }));
        command = atoi(read("command").c_str());
        dir     = read("left");
        dir     = dir.substr(0, dir.find('\n'));
        hold(dir);
        EXPECT_EQ(0, kill(-pid, SIGKILL));
        EXPECT_EQ(pid, waitpid(pid, &status, 0));
        EXPECT_TRUE(wait_for([&] { return is_gone(command); }));
        return dir;
    }

    void let_go()
    {
        if (m_needed != MAP_FAILED) {
            EXPECT_EQ(0, munmap(m_needed, 1));
            m_needed = MAP_FAILED;
        }
    }

    /** A static program: exit(5). */
    static std::string static_program()
    {
        static const uint8_t code[] = {0xb8, 60, 0, 0, 0,  /* mov $60,%eax */
                                       0xbf, 5, 0, 0, 0,   /* mov $5,%edi */
                                       0x0f, 0x05};        /* syscall */
        Elf64_Ehdr header  = {};
        Elf64_Phdr program = {};

        memcpy(header.e_ident, ELFMAG, SELFMAG);
        header.e_ident[EI_CLASS]   = ELFCLASS64;
        header.e_ident[EI_DATA]    = ELFDATA2LSB;
        header.e_ident[EI_VERSION] = EV_CURRENT;
        header.e_type              = ET_EXEC;
        header.e_machine           = EM_X86_64;
        header.e_version           = EV_CURRENT;
        header.e_entry             = 0x400000 + sizeof(header) +
                                     sizeof(program);
        header.e_phoff             = sizeof(header);
        header.e_ehsize            = sizeof(header);
        header.e_phentsize         = sizeof(program);
        header.e_phnum             = 1;
        program.p_type             = PT_LOAD;
        program.p_flags            = PF_R | PF_X;
        program.p_vaddr            = 0x400000;
        program.p_filesz           = sizeof(header) + sizeof(program) +
                                     sizeof(code);
        program.p_memsz            = program.p_filesz;
        program.p_align            = 4096;
        return std::string((char*)&header, sizeof(header)) +
               std::string((char*)&program, sizeof(program)) +
               std::string((char*)code, sizeof(code));
    }

private:
    /** Map the configuration of the instance in @a dir. */
    void hold(const std::string &dir)
    {
        int fd = open((dir + "/config").c_str(), O_RDONLY | O_CLOEXEC);

        ASSERT_LE(0, fd) << dir;
        m_needed = mmap(nullptr, 1, PROT_READ, MAP_SHARED, fd, 0);
        close(fd);
        ASSERT_NE(MAP_FAILED, m_needed) << dir;
    }

    std::string m_dir;
    void *m_needed = MAP_FAILED;
};

} // namespace

TEST_F(test_launcher, preserves_the_exit_status)
{
    EXPECT_EQ(0, run(launcher() + "true").status);
    EXPECT_EQ(7, run(launcher() + "sh -c 'exit 7'").status);
    EXPECT_EQ(128 + SIGKILL, run(launcher() + "sh -c 'kill -9 $$'").status);
    EXPECT_EQ(127, run(launcher() + "no-such-command-at-all").status);
    EXPECT_EQ("hello\n", run("echo hello | " + launcher() + "cat").output);
    EXPECT_EQ("a b|c\n",
              run(launcher() + "printf '%s|%s\\n' 'a b' c").output);
}

TEST_F(test_launcher, forwards_signals_and_waits)
{
    /* the command signals the launcher, its parent, and has to get it back */
    for (auto signal : {std::make_pair("TERM", 5), std::make_pair("INT", 6),
                        std::make_pair("USR1", 7)}) {
        std::string name = signal.first;
        result res = run(launcher() + "bash -c 'trap \"echo got " + name +
                         "; exit " + std::to_string(signal.second) + "\" " +
                         name + "; kill -s " + name +
                         " $PPID; while :; do sleep 0.05; done'");
        EXPECT_EQ("got " + name + "\n", res.output);
        EXPECT_EQ(signal.second, res.status);
    }
}

TEST_F(test_launcher, private_instance_is_shared_by_children_then_removed)
{
    result res = run(launcher() + "sh -c 'echo $MLX5SIM_DIR; touch "
                     "$MLX5SIM_DIR/x; sh -c \"ls $MLX5SIM_DIR/x\"; exit 3'");
    std::string dir = res.output.substr(0, res.output.find('\n'));

    EXPECT_EQ(3, res.status);
    EXPECT_EQ(dir + "\n" + dir + "/x\n", res.output);
    EXPECT_EQ('/', dir[0]);
    EXPECT_NE(0, access(dir.c_str(), F_OK));
}

TEST_F(test_launcher, refuses_what_can_not_work)
{
    static const struct {
        const char *options;
        const char *reason;
    } cases[] = {
        {"--private --devices 99", "MLX5SIM_DEVICES='99' is not valid"},
        {"--private --link eth", "one of ib, roce"},
        {"--private --nonsense", "unknown option --nonsense"},
        {"--dir relative", "MLX5SIM_DIR='relative' is not valid"},
    };

    for (const auto &c : cases) {
        result res = run(launcher(c.options) + "echo the command ran");
        EXPECT_EQ(2, res.status) << c.options;
        EXPECT_NE(std::string::npos, res.output.find(c.reason)) << res.output;
        EXPECT_EQ(std::string::npos, res.output.find("ran")) << res.output;
    }

    result res = run("PMI_SIZE=4 " + launcher() + "true");
    EXPECT_EQ(2, res.status);
    EXPECT_NE(std::string::npos, res.output.find("in front of mpiexec"));
}

TEST_F(test_launcher, violations_fail_a_command_that_succeeded)
{
    std::string report = "echo qp 0x40: bad >>$MLX5SIM_DIR/violations";
    result res         = run(launcher() + "sh -c '" + report + "'");

    EXPECT_EQ(3, res.status);
    EXPECT_NE(std::string::npos, res.output.find("qp 0x40: bad"));
    EXPECT_EQ(9, run(launcher() + "sh -c '" + report + "; exit 9'").status);

    /* of a shared instance, those of this command only */
    char dir[] = "/tmp/mlx5sim-test.XXXXXX";
    ASSERT_NE(nullptr, mkdtemp(dir));
    std::string options = std::string("--dir ") + dir;
    EXPECT_EQ(3, run(launcher(options) + "sh -c '" + report + "'").status);
    EXPECT_EQ(0, run(launcher(options) + "true").status);
    EXPECT_EQ(0, run(build_file("bin/mlx5sim-run --reset ") + options).status);
    EXPECT_NE(0, access(dir, F_OK));
}

TEST_F(test_launcher, reset_removes_nothing_that_is_no_instance)
{
    char dir[] = "/tmp/mlx5sim-test.XXXXXX";

    ASSERT_NE(nullptr, mkdtemp(dir));
    EXPECT_EQ(2, run(build_file("bin/mlx5sim-run --reset --dir ") + dir)
                         .status);
    EXPECT_EQ(0, rmdir(dir));
}

TEST_F(test_launcher, a_directory_of_other_files_is_left_alone)
{
    const std::string dir = file("home");

    ASSERT_EQ(0, mkdir(dir.c_str(), 0700));
    ASSERT_EQ(0, mkdir((dir + "/dev").c_str(), 0700));
    ASSERT_EQ(0, mkdir((dir + "/sysfs").c_str(), 0700));
    write("home/dev/project", "years of work", 0600);
    for (std::string command : {launcher("--dir " + dir),
                                launcher("--reset --dir " + dir),
                                "MLX5SIM_DIR=" + dir + " " + launcher(""),
                                "MLX5SIM_DIR=" + dir + " " +
                                launcher("--reset")}) {
        result res = run(command + "echo the command ran");

        EXPECT_EQ(2, res.status) << command;
        EXPECT_NE(std::string::npos, res.output.find(dir)) << res.output;
        EXPECT_NE(std::string::npos, res.output.find("nothing in it is touc"))
                << res.output;
        EXPECT_EQ(std::string::npos, res.output.find("ran")) << res.output;
        EXPECT_EQ("years of work", read("home/dev/project"));
        EXPECT_EQ(0, access((dir + "/sysfs").c_str(), F_OK));
        EXPECT_NE(0, access((dir + "/config").c_str(), F_OK));
    }

    /* with a configuration in it, it was an instance as far as --reset knew */
    write("home/config", "of another program", 0600);
    EXPECT_EQ(2, run(launcher("--reset --dir " + dir) + "true").status);
    EXPECT_EQ("years of work", read("home/dev/project"));
    EXPECT_EQ("of another program", read("home/config"));
}

TEST_F(test_launcher, reset_refuses_an_instance_that_is_in_use)
{
    const std::string dir = file("instance");
    std::string options   = "--dir " + dir;
    result res;
    void *ptr;
    int fd;

    ASSERT_EQ(0, run(launcher(options) + "true").status);
    fd = open((dir + "/config").c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_LE(0, fd);
    ptr = mmap(nullptr, 1, PROT_READ, MAP_SHARED, fd, 0);
    ASSERT_NE(MAP_FAILED, ptr);
    close(fd);

    res = run(launcher("--reset " + options) + "true");
    EXPECT_EQ(2, res.status);
    EXPECT_NE(std::string::npos,
              res.output.find("in use by process " + std::to_string(getpid())))
            << res.output;
    EXPECT_EQ(0, access((dir + "/config").c_str(), F_OK));

    ASSERT_EQ(0, munmap(ptr, 1));
    EXPECT_EQ(0, run(launcher("--reset " + options) + "true").status);
    EXPECT_EQ(0, access((dir + "/config").c_str(), F_OK));
}

/* Where fs.protected_symlinks is 0, the kernel follows links that others have
 * put into /dev/shm. Who runs mlx5sim-run has not named that place. */
TEST_F(test_launcher, a_link_at_the_default_place_is_not_followed)
{
    /* with a /dev/shm of its own */
    const std::string enter = "unset MLX5SIM_DIR; unshare --map-root-user "
                              "--mount sh -c 'mount -t tmpfs none /dev/shm && ";
    result res;

    if (run(enter + "true'").status != 0) {
        GTEST_SKIP() << "no mount namespaces here";
    }

    ASSERT_EQ(0, mkdir(file("victim").c_str(), 0700));
    res = run(enter + "ln -s " + file("victim") + " /dev/shm/mlx5sim.0 && " +
              launcher("") + "true'");
    EXPECT_EQ(2, res.status) << res.output;
    EXPECT_NE(std::string::npos, res.output.find("cannot open the directory"))
            << res.output;
    EXPECT_EQ(0, rmdir(file("victim").c_str()));
}

TEST_F(test_launcher, other_pid_namespaces_are_refused)
{
    const std::string enter = std::string("unshare --pid --fork ") +
                              ((geteuid() == 0) ? "" : "--map-root-user ");
    const std::string dir   = file("instance");
    result res;

    if (run(enter + "--mount-proc true").status != 0) {
        GTEST_SKIP() << "no PID namespaces here";
    }

    ASSERT_EQ(0, run(launcher("--dir " + dir) + "true").status);
    for (std::string command : {launcher("--dir " + dir) + "true",
                                launcher("--reset --dir " + dir) + "true",
                                build_file("bin/mlx5sim-stat --dir ") + dir}) {
        res = run(enter + "--mount-proc " + command);
        EXPECT_NE(0, res.status) << command;
        EXPECT_NE(std::string::npos, res.output.find("another PID namespace"))
                << command << ": " << res.output;
    }
    EXPECT_EQ(0, run(launcher("--dir " + dir) + "true").status);

    /* one made there is good there */
    EXPECT_EQ("good\n", run(enter + "--mount-proc " + launcher() +
                            "echo good").output);

    /* a /proc of other processes says nothing about ours */
    res = run(enter + launcher("--dir " + dir) + "true");
    EXPECT_EQ(2, res.status);
    EXPECT_NE(std::string::npos, res.output.find("unshare --mount-proc"))
            << res.output;
}

TEST_F(test_launcher, what_a_killed_group_left_is_removed_by_the_next_one)
{
    std::string dir = leave_instance();

    ASSERT_EQ(0, access((dir + "/config").c_str(), F_OK)) << dir;
    let_go();
    EXPECT_EQ(0, run(launcher() + "true").status);
    EXPECT_NE(0, access(dir.c_str(), F_OK)) << dir;
}

TEST_F(test_launcher, a_private_instance_that_somebody_needs_stays)
{
    std::string dir = leave_instance();
    std::string other = dir + ".other";

    /* a process of the killed group's may have gone on */
    EXPECT_EQ(0, run(launcher() + "true").status);
    EXPECT_EQ(0, access((dir + "/config").c_str(), F_OK));

    /* what only looks like one is not ours to remove, nor is that of another
     * mlx5sim-run that goes on */
    ASSERT_EQ(0, run("cp -r " + dir + " " + other + " && rm " + other +
                     "/mlx5sim-instance").status);
    let_go();
    EXPECT_EQ("yes\n", run(launcher() + "sh -c '" + launcher() + "true; test "
                           "-e $MLX5SIM_DIR/config && echo yes'").output);
    EXPECT_NE(0, access(dir.c_str(), F_OK));
    EXPECT_EQ(0, access((other + "/config").c_str(), F_OK));
    EXPECT_EQ(0, run("rm -r " + other).status);
}

/* Whatever started it may be killed without mercy: the command must not go on
 * for ever, nor the instance stay. */
TEST_F(test_launcher, killed_it_takes_the_command_and_the_instance_along)
{
    std::string script = "echo $MLX5SIM_DIR >" + file("dir") + "; sh -c '" +
                         "sleep 1000; true' & echo $! >" + file("inner") +
                         "; echo $$ >" + file("outer") + "; sleep 1001; true";
    std::string dir;
    int status;
    pid_t pid;

    write("script", script, 0755);
    pid = start("script");

    ASSERT_TRUE(wait_for([&] { return !read("outer").empty(); }));
    dir         = read("dir");
    dir         = dir.substr(0, dir.find('\n'));
    pid_t outer = atoi(read("outer").c_str());
    pid_t inner = atoi(read("inner").c_str());
    EXPECT_EQ(0, access(dir.c_str(), F_OK)) << dir;
    EXPECT_EQ(0, kill(outer, 0));
    EXPECT_EQ(0, kill(inner, 0));

    EXPECT_EQ(0, kill(pid, SIGKILL));
    EXPECT_EQ(pid, waitpid(pid, &status, 0));
    EXPECT_TRUE(wait_for([&] { return access(dir.c_str(), F_OK) != 0; }));
    for (pid_t process : {outer, inner}) {
        EXPECT_TRUE(wait_for([&] { return is_gone(process); })) << process;
    }
    kill(-pid, SIGKILL);
}

/* As by timeout(1), which signals its group, and then its command. Without care
 * one in five stayed. */
TEST_F(test_launcher, a_signal_to_all_ends_it_with_its_command)
{
    for (unsigned i = 0; i < 20; ++i) {
        int status = 0;
        pid_t pid;

        unlink(file("command").c_str());
        write("stay", "echo $$ >" + file("command") + "; exec sleep 1000",
              0755);
        pid = start("stay");

        EXPECT_TRUE(wait_for([&] {
            return read("command").find('\n') != std::string::npos;
        }));
        EXPECT_EQ(0, kill(-pid, SIGTERM));
        kill(pid, SIGTERM);
        EXPECT_TRUE(wait_for([&] {
            return waitpid(pid, &status, WNOHANG) == pid;
        })) << i;
        kill(-pid, SIGKILL);
        if (HasFailure()) {
            break;
        }
    }
}

TEST_F(test_launcher, warns_of_programs_that_can_not_see_the_device)
{
    write("static", static_program(), 0755);
    write("script", "#! " + file("static") + " x\n", 0755);

    result res = run(launcher() + file("static"));
    EXPECT_EQ(5, res.status);
    EXPECT_NE(std::string::npos, res.output.find("is statically linked"))
            << res.output;

    /* the interpreter is what counts */
    res = run(launcher() + file("script"));
    EXPECT_EQ(5, res.status);
    EXPECT_NE(std::string::npos,
              res.output.find("is run by " + file("static") +
                              ", which is statically linked")) << res.output;

    /* and is found by name */
    res = run("PATH=$PATH:" + file("") + "; " + launcher() + "static");
    EXPECT_NE(std::string::npos, res.output.find("warning: static is stat"))
            << res.output;
}

TEST_F(test_launcher, warns_of_programs_with_privileges)
{
    std::string program;
    struct stat st;

    if (getuid() == 0) {
        /* secure-execution mode is for users that the file changes */
        program = file("other");
        ASSERT_EQ(0, run("cp /bin/true " + program).status);
        ASSERT_EQ(0, chown(program.c_str(), 1, 1));
        ASSERT_EQ(0, chmod(program.c_str(), 04755));
    } else {
        program = "/bin/su";
        if ((stat(program.c_str(), &st) != 0) || !(st.st_mode & S_ISUID)) {
            GTEST_SKIP() << "no setuid program here";
        }
    }

    result res = run(launcher() + program + " --version");
    EXPECT_NE(std::string::npos, res.output.find("is setuid")) << res.output;
}

TEST_F(test_launcher, says_nothing_of_programs_that_see_it)
{
    write("script", "#!/bin/sh\ntrue\n", 0755);
    write("none", "true\n", 0755);
    for (std::string program : {std::string("true"), file("script"),
                                file("none")}) {
        EXPECT_EQ("", run(launcher() + program).output) << program;
    }
}

TEST_F(test_launcher, gives_valgrind_the_options_it_needs)
{
    const std::string needed = "--px-default=allregs-at-mem-access "
                               "--px-file-backed=allregs-at-mem-access";

    EXPECT_EQ(needed + "\n",
              run("unset VALGRIND_OPTS; " + launcher() +
                  "sh -c 'echo $VALGRIND_OPTS'").output);
    EXPECT_EQ(needed + " --leak-check=full\n",
              run("VALGRIND_OPTS=--leak-check=full " + launcher() +
                  "sh -c 'echo $VALGRIND_OPTS'").output);
}

TEST_F(test_launcher, gdb_does_not_stop_at_doorbells)
{
    if (has_asan()) {
        GTEST_SKIP() << "gdb hangs with the sanitizer's library, which "
                        "programs need here";
    }
    if (!have("gdb")) {
        GTEST_SKIP() << "no gdb here";
    }

    result res = run(launcher() + "gdb -nx -batch -ex 'info signals SIGBUS'");
    EXPECT_EQ(0, res.status) << res.output;
    EXPECT_NE(std::string::npos, res.output.find("SIGBUS        No\tNo\tYes"))
            << res.output;
}
