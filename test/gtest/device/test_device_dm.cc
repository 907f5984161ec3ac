/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Device memory. Rules are those of Linux, handle_alloc_dm_memic(),
 * mlx5_ib_reg_dm_mr(), uverbs_free_dm(), and of libmlx5.
 */

#include <common/seed.h>
#include <device/device_method.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace device;

namespace {

const size_t   all       = 128 << 10; /* of a device */
const size_t   page      = 4096;
const unsigned dm_access = all_access | IBV_ACCESS_ZERO_BASED;

class test_device_dm : public device::test {
protected:
    void SetUp() override
    {
        device::test::SetUp();
        set_env("MLX5SIM_DM", "y");
    }
};

ibv_dm *alloc(context &c, size_t length, unsigned log_align = 0)
{
    ibv_alloc_dm_attr attr = {};

    attr.length        = length;
    attr.log_align_req = log_align;
    return ibv_alloc_dm(c.ctx, &attr);
}

/** Device memory with a region of all of it, or of a part. */
struct dm {
    dm(context &c, size_t length, size_t offset = 0, size_t part = 0,
       unsigned access = dm_access) :
        v(alloc(c, length))
    {
        REQUIRE(v != nullptr);
        mr = ibv_reg_dm_mr(c.pd, v, offset, (part != 0) ? part : length,
                           access);
        REQUIRE(mr != nullptr);
        REQUIRE_EQ(mr->lkey, mr->rkey);
    }

    ~dm()
    {
        REQUIRE_EQ(0, ibv_dereg_mr(mr));
        REQUIRE_EQ(0, ibv_free_dm(v));
    }

    dm(const dm&) = delete;

    ibv_sge sge(uint64_t offset, uint32_t length) const
    {
        return {offset, length, mr->lkey};
    }

    address addr() const
    {
        address a = {};

        a.rkey = mr->rkey;
        return a;
    }

    void fill(size_t offset, size_t length, uint64_t seed)
    {
        std::vector<uint8_t> data(length);

        pattern::fill(data.data(), length, seed);
        REQUIRE_EQ(0, ibv_memcpy_to_dm(v, offset, data.data(), length));
    }

    void check(size_t offset, size_t length, uint64_t seed)
    {
        std::vector<uint8_t> data(length);

        REQUIRE_EQ(0, ibv_memcpy_from_dm(data.data(), v, offset, length));
        REQUIRE_EQ(length, pattern::check(data.data(), length, seed));
    }

    ibv_dm *v;
    ibv_mr *mr;
};

} // namespace


TEST_F(test_device_dm, there_is_none_unless_it_is_switched_on)
{
    run(1, [](rank&) {
        ibv_device_attr_ex attr;
        context c;

        REQUIRE_EQ(0, ibv_query_device_ex(c.ctx, nullptr, &attr));
        REQUIRE_EQ(all, attr.max_dm_size);
    });

    set_env("MLX5SIM_DIR", dir() + "/without");
    set_env("MLX5SIM_DM", "n");
    run(1, [](rank&) {
        ibv_device_attr_ex attr;
        context c;

        REQUIRE_EQ(0, ibv_query_device_ex(c.ctx, nullptr, &attr));
        REQUIRE_EQ(0, attr.max_dm_size);
        REQUIRE(alloc(c, page) == nullptr);
        REQUIRE_EQ(EPROTONOSUPPORT,
                   method(UVERBS_OBJECT_DM, UVERBS_METHOD_DM_FREE).call(c));
        REQUIRE_EQ(EPROTONOSUPPORT,
                   method(UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG).call(c));
    });
}

TEST_F(test_device_dm, the_program_copies)
{
    for (const char *mode : {"dynamic", "legacy"}) {
        set_env("MLX5SIM_DIR", dir() + "/" + mode);
        set_env("MLX5SIM_UAR_MODE", mode);
        run(1, [](rank&) {
            context c;
            dm one(c, 64), two(c, 2 * page + 64), three(c, page);
            uint32_t word = 0;

            for (unsigned i = 0; i < 2; ++i) {
                one.fill(0, 64, 1);
                two.fill(0, 2 * page + 64, 2);
                three.fill(64, 128, 3);
                one.check(0, 64, 1);
                two.check(0, 2 * page + 64, 2);
                three.check(64, 128, 3);
            }

            REQUIRE_EQ(0, ibv_memcpy_from_dm(&word, three.v, page - 4, 4));
            REQUIRE_EQ(0, word);
            REQUIRE(ibv_memcpy_from_dm(&word, three.v, page - 3, 4) != 0);
            REQUIRE(ibv_memcpy_to_dm(three.v, page, &word, 4) != 0);
        });
    }
}

/* Threads touch it for the first time at the same time */
TEST_F(test_device_dm, threads_copy)
{
    run(1, [](rank&) {
        for (unsigned round = 0; round < 20; ++round) {
            context c;
            dm d(c, 4 * page);
            std::vector<std::thread> threads;
            std::atomic<unsigned> ready{0};

            for (unsigned i = 0; i < 4; ++i) {
                threads.emplace_back([&, i] {
                    for (++ready; ready < 4; sched_yield()) {
                    }
                    d.fill(i * page, page, i);
                });
            }
            for (auto &thread : threads) {
                thread.join();
            }
            for (unsigned i = 0; i < 4; ++i) {
                d.check(i * page, page, i);
            }
        }
    });
}

/* All work requests, with either side's or both sides' data in device memory.
 * Short ones would come with the completion, from where libmlx5 copies them to
 * the address in the work request, which is none of the program's. */
TEST_F(test_device_dm, work_requests_reach_it)
{
    run(2, [](rank &r) {
        side s(r);
        dm d(s.c, 2 * page, 64, page);
        address here = s.peer;

        here.rkey = d.mr->rkey;
        here.addr = 0;
        if (r.index == 1) {
            d.fill(0, 2 * page, 5);
            s.q.recv(1, d.sge(0, 1000));
            ibv_sge parts[] = {d.sge(1000, 80), s.mem.sge(0, 80)};
            s.q.recv(2, parts, 2);
            r.publish(here);
            r.barrier();
            REQUIRE_EQ(1000, s.rcq.good().byte_len);
            d.check(64, 1000, 7);
            REQUIRE_EQ(160, s.rcq.good().byte_len);
            r.barrier();
            d.check(64 + 2000, 500, 8);
            uint64_t number;
            REQUIRE_EQ(0, ibv_memcpy_from_dm(&number, d.v, 64 + 3000, 8));
            REQUIRE_EQ(47, number);
            r.barrier();
            return;
        }

        r.barrier();
        address there = r.lookup<address>(1);

        /* from device memory, and from both */
        d.fill(64, 1000, 7);
        send_wr sending(IBV_WR_SEND, 1, {d.sge(0, 1000)});
        s.q.send(sending);
        s.scq.good();
        send_wr mixed(IBV_WR_SEND, 2, {s.mem.sge(0, 80), d.sge(0, 80)});
        s.q.send(mixed);
        s.scq.good();

        d.fill(64, 500, 8);
        send_wr write(IBV_WR_RDMA_WRITE, 3, {d.sge(0, 500)});
        s.q.send(write.to(there, 2000));
        s.scq.good();
        send_wr read(IBV_WR_RDMA_READ, 4, {d.sge(512, 500)});
        s.q.send(read.to(there, 2000));
        s.scq.good();
        d.check(64 + 512, 500, 8);

        uint64_t zero = 0, old = 1;
        memcpy(s.mem.data, &zero, 8);
        send_wr clear(IBV_WR_RDMA_WRITE, 5, {s.mem.sge(0, 8)});
        s.q.send(clear.to(there, 3000));
        s.scq.good();
        for (uint64_t add : {40, 7}) {
            send_wr wr(IBV_WR_ATOMIC_FETCH_AND_ADD, 6, {d.sge(1024, 8)});
            s.q.send(wr.atomic(there, 3000, add));
            s.scq.good();
        }
        REQUIRE_EQ(0, ibv_memcpy_from_dm(&old, d.v, 64 + 1024, 8));
        REQUIRE_EQ(40, old);
        r.barrier();
        r.barrier();
    });
}

/* Addresses count from the start of the region */
TEST_F(test_device_dm, a_region_ends_where_it_ends)
{
    run(1, [](rank&) {
        struct {
            uint64_t addr;
            uint32_t length;
            bool     is_good;
        } accesses[] = {
            {0, 256, true}, {255, 1, true}, {0, 257, false}, {256, 1, false},
            {~0ull, 1, false}, {~0ull - 63, 128, false}
        };

        for (auto &access : accesses) {
            for (bool is_remote : {true, false}) {
                loop l;
                dm d(l.c, page, 128, 256);
                send_wr wr(IBV_WR_RDMA_WRITE, 1,
                           {is_remote ? l.mem.sge(0, access.length) :
                                        d.sge(access.addr, access.length)});
                address there = {};

                there.addr = is_remote ? access.addr : l.peer_mem.addr();
                there.rkey = is_remote ? d.mr->rkey : l.peer_mem.mr->rkey;
                l.a.send(wr.to(there));
                REQUIRE_EQ(access.is_good ? IBV_WC_SUCCESS :
                           is_remote      ? IBV_WC_REM_ACCESS_ERR :
                                            IBV_WC_LOC_PROT_ERR,
                           l.scq.next().status);
            }
        }
    });
}

TEST_F(test_device_dm, a_region_gives_the_access_it_was_made_with)
{
    run(1, [](rank&) {
        loop l;
        dm d(l.c, page, 0, 0, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE |
                              IBV_ACCESS_REMOTE_READ);
        send_wr read(IBV_WR_RDMA_READ, 1, {l.mem.sge(0, 64)});
        send_wr write(IBV_WR_RDMA_WRITE, 2, {l.mem.sge(0, 64)});

        l.a.send(read.to(d.addr()));
        l.scq.good();
        l.a.send(write.to(d.addr()));
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, l.scq.next().status);
    });
}

TEST_F(test_device_dm, what_the_kernel_refuses)
{
    run(1, [](rank&) {
        context c;
        ibv_dm *v = alloc(c, 1000);
        unsigned zero = IBV_ACCESS_ZERO_BASED;
        uint64_t start;
        ibv_mr *mr;

        auto refused = [&](size_t offset, size_t length, unsigned access) {
            errno = 0;
            mr    = ibv_reg_dm_mr(c.pd, v, offset, length, access);
            REQUIRE(mr == nullptr);
            return errno;
        };

        REQUIRE(v != nullptr);
        REQUIRE_EQ(EINVAL, refused(0, 1001, dm_access));
        REQUIRE_EQ(EINVAL, refused(1001, 0, dm_access));
        REQUIRE_EQ(EINVAL, refused(1000, 1, dm_access));
        REQUIRE_EQ(EINVAL, refused(~0ul, 2, dm_access));
        REQUIRE_EQ(EINVAL, refused(8, ~0ul, dm_access));
        REQUIRE_EQ(EINVAL, refused(0, 64, all_access));
        REQUIRE_EQ(EINVAL, refused(0, 64, zero | IBV_ACCESS_REMOTE_WRITE));
        REQUIRE_EQ(EINVAL, refused(0, 64, dm_access | IBV_ACCESS_MW_BIND));

        /* in use */
        mr = ibv_reg_dm_mr(c.pd, v, 0, 1000, zero);
        REQUIRE(mr != nullptr);
        REQUIRE_EQ(EBUSY, ibv_free_dm(v));
        REQUIRE_EQ(IBV_REREG_MR_ERR_CMD,
                   ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr,
                                nullptr, 0, IBV_ACCESS_LOCAL_WRITE));
        REQUIRE_EQ(EINVAL, errno);
        REQUIRE_EQ(0, ibv_dereg_mr(mr));
        REQUIRE_EQ(0, ibv_free_dm(v));

        REQUIRE(alloc(c, 0) == nullptr);
        REQUIRE_EQ(EINVAL, errno);
        REQUIRE(alloc(c, all + 1) == nullptr);
        REQUIRE(alloc(c, 64, 13) == nullptr);
        REQUIRE_EQ(EINVAL, errno);
        v = alloc(c, 64, 12);
        REQUIRE(v != nullptr);
        REQUIRE_EQ(0, ibv_free_dm(v));

        /* memory for steering */
        method other(UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC);
        other.add(UVERBS_ATTR_ALLOC_DM_HANDLE, 0, 0)
             .add(UVERBS_ATTR_ALLOC_DM_LENGTH, 8, 64)
             .add(UVERBS_ATTR_ALLOC_DM_ALIGNMENT, 4, 0)
             .add(MLX5_IB_ATTR_ALLOC_DM_REQ_TYPE, 8,
                  MLX5_IB_UAPI_DM_TYPE_STEERING_SW_ICM)
             .out(MLX5_IB_ATTR_ALLOC_DM_RESP_START_OFFSET, start);
        REQUIRE_EQ(EOPNOTSUPP, other.call(c));

        /* what is not there */
        method free(UVERBS_OBJECT_DM, UVERBS_METHOD_DM_FREE);
        REQUIRE_EQ(ENOENT, free.add(UVERBS_ATTR_FREE_DM_HANDLE, 0, 7).call(c));
        free.attrs[0].data = 1ull << 32;
        REQUIRE_EQ(ENOENT, free.call(c));
        if (!has_asan()) { /* whose mmap() comes before the device's */
            REQUIRE(mmap(nullptr, page, PROT_READ, MAP_SHARED, c.ctx->cmd_fd,
                         0x800 * page) == MAP_FAILED);
            REQUIRE_EQ(EINVAL, errno);
        }
    });
}

/* 32 pages, whoever has them */
TEST_F(test_device_dm, memory_that_is_used_up)
{
    run(2, [](rank &r) {
        context c;
        std::vector<ibv_dm*> list;

        for (unsigned i = 0; (r.index == 0) && (i < 31); ++i) {
            list.push_back(alloc(c, 64));
            REQUIRE(list.back() != nullptr);
        }
        r.barrier();
        if (r.index == 1) {
            REQUIRE(alloc(c, page + 1) == nullptr);
            REQUIRE_EQ(ENOMEM, errno);
            list.push_back(alloc(c, page));
            REQUIRE(list.back() != nullptr);
            REQUIRE(alloc(c, 64) == nullptr);
            REQUIRE_EQ(ENOMEM, errno);
        }
        r.barrier();

        /* two pages, but not in a row */
        if (r.index == 0) {
            REQUIRE_EQ(0, ibv_free_dm(list[3]));
            REQUIRE_EQ(0, ibv_free_dm(list[5]));
            list.erase(list.begin() + 5);
            list.erase(list.begin() + 3);
            REQUIRE(alloc(c, 2 * page) == nullptr);
            REQUIRE_EQ(ENOMEM, errno);
        }
        for (ibv_dm *v : list) {
            REQUIRE_EQ(0, ibv_free_dm(v));
        }
        r.barrier();
        if (r.index == 0) {
            ibv_dm *v = alloc(c, all);
            REQUIRE(v != nullptr);
            REQUIRE_EQ(0, ibv_free_dm(v));
        }
        r.barrier();
    });
}

/* What a process leaves is free, killed or not, and so is what was left in a
 * context that is closed. What it had is not seen by the next one. */
TEST_F(test_device_dm, memory_of_who_has_gone)
{
    start(0, 2, [](rank &r) {
        context c;
        dm d(c, all);

        d.fill(0, all, 1);
        r.word(0) = 1;
        for (;;) {
            pause();
        }
    });
    start(1, 2, [](rank &r) {
        uint64_t word = 1;

        r.wait_word(0, 1);
        r.wait_word(1, 1);
        for (unsigned i = 0; i < 2; ++i) {
            ibv_context *ctx       = ibv_open_device(context().ctx->device);
            ibv_alloc_dm_attr attr = {};
            attr.length            = all;
            ibv_dm *v              = ibv_alloc_dm(ctx, &attr);

            REQUIRE(v != nullptr);
            REQUIRE_EQ(0, ibv_memcpy_from_dm(&word, v, 0, 8));
            REQUIRE_EQ(0, word);
            REQUIRE_EQ(0, ibv_memcpy_to_dm(v, 0, "a b c d", 8));
            REQUIRE_EQ(0, ibv_close_device(ctx));
        }
    });
    while (word(0) == 0) {
        usleep(1000);
    }
    kill(0);
    EXPECT_TRUE(WIFSIGNALED(finish(0)));
    word(1) = 1;
    EXPECT_EQ(0, finish(1));
}

TEST_F(test_device_dm, a_child_leaves_it_alone)
{
    run(1, [](rank&) {
        loop l;
        dm d(l.c, page);
        int status;

        d.fill(0, page, 1);
        pid_t pid = fork();
        if (pid == 0) {
            _exit(0);
        }
        REQUIRE_EQ(pid, waitpid(pid, &status, 0));
        d.check(0, page, 1);
        pattern::fill(l.mem.data, 64, 2);
        send_wr wr(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 64)});
        l.a.send(wr.to(d.addr()));
        l.scq.good();
        d.check(0, 64, 2);
    });
}

/* At the same time, by the context of their parent. What one has left is free
 * when it ends. */
TEST_F(test_device_dm, children_take_what_they_need)
{
    catch_errors();
    run(1, [](rank&) {
        context c;
        dm d(c, page);
        std::vector<pid_t> pids;

        d.fill(0, page, 100);
        for (unsigned i = 0; i < 5; ++i) {
            pid_t pid = fork();

            if (pid == 0) {
                std::vector<uint8_t> data(2 * page);
                ibv_dm *first  = alloc(c, 2 * page);
                ibv_dm *second = alloc(c, page);
                ibv_device_attr_ex attr;
                ibv_port_attr port;

                if ((first == nullptr) || (second == nullptr) ||
                    (ibv_query_device_ex(c.ctx, nullptr, &attr) != 0) ||
                    (attr.max_dm_size != all) ||
                    (ibv_query_port(c.ctx, 1, &port) != 0)) {
                    _exit(1);
                }
                pattern::fill(data.data(), 2 * page, i);
                if (ibv_memcpy_to_dm(first, 0, data.data(), 2 * page) != 0) {
                    _exit(2);
                }
                sched_yield();
                memset(data.data(), 0, 2 * page);
                if (ibv_memcpy_from_dm(data.data(), first, 0, 2 * page) ||
                    (pattern::check(data.data(), 2 * page, i) != 2 * page)) {
                    _exit(3);
                }
                if (ibv_free_dm(second) != 0) {
                    _exit(4);
                }
                /* the parent's is not its own */
                if ((ibv_free_dm(d.v) != ENOENT) ||
                    (alloc(c, all) != nullptr) || (errno != ENOMEM)) {
                    _exit(5);
                }
                if ((ibv_reg_dm_mr(c.pd, first, 0, page, dm_access) !=
                     nullptr) || (errno != EIO) ||
                    (ibv_alloc_pd(c.ctx) != nullptr) || (errno != EIO)) {
                    _exit(6);
                }
                _exit(0);
            }
            pids.push_back(pid);
        }
        for (pid_t pid : pids) {
            int status;

            REQUIRE_EQ(pid, waitpid(pid, &status, 0));
            REQUIRE(WIFEXITED(status));
            REQUIRE_EQ(0, WEXITSTATUS(status));
        }
        d.check(0, page, 100);
        dm rest(c, all - page);
    });
    EXPECT_NE(std::string::npos,
              errors().find("not emulated: devices of a parent")) << errors();
}

/* Of a query: an error, or all of the answer and nothing behind it */
TEST_F(test_device_dm, fuzz_of_queries)
{
    uint64_t random = seed::get();

    set_env("MLX5SIM_LOG", "error");
    run(1, [random](rank&) {
        pattern rnd(random);
        unsigned good = 0;
        context c;
        dm d(c, 100);

        for (unsigned i = 0; i < 20000; ++i) {
            struct {
                uint64_t offset, length;
                uint16_t page, behind;
            } told = {1, 1, 0xffff, 0xffff};
            bool is_right = true;
            method m(UVERBS_OBJECT_DM, MLX5_IB_METHOD_DM_QUERY);
            auto add = [&](uint16_t id, uint16_t length, uint64_t data) {
                switch (rnd.below(16)) {
                case 0:
                    is_right = false;
                    return;
                case 1:
                    is_right = false;
                    m.add(id, length, (id == MLX5_IB_ATTR_QUERY_DM_REQ_HANDLE) ?
                                      data + 1 + rnd.below(~0u) : 0);
                    return;
                default:
                    m.add(id, length, data);
                }
            };

            add(MLX5_IB_ATTR_QUERY_DM_REQ_HANDLE, 0, d.v->handle);
            add(MLX5_IB_ATTR_QUERY_DM_RESP_START_OFFSET, 8,
                (uintptr_t)&told.offset);
            add(MLX5_IB_ATTR_QUERY_DM_RESP_PAGE_INDEX, 2,
                (uintptr_t)&told.page);
            add(MLX5_IB_ATTR_QUERY_DM_RESP_LENGTH, 8, (uintptr_t)&told.length);
            REQUIRE_EQ(is_right, (m.call(c) == 0));
            REQUIRE_EQ(is_right ? 0 : 1, told.offset);
            REQUIRE_EQ(is_right ? 100 : 1, told.length);
            REQUIRE_EQ(is_right, (told.page != 0xffff));
            REQUIRE_EQ(0xffff, told.behind);
            good += is_right;
        }
        REQUIRE(good > 0);
    });
}

/* Any attributes: an error, or an object that can be destroyed */
TEST_F(test_device_dm, fuzz_of_attributes)
{
    uint64_t random = seed::get();

    set_env("MLX5SIM_LOG", "error");
    run(1, [random](rank&) {
        const uint16_t ids[] = {0, 1, 2, 3, 4, 5, 6, 7, 0x1000, 0x1001, 0x1002};
        const uint64_t values[] = {0, 1, 2, 3, 16, 64, 4095, 4096, 4097, all,
                                   all + 1, 1ull << 32, ~0ull};
        const uint16_t sizes[]  = {0, 1, 2, 4, 8, 9, 4096};
        static uint8_t room[8192];
        pattern rnd(random);
        unsigned made = 0;
        context c;

        /* It goes with the context, as regions may be left */
        static struct ibv_pd *pd = ibv_alloc_pd(c.ctx);
        REQUIRE(pd != nullptr);

        auto pick = [&](auto &from) {
            return from[rnd.below(sizeof(from) / sizeof(from[0]))];
        };

        for (unsigned i = 0; i < 20000; ++i) {
            bool is_mr = rnd.below(2);
            method m(is_mr ? UVERBS_OBJECT_MR : UVERBS_OBJECT_DM,
                     is_mr ? +UVERBS_METHOD_DM_MR_REG :
                     rnd.below(3) ? +UVERBS_METHOD_DM_ALLOC :
                                    +UVERBS_METHOD_DM_FREE);
            /* more or less what is asked for, and then some mistakes */
            for (uint16_t id : ids) {
                bool is_out = is_mr ? ((id == 6) || (id == 7)) :
                                      ((id == 0x1000) || (id == 0x1001));
                uint16_t size = (id == 0x1001) ? 2 :
                                (is_mr ? ((id == 4) || is_out) : (id == 2)) ?
                                4 : 8;

                if (rnd.below(16) == 0) {
                    continue;
                }
                if (rnd.below(16) == 0) {
                    size = pick(sizes);
                }
                m.add(id, size, (is_out && rnd.below(16)) ?
                                (uintptr_t)room :
                                is_out ? 0 :
                                (is_mr && (id == 4)) ?
                                (dm_access ^ (rnd.below(8) ? 0 : 1)) :
                                pick(values));
            }
            for (unsigned at = 0; is_mr && (at < m.hdr.num_attrs); ++at) {
                if (m.attrs[at].attr_id == UVERBS_ATTR_REG_DM_MR_PD_HANDLE) {
                    m.attrs[at].data = pd->handle;
                }
            }
            made += (m.call(c) == 0);
        }
        REQUIRE(made > 0);
    });
}
