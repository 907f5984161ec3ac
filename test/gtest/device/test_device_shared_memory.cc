/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * All memory regions that nobody has touched in shared memory, on request.
 */

#include <device/device_shared.h>

#include <thread>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

using namespace device;
using namespace device::shared;

namespace {

uint8_t *place;

void *give_place(ibv_pd*, void*, size_t, size_t, uint64_t type)
{
    return (type == MLX5DV_RES_TYPE_CQ) ? place : IBV_ALLOCATOR_USE_DEFAULT;
}

void take_place(ibv_pd*, void*, void*, uint64_t)
{
}

class test_device_shared_memory : public test_device_shared {
protected:
    void SetUp() override
    {
        test_device_shared::SetUp();
        if (!can_guard() && !can_guard(true)) {
            GTEST_SKIP() << "userfaultfd() is not allowed here";
        }
        set_env("MLX5SIM_SHARE", "memory");
    }
};

/* No more than 2 MB of addresses are there meanwhile */
struct no_memory {
    no_memory()
    {
        std::ifstream file("/proc/self/statm");
        uint64_t pages;
        rlimit less;

        file >> pages;
        REQUIRE_EQ(0, getrlimit(RLIMIT_AS, &limit));
        less          = limit;
        less.rlim_cur = (pages + 512) * 4096;
        REQUIRE_EQ(0, setrlimit(RLIMIT_AS, &less));
    }

    ~no_memory()
    {
        setrlimit(RLIMIT_AS, &limit);
    }

    rlimit limit;
};

/* Whether a child has what a region had, and it is its own */
bool child_has(const region &mine, uint8_t value)
{
    bool good = mapping_at(mine.data).perms == "rw-p";

    for (size_t i = 0; i < mine.size; ++i) {
        good = good && (mine.data[i] == value);
    }
    memset(mine.data, 0, mine.size);
    return good;
}

} // namespace

TEST_F(test_device_shared_memory, all_that_is_written_is_there)
{
    run(2, [](rank &r) {
        side s(r, qp_options(), 1 << 16, num_cqes - 1);
        region mine(s.c, 16);
        const unsigned lengths[] = {1, 3, 8, 60, 64, 200, 5000};
        unsigned seed = 0;
        address to;

        REQUIRE(mapping_at(mine.data).is_shared());
        REQUIRE(mapping_at(mine.data + 15 * 4096).is_shared());
        r.publish(mine.addr());
        r.barrier();
        if (r.index == 0) {
            to = r.lookup<address>(1);
            for (unsigned offset : {0, 7, 4090, 8000, 16 * 4096 - 5000}) {
                for (unsigned length : lengths) {
                    write_to(s, to, offset, length, ++seed);
                    r.barrier();
                    r.barrier();
                }
            }
            send_wr add(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, {s.mem.sge(0, 8)});
            s.q.send(add.atomic(to, 4096, 5));
            s.scq.good();
            send_wr read(IBV_WR_RDMA_READ, 2, {s.mem.sge(0, 8)});
            s.q.send(read.to(to, 4096));
            s.scq.good();
            REQUIRE_EQ(12, *(uint64_t*)s.mem.data);
        } else {
            for (unsigned offset : {0, 7, 4090, 8000, 16 * 4096 - 5000}) {
                for (unsigned length : lengths) {
                    r.barrier();
                    REQUIRE_EQ(length, pattern::check(mine.data + offset,
                                                      length, ++seed));
                    *(uint64_t*)(mine.data + 4096) = 7;
                    r.barrier();
                }
            }
        }
        r.barrier();
    });
}

TEST_F(test_device_shared_memory, what_was_touched_stays_as_it_is)
{
    run(1, [](rank&) {
        context c;
        uint8_t *data = (uint8_t*)mmap(nullptr, 3 * 4096,
                                       PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        data[2 * 4096] = 1;

        ibv_mr *all  = ibv_reg_mr(c.pd, data, 3 * 4096, all_access);
        REQUIRE(!mapping_at(data).is_shared());
        REQUIRE_EQ(1, data[2 * 4096]);
        /* pinned, and so touched */
        ibv_mr *part = ibv_reg_mr(c.pd, data, 4096, all_access);
        REQUIRE(!mapping_at(data).is_shared());
        REQUIRE_EQ(0, ibv_dereg_mr(all));
        REQUIRE_EQ(0, ibv_dereg_mr(part));
    });
}

TEST_F(test_device_shared_memory, only_whole_pages_are)
{
    run(2, [](rank &r) {
        side s(r, qp_options(), 1 << 16, num_cqes - 1);

        if (r.index == 0) {
            r.barrier();

            address to = r.lookup<address>(1);

            for (unsigned i = 0; i < 3 * 4096; i += 64) {
                write_to(s, to, i, 64, i);
            }
        } else {
            uint8_t *data = (uint8_t*)mmap(nullptr, 4 * 4096,
                                           PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            ibv_mr *mr    = ibv_reg_mr(s.c.pd, data + 100, 3 * 4096,
                                       all_access);
            address to    = {};

            REQUIRE(!mapping_at(data).is_shared());
            REQUIRE(mapping_at(data + 4096).is_shared());
            REQUIRE(mapping_at(data + 2 * 4096).is_shared());
            REQUIRE(!mapping_at(data + 3 * 4096).is_shared());
            to.addr = (uintptr_t)mr->addr;
            to.rkey = mr->rkey;
            r.publish(to);
            r.barrier();
            r.barrier();
            for (unsigned i = 0; i < 3 * 4096; i += 64) {
                REQUIRE_EQ(64, pattern::check(data + 100 + i, 64, i));
            }
            REQUIRE_EQ(0, ibv_dereg_mr(mr));
            r.barrier();
            return;
        }
        r.barrier();
        r.barrier();
    });
}

TEST_F(test_device_shared_memory, it_stays_when_it_is_registered_again)
{
    run(2, [](rank &r) {
        side s(r, qp_options(), 1 << 16, num_cqes - 1);
        region mine(s.c, 4);

        for (unsigned i = 0; i < 3; ++i) {
            REQUIRE(mapping_at(mine.data).is_shared());
            r.publish(mine.addr());
            r.barrier();
            if (r.index == 0) {
                write_to(s, r.lookup<address>(1), i, 8, i);
            }
            r.barrier();
            if (r.index == 1) {
                REQUIRE_EQ(8, pattern::check(mine.data + i, 8, i));
            }
            mine.data[2 * 4096] += i;
            REQUIRE_EQ(0, ibv_dereg_mr(mine.mr));
            mine.reg(s.c);
            REQUIRE_EQ(i * (i + 1) / 2, mine.data[2 * 4096]);
            r.barrier();
        }
    });
}

/* Its peers must not write to where it was */
TEST_F(test_device_shared_memory, the_program_has_mapped_something_else_there)
{
    run(2, [](rank &r) {
        side s(r, qp_options(), 1 << 16, num_cqes - 1);
        auto mine  = std::make_unique<region>(s.c, 4);
        void *data = mine->data;

        if (r.index == 0) {
            r.barrier();
            write_to(s, r.lookup<address>(1), 0, 8, 1);
            r.barrier();
            r.barrier();
            write_to(s, r.lookup<address>(1), 0, 8, 2);
            r.barrier();
        } else {
            r.publish(mine->addr());
            r.barrier();
            r.barrier();
            REQUIRE_EQ(8, pattern::check(data, 8, 1));
            mine.reset();
            mine = std::make_unique<region>(s.c, 4, data);
            REQUIRE(mapping_at(data).is_shared());
            REQUIRE_EQ(0, *(uint64_t*)data);
            REQUIRE_EQ(0, ibv_dereg_mr(mine->mr));
            REQUIRE(mmap(data, 4 * 4096, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED |
                         MAP_POPULATE, -1, 0) == data);
            mine->reg(s.c);
            REQUIRE(!mapping_at(data).is_shared());
            r.publish(mine->addr());
            r.barrier();
            r.barrier();
            REQUIRE_EQ(8, pattern::check(data, 8, 2));
        }
        r.barrier();
    });
}

/* A queue comes to where a region was */
TEST_F(test_device_shared_memory, a_queue_takes_the_place_of_a_region)
{
    run(1, [](rank&) {
        const size_t length = 64 * 4096;
        context c;
        uint8_t *data = (uint8_t*)mmap(nullptr, length, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ibv_mr *mr    = ibv_reg_mr(c.pd, data, length, all_access);

        REQUIRE(mapping_at(data).is_shared());
        REQUIRE_EQ(0, ibv_dereg_mr(mr));
        /* private memory at the same address, of which a queue is made */
        REQUIRE(mmap(data, length, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == data);
        place                              = data;
        ibv_parent_domain_init_attr domain = {};
        domain.pd                          = c.pd;
        domain.comp_mask                   =
                IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
        domain.alloc                       = give_place;
        domain.free                        = take_place;
        ibv_pd *pd                         = ibv_alloc_parent_domain(c.ctx,
                                                                     &domain);
        ibv_cq_init_attr_ex attr           = {};
        attr.cqe                           = num_cqes - 1;
        attr.comp_mask                     = IBV_CQ_INIT_ATTR_MASK_PD;
        attr.parent_domain                 = pd;
        ibv_cq_ex *queue                   = ibv_create_cq_ex(c.ctx, &attr);

        REQUIRE(queue != nullptr);
        REQUIRE(mapping_at(data).is_shared());
        REQUIRE_EQ(0, ibv_destroy_cq(ibv_cq_ex_to_cq(queue)));
        REQUIRE(!mapping_at(data).is_shared());
        REQUIRE_EQ(0, ibv_dealloc_pd(pd));
    });
}

TEST_F(test_device_shared_memory, a_child_has_what_is_left_of_it)
{
    run(1, [](rank &r) {
        context c;
        region mine(c, 8);
        int status;

        memset(mine.data, 0x5a, mine.size);
        munmap(mine.data + 3 * 4096, 5 * 4096);
        pid_t pid = fork();
        if (pid == 0) {
            bool good = !mapping_at(mine.data).is_shared();

            r.wait_word(0, 1);
            for (size_t i = 0; i < 3 * 4096; ++i) {
                good = good && (mine.data[i] == 0x5a);
            }
            memset(mine.data, 0, 3 * 4096);
            _exit(good ? 0 : 1);
        }
        REQUIRE(pid > 0);
        memset(mine.data, 0xa5, 4096);
        r.word(0) = 1;
        REQUIRE_EQ(pid, waitpid(pid, &status, 0));
        REQUIRE_EQ(0, status);
        REQUIRE(mapping_at(mine.data).is_shared());
        REQUIRE_EQ(0xa5, mine.data[0]);
        REQUIRE_EQ(0x5a, mine.data[3 * 4096 - 1]);
    });
}

/* As of private memory: zeros, and then what is written there */
TEST_F(test_device_shared_memory, the_program_discards_it)
{
    run(2, [](rank &r) {
        side s(r, qp_options(), 1 << 16, num_cqes - 1);
        region mine(s.c, 8);

        REQUIRE(mapping_at(mine.data).is_shared());
        r.publish(mine.addr());
        r.barrier();
        for (int advice : {MADV_DONTNEED, MADV_FREE}) {
            if (r.index == 0) {
                write_to(s, r.lookup<address>(1), 3 * 4096, 8, 1);
                r.barrier();
                r.barrier();
                write_to(s, r.lookup<address>(1), 3 * 4096, 8, 2);
            } else {
                memset(mine.data + 6 * 4096, 0x5a, 4096);
                r.barrier();
                REQUIRE_EQ(8, pattern::check(mine.data + 3 * 4096, 8, 1));
                REQUIRE_EQ(0, madvise(mine.data + 2 * 4096, 4 * 4096, advice));
                REQUIRE_EQ(0, *(uint64_t*)(mine.data + 3 * 4096));
                REQUIRE_EQ(0x5a, mine.data[6 * 4096]);
                r.barrier();
            }
            r.barrier();
            if (r.index == 1) {
                REQUIRE_EQ(8, pattern::check(mine.data + 3 * 4096, 8, 2));
            }
            r.barrier();
        }
    });
}

/* Adapters do not see mprotect() */
TEST_F(test_device_shared_memory, the_program_protects_it)
{
    run(2, [](rank &r) {
        side s(r, qp_options(), 1 << 16, num_cqes - 1);
        region mine(s.c, 8);

        REQUIRE(mapping_at(mine.data).is_shared());
        r.publish(mine.addr());
        r.barrier();
        for (int protection : {PROT_READ, PROT_NONE}) {
            REQUIRE_EQ(0, mprotect(mine.data, mine.size, protection));
            r.barrier();
            if (r.index == 0) {
                write_to(s, r.lookup<address>(1), 4090, 8, 1);
                write_to(s, r.lookup<address>(1), 8192, 5000, 2);
                send_wr read(IBV_WR_RDMA_READ, 3, {s.mem.sge(8192, 5000)});
                s.q.send(read.to(r.lookup<address>(1), 8192));
                s.scq.good();
                REQUIRE_EQ(5000, pattern::check(s.mem.data + 8192, 5000, 2));
            }
            r.barrier();
            REQUIRE_EQ(0, mprotect(mine.data, mine.size,
                                   PROT_READ | PROT_WRITE));
            if (r.index == 1) {
                REQUIRE_EQ(8, pattern::check(mine.data + 4090, 8, 1));
                REQUIRE_EQ(5000, pattern::check(mine.data + 8192, 5000, 2));
                memset(mine.data, 0, mine.size);
            }
        }
        r.barrier();
    });
}

TEST_F(test_device_shared_memory, the_program_moves_it)
{
    run(1, [](rank&) {
        context c;
        region one(c, 8), other(c, 8);
        void *data;

        memset(one.data, 0x5a, one.size);
        memset(other.data, 0xa5, other.size);
        REQUIRE_EQ(0, ibv_dereg_mr(one.mr));
        data = mremap(one.data, one.size, 2 * one.size, MREMAP_MAYMOVE);
        REQUIRE(data != MAP_FAILED);
        one.data  = (uint8_t*)data;
        one.size *= 2;
        for (size_t i = 0; i < one.size; ++i) {
            REQUIRE_EQ((i < one.size / 2) ? 0x5a : 0, one.data[i]);
        }
        REQUIRE(!mapping_at(one.data).is_shared());
        REQUIRE_EQ(0xa5, other.data[0]);
        memset(one.data, 0, one.size);
        REQUIRE_EQ(0xa5, other.data[other.size - 1]);
        one.reg(c);
    });
}

/* Of what is left, each part is as before; the rest is fresh */
TEST_F(test_device_shared_memory, the_program_makes_a_hole)
{
    run(1, [](rank&) {
        context c;
        region mine(c, 8);
        uint8_t *hole = mine.data + 3 * 4096;

        memset(mine.data, 0x5a, mine.size);
        munmap(hole, 2 * 4096);
        REQUIRE(mmap(hole, 2 * 4096, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == hole);

        ibv_mr *mr = ibv_reg_mr(c.pd, hole, 2 * 4096, all_access);
        REQUIRE(mr != nullptr);
        REQUIRE_EQ(0, hole[0]);
        REQUIRE_EQ(0, hole[2 * 4096 - 1]);
        REQUIRE_EQ(0x5a, mine.data[3 * 4096 - 1]);
        REQUIRE_EQ(0x5a, mine.data[5 * 4096]);
        REQUIRE_EQ(0, madvise(mine.data + 6 * 4096, 4096, MADV_DONTNEED));
        REQUIRE_EQ(0, mine.data[6 * 4096]);
        REQUIRE_EQ(0x5a, mine.data[7 * 4096]);
        REQUIRE_EQ(0, ibv_dereg_mr(mr));
    });
}

TEST_F(test_device_shared_memory, the_program_discards_odd_parts)
{
    run(1, [](rank&) {
        context c;
        region mine(c, 8);

        memset(mine.data, 0x5a, mine.size);
        REQUIRE_EQ(0, madvise(mine.data, 100, MADV_DONTNEED));
        REQUIRE_EQ(0, mine.data[4095]);
        REQUIRE_EQ(0x5a, mine.data[4096]);
        munmap(mine.data + 3 * 4096, 4096);
        REQUIRE_EQ(-1, madvise(mine.data + 2 * 4096, 3 * 4096, MADV_DONTNEED));
        REQUIRE_EQ(ENOMEM, errno);
        REQUIRE_EQ(0, mine.data[2 * 4096]);
        REQUIRE_EQ(0, mine.data[4 * 4096]);
        close(shared_fd());
        REQUIRE_EQ(0, madvise(mine.data + 5 * 4096, 4096, MADV_DONTNEED));
        REQUIRE_EQ(0, mine.data[5 * 4096]);
        REQUIRE_EQ(0x5a, mine.data[6 * 4096]);
    });
}

/* What can't be looked at is left alone, and what was noted is known */
TEST_F(test_device_shared_memory, no_descriptor_is_free)
{
    run(1, [](rank&) {
        context c;
        region one(c, 8), other(c, 8);
        cq ring(c, num_cqes - 1);

        REQUIRE_EQ(0, ibv_dereg_mr(one.mr));
        memset(one.data, 0x5a, one.size);
        memset(other.data, 0xa5, other.size);
        {
            no_descriptors full;

            one.reg(c);
            madvise(one.data, 4096, MADV_DONTNEED);
        }
        REQUIRE_EQ(0, one.data[0]);
        REQUIRE_EQ(0x5a, one.data[4096]);
        REQUIRE_EQ(0xa5, other.data[0]);
        REQUIRE_EQ(0xa5, other.data[other.size - 1]);
        REQUIRE(mapping_at(ring.direct().buf).is_shared());
    });
}

/* Nor can it be found out then what there is to copy */
TEST_F(test_device_shared_memory, a_child_has_a_copy_without_descriptors)
{
    run(1, [](rank &r) {
        context c;
        region mine(c, 8);
        int status;
        pid_t pid;

        memset(mine.data, 0x5a, mine.size);
        {
            no_descriptors full;

            pid = fork();
            if (pid == 0) {
                r.wait_word(0, 1);
                setrlimit(RLIMIT_NOFILE, &full.limit);
                _exit(child_has(mine, 0x5a) ? 0 : 1);
            }
        }
        memset(mine.data, 0xa5, mine.size);
        r.word(0) = 1;
        REQUIRE_EQ(pid, waitpid(pid, &status, 0));
        REQUIRE_EQ(0, status);
        REQUIRE_EQ(0xa5, mine.data[0]);
    });
}

/* One of the second region, and not of the first: it is made when somebody
 * writes, in either process */
TEST_F(test_device_shared_memory, a_child_has_no_room_for_a_copy)
{
    SKIP_WITHOUT_MMAP_HOOK();
    catch_errors();
    run(1, [](rank&) {
        context c;
        region large(c, 4096), small(c, 8);
        int status;

        memset(large.data, 0x5a, large.size);
        memset(small.data, 0x5a, small.size);
        {
            no_memory full;
            pid_t pid = fork();

            if (pid == 0) {
                bool good = child_has(large, 0x5a) && child_has(small, 0x5a);

                _exit(good ? 0 : 1);
            }
            REQUIRE_EQ(pid, waitpid(pid, &status, 0));
        }
        REQUIRE_EQ(0, status);
        REQUIRE_EQ(0x5a, large.data[0]);
        REQUIRE_EQ(0x5a, small.data[0]);
    });
    EXPECT_NE(std::string::npos, errors().find("16777216 bytes")) << errors();
    EXPECT_NE(std::string::npos, errors().find("it may see")) << errors();
}

/* Nothing is better than what is its parent's */
TEST_F(test_device_shared_memory, a_child_has_neither_room_nor_a_file)
{
    SKIP_WITHOUT_MMAP_HOOK();
    catch_errors();
    run(1, [](rank&) {
        context c;
        region mine(c, 4096);
        uint8_t is_present;
        int status;

        memset(mine.data, 0x5a, mine.size);
        REQUIRE_EQ(0, close(shared_fd()));
        {
            no_memory full;
            pid_t pid = fork();

            if (pid == 0) {
                _exit((mincore(mine.data, 4096, &is_present) == -1) ? 0 : 1);
            }
            REQUIRE_EQ(pid, waitpid(pid, &status, 0));
        }
        REQUIRE_EQ(0, status);
        REQUIRE_EQ(0x5a, mine.data[0]);
    });
    EXPECT_NE(std::string::npos, errors().find("nothing is there")) << errors();
}

/* The region stays registered, and is written to where it is */
TEST_F(test_device_shared_memory, the_program_fails_to_move_it)
{
    run(2, [](rank &r) {
        side s(r, qp_options(), 1 << 16, num_cqes - 1);
        region mine(s.c, 16);

        REQUIRE(mapping_at(mine.data).is_shared());
        r.publish(mine.addr());
        r.barrier();
        if (r.index == 1) {
            memset(mine.data, 0x5a, mine.size);
            REQUIRE(mremap(mine.data, 4096, 2 * 4096, 0) == MAP_FAILED);
            REQUIRE(!mapping_at(mine.data).is_shared());
            REQUIRE(mapping_at(mine.data + 4096).is_shared());
        }
        r.barrier();
        if (r.index == 0) {
            write_to(s, r.lookup<address>(1), 0, 8, 1);
            write_to(s, r.lookup<address>(1), 8 * 4096, 8, 2);
        }
        r.barrier();
        if (r.index == 1) {
            REQUIRE_EQ(8, pattern::check(mine.data, 8, 1));
            REQUIRE_EQ(8, pattern::check(mine.data + 8 * 4096, 8, 2));
            REQUIRE_EQ(0x5a, mine.data[8]);
            REQUIRE_EQ(0x5a, mine.data[mine.size - 1]);
        }
        r.barrier();
    });
}

/* What comes there next would be shared as well */
TEST_F(test_device_shared_memory, heap_and_stack_are_not)
{
    run(1, [](rank&) {
        const size_t length = 64 * 4096;
        context c;
        uint8_t *heap = (uint8_t*)sbrk(length);

        std::thread([&]() {
            volatile uint8_t stack[length];

            for (uint8_t *data : {heap, (uint8_t*)stack}) {
                ibv_mr *mr = ibv_reg_mr(c.pd, data, length, all_access);

                REQUIRE(mr != nullptr);
                REQUIRE(!mapping_at(data + length / 2).is_shared());
                REQUIRE_EQ(0, ibv_dereg_mr(mr));
            }
        }).join();
    });
}

TEST_F(test_device_shared_memory, not_all_of_it_is)
{
    run(1, [](rank&) {
        context c;
        std::list<std::unique_ptr<region>> regions;

        for (int i = 0; i < 10; ++i) {
            regions.push_back(std::make_unique<region>(c, 4096));
            REQUIRE_EQ(i < 8, mapping_at(regions.back()->data).is_shared());
        }
        regions.clear();
        regions.push_back(std::make_unique<region>(c, 4096));
        REQUIRE(mapping_at(regions.back()->data).is_shared());
    });
}

TEST_F(test_device_shared_memory, a_child_has_it_as_it_is_protected)
{
    run(1, [](rank&) {
        context c;
        region mine(c, 8);
        int status;

        memset(mine.data, 0x5a, mine.size);
        REQUIRE_EQ(0, mprotect(mine.data + 4096, 4096, PROT_NONE));
        REQUIRE_EQ(0, mprotect(mine.data + 3 * 4096, 4096, PROT_READ));
        pid_t pid = fork();
        if (pid == 0) {
            bool good = (mapping_at(mine.data).perms == "rw-p") &&
                        (mapping_at(mine.data + 4096).perms == "---p") &&
                        (mapping_at(mine.data + 3 * 4096).perms == "r--p");

            mprotect(mine.data, mine.size, PROT_READ);
            for (size_t i = 0; i < mine.size; ++i) {
                good = good && (mine.data[i] == 0x5a);
            }
            _exit(good ? 0 : 1);
        }
        REQUIRE(pid > 0);
        REQUIRE_EQ(pid, waitpid(pid, &status, 0));
        REQUIRE_EQ(0, status);
    });
}

/* In a container, as a rule */
TEST_F(test_device_shared_memory, the_kernel_does_not_let_it)
{
    run(2, [](rank &r) {
        refuse(SYS_userfaultfd);

        side s(r, qp_options(), 1 << 16, num_cqes - 1);
        region mine(s.c, 4);

        REQUIRE(!mapping_at(mine.data).is_shared());
        r.publish(mine.addr());
        r.barrier();
        if (r.index == 0) {
            write_to(s, r.lookup<address>(1), 8, 8, 1);
            r.barrier();
        } else {
            r.barrier();
            REQUIRE_EQ(8, pattern::check(mine.data + 8, 8, 1));
        }
        r.barrier();
    });
}
