/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Keys that lead to pieces of memory apart from each other, as work requests of
 * libmlx5 (mlx5dv_wr_mr_list() and others) and firmware commands make them.
 */

#include <common/seed.h>
#include <device/device_layout.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

#include <sys/mman.h>

using namespace device;

namespace {

class test_device_layout : public device::test {
protected:
    void SetUp() override
    {
        device::test::SetUp();
        set_env("MLX5SIM_DEVX", "y");
        set_env("MLX5SIM_LOG", "error");
        /* as with windows: who has failed does not answer again */
        set_env("MLX5SIM_LOSS", "0");
    }
};

/* All four ways to the bytes of a key, of which @a all are the places: by a
 * peer's writes and reads, and by messages of its own process */
void expect_ways(layouts &l, const mkey &key, const places &all, size_t offset,
                 uint32_t length)
{
    uint8_t *back = l.mem.data + l.mem.size / 2;

    REQUIRE(length <= l.mem.size / 2);
    for (auto *place : all) {
        *place = 0xee;
    }
    pattern::fill(l.mem.data, length, offset + 2);
    REQUIRE_EQ(IBV_WC_SUCCESS, l.put(key, offset, length));
    REQUIRE(has(all, offset, l.mem.data, length));
    REQUIRE((offset == 0) || (*all[offset - 1] == 0xee));
    REQUIRE((offset + length == all.size()) || (*all[offset + length] == 0xee));

    fill(all, offset, length, offset + 3);
    REQUIRE_EQ(IBV_WC_SUCCESS, l.get(key, offset, length));
    REQUIRE(has(all, offset, l.mem.data, length));

    fill(all, offset, length, offset + 4);
    REQUIRE_EQ(IBV_WC_SUCCESS, l.send(key.sge(offset, length)));
    REQUIRE(has(all, offset, back, length));

    pattern::fill(l.mem.data, length, offset + 5);
    REQUIRE_EQ(IBV_WC_SUCCESS, l.receive(key.sge(offset, length)));
    REQUIRE(has(all, offset, l.mem.data, length));
}

std::vector<ibv_sge> three(const layouts &l)
{
    return {l.target.sge(5000, 100), l.target.sge(64, 8),
            l.target.sge(9000, 3000)};
}

void expect_lists_and_strides()
{
    layouts l;
    mkey key(l.c);
    const auto entries = three(l);
    const places all   = layouts::of(entries);

    REQUIRE_EQ(IBV_WC_SUCCESS, l.list(key, entries));
    expect_ways(l, key, all, 0, all.size());
    expect_ways(l, key, all, 0, 1);
    expect_ways(l, key, all, 99, 2);
    expect_ways(l, key, all, 50, 100);
    expect_ways(l, key, all, 108, 3000);
    expect_ways(l, key, all, all.size() - 1, 1);

    const std::vector<mlx5dv_mr_interleaved> pieces = {
        l.stride(100, 8, 2), l.stride(8192, 30, 70), l.stride(80000, 1, 0)
    };
    const places turns = layouts::of(500, pieces);

    REQUIRE_EQ(IBV_WC_SUCCESS, l.strides(key, 500, pieces));
    expect_ways(l, key, turns, 0, turns.size());
    expect_ways(l, key, turns, 7, 2);
    expect_ways(l, key, turns, 38, 10);
    expect_ways(l, key, turns, 39 * 77 + 3, 39 * 200 + 11);
    expect_ways(l, key, turns, turns.size() - 1, 1);
}

} // namespace

TEST_F(test_device_layout, lists_and_strides_lead_to_memory)
{
    run(1, [](rank&) { expect_lists_and_strides(); });
}

TEST_F(test_device_layout, of_roce)
{
    set_env("MLX5SIM_LINK", "roce");
    run(1, [](rank&) { expect_lists_and_strides(); });
}

TEST_F(test_device_layout, in_deferred_execution)
{
    set_env("MLX5SIM_EXEC", "deferred");
    for (const char *seed : {"1", "2", "3"}) {
        set_env("MLX5SIM_SEED", seed);
        run(1, [](rank&) { expect_lists_and_strides(); });
    }
}

/* More pieces than a work request has, on both sides of it, of other lengths */
TEST_F(test_device_layout, pieces_may_be_many)
{
    run(1, [](rank&) {
        layouts l;
        memory other(l.c, layouts::size);
        mkey from(l.c), to(l.c);
        const unsigned turns = 21000;
        const std::vector<mlx5dv_mr_interleaved> two  = {
            l.stride(0, 1, 6), l.stride(400000, 2, 3)
        };
        const std::vector<mlx5dv_mr_interleaved> nine = {
            {other.addr(), 9, 20, other.mr->lkey}
        };
        const places all = layouts::of(turns, two);
        const places out = layouts::of(turns / 3, nine);

        REQUIRE_EQ(IBV_WC_SUCCESS, l.strides(from, turns, two));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.strides(to, turns / 3, nine));
        fill(all, 0, all.size(), 9);
        REQUIRE_EQ(IBV_WC_SUCCESS,
                   l.access(IBV_WR_RDMA_WRITE, from.sge(0, all.size()),
                            to.v->rkey, 0));
        for (size_t i = 0; i < all.size(); ++i) {
            REQUIRE_EQ(*all[i], *out[i]);
        }

        fill(all, 0, all.size(), 10);
        REQUIRE_EQ(IBV_WC_SUCCESS,
                   l.access(IBV_WR_RDMA_READ, to.sge(7, all.size() - 7),
                            from.v->rkey, 7));
        for (size_t i = 7; i < all.size(); ++i) {
            REQUIRE_EQ(*all[i], *out[i]);
        }
    });
}

/* Elements of lists of both kinds in one work request */
TEST_F(test_device_layout, with_other_elements_of_a_list)
{
    run(1, [](rank&) {
        layouts l;
        mkey key(l.c);
        const places all = layouts::of(three(l));
        send_wr wr(IBV_WR_SEND, 2, {l.mem.sge(0, 10), key.sge(90, 30),
                                    l.mem.sge(100, 20), key.sge(0, 5)});
        const ibv_sge into[] = {l.mem.sge(30000, 7), l.mem.sge(40000, 1000)};

        REQUIRE_EQ(IBV_WC_SUCCESS, l.list(key, three(l)));
        fill(all, 0, all.size(), 2);
        l.a.recv(1, into, 2);
        l.b.send(wr);
        REQUIRE_EQ(65, l.rcq.good().byte_len);
        l.peer_cq.good();
        REQUIRE_EQ(0, memcmp(l.mem.data, l.mem.data + 30000, 7));
        REQUIRE_EQ(0, memcmp(l.mem.data + 7, l.mem.data + 40000, 3));
        REQUIRE(has(all, 90, l.mem.data + 40003, 30));
        REQUIRE_EQ(0, memcmp(l.mem.data + 100, l.mem.data + 40033, 20));
        REQUIRE(has(all, 0, l.mem.data + 40053, 5));
    });
}

/* A short answer to an element of plain memory goes into the completion */
TEST_F(test_device_layout, answers_go_into_completions)
{
    run(1, [](rank&) {
        loop plain;
        std::vector<ibv_sge> ones;
        mkey key(plain.c, 32);
        qp maker(plain.c, plain.rcq, plain.rcq,
                 {.inline_len = 512, .dv_ops = layout_ops});
        ibv_qp_ex *ex    = ibv_qp_to_qp_ex(maker.v);
        mlx5dv_qp_ex *dv = mlx5dv_qp_ex_from_ibv_qp_ex(ex);
        send_wr wr(IBV_WR_RDMA_READ, 1, {plain.mem.sge(0, 32)});
        address from = {};

        for (unsigned i = 0; i < 32; ++i) {
            ones.push_back(plain.peer_mem.sge(1000 - i * 3, 1));
        }
        maker.connect(maker.addr());
        ibv_wr_start(ex);
        ex->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
        mlx5dv_wr_mr_list(dv, key.v, all_access, ones.size(), ones.data());
        REQUIRE_EQ(0, ibv_wr_complete(ex));
        plain.rcq.good();

        const places all = layouts::of(ones);
        fill(all, 0, 32, 5);
        from.rkey = key.v->rkey;
        plain.a.send(wr.to(from));
        plain.scq.good();
        REQUIRE(has(all, 0, plain.mem.data, 32));
    });
}

/* What a work request does not set stays as it was */
TEST_F(test_device_layout, settings_are_made_one_by_one)
{
    run(1, [](rank&) {
        layouts l;
        mkey key(l.c);
        const auto entries = three(l);
        const places all   = layouts::of(entries);

        REQUIRE_EQ(IBV_WC_SUCCESS, l.configure(key, 1, [&](mlx5dv_qp_ex *dv) {
            mlx5dv_wr_set_mkey_layout_list(dv, entries.size(), entries.data());
        }));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.send(key.sge(0, 200)));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.configure(key, 1, [](mlx5dv_qp_ex *dv) {
            mlx5dv_wr_set_mkey_access_flags(dv, all_access);
        }));
        expect_ways(l, key, all, 0, all.size());
        REQUIRE_EQ(IBV_WC_SUCCESS, l.configure(key, 1, [](mlx5dv_qp_ex *dv) {
            mlx5dv_wr_set_mkey_access_flags(dv, IBV_ACCESS_REMOTE_READ);
        }));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.get(key, 0));
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, l.put(key, 0));
    });
}

TEST_F(test_device_layout, nothing_is_reached_behind_it)
{
    struct {
        uint64_t at;
        uint32_t length;
    } rows[] = {{3107, 2}, {3108, 1}, {0, 3109}, {~0ull, 2}, {~0ull - 7, 8}};

    for (const auto &row : rows) {
        for (bool is_strided : {false, true}) {
            run(1, [&](rank&) {
                layouts l;
                mkey key(l.c);

                if (is_strided) {
                    /* 3108 bytes, too */
                    REQUIRE_EQ(IBV_WC_SUCCESS,
                               l.strides(key, 37, {l.stride(0, 80, 3),
                                                   l.stride(9000, 4, 5)}));
                } else {
                    REQUIRE_EQ(IBV_WC_SUCCESS, l.list(key, three(l)));
                }
                memset(l.target.data, 0, l.target.size);
                REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR,
                           l.put(key, row.at, row.length));
                REQUIRE_EQ(l.target.size,
                           (size_t)std::count(l.target.data,
                                              l.target.data + l.target.size,
                                              0));
            });
            run(1, [&](rank&) {
                layouts l;
                mkey key(l.c);

                REQUIRE_EQ(IBV_WC_SUCCESS, l.list(key, three(l)));
                REQUIRE_EQ(IBV_WC_LOC_PROT_ERR,
                           l.send({row.at, row.length, key.v->lkey}));
            });
        }
    }
}

TEST_F(test_device_layout, access_is_what_the_work_request_says)
{
    struct {
        unsigned      access;
        ibv_wr_opcode opcode;
    } rows[] = {
        {all_access & ~IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_WRITE},
        {all_access & ~IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_READ},
        {all_access & ~IBV_ACCESS_REMOTE_ATOMIC, IBV_WR_ATOMIC_FETCH_AND_ADD}
    };

    for (const auto &row : rows) {
        run(1, [&](rank&) {
            layouts l;
            mkey key(l.c);

            REQUIRE_EQ(IBV_WC_SUCCESS, l.list(key, three(l), row.access));
            REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR,
                       l.access(row.opcode, l.mem.sge(0, 8), key.v->rkey, 0));
        });
    }
    run(1, [&](rank&) {
        layouts l;
        mkey key(l.c);

        REQUIRE_EQ(IBV_WC_SUCCESS,
                   l.list(key, three(l), all_access & ~IBV_ACCESS_LOCAL_WRITE));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.send(key.sge(0, 64)));
        REQUIRE_EQ(IBV_WC_LOC_PROT_ERR, l.receive(key.sge(0, 64)));
    });
}

/* The adapter itself may not write there */
TEST_F(test_device_layout, a_region_that_is_only_read_is_not_written)
{
    run(1, [](rank&) {
        layouts l(0);
        mkey key(l.c);

        REQUIRE_EQ(IBV_WC_SUCCESS, l.list(key, three(l)));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.get(key, 0));
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, l.put(key, 0));
    });
}

/* Nobody looks at an entry before it is needed */
TEST_F(test_device_layout, entries_that_lead_nowhere_are_found_in_use)
{
    run(1, [](rank&) {
        layouts l, other;
        ibv_pd *pd = ibv_alloc_pd(l.c.ctx);
        {
            memory elsewhere(l.c, 4096, all_access, pd);
            mkey inner(l.c);
            ibv_mw *window        = ibv_alloc_mw(l.c.pd, IBV_MW_TYPE_1);
            const ibv_sge nowhere = {l.target.addr(), 64, 0x123456};
            const ibv_sge behind  = l.target.sge(l.target.size - 63, 64);
            const ibv_sge keys[]  = {
                nowhere, behind, elsewhere.sge(0, 64), inner.sge(0, 64),
                {l.target.addr(), 64, window->rkey},
                other.target.sge(0, 64)
            };

            REQUIRE_EQ(IBV_WC_SUCCESS, l.list(inner, three(l)));
            for (const auto &key : keys) {
                mkey bad(l.c);

                REQUIRE_EQ(IBV_WC_SUCCESS,
                           l.list(bad, {l.target.sge(0, 64), key}));
                REQUIRE_EQ(IBV_WC_SUCCESS, l.put(bad, 0));
                REQUIRE_EQ(IBV_WC_SUCCESS, l.send(bad.sge(0, 64)));
                REQUIRE_EQ(IBV_WC_LOC_PROT_ERR, l.send(bad.sge(1, 127)));
                l.again();
                REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, l.put(bad, 1, 127));
                l.again();
            }
            REQUIRE_EQ(0, ibv_dealloc_mw(window));
        }
        REQUIRE_EQ(0, ibv_dealloc_pd(pd));
    });
}

TEST_F(test_device_layout, a_region_that_is_gone_is_not_reached)
{
    run(1, [](rank&) {
        layouts l;
        mkey key(l.c);
        std::unique_ptr<memory> region(new memory(l.c, 4096));

        REQUIRE_EQ(IBV_WC_SUCCESS, l.list(key, {l.target.sge(0, 64),
                                                region->sge(0, 64)}));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.put(key, 32));
        region.reset();
        REQUIRE_EQ(IBV_WC_SUCCESS, l.put(key, 0));
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, l.put(key, 32));
    });
}

/* The device has no copy of where the other key leads */
TEST_F(test_device_layout, it_follows_a_region_that_is_registered_again)
{
    run(1, [](rank&) {
        layouts l;
        mkey key(l.c);
        memory region(l.c, 4096), other(l.c, 8192);
        const auto moved = other.addr() - region.addr();

        REQUIRE_EQ(IBV_WC_SUCCESS,
                   l.list(key, {{region.addr() + moved, 64, region.mr->lkey},
                                l.target.sge(0, 64)}));
        REQUIRE_EQ(0, ibv_rereg_mr(region.mr, IBV_REREG_MR_CHANGE_TRANSLATION,
                                   nullptr, other.data, 4096, 0));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.put(key, 0));
        REQUIRE_EQ(0, memcmp(l.mem.data, other.data, 64));
    });
}

/* A key is free until it gets a layout, and after it was taken away */
TEST_F(test_device_layout, one_that_is_free_gives_no_access)
{
    for (bool was_bound : {false, true}) {
        for (bool is_local : {false, true}) {
            run(1, [&](rank&) {
                layouts l;
                mkey key(l.c);

                if (was_bound) {
                    REQUIRE_EQ(IBV_WC_SUCCESS, l.list(key, three(l)));
                    REQUIRE_EQ(IBV_WC_SUCCESS, l.put(key, 0));
                    REQUIRE_EQ(IBV_WC_SUCCESS, l.invalidate(key));
                    REQUIRE_EQ(IBV_WC_SUCCESS, l.list(key, three(l)));
                    REQUIRE_EQ(IBV_WC_SUCCESS, l.put(key, 0));
                    REQUIRE_EQ(IBV_WC_SUCCESS, l.invalidate(key));
                }
                REQUIRE_EQ(is_local ? IBV_WC_LOC_PROT_ERR :
                                      IBV_WC_REM_ACCESS_ERR,
                           is_local ? l.send(key.sge(0, 64)) : l.put(key, 0));
            });
        }
    }
}

TEST_F(test_device_layout, one_that_is_gone_gives_no_access)
{
    run(1, [](rank&) {
        layouts l;
        mkey key(l.c);
        uint32_t rkey = key.v->rkey;

        REQUIRE_EQ(IBV_WC_SUCCESS, l.list(key, three(l)));
        REQUIRE_EQ(0, mlx5dv_destroy_mkey(key.v));
        key.v = nullptr;
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR,
                   l.access(IBV_WR_RDMA_WRITE, l.mem.sge(0, 8), rkey, 0));
    });
}

/* Peers free those that were made so (PRM: mkc.en_rinval) */
TEST_F(test_device_layout, a_send_frees_it_if_it_may)
{
    for (bool is_allowed : {false, true}) {
        run(1, [&](rank&) {
            layouts l;
            mkey key(l.c, 8, is_allowed ?
                     MLX5DV_MKEY_INIT_ATTR_FLAGS_REMOTE_INVALIDATE : 0);
            send_wr wr(IBV_WR_SEND_WITH_INV, 1, {l.mem.sge(0, 8)});

            REQUIRE_EQ(IBV_WC_SUCCESS, l.list(key, three(l)));
            l.b.recv(1, l.mem.sge(8192, 64));
            wr.invalidate_rkey = key.v->rkey;
            l.a.send(wr);
            REQUIRE_EQ(is_allowed ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR,
                       l.scq.next().status);
            if (is_allowed) {
                l.peer_cq.good();
                REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, l.put(key, 0));
            }
        });
    }
}

TEST_F(test_device_layout, domains_are_kept_apart)
{
    run(1, [](rank&) {
        layouts l;
        ibv_pd *pd = ibv_alloc_pd(l.c.ctx);
        {
            mkey key(l.c, 8, 0, pd);

            REQUIRE_EQ(EBUSY, ibv_dealloc_pd(pd));
            REQUIRE_EQ(IBV_WC_MW_BIND_ERR, l.list(key, three(l)));
            REQUIRE_EQ(IBV_QPS_ERR, l.b.state());
        }
        REQUIRE_EQ(0, ibv_dealloc_pd(pd));
    });
}

/* libmlx5 counts entries, but not the head of a list of strides */
TEST_F(test_device_layout, more_entries_than_there_is_room_for_are_refused)
{
    run(1, [](rank&) {
        layouts l;
        mkey key(l.c, 4);
        std::vector<ibv_sge> five(5, l.target.sge(0, 8));
        std::vector<mlx5dv_mr_interleaved> four(4, l.stride(0, 8, 8));

        REQUIRE_EQ(ENOMEM, l.list(key, five));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.list(key, {4, l.target.sge(0, 8)}));
        REQUIRE_EQ(IBV_WC_MW_BIND_ERR, l.strides(key, 2, four));
        REQUIRE_EQ(IBV_QPS_ERR, l.b.state());
    });
}

/* As many as a work request has room for */
TEST_F(test_device_layout, lists_may_be_long)
{
    run(1, [](rank&) {
        layouts l(IBV_ACCESS_LOCAL_WRITE,
                  {.send_wr = 16, .inline_len = 828, .dv_ops = layout_ops});
        std::vector<ibv_sge> entries;
        mkey key(l.c, 52);

        for (unsigned i = 0; i < 52; ++i) {
            entries.push_back(l.target.sge((52 - i) * 1000, 1 + i * 7));
        }
        const places all = layouts::of(entries);
        /* round the queue, so that lists go on at its start */
        for (unsigned i = 0; i < 20; ++i) {
            REQUIRE_EQ(IBV_WC_SUCCESS, l.list(key, entries));
            expect_ways(l, key, all, 0, all.size());
        }
    });
}

/* Atomic is what is in one piece */
TEST_F(test_device_layout, atomics_are_done_in_one_piece)
{
    run(1, [](rank&) {
        layouts l;
        mkey key(l.c);
        uint64_t *word    = (uint64_t*)l.target.data;
        const auto atomic = [&](uint64_t at) {
            return l.access(IBV_WR_ATOMIC_FETCH_AND_ADD, l.mem.sge(0, 8),
                            key.v->rkey, at);
        };

        REQUIRE_EQ(IBV_WC_SUCCESS,
                   l.list(key, {l.target.sge(0, 16), l.target.sge(64, 4),
                                l.target.sge(128, 4)}));
        word[1] = 5;
        REQUIRE_EQ(IBV_WC_SUCCESS, atomic(8));
        REQUIRE_EQ(8, word[1]);
        REQUIRE_EQ(5, *(uint64_t*)l.mem.data);
        word[8] = word[16] = 0;
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, atomic(16));
        REQUIRE_EQ(0, word[8] + word[16]);
    });
}

/* The result of an atomic goes to pieces */
TEST_F(test_device_layout, results_of_atomics_are_scattered)
{
    run(1, [](rank&) {
        layouts l;
        mkey key(l.c);
        const std::vector<ibv_sge> entries = {l.target.sge(100, 3),
                                              l.target.sge(200, 5)};

        REQUIRE_EQ(IBV_WC_SUCCESS, l.list(key, entries));
        memcpy(l.peer_mem.data, "abcdefgh", 8);
        REQUIRE_EQ(IBV_WC_SUCCESS,
                   l.access(IBV_WR_ATOMIC_FETCH_AND_ADD, key.sge(0, 8),
                            l.peer_mem.mr->rkey, l.peer_mem.addr()));
        REQUIRE_EQ(0, memcmp(l.target.data + 100, "abc", 3));
        REQUIRE_EQ(0, memcmp(l.target.data + 200, "defgh", 5));
    });
}

/* What is not pinned is not by this key, either; the rest is */
TEST_F(test_device_layout, of_memory_on_demand)
{
    set_env("MLX5SIM_ODP", "y");
    run(1, [](rank&) {
        layouts l(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
        memory pinned(l.c, 8192, IBV_ACCESS_LOCAL_WRITE);
        mkey key(l.c);
        uint8_t *pages[] = {
            (uint8_t*)(pinned.addr(4095) & ~4095ul),
            (uint8_t*)(l.target.addr(4095) & ~4095ul)
        };

        REQUIRE_EQ(IBV_WC_SUCCESS,
                   l.list(key, {{(uintptr_t)pages[0], 64, pinned.mr->lkey},
                                {(uintptr_t)pages[1], 64,
                                 l.target.mr->lkey}}));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.put(key, 32));
        REQUIRE_EQ(0, mprotect(pages[0], 4096, PROT_NONE));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.put(key, 0));
        REQUIRE_EQ(0, mprotect(pages[0], 4096, PROT_READ | PROT_WRITE));
        REQUIRE_EQ(0, mprotect(pages[1], 4096, PROT_READ));
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, l.put(key, 32));
        REQUIRE_EQ(0, mprotect(pages[1], 4096, PROT_READ | PROT_WRITE));
    });
}

namespace {

/* CREATE_MKEY with a list */
command list_command(const layouts &l, unsigned mode,
                     const std::vector<ibv_sge> &entries)
{
    const unsigned mkc = 128;
    command c(fw_create_mkey, fw_queue_size + entries.size() * 16);

    c.set(mkc + 17, 4, 0xf).set(mkc + 22, 2, mode);
    c.set(mkc + 32, 24, 0xffffff).set(mkc + 104, 24, pd_number(l.c.pd));
    c.set(mkc + 475, 5, 8).set(768, 32, entries.size());
    for (unsigned i = 0; i < entries.size(); ++i) {
        c.set(2176 + i * 128, 32, entries[i].length);
        c.set(2208 + i * 128, 32, entries[i].lkey);
        c.set(2240 + i * 128, 64, entries[i].addr);
    }
    return c;
}

} // namespace

TEST_F(test_device_layout, commands_make_them_with_a_list)
{
    run(1, [](rank&) {
        layouts l(all_access);
        std::vector<ibv_sge> entries = {
            l.target.sge(7000, 256), l.target.sge(4000, 256),
            l.target.sge(4256, 256)
        };

        /* entries of one size are in the command, those of any in its list */
        for (unsigned mode : {3, 2}) {
            if (mode == 2) {
                entries[1].length = 99;
            }
            const places all = layouts::of(entries);
            object key(l.c.ctx, list_command(l, mode, entries)
                                        .set(128 + 128, 64, 0x10000)
                                        .set(128 + 192, 64, all.size()));

            for (size_t at : {0, 200, 256, 300}) {
                pattern::fill(l.mem.data, 256, at + 1);
                REQUIRE_EQ(IBV_WC_SUCCESS,
                           l.access(IBV_WR_RDMA_WRITE, l.mem.sge(0, 256),
                                    key.number << 8, 0x10000 + at));
                REQUIRE(has(all, at, l.mem.data, 256));
            }
        }

        object key(l.c.ctx, list_command(l, 2, entries)
                                    .set(128 + 192, 64, 611));
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR,
                   l.access(IBV_WR_RDMA_WRITE, l.mem.sge(0, 8), key.number << 8,
                            604));
    });
}

TEST_F(test_device_layout, wrong_commands_are_refused)
{
    run(1, [](rank&) {
        layouts l(all_access);
        const unsigned mkc = 128, bad_param = 3, bad_res = 5, bad_in_len = 0x50;
        const command good = list_command(l, 2, {l.target.sge(0, 64),
                                                 l.target.sge(640, 64)})
                                     .set(mkc + 192, 64, 128);
        const command empty = list_command(l, 2, {}).set(mkc + 16, 1, 1)
                                      .set(mkc + 416, 32, 8);
        const auto status = [&](const command &c) {
            bytes out(16);
            auto *v = mlx5dv_devx_obj_create(l.c.ctx, c.in.data(), c.in.size(),
                                             out.data(), out.size());

            REQUIRE((v == nullptr) || (mlx5dv_devx_obj_destroy(v) == 0));
            return (unsigned)out[0];
        };

        REQUIRE_EQ(0, status(good));
        REQUIRE_EQ(0, status(empty));
        /* longer than its list, */
        REQUIRE_EQ(bad_param, status(command(good).set(mkc + 192, 64, 129)));
        /* no list, and none to come, or one that is too long, */
        REQUIRE_EQ(bad_param, status(command(good).set(768, 32, 0)));
        REQUIRE_EQ(bad_param, status(command(empty).set(mkc + 16, 1, 0)));
        REQUIRE_EQ(bad_param, status(command(empty).set(mkc + 416, 32, 0)));
        REQUIRE_EQ(bad_param, status(command(empty).set(mkc + 416, 32, 4097)));
        REQUIRE_EQ(bad_in_len, status(command(good).set(768, 32, 3)));
        /* a key that is not there, or has a list itself, */
        REQUIRE_EQ(bad_res, status(command(good).set(2208, 32, 0x123456)));
        mkey inner(l.c);
        REQUIRE_EQ(bad_param, status(command(good).set(2208, 32,
                                                       inner.v->lkey)));
        /* signatures, encryption, and other kinds of keys */
        REQUIRE_EQ(bad_param, status(command(good).set(mkc + 97, 1, 1)));
        REQUIRE_EQ(bad_param, status(command(good).set(mkc + 483, 2, 1)));
        REQUIRE_EQ(bad_param, status(command(good).set(mkc + 22, 2, 1)));
        REQUIRE_EQ(bad_param, status(command(good).set(mkc + 3, 3, 1)));
    });
}

/* Only keys that were made for it, and those of entries of one size not at all
 */
TEST_F(test_device_layout, keys_of_commands_do_not_change)
{
    for (unsigned mode : {2, 3}) {
        run(1, [=](rank&) {
            layouts l(all_access);
            object made(l.c.ctx, list_command(l, mode, {l.target.sge(0, 64),
                                                        l.target.sge(640, 64)})
                                         .set(128 + 16, 1, mode == 3)
                                         .set(128 + 416, 32, 8)
                                         .set(128 + 192, 64, 128));
            send_wr wr(IBV_WR_LOCAL_INV, 9, {});

            wr.invalidate_rkey = made.number << 8;
            l.b.send(wr);
            REQUIRE_EQ(IBV_WC_MW_BIND_ERR, l.peer_cq.next().status);
        });
    }
}

/* Any layout, and any part of it, in any operation: memory is as in a model */
TEST_F(test_device_layout, random_layouts_match_a_model)
{
    const uint64_t random = seed::get();
    const unsigned rounds = seed::cases(60);

    run(1, [=](rank&) {
        layouts l(IBV_ACCESS_LOCAL_WRITE,
                  {.inline_len = 828, .dv_ops = layout_ops});
        pattern rnd(random);
        mkey key(l.c, 52);

        for (unsigned i = 0; i < rounds; ++i) {
            /* entries apart, so that each byte is there once */
            unsigned num  = 1 + rnd.below(40);
            size_t room   = l.target.size / num;
            unsigned turns = 1 + rnd.below(1ul << rnd.below(12));
            std::vector<ibv_sge> entries;
            std::vector<mlx5dv_mr_interleaved> pieces;
            places all;

            for (unsigned k = 0; k < num; ++k) {
                size_t at    = ((k * 7) % num == 0 || num % 7 == 0 ? k :
                                (k * 7) % num) * room;
                unsigned max = room / turns;
                unsigned len = 1 + rnd.below(std::min(max / 2, 2000u));

                entries.push_back(l.target.sge(at, len));
                pieces.push_back(l.stride(at, len, rnd.below(
                        std::min(max - len, 60000u)))); /* 16 bits */
            }

            if (rnd.below(2)) {
                REQUIRE_EQ(IBV_WC_SUCCESS, l.list(key, entries));
                all = layouts::of(entries);
            } else {
                REQUIRE_EQ(IBV_WC_SUCCESS, l.strides(key, turns, pieces));
                all = layouts::of(turns, pieces);
            }
            for (unsigned k = 0; k < 3; ++k) {
                size_t offset = rnd.below(all.size());
                size_t most   = std::min(all.size() - offset, l.mem.size / 2);

                expect_ways(l, key, all, offset, 1 + rnd.below(most));
            }
        }
    });
}

/* Any WQE of this kind: an error or a success comes back, and what the key
 * leads to stays where it may lead */
TEST_F(test_device_layout, fuzz_of_work_requests)
{
    const uint64_t random = seed::get();
    const unsigned cases  = seed::cases(1500);

    catch_errors();
    run(1, [=](rank&) {
        layouts l;
        memory safe(l.c, 4096, 0);
        std::mt19937_64 rnd(random);
        mkey key(l.c, 8);
        unsigned good = 0;

        for (unsigned i = 0; i < cases; ++i) {
            unsigned entries = rnd() % 13;
            command wqe(0, 128 + entries * 16);

            wqe.set(0, 32, MLX5_OPCODE_UMR);
            wqe.set(32, 24, l.b.v->qp_num).set(56, 8, wqe.in.size() / 16);
            wqe.set(64, 32, MLX5_WQE_CTRL_CQ_UPDATE).set(96, 32, key.v->lkey);
            wqe.set(128, 8, 0x80).set(160, 16, entries);
            wqe.set(192, 64, (1 << 29) | (1 << 13) | (15 << 18) | (1 << 6) | 1);
            wqe.set(512 + 16, 8, 0x78).set(512 + 32, 24, 0xffffff);
            wqe.set(512 + 192, 64, 1 + rnd() % 3000);
            for (unsigned k = 0; k < entries; ++k) {
                const memory &to = (rnd() % 8) ? l.target : safe;

                wqe.set(1024 + k * 128, 32, rnd() % 500);
                wqe.set(1024 + k * 128 + 32, 32, to.mr->lkey);
                wqe.set(1024 + k * 128 + 64, 64, to.addr(rnd() % 4096));
            }
            if ((entries > 1) && (rnd() % 3 == 0)) {
                wqe.set(1024 + 32, 32, 0x400).set(1024 + 64, 32, rnd() % 99);
                wqe.set(1024 + 96, 32, rnd() % entries);
            }
            for (unsigned n = rnd() % 4; n > 0; --n) {
                unsigned width = 1 + rnd() % 32;

                wqe.set(128 + rnd() % (wqe.in.size() * 8 - 128 - width), width,
                        rnd());
            }

            ibv_qp_ex *ex = ibv_qp_to_qp_ex(l.b.v);
            ibv_wr_start(ex);
            mlx5dv_wr_raw_wqe(mlx5dv_qp_ex_from_ibv_qp_ex(ex), wqe.in.data());
            REQUIRE_EQ(0, ibv_wr_complete(ex));
            bool is_good = l.peer_cq.next().status == IBV_WC_SUCCESS;

            good += is_good;
            if (is_good) {
                for (auto opcode : {IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE}) {
                    if (l.a.state() == IBV_QPS_RTS) {
                        l.access(opcode, l.mem.sge(0, 1 + rnd() % 2000),
                                 key.v->rkey, rnd() % 1000);
                    }
                }
            }
            if ((l.a.state() != IBV_QPS_RTS) || (l.b.state() != IBV_QPS_RTS)) {
                l.again();
            }
        }
        REQUIRE(good > cases / 8);
        REQUIRE_EQ(safe.size, (size_t)std::count(safe.data, safe.data +
                                                            safe.size, 0));
        mkey other(l.c); /* that one may be for another queue pair now */
        REQUIRE_EQ(IBV_WC_SUCCESS, l.list(other, three(l)));
        expect_ways(l, other, layouts::of(three(l)), 0, 3108);
    });
    take_violations();
}
