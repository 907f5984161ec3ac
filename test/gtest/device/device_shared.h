/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_TEST_DEVICE_SHARED_H_
#define MLX5SIM_TEST_DEVICE_SHARED_H_

/*
 * What of a process is in memory that its peers map.
 */

#include <device/device.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <list>
#include <sstream>

#include <dirent.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace device {
namespace shared {

const int num_cqes = 64; /* of 64 bytes: a page */

/** A line of /proc/self/maps. */
struct mapping {
    uint64_t    lo, hi;
    std::string perms;
    uint64_t    inode;
    std::string name;

    bool is_shared() const
    {
        return name.find("memfd:mlx5sim-shared") != std::string::npos;
    }
};

inline std::list<mapping> mappings()
{
    std::ifstream file("/proc/self/maps");
    std::list<mapping> all;
    std::string line;

    while (std::getline(file, line)) {
        std::istringstream words(line);
        mapping m = {};
        std::string skip;
        char dash;

        words >> std::hex >> m.lo >> dash >> m.hi >> m.perms >> skip >> skip >>
                std::dec >> m.inode >> m.name;
        all.push_back(m);
    }
    return all;
}

inline mapping mapping_at(const void *addr)
{
    for (const mapping &m : mappings()) {
        if (((uintptr_t)addr >= m.lo) && ((uintptr_t)addr < m.hi)) {
            return m;
        }
    }
    return mapping();
}

inline unsigned count_shared()
{
    unsigned count = 0;

    for (const mapping &m : mappings()) {
        count += m.is_shared() ? (m.hi - m.lo) / 4096 : 0;
    }
    return count;
}

/** Descriptor of the file in which the queues of this process are. */
inline int shared_fd()
{
    DIR *dir = opendir("/proc/self/fd");
    int fd   = -1;

    while (dirent *entry = readdir(dir)) {
        std::string path = std::string("/proc/self/fd/") + entry->d_name;
        char target[256] = {};

        if ((readlink(path.c_str(), target, sizeof(target) - 1) > 0) &&
            (strstr(target, "memfd:mlx5sim-shared") != nullptr)) {
            fd = atoi(entry->d_name);
        }
    }
    closedir(dir);
    return fd;
}

/** Pages that nobody has touched, registered. */
struct region {
    region(context &c, size_t pages, void *at = nullptr) :
        size(pages * 4096),
        data((uint8_t*)mmap(at, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS |
                            (at ? MAP_FIXED : 0), -1, 0))
    {
        REQUIRE(data != MAP_FAILED);
        reg(c);
    }

    ~region()
    {
        REQUIRE_EQ(0, ibv_dereg_mr(mr));
        munmap(data, size);
    }

    region(const region&) = delete;

    void reg(context &c)
    {
        mr = ibv_reg_mr(c.pd, data, size, all_access);
        REQUIRE(mr != nullptr);
    }

    address addr() const
    {
        address a = {};

        a.addr = (uintptr_t)data;
        a.rkey = mr->rkey;
        return a;
    }

    size_t  size;
    uint8_t *data;
    ibv_mr  *mr;
};

/** A write of what fits into a work request, and of what does not. */
inline void write_to(side &s, const address &to, size_t offset, unsigned length,
                     uint64_t seed)
{
    send_wr wr(IBV_WR_RDMA_WRITE, seed, {s.mem.sge(0, length)},
               IBV_SEND_SIGNALED | ((length <= 64) ? IBV_SEND_INLINE : 0));

    pattern::fill(s.mem.data, length, seed);
    s.q.send(wr.to(to, offset));
    REQUIRE_EQ(seed, s.scq.good().wr_id);
}

/** Whether pages that nobody has touched can be kept so for a moment: by system
 *  calls, too, or for user space only. */
inline bool can_guard(bool is_for_user = false)
{
    const int only = 1; /* UFFD_USER_MODE_ONLY */
    int fd = syscall(SYS_userfaultfd, O_CLOEXEC | (is_for_user ? only : 0));

    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0;
}

/** No descriptor is free while this is there. */
struct no_descriptors {
    no_descriptors()
    {
        rlimit less;

        REQUIRE_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
        less          = limit;
        less.rlim_cur = 3;
        REQUIRE_EQ(0, setrlimit(RLIMIT_NOFILE, &less));
        REQUIRE_EQ(-1, open("/dev/null", O_RDONLY));
    }

    ~no_descriptors()
    {
        setrlimit(RLIMIT_NOFILE, &limit);
    }

    rlimit limit;
};

/** No call of that number from now on, as a container may have it. */
inline void refuse(int call)
{
    sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
    };
    sock_fprog program = {sizeof(code) / sizeof(*code), code};

    REQUIRE_EQ(0, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    REQUIRE_EQ(0, prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

/** Queues of this process are. */
class test_device_shared : public device::test {
protected:
    void SetUp() override
    {
        device::test::SetUp();
        set_env("MLX5SIM_SHARE", "queues");
    }
};

} // namespace shared
} // namespace device

#endif
