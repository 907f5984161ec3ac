/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A file system without room, and a process that may not make large files: the
 * device says so, and nobody gets a signal.
 */

#include <device/device.h>

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace device;

namespace {

void write_file(const char *path, const std::string &text)
{
    int fd = open(path, O_WRONLY);

    REQUIRE(fd >= 0);
    REQUIRE_EQ((ssize_t)text.size(), write(fd, text.data(), text.size()));
    close(fd);
}

class test_device_room : public device::test {
protected:
    /** Whether this machine lets processes mount what only they see. */
    bool can_mount()
    {
        pid_t pid = fork();
        int status;

        if (pid == 0) {
            _exit(!try_mount(dir(), 4096));
        }
        return (waitpid(pid, &status, 0) == pid) && (status == 0);
    }

    /** The instance's directory is a file system of @a size bytes from here
     *  on, for this process. */
    static bool try_mount(const std::string &dir, size_t size)
    {
        std::string options = "mode=700,size=" + std::to_string(size);
        uid_t uid           = geteuid();
        gid_t gid           = getegid();

        if (uid == 0) {
            if ((unshare(CLONE_NEWNS) != 0)) {
                return false;
            }
        } else {
            if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
                return false;
            }
            write_file("/proc/self/setgroups", "deny");
            write_file("/proc/self/uid_map", std::to_string(uid) + " " +
                                             std::to_string(uid) + " 1");
            write_file("/proc/self/gid_map", std::to_string(gid) + " " +
                                             std::to_string(gid) + " 1");
        }

        return (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) ==
                0) &&
               (mount("none", dir.c_str(), "tmpfs", 0, options.c_str()) == 0);
    }

    /** Bytes the store takes once a device is open. */
    static size_t used(const std::string &dir)
    {
        struct stat st;

        REQUIRE_EQ(0, ::stat((dir + "/store").c_str(), &st));
        return st.st_blocks * 512;
    }

    static int try_open()
    {
        ibv_device **list = ibv_get_device_list(nullptr);
        ibv_context *ctx;
        int error;

        REQUIRE(list != nullptr);
        REQUIRE(list[0] != nullptr);
        errno = 0;
        ctx   = ibv_open_device(list[0]);
        error = errno;
        if (ctx != nullptr) {
            REQUIRE_EQ(0, ibv_close_device(ctx));
            error = 0;
        }
        ibv_free_device_list(list);
        return error;
    }

    /** Fill what is left of the file system. */
    static void fill(const std::string &dir)
    {
        int fd = open((dir + "/filler").c_str(), O_WRONLY | O_CREAT, 0600);
        std::string page(4096, 'x');

        REQUIRE(fd >= 0);
        while (write(fd, page.data(), page.size()) > 0) {
        }
        REQUIRE_EQ(ENOSPC, errno);
        close(fd);
    }
};

} // namespace

TEST_F(test_device_room, opening_a_device_fails_where_its_store_has_no_room)
{
    if (!can_mount()) {
        GTEST_SKIP() << "no file system of our own: unshare or mount refused";
    }

    catch_errors();
    run(1, [&](rank &) {
        REQUIRE(try_mount(dir(), 4 << 20));
        /* makes the instance */
        REQUIRE_EQ(0, access("/sys/class/infiniband/mlx5_0", F_OK));
        fill(dir());
        REQUIRE_EQ(ENOSPC, try_open());
        /* and can be had once there is room */
        REQUIRE_EQ(0, unlink((dir() + "/filler").c_str()));
        REQUIRE_EQ(0, try_open());
    });
    EXPECT_NE(std::string::npos, errors().find("has no room")) << errors();
}

/* Objects are made until there is no room. That is ENOSPC, which no limit of
 * the device is, and all that there are go on working. */
TEST_F(test_device_room, objects_that_have_no_room_are_refused)
{
    if (!can_mount()) {
        GTEST_SKIP() << "no file system of our own: unshare or mount refused";
    }

    catch_errors();
    run(1, [&](rank &) {
        std::vector<ibv_cq*> many;
        ibv_cq *made;

        REQUIRE(try_mount(dir(), 2 << 20));
        {
            loop l;

            REQUIRE(used(dir()) < (2 << 20));
            fill(dir());
            for (;;) {
                made = ibv_create_cq(l.c.ctx, 1, nullptr, nullptr, 0);
                if (made == nullptr) {
                    REQUIRE_EQ(ENOSPC, errno);
                    break;
                }
                many.push_back(made);
                REQUIRE(many.size() < 60000);
            }
            /* a page holds some */
            REQUIRE(many.size() < 1000);

            send_wr wr(IBV_WR_RDMA_WRITE, 7, {l.mem.sge(0, 64)});
            l.a.send(wr.to(l.to_b));
            REQUIRE_EQ(7u, l.scq.good().wr_id);

            /* whatever is free is found again */
            if (!many.empty()) {
                REQUIRE_EQ(0, ibv_destroy_cq(many.back()));
                many.back() = ibv_create_cq(l.c.ctx, 1, nullptr, nullptr, 0);
                REQUIRE(many.back() != nullptr);
            }
            for (ibv_cq *q : many) {
                REQUIRE_EQ(0, ibv_destroy_cq(q));
            }
        }
        REQUIRE_EQ(0, umount2(dir().c_str(), MNT_DETACH));
    });
    EXPECT_NE(std::string::npos, errors().find("has no room")) << errors();
}

TEST_F(test_device_room, a_limit_on_files_is_an_error_and_no_signal)
{
    catch_errors();
    run(1, [&](rank &) {
        struct rlimit limit = {16 << 20, 16 << 20};

        REQUIRE_EQ(0, setrlimit(RLIMIT_FSIZE, &limit));
        REQUIRE_EQ(EFBIG, try_open());
    });
    EXPECT_NE(std::string::npos, errors().find("ulimit -f")) << errors();
}

TEST_F(test_device_room, a_limit_below_any_file_is_an_error_and_no_signal)
{
    run(1, [&](rank &) {
        struct rlimit limit = {16, 16};
        char text[1024]     = "";
        int fds[2];

        /* standard error may be a file, too */
        REQUIRE_EQ(0, pipe(fds));
        REQUIRE_EQ(STDERR_FILENO, dup2(fds[1], STDERR_FILENO));
        REQUIRE_EQ(0, setrlimit(RLIMIT_FSIZE, &limit));
        REQUIRE_EQ(-1, access("/sys/class/infiniband/mlx5_0", F_OK));
        REQUIRE(read(fds[0], text, sizeof(text) - 1) > 0);
        REQUIRE(strstr(text, "of 16 bytes; raise 'ulimit -f'") != nullptr);
    });
}
