/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Memory regions that are mappings of their own, in shared memory: which are,
 * and that the program notices nothing of it. What holds for all shared memory
 * is in test_device_shared.cc.
 */

#include <device/device_shared.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace device;
using namespace device::shared;

namespace {

const size_t page = 4096;

bool is_shared(const void *addr)
{
    return mapping_at(addr).is_shared();
}

/* The file in which mappings of this process are */
struct stat shared_file()
{
    struct stat st = {};

    (void)fstat(shared_fd(), &st);
    return st;
}

/* Memory that it takes */
size_t file_size()
{
    return shared_file().st_blocks * 512;
}

/* Whether something of a file is mapped */
bool has_mapped(uint64_t inode)
{
    std::ifstream file("/proc/self/maps");
    std::string line;

    while (std::getline(file, line)) {
        if (line.find(" " + std::to_string(inode) + " ") !=
            std::string::npos) {
            return true;
        }
    }
    return false;
}

uint8_t *map(size_t length, int flags = 0, void *at = nullptr,
             int protection = PROT_READ | PROT_WRITE)
{
    void *data = mmap(at, length, protection,
                      MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

    REQUIRE(data != MAP_FAILED);
    return (uint8_t*)data;
}

ibv_mr *reg(context &c, void *data, size_t length, unsigned access = all_access)
{
    ibv_mr *mr = ibv_reg_mr(c.pd, data, length, access);

    REQUIRE(mr != nullptr);
    return mr;
}

/* Whether memory is shared when it is registered; it is not any more then */
bool is_taken(context &c, void *data, size_t length)
{
    ibv_mr *mr  = reg(c, data, length);
    bool result = is_shared(data);

    REQUIRE_EQ(0, ibv_dereg_mr(mr));
    return result;
}

address address_of(const ibv_mr *mr)
{
    address a = {};

    a.addr = (uintptr_t)mr->addr;
    a.rkey = mr->rkey;
    return a;
}

/* userfaultfd() is for user space only then (userfaultfd(2)) */
void be_ordinary()
{
    __user_cap_header_struct header  = {_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2];
    const unsigned cap               = CAP_SYS_PTRACE;

    REQUIRE_EQ(0, syscall(SYS_capget, &header, data));
    data[0].effective &= ~(1u << cap);
    REQUIRE_EQ(0, syscall(SYS_capset, &header, data));
}

/* Programs that have called ibv_fork_init(), as UCX does */
class test_device_mapping : public device::test {
protected:
    void SetUp() override
    {
        device::test::SetUp();
        if (!can_guard()) {
            GTEST_SKIP() << "userfaultfd() is not allowed here";
        }
        SKIP_WITHOUT_MMAP_HOOK();
        set_env("MLX5SIM_SHARE", "mappings");
        set_env("RDMAV_FORK_SAFE", "1"); /* libibverbs calls it */
    }
};

} // namespace


TEST_F(test_device_mapping, all_of_one_is)
{
    run(2, [](rank &r) {
        side s(r);
        const unsigned lengths[] = {1, 8, 64, 5000};
        uint8_t *data            = map(4 * page);
        ibv_mr *mr               = reg(s.c, data, 4 * page);
        address to;

        REQUIRE(is_shared(data));
        REQUIRE(is_shared(data + 3 * page));
        r.publish(address_of(mr));
        r.barrier();
        to = r.lookup<address>(1);
        for (unsigned length : lengths) {
            if (r.index == 0) {
                write_to(s, to, page - 1, length, length);
            }
            r.barrier();
            if (r.index == 1) {
                REQUIRE_EQ(length, pattern::check(data + page - 1, length,
                                                  length));
            }
            r.barrier();
        }
        REQUIRE_EQ(0, ibv_dereg_mr(mr));
    });
}

/* The rest of its last page is nobody else's */
TEST_F(test_device_mapping, its_end_may_be_in_a_page)
{
    run(1, [](rank&) {
        context c;
        uint8_t *data = map(page + 100);

        REQUIRE(is_taken(c, data, page + 100));
        REQUIRE(is_shared(data + page));
        data = map(8);
        REQUIRE(is_taken(c, data, 8));
    });
}

TEST_F(test_device_mapping, a_part_of_one_is_not)
{
    run(1, [](rank&) {
        context c;

        REQUIRE(!is_taken(c, map(4 * page), 3 * page));
        REQUIRE(!is_taken(c, map(4 * page) + page, 3 * page));
        REQUIRE(!is_taken(c, map(4 * page) + 8, 4 * page - 8));
    });

    /* nor if the program has said of all of it that children have none */
    run(1, [](rank&) {
        REQUIRE_EQ(0, unsetenv("RDMAV_FORK_SAFE"));

        context c;
        uint8_t *data = map(4 * page);

        REQUIRE_EQ(0, madvise(data, 4 * page, MADV_DONTFORK));
        REQUIRE(!is_taken(c, data, 3 * page));
    });
}

/* Two that the kernel has made one of */
TEST_F(test_device_mapping, two_are_not)
{
    run(1, [](rank&) {
        context c;
        uint8_t *room = map(4 * page, 0, nullptr, PROT_NONE);

        REQUIRE_EQ(0, munmap(room, 4 * page));
        REQUIRE(map(2 * page, 0, room) == room);
        REQUIRE(map(2 * page, 0, room + 2 * page) == room + 2 * page);
        REQUIRE(!is_taken(c, room, 4 * page));
    });
}

TEST_F(test_device_mapping, memory_of_malloc_is_not)
{
    run(1, [](rank&) {
        context c;
        void *data;

        for (size_t length : {page, 16 * page, 256 * page}) {
            REQUIRE_EQ(0, posix_memalign(&data, page, length));
            REQUIRE(!is_taken(c, data, length));
            free(data);
            data = malloc(length);
            REQUIRE(!is_taken(c, data, length));
            free(data);
        }
    });
}

/* As of an allocator that is told to make room */
TEST_F(test_device_mapping, other_ways_to_map_do_not_count)
{
    run(1, [](rank&) {
        context c;
        uint8_t *room = map(4 * page, 0, nullptr, PROT_NONE);

        for (int flags : {MAP_FIXED, MAP_NORESERVE, MAP_STACK, MAP_GROWSDOWN,
                          MAP_POPULATE, MAP_LOCKED}) {
            uint8_t *data = map(4 * page, flags,
                                (flags == MAP_FIXED) ? room : nullptr);

            REQUIRE(!is_taken(c, data, 4 * page));
        }
        room = map(4 * page, 0, nullptr, PROT_NONE);
        REQUIRE_EQ(0, mprotect(room, 4 * page, PROT_READ | PROT_WRITE));
        REQUIRE(!is_taken(c, room, 4 * page));
    });
}

TEST_F(test_device_mapping, one_that_was_touched_is_not)
{
    run(1, [](rank&) {
        context c;
        uint8_t *data = map(4 * page);

        data[3 * page] = 1;
        REQUIRE(!is_taken(c, data, 4 * page));
        REQUIRE_EQ(1, data[3 * page]);
    });
}

/* Of the pages that are unmapped, others may be in use by then */
TEST_F(test_device_mapping, one_that_has_been_cut_is_not)
{
    run(1, [](rank&) {
        context c;
        uint8_t *data = map(4 * page);

        REQUIRE_EQ(0, munmap(data + page, page));
        REQUIRE(map(page, MAP_FIXED, data + page) == data + page);
        REQUIRE(!is_taken(c, data, 4 * page));

        data = map(4 * page);
        REQUIRE_EQ(0, munmap(data + 3 * page, page));
        REQUIRE(!is_taken(c, data, 3 * page));

        data = map(4 * page);
        REQUIRE(map(page, MAP_FIXED, data + 3 * page) == data + 3 * page);
        REQUIRE(!is_taken(c, data, 4 * page));

        /* what comes there unseen, as an allocator's may, is another one */
        data = map(4 * page);
        REQUIRE_EQ(0, munmap(data, 4 * page));
        REQUIRE(syscall(SYS_mmap, data, 4 * page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
                (long)data);
        REQUIRE(!is_taken(c, data, 4 * page));
    });
}

TEST_F(test_device_mapping, one_that_was_moved_is_not)
{
    run(1, [](rank&) {
        context c;
        uint8_t *data = map(4 * page);
        uint8_t *room = map(8 * page);
        void *to      = mremap(data, 4 * page, 4 * page,
                               MREMAP_MAYMOVE | MREMAP_FIXED, room);

        REQUIRE(to == room);
        REQUIRE(!is_taken(c, room, 8 * page));
        REQUIRE(map(4 * page, MAP_FIXED, data) == data);
        REQUIRE(!is_taken(c, data, 4 * page));
    });
}

/* What they set would be lost */
TEST_F(test_device_mapping, one_with_properties_is_not)
{
    run(1, [](rank&) {
        context c;
        uint8_t *data;

        for (int advice : {MADV_WIPEONFORK, MADV_DONTDUMP, MADV_HUGEPAGE,
                           MADV_RANDOM, MADV_DONTNEED}) {
            data = map(4 * page);
            if (madvise(data + page, page, advice) == 0) {
                REQUIRE(!is_taken(c, data, 4 * page));
            }
        }

        data = map(4 * page);
        if (mlock(data, page) == 0) {
            REQUIRE(!is_taken(c, data, 4 * page));
        }
        data = map(4 * page);
        if (mlock2(data, 4 * page, MLOCK_ONFAULT) == 0) {
            REQUIRE(!is_taken(c, data, 4 * page));
        }
        data = map(4 * page);
        if (pkey_mprotect(data, 4 * page, PROT_READ | PROT_WRITE, 0) == 0) {
            REQUIRE(!is_taken(c, data, 4 * page));
        }
        data = map(4 * page);
        if (mlockall(MCL_CURRENT | 4 /* MCL_ONFAULT */) == 0) {
            REQUIRE(!is_taken(c, data, 4 * page));
            REQUIRE_EQ(0, munlockall());
        }
    });
}

TEST_F(test_device_mapping, one_that_is_bound_to_a_node_is_not)
{
    run(1, [](rank&) {
        context c;
        uint8_t *data      = map(4 * page);
        unsigned long node = 1;

        if (syscall(SYS_mbind, data + page, page, 1 /* MPOL_PREFERRED */,
                    &node, 64, 0) == 0) {
            REQUIRE(!is_taken(c, data, 4 * page));
        }
    });
}

/* Nor one that is protected */
TEST_F(test_device_mapping, one_with_a_guard_page_is_not)
{
    run(1, [](rank&) {
        context c;
        uint8_t *data = map(4 * page);

        REQUIRE_EQ(0, mprotect(data, page, PROT_NONE));
        REQUIRE(ibv_reg_mr(c.pd, data, 4 * page, all_access) == nullptr);
        REQUIRE(!is_shared(data));
        REQUIRE(!is_taken(c, data + page, 3 * page));
    });
}

TEST_F(test_device_mapping, one_for_reading_or_on_demand_is_not)
{
    run(1, [](rank&) {
        context c;
        uint8_t *data = map(4 * page);
        ibv_mr *mr    = reg(c, data, 4 * page, 0);

        REQUIRE(!is_shared(data));
        REQUIRE(!is_taken(c, data, 4 * page)); /* pinned, and so touched */
        REQUIRE_EQ(0, ibv_dereg_mr(mr));

        data = map(4 * page);
        mr   = ibv_reg_mr(c.pd, data, 4 * page,
                          all_access | IBV_ACCESS_ON_DEMAND);
        if (mr != nullptr) {
            REQUIRE(!is_shared(data));
            REQUIRE_EQ(0, ibv_dereg_mr(mr));
        }
    });
}

/* In parts, in several regions at once, after it was none */
TEST_F(test_device_mapping, it_stays_shared_until_it_is_unmapped)
{
    run(2, [](rank &r) {
        side s(r);
        uint8_t *data = map(4 * page);
        ibv_mr *mr    = reg(s.c, data, 4 * page);
        ibv_mr *part  = reg(s.c, data + page, 2 * page);
        address to;

        REQUIRE_EQ(0, ibv_dereg_mr(mr));
        REQUIRE(is_shared(data));
        data[page] = 7;
        r.publish(address_of(part));
        r.barrier();
        to = r.lookup<address>(1);
        if (r.index == 0) {
            write_to(s, to, 8, 8, 1);
        }
        r.barrier();
        if (r.index == 1) {
            REQUIRE_EQ(8, pattern::check(data + page + 8, 8, 1));
        }
        REQUIRE_EQ(7, data[page]);
        REQUIRE_EQ(0, ibv_dereg_mr(part));
        mr = reg(s.c, data, 4 * page);
        REQUIRE(is_shared(data));
        REQUIRE_EQ(7, data[page]);
        REQUIRE_EQ(0, ibv_dereg_mr(mr));
        REQUIRE_EQ(0, munmap(data, 4 * page));
        REQUIRE(map(4 * page, MAP_FIXED, data) == data);
        REQUIRE_EQ(0, data[page]);
        r.barrier();
    });
}

TEST_F(test_device_mapping, its_pages_are_given_back_when_it_is_unmapped)
{
    run(1, [](rank&) {
        context c;
        uint8_t *data = map(64 * page);
        ibv_mr *mr    = reg(c, data, 64 * page);
        size_t before;

        memset(data, 1, 64 * page);
        REQUIRE_EQ(0, ibv_dereg_mr(mr));
        before = file_size();
        REQUIRE(before >= 64 * page);
        REQUIRE_EQ(0, munmap(data + 8 * page, 8 * page));
        REQUIRE_EQ(before - 8 * page, file_size());
        REQUIRE_EQ(1, data[16 * page]);
        REQUIRE_EQ(0, munmap(data, 64 * page));
        REQUIRE_EQ(before - 64 * page, file_size());
    });
}

TEST_F(test_device_mapping, one_that_is_unmapped_too_early_is_missed)
{
    catch_errors();
    run(2, [](rank &r) {
        side s(r);
        uint8_t *data = map(2 * page);
        ibv_mr *mr    = reg(s.c, data, 2 * page);

        r.publish(address_of(mr));
        r.barrier();
        if (r.index == 0) {
            send_wr wr(IBV_WR_RDMA_WRITE, 1, {s.mem.sge(0, 8)},
                       IBV_SEND_SIGNALED | IBV_SEND_INLINE);
            address to = r.lookup<address>(1);

            s.q.send(wr.to(to, 0));
            s.scq.good();
            r.barrier();
            r.barrier();
            s.q.send(wr.to(to, 0));
            REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, s.scq.next().status);
        } else {
            r.barrier();
            REQUIRE_EQ(0, munmap(data, page));
            r.barrier();
        }
        r.barrier();
        REQUIRE_EQ(0, ibv_dereg_mr(mr));
    });
    EXPECT_NE(std::string::npos, errors().find("is gone: it was unmapped"))
            << errors();
}

/* Memory of a process that has ended is kept until another one is written to */
TEST_F(test_device_mapping, those_of_the_dead_are_given_up)
{
    run(3, [](rank &r) {
        struct mail {
            address  to[2]; /* of peers 1 and 2 */
            uint64_t inode;
            pid_t    pid;
        } mine, peer[2];
        context c;
        memory mem(c, 1 << 16);
        cq queue(c, 64);
        qp one(c, queue, queue), two(c, queue, queue);
        uint8_t *data = map(page);
        ibv_mr *mr    = reg(c, data, page);

        mine.to[0]   = one.addr(&mem);
        mine.to[1]   = two.addr(&mem);
        mine.inode   = shared_file().st_ino;
        mine.pid     = getpid();
        if (r.index > 0) {
            mine.to[0].addr = (uintptr_t)data;
            mine.to[0].rkey = mr->rkey;
        }
        r.publish(mine);
        if (r.index > 0) {
            one.connect(r.lookup<mail>(0).to[r.index - 1]);
            r.barrier();
            r.wait_word(0, r.index);
            _exit(0);
        }

        peer[0] = r.lookup<mail>(1);
        peer[1] = r.lookup<mail>(2);
        one.connect(peer[0].to[0]);
        two.connect(peer[1].to[0]);
        r.barrier();
        for (qp *q : {&one, &two}) {
            send_wr wr(IBV_WR_RDMA_WRITE, 1, {mem.sge(0, 8)},
                       IBV_SEND_SIGNALED | IBV_SEND_INLINE);
            const mail &m = peer[q == &two];

            q->send(wr.to(m.to[0], 0));
            queue.good();
            REQUIRE(has_mapped(m.inode));
            r.word(0) = 1 + (q == &two);
            while (std::ifstream("/proc/" + std::to_string(m.pid) +
                                 "/maps").get() >= 0) {
                usleep(1000);
            }
        }
        REQUIRE(!has_mapped(peer[0].inode));
        REQUIRE_EQ(0, ibv_dereg_mr(mr));
    });
}

TEST_F(test_device_mapping, threads_register_at_once)
{
    run(1, [](rank&) {
        context c;

        for (int i = 0; i < 50; ++i) {
            uint8_t *data = map(4 * page);
            ibv_mr *one   = nullptr;
            std::thread other([&]() { one = reg(c, data, 4 * page); });
            ibv_mr *two   = reg(c, data, 4 * page);

            other.join();
            REQUIRE(one != nullptr);
            data[i] = 1;
            REQUIRE_EQ(0, ibv_dereg_mr(one));
            REQUIRE_EQ(0, ibv_dereg_mr(two));
            REQUIRE_EQ(1, data[i]);
            REQUIRE_EQ(0, munmap(data, 4 * page));
        }
    });
}

/* A program that has not called ibv_fork_init() */
TEST_F(test_device_mapping, one_that_children_have_is_not)
{
    run(1, [](rank&) {
        REQUIRE_EQ(0, unsetenv("RDMAV_FORK_SAFE"));

        context c;

        REQUIRE(!is_taken(c, map(4 * page), 4 * page));
    });
}

TEST_F(test_device_mapping, one_of_mmap64_is)
{
    run(1, [](rank&) {
        context c;
        void *data = mmap64(nullptr, 4 * page, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        uint8_t *other;

        REQUIRE(data != MAP_FAILED);
        REQUIRE(is_taken(c, data, 4 * page));
        other = map(4 * page);
        REQUIRE(mmap64(other, page, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
                other);
        REQUIRE(!is_taken(c, other, 4 * page));
    });
}

/* Each region would take milliseconds */
TEST_F(test_device_mapping, one_of_thousands_is_not)
{
    run(1, [](rank&) {
        context c;
        uint8_t *data    = map(4 * page);
        uint8_t *other   = map(4 * page);
        uint8_t *between = map(6000 * page);

        REQUIRE(is_taken(c, data, 4 * page));
        REQUIRE(between < other);
        for (int i = 0; i < 3000; ++i) {
            REQUIRE_EQ(0, mprotect(between + 2 * i * page, page, PROT_READ));
        }
        REQUIRE(!is_taken(c, other, 4 * page));
        REQUIRE_EQ(0, munmap(between, 6000 * page));
        REQUIRE(!is_taken(c, map(4 * page), 4 * page));
        data[page] = 7;
        REQUIRE(is_taken(c, data, 4 * page));
        REQUIRE_EQ(7, data[page]);
    });
}

/* Whichever call it is that the filter is for: that can't be known */
TEST_F(test_device_mapping, one_behind_a_filter_is_not)
{
    run(1, [](rank&) {
        context c;

        refuse(SYS_swapoff);
        REQUIRE(!is_taken(c, map(4 * page), 4 * page));
    });
}

/* Without privilege a system call that touches what is being replaced would
 * fail */
TEST_F(test_device_mapping, ordinary_users_have_none)
{
    for (const char *share : {"mappings", "memory"}) {
        set_env("MLX5SIM_SHARE", share);
        run(1, [=](rank&) {
            context c;
            uint8_t *data = map(4 * page);

            be_ordinary();
            ibv_mr *mr = reg(c, data, 4 * page);
            REQUIRE_EQ(!strcmp(share, "memory"), is_shared(data));
            REQUIRE_EQ(0, ibv_dereg_mr(mr));
        });
    }
}

/* It is waited for when memory is pinned */
TEST_F(test_device_mapping, threads_register_parts_at_once)
{
    set_env("MLX5SIM_SHARE", "memory");
    run(1, [](rank&) {
        context c;

        be_ordinary();
        for (int i = 0; i < 600; ++i) {
            uint8_t *data = map(4 * page);
            std::atomic<int> go(0);
            ibv_mr *one = nullptr;
            std::thread other([&]() {
                go  = 1;
                one = reg(c, data, 4 * page);
            });
            while (go == 0) {
            }
            /* at some time of the half millisecond that the other one takes */
            auto then = std::chrono::steady_clock::now() +
                        std::chrono::microseconds(i % 120 * 4);
            while (std::chrono::steady_clock::now() < then) {
            }
            /* for reading: it is not to be shared, and just pinned */
            ibv_mr *two = reg(c, data + page, page, 0);

            other.join();
            REQUIRE_EQ(0, ibv_dereg_mr(one));
            REQUIRE_EQ(0, ibv_dereg_mr(two));
            REQUIRE_EQ(0, munmap(data, 4 * page));
        }
    });
}

/* The region has gone, and children are to have the memory again */
TEST_F(test_device_mapping, a_child_has_a_copy_of_what_was_written)
{
    run(1, [](rank &r) {
        const size_t length = 2048 * page;
        context c;
        uint8_t *data = map(length);
        ibv_mr *mr    = reg(c, data, length);
        int status;

        REQUIRE(is_shared(data));
        for (size_t i : {0ul, 7 * page - 1, 1024 * page, length - 1}) {
            data[i] = 0x5a;
        }
        REQUIRE_EQ(0, ibv_dereg_mr(mr));
        REQUIRE(is_shared(data));
        pid_t pid = fork();
        if (pid == 0) {
            size_t sum = 0;

            r.wait_word(0, 1);
            for (size_t i = 0; i < length; ++i) {
                sum += data[i];
            }
            _exit(((sum == 4 * 0x5a) && (data[7 * page - 1] == 0x5a) &&
                   (data[1024 * page] == 0x5a) && !is_shared(data)) ? 0 : 1);
        }
        REQUIRE(pid > 0);
        memset(data, 0xa5, length);
        r.word(0) = 1;
        REQUIRE_EQ(pid, waitpid(pid, &status, 0));
        REQUIRE_EQ(0, status);
        REQUIRE_EQ(0xa5, data[0]);
    });
}

/* As libibverbs wants it of all that it registers, with ibv_fork_init() */
TEST_F(test_device_mapping, a_child_has_none_if_it_is_not_to_have_it)
{
    run(1, [](rank&) {
        REQUIRE_EQ(0, unsetenv("RDMAV_FORK_SAFE")); /* it is to be had again */

        context c;
        uint8_t *data = map(4 * page);
        uint8_t *part = map(4 * page);
        uint8_t vec[4];
        int status;

        REQUIRE_EQ(0, madvise(data, 4 * page, MADV_DONTFORK));
        REQUIRE(is_taken(c, data, 4 * page));
        REQUIRE(is_shared(data + 3 * page));
        pid_t pid = fork();
        if (pid == 0) {
            _exit((mincore(data, 4 * page, vec) == -1) ? 0 : 1);
        }
        REQUIRE_EQ(pid, waitpid(pid, &status, 0));
        REQUIRE_EQ(0, status);

        /* what the device does not see, too */
        for (int i = 0; i < 2; ++i) {
            REQUIRE_EQ(0, (i == 0) ?
                       syscall(SYS_madvise, data, page, MADV_DOFORK) :
                       madvise(data + page, page, MADV_DOFORK));
            data[i * page] = 1;
            pid            = fork();
            if (pid == 0) {
                _exit(((data[i * page] == 1) && !is_shared(data + i * page) &&
                       (mincore(data + 2 * page, page, vec) == -1)) ? 0 : 1);
            }
            REQUIRE_EQ(pid, waitpid(pid, &status, 0));
            REQUIRE_EQ(0, status);
        }

        REQUIRE_EQ(0, madvise(part, page, MADV_DONTFORK));
        REQUIRE(!is_taken(c, part, 4 * page));
    });
}

/* A mapping of its parent that nobody has touched, in a file of its own */
TEST_F(test_device_mapping, a_child_shares_its_own)
{
    run(1, [](rank&) {
        context c;
        uint8_t *mine   = map(4 * page);
        uint8_t *childs = map(4 * page);
        ibv_mr *mr      = reg(c, mine, 4 * page);
        int status;

        mine[0] = 1;
        REQUIRE_EQ(0, ibv_dereg_mr(mr));
        pid_t pid = fork();
        if (pid == 0) {
            context d;
            bool is_mine = is_taken(d, childs, 4 * page);

            childs[0] = 2;
            _exit((is_mine && (mine[0] == 1) && !is_shared(mine)) ? 0 : 1);
        }
        REQUIRE(pid > 0);
        REQUIRE_EQ(pid, waitpid(pid, &status, 0));
        REQUIRE_EQ(0, status);
        REQUIRE_EQ(0, childs[0]);
    });
}
