/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Discovery as programs meet it: libmlx5sim.so preloaded by mlx5sim-run.
 *
 * Tests of test_sysfs_inside run in a second process of this very program,
 * which the launcher starts: it is there that open() and the others are ours.
 */

#include <sim/launcher.h>

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <linux/netlink.h>
#include <unistd.h>

using namespace launcher_helpers;

namespace {

/* has the prefix that the device does not take for a mistyped variable */
const char *const inside_var = "MLX5SIM_RUN_TEST_INSIDE";

const char *const ibdev_path =
        "/sys/devices/pci0000:00/0000:3b:00.0/infiniband/mlx5_0";

} // namespace

/*
 * Programs of the system
 */

class test_sysfs_programs : public ::testing::Test {
protected:
    void SetUp() override
    {
        if (getenv(inside_var) != nullptr) {
            GTEST_SKIP() << "already on the device";
        }
        ASSERT_EQ(0, access(build_file("lib/sep/libmlx5sim.so").c_str(), F_OK))
                << "run 'make' first, and set SEP_BUILD_DIR";
    }

    static void expect_output(const std::string &command,
                              const std::string &output,
                              const std::string &options = "--private")
    {
        result res = run(launcher(options) + command);

        EXPECT_EQ(0, res.status) << command;
        EXPECT_EQ(output, res.output) << command;
    }
};

TEST_F(test_sysfs_programs, coreutils_see_the_device)
{
    expect_output("ls /sys/class/infiniband", "mlx5_0\n");
    expect_output("ls /dev/infiniband", "rdma_cm\nuverbs0\n");
    expect_output("cat /sys/class/infiniband/mlx5_0/hca_type", "MT4119\n");
    expect_output("cat /sys/class/infiniband_verbs/abi_version", "6\n");
    expect_output("stat -c '%F %t:%T' /dev/infiniband/uverbs0",
                  "character special file e7:c0\n");
    expect_output("readlink -f /sys/class/infiniband/mlx5_0",
                  std::string(ibdev_path) + "\n");
    expect_output("realpath /sys/class/infiniband_verbs/uverbs0/device",
                  "/sys/devices/pci0000:00/0000:3b:00.0\n");
    expect_output("sed -n p /sys/class/infiniband/mlx5_0/ports/1/state",
                  "4: ACTIVE\n");
    expect_output("find /sys/class/infiniband/mlx5_0/ports -name lid",
                  "/sys/class/infiniband/mlx5_0/ports/1/lid\n");

    /* long listings also ask for extended attributes */
    result res = run(launcher() + "ls -l /sys/class/infiniband/mlx5_0/ "
                                  "/dev/infiniband");
    EXPECT_EQ(0, res.status);
    EXPECT_EQ(std::string::npos, res.output.find("No such")) << res.output;
    EXPECT_NE(std::string::npos, res.output.find("231, 192")) << res.output;
}

TEST_F(test_sysfs_programs, shells_and_interpreters_see_the_device)
{
    expect_output("bash -c 'echo /sys/class/infiniband/*/ports/*; "
                  "[ -c /dev/infiniband/uverbs0 ] && echo device; "
                  "cd /sys/class/infiniband/mlx5_0 && pwd && "
                  "cat ports/1/link_layer'",
                  "/sys/class/infiniband/mlx5_0/ports/1\ndevice\n"
                  "/sys/class/infiniband/mlx5_0\nInfiniBand\n");
    expect_output("perl -e 'print -c \"/dev/infiniband/uverbs0\" ? "
                  "\"device\\n\" : \"none\\n\"; "
                  "print glob(\"/sys/class/infiniband/*\"), \"\\n\"'",
                  "device\n/sys/class/infiniband/mlx5_0\n");
    if (have("python3")) {
        expect_output("python3 -c 'import os; "
                      "print(os.listdir(\"/sys/class/infiniband\")); "
                      "print(os.path.realpath("
                      "\"/sys/class/infiniband/mlx5_0\"))'",
                      "['mlx5_0']\n" + std::string(ibdev_path) + "\n");
    }
}

TEST_F(test_sysfs_programs, ibv_devices_lists_the_devices)
{
    if (!have("ibv_devices")) {
        GTEST_SKIP() << "ibv_devices is in Debian's ibverbs-utils";
    }

    result res = run(launcher("--private --devices 2") + "ibv_devices");
    EXPECT_EQ(0, res.status);
    for (const char *device : {"mlx5_0", "248a070300a50000", "mlx5_1",
                               "248a070300a50010"}) {
        EXPECT_NE(std::string::npos, res.output.find(device)) << res.output;
    }

    /* every model is one that libmlx5 takes */
    for (const char *model : {"cx4", "cx5ex", "cx6", "cx6dx", "cx7"}) {
        res = run(launcher(std::string("--private --model ") + model) +
                  "ibv_devices");
        EXPECT_NE(std::string::npos, res.output.find("mlx5_0")) << model;
    }
}

TEST_F(test_sysfs_programs, ibstat_understands_the_ports)
{
    if (!have("ibstat")) {
        GTEST_SKIP() << "ibstat is in Debian's infiniband-diags";
    }

    result res = run("PATH=$PATH:/usr/sbin; " +
                     launcher("--private --ports 2") + "ibstat mlx5_0");
    EXPECT_EQ(0, res.status);
    for (const char *text : {"CA type: MT4119", "Number of ports: 2",
                             "State: Active", "Rate: 100", "Base lid: 17",
                             "Port GUID: 0x248a070300a50001",
                             "Link layer: InfiniBand"}) {
        EXPECT_NE(std::string::npos, res.output.find(text)) << res.output;
    }
}

TEST_F(test_sysfs_programs, a_device_that_is_switched_off_is_not_there)
{
    result res = run("MLX5SIM_DISABLE=y " +
                     launcher("--dir /nonexistent/x --no-strict") +
                     "ls /dev/infiniband/uverbs0");

    /* a real device may be there, ours is not */
    if (access("/dev/infiniband/uverbs0", F_OK) != 0) {
        EXPECT_EQ(2, res.status) << res.output;
    }
    EXPECT_EQ(std::string::npos, res.output.find("mlx5sim:")) << res.output;
}

/*
 * The launcher
 */

TEST_F(test_sysfs_programs, inside_tests_pass_in_a_process_on_the_device)
{
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

    ASSERT_GT(length, 0);
    self[length] = '\0';
    result res   = run(std::string(inside_var) + "=1 " +
                       launcher("--private --devices 2") + self +
                       " --gtest_filter='test_sysfs_inside.*'");
    EXPECT_EQ(0, res.status) << res.output;
    EXPECT_NE(std::string::npos, res.output.find("[  PASSED  ]"))
            << res.output;
    EXPECT_EQ(std::string::npos, res.output.find("[  SKIPPED ]"))
            << res.output;
}

/*
 * The interposers
 */

class test_sysfs_inside : public ::testing::Test {
protected:
    void SetUp() override
    {
        if (getenv(inside_var) == nullptr) {
            GTEST_SKIP() << "run by test_sysfs_programs";
        }
    }

    static std::string read_all(int fd)
    {
        char buf[256];
        ssize_t size = (fd < 0) ? -1 : read(fd, buf, sizeof(buf));

        if (fd >= 0) {
            close(fd);
        }
        return (size < 0) ? "(error)" : std::string(buf, size);
    }

    /* An entry point that headers don't declare, or not without attributes. */
    template<typename T> static T symbol(const char *name)
    {
        void *address = dlsym(RTLD_DEFAULT, name);

        EXPECT_NE(nullptr, address) << name;
        return reinterpret_cast<T>(address);
    }

    static void expect_uverbs0(const struct stat &st)
    {
        EXPECT_TRUE(S_ISCHR(st.st_mode));
        EXPECT_EQ(makedev(231, 192), st.st_rdev);
    }

    static const char *const fw_ver;
    static const char *const uverbs0;
};

const char *const test_sysfs_inside::fw_ver =
        "/sys/class/infiniband/mlx5_0/fw_ver";
const char *const test_sysfs_inside::uverbs0 = "/dev/infiniband/uverbs0";

TEST_F(test_sysfs_inside, every_way_to_open_an_attribute_works)
{
    const std::string fw = "16.35.4506\n";
    char buf[64];
    FILE *file;
    int dir;

    EXPECT_EQ(fw, read_all(open(fw_ver, O_RDONLY)));
    EXPECT_EQ(fw, read_all(open64(fw_ver, O_RDONLY)));
    EXPECT_EQ(fw, read_all(openat(AT_FDCWD, fw_ver, O_RDONLY)));
    EXPECT_EQ(fw, read_all(openat64(-5, fw_ver, O_RDONLY)));
    EXPECT_EQ(fw, read_all(symbol<int (*)(const char*, int)>("__open_2")(
                          fw_ver, O_RDONLY)));
    EXPECT_EQ(fw, read_all(symbol<int (*)(const char*, int)>("__open64_2")(
                          fw_ver, O_RDONLY)));
    EXPECT_EQ(fw, read_all(symbol<int (*)(int, const char*, int)>(
                          "__openat_2")(AT_FDCWD, fw_ver, O_RDONLY)));
    EXPECT_EQ(fw, read_all(symbol<int (*)(int, const char*, int)>(
                          "__openat64_2")(AT_FDCWD, fw_ver, O_RDONLY)));

    dir = open("/sys/class/infiniband/mlx5_0", O_RDONLY | O_DIRECTORY);
    ASSERT_GE(dir, 0);
    EXPECT_EQ(fw, read_all(openat(dir, "fw_ver", O_RDONLY)));
    EXPECT_EQ("0x15b3\n", read_all(openat(dir, "device/vendor", O_RDONLY)));
    EXPECT_EQ("0x15b3\n", read_all(openat(dir, "../../vendor", O_RDONLY)));
    close(dir);

    for (auto function : {fopen, fopen64}) {
        file = function(fw_ver, "r");
        ASSERT_NE(nullptr, file);
        EXPECT_EQ(fw, fgets(buf, sizeof(buf), file));
        fclose(file);
    }

    file = fopen("/dev/null", "r");
    ASSERT_NE(nullptr, file);
    file = freopen(fw_ver, "r", file);
    ASSERT_NE(nullptr, file);
    EXPECT_EQ(fw, fgets(buf, sizeof(buf), file));
    fclose(file);
}

TEST_F(test_sysfs_inside, every_way_to_stat_the_character_device_says_so)
{
    typedef int (*xstat_t)(int, const char*, struct stat*);
    typedef int (*fxstat_t)(int, int, struct stat*);
    typedef int (*fxstatat_t)(int, int, const char*, struct stat*, int);
    struct statx stx;
    struct stat st;
    int fd, dir, copy;

    auto expect = [&](int ret, const char *what) {
        EXPECT_EQ(0, ret) << what << ": " << strerror(errno);
        expect_uverbs0(st);
        memset(&st, 0, sizeof(st));
    };

    expect(stat(uverbs0, &st), "stat");
    expect(lstat(uverbs0, &st), "lstat");
    expect(stat64(uverbs0, (struct stat64*)&st), "stat64");
    expect(lstat64(uverbs0, (struct stat64*)&st), "lstat64");
    expect(fstatat(AT_FDCWD, uverbs0, &st, 0), "fstatat");
    expect(fstatat64(-5, uverbs0, (struct stat64*)&st, AT_SYMLINK_NOFOLLOW),
           "fstatat64");
    for (const char *name : {"__xstat", "__xstat64", "__lxstat",
                             "__lxstat64"}) {
        expect(symbol<xstat_t>(name)(1, uverbs0, &st), name);
    }
    for (const char *name : {"__fxstatat", "__fxstatat64"}) {
        expect(symbol<fxstatat_t>(name)(1, AT_FDCWD, uverbs0, &st, 0), name);
    }

    ASSERT_EQ(0, statx(AT_FDCWD, uverbs0, 0, STATX_BASIC_STATS, &stx));
    EXPECT_TRUE(S_ISCHR(stx.stx_mode));
    EXPECT_EQ(231u, stx.stx_rdev_major);
    EXPECT_EQ(192u, stx.stx_rdev_minor);

    fd = open(uverbs0, O_RDWR | O_CLOEXEC);
    ASSERT_GE(fd, 0) << strerror(errno);
    expect(fstat(fd, &st), "fstat");
    expect(fstat64(fd, (struct stat64*)&st), "fstat64");
    expect(fstatat(fd, "", &st, AT_EMPTY_PATH), "fstatat of a descriptor");
    for (const char *name : {"__fxstat", "__fxstat64"}) {
        expect(symbol<fxstat_t>(name)(1, fd, &st), name);
    }
    ASSERT_EQ(0, statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stx));
    EXPECT_TRUE(S_ISCHR(stx.stx_mode));
    close(fd);

    /* as a program that walks a directory does it */
    dir = open("/dev/infiniband", O_RDONLY | O_DIRECTORY);
    ASSERT_GE(dir, 0);
    expect(fstatat(dir, "uverbs0", &st, 0), "fstatat in the directory");
    ASSERT_EQ(0, statx(dir, "uverbs0", 0, STATX_BASIC_STATS, &stx));
    EXPECT_TRUE(S_ISCHR(stx.stx_mode));
    copy = openat(dir, "uverbs0", O_RDWR | O_CLOEXEC);
    ASSERT_GE(copy, 0) << strerror(errno);
    expect(fstat(copy, &st), "fstat of what was opened there");
    close(copy);
    close(dir);
}

TEST_F(test_sysfs_inside, other_files_keep_their_kind)
{
    struct stat st;
    int fd;

    /* memfds and deleted files are what a device is to the kernel */
    fd = memfd_create("mlx5sim-test", MFD_CLOEXEC);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(0, fstat(fd, &st));
    EXPECT_TRUE(S_ISREG(st.st_mode));
    close(fd);

    ASSERT_EQ(0, stat("/dev/null", &st));
    EXPECT_EQ(makedev(1, 3), st.st_rdev);
    ASSERT_EQ(0, stat("/dev/infiniband", &st));
    EXPECT_TRUE(S_ISDIR(st.st_mode));
    ASSERT_EQ(0, lstat("/sys/class/infiniband/mlx5_0", &st));
    EXPECT_TRUE(S_ISLNK(st.st_mode));

    /* a file that only has the name */
    char dir[] = "/tmp/mlx5sim-test.XXXXXX";
    ASSERT_NE(nullptr, mkdtemp(dir));
    std::string name = std::string(dir) + "/uverbs0";
    fd               = open(name.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0640);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(0, fstat(fd, &st));
    EXPECT_TRUE(S_ISREG(st.st_mode));
    close(fd);
    int dir_fd = open(dir, O_RDONLY | O_DIRECTORY);
    ASSERT_EQ(0, fstatat(dir_fd, "uverbs0", &st, 0));
    EXPECT_TRUE(S_ISREG(st.st_mode));
    EXPECT_EQ(0640u & ~022u, st.st_mode & 07777 & ~022u);
    EXPECT_EQ(0, unlinkat(dir_fd, "uverbs0", 0));
    close(dir_fd);
    rmdir(dir);
}

TEST_F(test_sysfs_inside, what_is_not_there_is_reported_as_such)
{
    struct stat st;

    for (const char *path : {"/dev/infiniband/rdma_cm0",
                             "/dev/infiniband/umad0",
                             "/dev/infiniband/uverbs2",
                             "/sys/class/infiniband/mlx5_2",
                             "/sys/class/infiniband/mlx5_0/none"}) {
        errno = 0;
        EXPECT_EQ(-1, open(path, O_RDONLY)) << path;
        EXPECT_EQ(ENOENT, errno) << path;
        EXPECT_EQ(-1, stat(path, &st)) << path;
        EXPECT_EQ(ENOENT, errno) << path;
        EXPECT_EQ(-1, access(path, F_OK)) << path;
        EXPECT_EQ(nullptr, realpath(path, nullptr)) << path;
        EXPECT_EQ(ENOENT, errno) << path;
    }

    EXPECT_EQ(-1, open("/dev/infiniband/uverbs0/", O_RDONLY));
    EXPECT_EQ(ENOTDIR, errno);
    EXPECT_EQ(-1, open(uverbs0, O_RDONLY | O_DIRECTORY));
    EXPECT_EQ(ENOTDIR, errno);
    EXPECT_EQ(-1, open(uverbs0, O_RDWR | O_CREAT | O_EXCL, 0600));
    EXPECT_EQ(EEXIST, errno);
}

TEST_F(test_sysfs_inside, bad_pointers_are_for_the_kernel_to_refuse)
{
    /* without the attributes of headers, by which NULL can't happen */
    typedef int (*path_int_t)(const char*, int);
    typedef int (*path_pointer_t)(const char*, void*);
    typedef char *(*realpath_t)(const char*, char*);
    struct stat st;

    EXPECT_EQ(-1, symbol<path_int_t>("open")(nullptr, O_RDONLY));
    EXPECT_EQ(EFAULT, errno);
    EXPECT_EQ(-1, symbol<path_pointer_t>("stat")(nullptr, &st));
    EXPECT_EQ(EFAULT, errno);
    EXPECT_EQ(-1, symbol<path_int_t>("access")(nullptr, F_OK));
    EXPECT_EQ(EFAULT, errno);
    EXPECT_EQ(nullptr, symbol<realpath_t>("realpath")(nullptr, nullptr));
    EXPECT_EQ(EINVAL, errno);
}

TEST_F(test_sysfs_inside, success_leaves_errno_alone)
{
    struct stat st;
    int fd;

    errno = 4711;
    EXPECT_EQ(0, stat(uverbs0, &st));
    EXPECT_EQ(0, access(fw_ver, R_OK));
    fd = open(fw_ver, O_RDONLY);
    EXPECT_EQ(0, fstat(fd, &st));
    EXPECT_EQ(4711, errno);
    close(fd);
}

TEST_F(test_sysfs_inside, modes_of_new_files_get_through)
{
    char dir[] = "/tmp/mlx5sim-test.XXXXXX";
    struct stat st;
    int fd;

    ASSERT_NE(nullptr, mkdtemp(dir));
    std::string name = std::string(dir) + "/file";
    fd               = open(name.c_str(), O_CREAT | O_RDWR, 0604);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(0, fstat(fd, &st));
    EXPECT_EQ(0604u, st.st_mode & 0707);
    close(fd);
    unlink(name.c_str());

    fd = open(dir, O_TMPFILE | O_RDWR, 0600);
    if (fd >= 0) {
        ASSERT_EQ(0, fstat(fd, &st));
        EXPECT_EQ(0600u, st.st_mode & 07777);
        close(fd);
    }
    rmdir(dir);
}

TEST_F(test_sysfs_inside, links_and_resolved_paths_are_public)
{
    char buf[PATH_MAX], resolved[PATH_MAX];
    ssize_t length;
    char *name;

    ASSERT_EQ(resolved, realpath("/sys/class/infiniband/mlx5_0", resolved));
    EXPECT_STREQ(ibdev_path, resolved);
    /* which is a path again, as UCX uses it */
    EXPECT_EQ(0, access((std::string(resolved) + "/../../device").c_str(),
                        R_OK));

    name = realpath("/sys/bus/pci/devices/0000:3b:00.1", nullptr);
    ASSERT_NE(nullptr, name);
    EXPECT_STREQ("/sys/devices/pci0000:00/0000:3b:00.1", name);
    free(name);

    name = canonicalize_file_name("/sys/class/infiniband/mlx5_0/subsystem");
    ASSERT_NE(nullptr, name);
    EXPECT_STREQ("/sys/class/infiniband", name);
    free(name);

    typedef char *(*realpath_chk_t)(const char*, char*, size_t);
    ASSERT_EQ(resolved, symbol<realpath_chk_t>("__realpath_chk")(
                                "/sys/class/infiniband/mlx5_0", resolved,
                                sizeof(resolved)));
    EXPECT_STREQ(ibdev_path, resolved);

    length = readlink("/sys/class/infiniband/mlx5_0", buf, sizeof(buf));
    ASSERT_GT(length, 0);
    EXPECT_EQ("../../devices/pci0000:00/0000:3b:00.0/infiniband/mlx5_0",
              std::string(buf, length));
    EXPECT_EQ(length, readlinkat(AT_FDCWD, "/sys/class/infiniband/mlx5_0", buf,
                                 sizeof(buf)));
    typedef ssize_t (*readlink_chk_t)(const char*, char*, size_t, size_t);
    EXPECT_EQ(length, symbol<readlink_chk_t>("__readlink_chk")(
                              "/sys/class/infiniband/mlx5_0", buf, sizeof(buf),
                              sizeof(buf)));
}

TEST_F(test_sysfs_inside, directories_can_be_read_and_entered)
{
    struct dirent **list = nullptr;
    char buf[PATH_MAX], old[PATH_MAX];
    DIR *dir;
    int count;

    dir = opendir("/sys/class/infiniband");
    ASSERT_NE(nullptr, dir);
    closedir(dir);

    count = scandir("/sys/class/infiniband", &list, nullptr, alphasort);
    ASSERT_EQ(4, count); /* with . and .. */
    EXPECT_STREQ("mlx5_0", list[2]->d_name);
    EXPECT_STREQ("mlx5_1", list[3]->d_name);
    while (count-- > 0) {
        free(list[count]);
    }
    free(list);

    ASSERT_NE(nullptr, getcwd(old, sizeof(old)));
    ASSERT_EQ(0, chdir("/sys/class/infiniband/mlx5_0"));
    EXPECT_EQ("16.35.4506\n", read_all(open("fw_ver", O_RDONLY)));
    ASSERT_NE(nullptr, realpath(".", buf));
    EXPECT_STREQ(ibdev_path, buf);
    ASSERT_EQ(0, chdir(old));

    /* on a machine without PCI, too */
    EXPECT_EQ(0, access("/sys/devices/pci0000:00", R_OK | X_OK));
}

/* By libnl's sockets, which are closed by exec(), libibverbs would look for
 * devices */
TEST_F(test_sysfs_inside, rdma_netlink_is_not_offered_to_libnl)
{
    int fd;

    EXPECT_EQ(-1, socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA));
    EXPECT_EQ(EPROTONOSUPPORT, errno);
    fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA);
    EXPECT_GE(fd, 0);
    close(fd);
    fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    EXPECT_GE(fd, 0);
    close(fd);
    fd = socket(AF_INET, SOCK_DGRAM, 0);
    EXPECT_GE(fd, 0);
    close(fd);
}

TEST_F(test_sysfs_inside, a_failed_open_is_not_waited_for_by_libibverbs)
{
    struct rlimit limit, none;
    int fd, watch;

    /* let the open fail as it does when descriptors run out */
    fd = inotify_init1(IN_CLOEXEC);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
    none          = limit;
    none.rlim_cur = 0;
    ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
    EXPECT_EQ(-1, open(uverbs0, O_RDWR | O_CLOEXEC));
    EXPECT_EQ(EMFILE, errno);
    ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));

    /* what open_cdev() does next */
    EXPECT_EQ(-1, inotify_add_watch(fd, "/dev/char/", IN_CREATE));
    EXPECT_EQ(EMFILE, errno);

    /* only once, and only that directory */
    watch = inotify_add_watch(fd, "/tmp", IN_CREATE);
    EXPECT_GE(watch, 0);
    close(fd);
}

TEST_F(test_sysfs_inside, threads_may_be_first_at_the_same_time)
{
    /* in a process of its own, so that nothing has touched the device yet */
    pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", "sim_gtest",
              "--gtest_filter=test_sysfs_fresh.*", (char*)nullptr);
        _exit(127);
    }

    int status = -1;
    EXPECT_EQ(pid, waitpid(pid, &status, 0));
    EXPECT_EQ(0, status);
}

/* Run by the test above only. */
class test_sysfs_fresh : public test_sysfs_inside {
};

TEST_F(test_sysfs_fresh, first_use_by_eight_threads)
{
    std::vector<std::thread> threads;
    struct stat st[8];
    int results[8];

    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&, i]() { results[i] = stat(uverbs0, &st[i]); });
    }
    for (int i = 0; i < 8; ++i) {
        threads[i].join();
        EXPECT_EQ(0, results[i]);
        expect_uverbs0(st[i]);
    }
}
