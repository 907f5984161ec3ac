/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Memory windows of both types. Rules are those of IBTA volume 1, 10.6.7 and
 * 10.6.8, and, where a key of an adapter can't tell, of what libmlx5's
 * set_bind_wr() and the kernel's mlx5_ib_alloc_mw() have it do.
 */

#include <device/device.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <thread>

#include <sched.h>

#include <sys/mman.h>

using namespace device;

namespace {

const unsigned bindable      = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
const unsigned window_access = IBV_ACCESS_REMOTE_WRITE |
                               IBV_ACCESS_REMOTE_READ |
                               IBV_ACCESS_REMOTE_ATOMIC;

class test_device_window : public device::test {
protected:
    void SetUp() override
    {
        device::test::SetUp();
        /* Who has refused a request has failed, and does not answer again: if
         * that is lost, its sender sees that retries are exceeded */
        set_env("MLX5SIM_LOSS", "0");
    }
};

struct window {
    window(const context &c, ibv_mw_type type, ibv_pd *pd = nullptr)
    {
        v = ibv_alloc_mw((pd != nullptr) ? pd : c.pd, type);
        REQUIRE(v != nullptr);
    }

    ~window()
    {
        if (v != nullptr) {
            REQUIRE_EQ(0, ibv_dealloc_mw(v));
        }
    }

    window(const window&) = delete;

    ibv_mw *v;
};

/* Two QPs: b's side has the windows, a uses them */
struct windows : public loop {
    explicit windows(unsigned access = bindable,
                     const qp_options &options = qp_options()) :
        loop(options), target(c, 8192, access)
    {
        pattern::fill(mem.data, 4096, 1);
    }

    /** Type 1. @return status of the bind */
    ibv_wc_status bind(window &w, uint64_t addr, uint64_t length,
                       unsigned access = window_access, ibv_mr *mr = nullptr)
    {
        ibv_mw_bind request = {};
        ibv_wc wc;

        request.wr_id                     = 7;
        request.send_flags                = IBV_SEND_SIGNALED;
        request.bind_info.mr              = (mr != nullptr) ? mr : target.mr;
        request.bind_info.addr            = addr;
        request.bind_info.length          = length;
        request.bind_info.mw_access_flags = access;
        REQUIRE_EQ(0, ibv_bind_mw(b.v, w.v, &request));
        wc = peer_cq.next();
        REQUIRE_EQ(7u, wc.wr_id);
        if (wc.status == IBV_WC_SUCCESS) {
            REQUIRE_EQ(IBV_WC_BIND_MW, wc.opcode);
        }
        return wc.status;
    }

    /** Type 2, with the next key. @return status */
    ibv_wc_status bind_2(window &w, uint64_t addr, uint64_t length,
                         unsigned access = window_access, qp *q = nullptr,
                         ibv_mr *mr = nullptr)
    {
        uint32_t key = ibv_inc_rkey(w.v->rkey);
        ibv_wc_status status;
        send_wr wr(IBV_WR_BIND_MW, 8, {});

        wr.bind_mw.mw                        = w.v;
        wr.bind_mw.rkey                      = key;
        wr.bind_mw.bind_info.mr              = (mr != nullptr) ? mr : target.mr;
        wr.bind_mw.bind_info.addr            = addr;
        wr.bind_mw.bind_info.length          = length;
        wr.bind_mw.bind_info.mw_access_flags = access;
        (q != nullptr ? *q : b).send(wr);
        status = ((q == &a) ? scq : peer_cq).next().status;
        if (status == IBV_WC_SUCCESS) {
            w.v->rkey = key;
        }
        return status;
    }

    ibv_wc_status invalidate(uint32_t rkey, qp *q = nullptr)
    {
        send_wr wr(IBV_WR_LOCAL_INV, 9, {});
        ibv_wc wc;

        wr.invalidate_rkey = rkey;
        (q != nullptr ? *q : b).send(wr);
        wc = ((q == &a) ? scq : peer_cq).next();
        if (wc.status == IBV_WC_SUCCESS) {
            REQUIRE_EQ(IBV_WC_LOCAL_INV, wc.opcode);
        }
        return wc.status;
    }

    /** a: 64 bytes, or an atomic. @return status */
    ibv_wc_status access(ibv_wr_opcode opcode, uint64_t addr, uint32_t rkey,
                         unsigned length = 64)
    {
        bool is_atomic = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
        send_wr wr(opcode, 1, {mem.sge(0, is_atomic ? 8 : length)});
        address to = {};

        to.addr = addr;
        to.rkey = rkey;
        if (is_atomic) {
            wr.atomic(to, 0, 3);
        } else {
            wr.to(to);
        }
        a.send(wr);
        return scq.next().status;
    }

    ibv_wc_status put(uint64_t addr, uint32_t rkey, unsigned length = 64)
    {
        return access(IBV_WR_RDMA_WRITE, addr, rkey, length);
    }

    memory target;
};

/** A long write to a window of type 2, under way while @a end frees it: memory
 *  has to stay as it is from then on. Whether the write is done by then, or
 *  fails, is a matter of chance. */
void expect_quiet(const std::function<void(windows&, window&)> &end)
{
    const size_t size = 16 << 20;

    for (int i = 0; i < 8; ++i) {
        windows w;
        memory from(w.c, size);
        memory to(w.c, size, bindable);
        window v(w.c, IBV_MW_TYPE_2);
        std::atomic<bool> is_done{false};
        std::vector<uint8_t> then(size);

        memset(from.data, 1, size);
        REQUIRE_EQ(IBV_WC_SUCCESS, w.bind_2(v, to.addr(), size, window_access,
                                            nullptr, to.mr));
        address there = {};
        there.addr    = to.addr();
        there.rkey    = v.v->rkey;

        std::thread peer([&] {
            send_wr wr(IBV_WR_RDMA_WRITE, 1, {from.sge(0, size)});

            w.a.send(wr.to(there));
            w.scq.next();
            is_done = true;
        });
        while ((*(volatile uint8_t*)to.data == 0) && !is_done) {
            sched_yield();
        }
        end(w, v);
        memcpy(then.data(), to.data, size);
        peer.join();
        REQUIRE(memcmp(then.data(), to.data, size) == 0);
    }
}

} // namespace

TEST_F(test_device_window, are_told)
{
    run(1, [](rank&) {
        context c;
        ibv_device_attr attr;

        REQUIRE_EQ(0, ibv_query_device(c.ctx, &attr));
        REQUIRE(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
        REQUIRE(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
        REQUIRE(!(attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2A));
        REQUIRE_EQ(attr.max_mr, attr.max_mw);
    });
}

/* A domain is in use as long as it has windows */
TEST_F(test_device_window, are_made_in_a_domain)
{
    run(1, [](rank&) {
        context c;
        ibv_pd *pd = ibv_alloc_pd(c.ctx);
        {
            window w(c, IBV_MW_TYPE_1, pd);

            REQUIRE_EQ(EBUSY, ibv_dealloc_pd(pd));
            REQUIRE(w.v->rkey != 0);
        }
        REQUIRE_EQ(0, ibv_dealloc_pd(pd));
        errno = 0;
        REQUIRE(ibv_alloc_mw(c.pd, (ibv_mw_type)3) == nullptr);
        REQUIRE_EQ(EINVAL, errno);
    });
}

/* Peers may do what the window says in what it leads to. The region itself is
 * closed to them. */
TEST_F(test_device_window, type_1_gives_access_to_a_part)
{
    run(1, [](rank&) {
        windows l;
        window w(l.c, IBV_MW_TYPE_1);
        uint64_t addr = l.target.addr(1000);

        REQUIRE_EQ(IBV_WC_SUCCESS, l.bind(w, addr, 512));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.put(addr, w.v->rkey));
        REQUIRE_EQ(64, pattern::check(l.target.data + 1000, 64, 1));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.put(addr, w.v->rkey, 512));
        REQUIRE_EQ(IBV_WC_SUCCESS,
                   l.access(IBV_WR_RDMA_READ, addr + 448, w.v->rkey));
        l.target.data[1008] = 4;
        REQUIRE_EQ(IBV_WC_SUCCESS,
                   l.access(IBV_WR_ATOMIC_FETCH_AND_ADD, addr + 8, w.v->rkey));
        REQUIRE_EQ(7, l.target.data[1008]);
    });
}

TEST_F(test_device_window, nothing_is_reached_around_it)
{
    struct {
        int      offset;
        unsigned length;
    } rows[] = {{-1, 8}, {511, 2}, {512, 1}, {0, 513}, {-8, 8}};

    for (const auto &row : rows) {
        run(1, [&](rank&) {
            windows l;
            window w(l.c, IBV_MW_TYPE_1);
            uint64_t addr = l.target.addr(1000);

            REQUIRE_EQ(IBV_WC_SUCCESS, l.bind(w, addr, 512));
            memset(l.target.data, 0, l.target.size);
            REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR,
                       l.put(addr + row.offset, w.v->rkey, row.length));
            REQUIRE_EQ(0, l.target.data[999]);
            REQUIRE_EQ(0, l.target.data[1000 + 512]);
        });
    }
}

TEST_F(test_device_window, access_is_what_the_bind_says)
{
    struct {
        unsigned      access;
        ibv_wr_opcode opcode;
    } rows[] = {
        {IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_WRITE},
        {IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_READ},
        {IBV_ACCESS_REMOTE_WRITE, IBV_WR_ATOMIC_FETCH_AND_ADD}
    };

    for (const auto &row : rows) {
        run(1, [&](rank&) {
            windows l;
            window w(l.c, IBV_MW_TYPE_1);

            REQUIRE_EQ(IBV_WC_SUCCESS, l.bind(w, l.target.addr(), 512,
                                              row.access));
            REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR,
                       l.access(row.opcode, l.target.addr(), w.v->rkey));
        });
    }
}

/* The adapter itself may not write there */
TEST_F(test_device_window, a_region_that_is_only_read_is_not_written)
{
    run(1, [](rank&) {
        windows l(IBV_ACCESS_MW_BIND);
        window w(l.c, IBV_MW_TYPE_1);

        REQUIRE_EQ(IBV_WC_SUCCESS, l.bind(w, l.target.addr(), 512));
        REQUIRE_EQ(IBV_WC_SUCCESS,
                   l.access(IBV_WR_RDMA_READ, l.target.addr(), w.v->rkey));
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, l.put(l.target.addr(), w.v->rkey));
    });
}

TEST_F(test_device_window, a_key_ends_with_the_next_bind)
{
    run(1, [](rank&) {
        windows l;
        window w(l.c, IBV_MW_TYPE_1);
        uint32_t first;

        REQUIRE_EQ(IBV_WC_SUCCESS, l.bind(w, l.target.addr(), 512));
        first = w.v->rkey;
        REQUIRE_EQ(IBV_WC_SUCCESS, l.bind(w, l.target.addr(4096), 512));
        REQUIRE(first != w.v->rkey);
        REQUIRE_EQ(IBV_WC_SUCCESS, l.put(l.target.addr(4096), w.v->rkey));
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, l.put(l.target.addr(), first));
    });
}

/* IBTA 10.6.7.2.3: a bind of nothing takes the access away */
TEST_F(test_device_window, a_bind_of_nothing_frees_type_1)
{
    run(1, [](rank&) {
        windows l;
        window w(l.c, IBV_MW_TYPE_1);

        REQUIRE_EQ(IBV_WC_SUCCESS, l.bind(w, l.target.addr(), 512));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.bind(w, l.target.addr(), 0));
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, l.put(l.target.addr(), w.v->rkey));
    });
}

TEST_F(test_device_window, one_that_is_not_bound_gives_no_access)
{
    run(1, [](rank&) {
        windows l;
        window w(l.c, IBV_MW_TYPE_1);

        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, l.put(l.target.addr(), w.v->rkey));
    });
}

TEST_F(test_device_window, one_that_is_gone_gives_no_access)
{
    run(1, [](rank&) {
        windows l;
        window w(l.c, IBV_MW_TYPE_1);
        uint32_t rkey;

        REQUIRE_EQ(IBV_WC_SUCCESS, l.bind(w, l.target.addr(), 512));
        rkey = w.v->rkey;
        REQUIRE_EQ(0, ibv_dealloc_mw(w.v));
        w.v = nullptr;
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, l.put(l.target.addr(), rkey));
    });
}

/* Linux deregisters it: nobody counts its windows */
TEST_F(test_device_window, of_a_region_that_is_gone)
{
    run(1, [](rank&) {
        windows l;
        window w(l.c, IBV_MW_TYPE_1);
        std::unique_ptr<memory> region(new memory(l.c, 4096, bindable));
        uint64_t addr = region->addr();

        REQUIRE_EQ(IBV_WC_SUCCESS, l.bind(w, addr, 512, window_access,
                                          region->mr));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.put(addr, w.v->rkey));
        region.reset();
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, l.put(addr, w.v->rkey));
    });
}

/* A window of another domain can't be bound, and a region of another one does
 * not give access */
TEST_F(test_device_window, domains_are_kept_apart)
{
    run(1, [](rank&) {
        windows l, other;
        ibv_pd *pd  = ibv_alloc_pd(l.c.ctx);
        ibv_pd *pd2 = ibv_alloc_pd(other.c.ctx);
        {
            window w(l.c, IBV_MW_TYPE_2, pd);
            window w2(other.c, IBV_MW_TYPE_2);
            memory region(other.c, 4096, bindable, pd2);

            REQUIRE_EQ(IBV_WC_MW_BIND_ERR, l.bind_2(w, l.target.addr(), 512));
            REQUIRE_EQ(IBV_QPS_ERR, l.b.state());
            REQUIRE_EQ(IBV_WC_SUCCESS,
                       other.bind_2(w2, region.addr(), 512, window_access,
                                    nullptr, region.mr));
            REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR,
                       other.put(region.addr(), w2.v->rkey));
        }
        REQUIRE_EQ(0, ibv_dealloc_pd(pd));
        REQUIRE_EQ(0, ibv_dealloc_pd(pd2));
    });
}

TEST_F(test_device_window, type_2_is_bound_and_freed_by_work_requests)
{
    run(1, [](rank&) {
        windows l;
        window w(l.c, IBV_MW_TYPE_2);
        uint32_t first;

        REQUIRE_EQ(IBV_WC_SUCCESS, l.bind_2(w, l.target.addr(), 512));
        first = w.v->rkey;
        REQUIRE_EQ(IBV_WC_SUCCESS, l.put(l.target.addr(), first));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.invalidate(first));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.bind_2(w, l.target.addr(4096), 512));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.put(l.target.addr(4096), w.v->rkey));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.invalidate(w.v->rkey));
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, l.put(l.target.addr(4096),
                                                w.v->rkey));
    });
}

/* IBTA 10.6.7.2.2 */
TEST_F(test_device_window, type_2_has_to_be_free_to_be_bound)
{
    run(1, [](rank&) {
        windows l;
        window w(l.c, IBV_MW_TYPE_2);

        REQUIRE_EQ(IBV_WC_SUCCESS, l.bind_2(w, l.target.addr(), 512));
        REQUIRE_EQ(IBV_WC_MW_BIND_ERR, l.bind_2(w, l.target.addr(4096), 512));
    });
}

/* Type 2B: only by the queue pair that has bound it, and type 1 by any of the
 * domain */
TEST_F(test_device_window, type_2_is_for_one_queue_pair)
{
    run(1, [](rank&) {
        windows l;
        window w(l.c, IBV_MW_TYPE_2), any(l.c, IBV_MW_TYPE_1);
        qp other(l.c, l.peer_cq, l.peer_cq), third(l.c, l.scq, l.scq);

        other.connect(third.addr());
        third.connect(other.addr());
        REQUIRE_EQ(IBV_WC_SUCCESS, l.bind_2(w, l.target.addr(), 512,
                                            window_access, &other));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.bind(any, l.target.addr(), 512));

        send_wr wr(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 64)});
        address to = {};
        to.addr    = l.target.addr();
        to.rkey    = any.v->rkey;
        third.send(wr.to(to));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.scq.next().status);
        to.rkey = w.v->rkey;
        third.send(wr.to(to));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.scq.next().status);
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, l.put(to.addr, w.v->rkey));
    });
}

TEST_F(test_device_window, type_2_is_freed_by_its_queue_pair)
{
    run(1, [](rank&) {
        windows l;
        window w(l.c, IBV_MW_TYPE_2);
        qp other(l.c, l.peer_cq, l.peer_cq), third(l.c, l.scq, l.scq);

        other.connect(third.addr());
        REQUIRE_EQ(IBV_WC_SUCCESS, l.bind_2(w, l.target.addr(), 512));
        REQUIRE_EQ(IBV_WC_MW_BIND_ERR, l.invalidate(w.v->rkey, &other));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.put(l.target.addr(), w.v->rkey));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.invalidate(w.v->rkey));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.invalidate(w.v->rkey));
    });
}

TEST_F(test_device_window, addresses_from_0_on)
{
    run(1, [](rank&) {
        windows l;
        window w(l.c, IBV_MW_TYPE_2);

        REQUIRE_EQ(IBV_WC_SUCCESS,
                   l.bind_2(w, l.target.addr(1000), 512,
                            window_access | IBV_ACCESS_ZERO_BASED));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.put(448, w.v->rkey));
        REQUIRE_EQ(64, pattern::check(l.target.data + 1448, 64, 1));
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, l.put(449, w.v->rkey));
    });
}

/* A peer frees what it was given, with its answer */
TEST_F(test_device_window, a_send_frees_type_2)
{
    run(1, [](rank&) {
        windows l;
        window w(l.c, IBV_MW_TYPE_2);
        send_wr wr(IBV_WR_SEND_WITH_INV, 1, {l.mem.sge(0, 64)});
        ibv_wc wc;

        REQUIRE_EQ(IBV_WC_SUCCESS, l.bind_2(w, l.target.addr(), 512));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.put(l.target.addr(), w.v->rkey));
        l.b.recv(3, l.peer_mem.sge(0, 64));
        wr.invalidate_rkey = w.v->rkey;
        l.a.send(wr);
        REQUIRE_EQ(IBV_WC_SUCCESS, l.scq.next().status);
        wc = l.peer_cq.good();
        REQUIRE(wc.wc_flags & IBV_WC_WITH_INV);
        REQUIRE_EQ(w.v->rkey, wc.invalidated_rkey);
        /* without LOCAL_INV in between */
        REQUIRE_EQ(IBV_WC_SUCCESS, l.bind_2(w, l.target.addr(), 512));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.put(l.target.addr(), w.v->rkey));
        l.b.recv(3, l.peer_mem.sge(0, 64));
        l.a.send(wr); /* the key of before */
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, l.scq.next().status);
    });
}

/* mkc.en_rinval, which the kernel sets of windows of type 2 only */
TEST_F(test_device_window, a_send_frees_nothing_else)
{
    for (bool is_region : {false, true}) {
        run(1, [&](rank&) {
            windows l;
            window w(l.c, IBV_MW_TYPE_1);
            send_wr wr(IBV_WR_SEND_WITH_INV, 1, {l.mem.sge(0, 64)});

            REQUIRE_EQ(IBV_WC_SUCCESS, l.bind(w, l.target.addr(), 512));
            l.b.recv(3, l.peer_mem.sge(0, 64));
            wr.invalidate_rkey = is_region ? l.peer_mem.mr->rkey : w.v->rkey;
            l.a.send(wr);
            REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, l.scq.next().status);
        });
    }
}

/* LOCAL_INV is for windows, too */
TEST_F(test_device_window, regions_are_not_freed)
{
    run(1, [](rank&) {
        windows l;

        REQUIRE_EQ(IBV_WC_MW_BIND_ERR, l.invalidate(l.peer_mem.mr->rkey));
        REQUIRE_EQ(IBV_QPS_ERR, l.b.state());
    });
}

/* In a row, in the order in which they are posted: a bind, what tells the peer,
 * and the peer's access */
TEST_F(test_device_window, work_requests_take_effect_in_order)
{
    run(1, [](rank&) {
        windows l;
        window w(l.c, IBV_MW_TYPE_2);

        for (unsigned i = 0; i < 100; ++i) {
            uint64_t addr = l.target.addr(i * 64);
            uint32_t key  = ibv_inc_rkey(w.v->rkey);
            send_wr bind(IBV_WR_BIND_MW, 1, {}, 0);
            send_wr tell(IBV_WR_SEND_WITH_IMM, 2, {}, 0);
            send_wr free(IBV_WR_LOCAL_INV, 3, {});

            l.a.recv(4, l.mem.sge(8192, 64));
            bind.bind_mw.mw                        = w.v;
            bind.bind_mw.rkey                      = key;
            bind.bind_mw.bind_info.mr              = l.target.mr;
            bind.bind_mw.bind_info.addr            = addr;
            bind.bind_mw.bind_info.length          = 64;
            bind.bind_mw.bind_info.mw_access_flags = window_access;
            tell.imm_data                          = key;
            bind.next                              = &tell;
            l.b.send(bind);
            REQUIRE_EQ(key, l.rcq.good().imm_data);
            pattern::fill(l.mem.data, 64, i + 1);
            REQUIRE_EQ(IBV_WC_SUCCESS, l.put(addr, key));
            REQUIRE_EQ(64, pattern::check(l.target.data + i * 64, 64, i + 1));
            free.invalidate_rkey = key;
            l.b.send(free);
            REQUIRE_EQ(3u, l.peer_cq.good().wr_id);
            w.v->rkey = key;
        }
    });
}

TEST_F(test_device_window, on_unreliable_connections)
{
    run(1, [](rank&) {
        windows l(bindable, {.type = IBV_QPT_UC});
        window w(l.c, IBV_MW_TYPE_1);

        REQUIRE_EQ(IBV_WC_SUCCESS, l.bind(w, l.target.addr(), 512));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.put(l.target.addr(), w.v->rkey));
        while (pattern::check(l.target.data, 64, 1) != 64) {
        }
    });
}

/* What is not pinned stays so */
TEST_F(test_device_window, of_memory_on_demand)
{
    set_env("MLX5SIM_ODP", "y");
    run(1, [](rank&) {
        windows l(bindable | IBV_ACCESS_ON_DEMAND);
        window w(l.c, IBV_MW_TYPE_1);

        REQUIRE_EQ(IBV_WC_SUCCESS, l.bind(w, l.target.addr(), 512));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.put(l.target.addr(), w.v->rkey));
        REQUIRE_EQ(0, mprotect((void*)(l.target.addr() & ~4095ul), 4096,
                               PROT_READ));
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, l.put(l.target.addr(), w.v->rkey));
        REQUIRE_EQ(0, mprotect((void*)(l.target.addr() & ~4095ul), 4096,
                               PROT_READ | PROT_WRITE));
    });
}

/* It did not wait for those that had found the window, as ibv_dereg_mr() does
 */
TEST_F(test_device_window, of_type_2_gives_no_access_once_it_is_freed)
{
    run(1, [](rank&) {
        expect_quiet([](windows&, window &v) {
            REQUIRE_EQ(0, ibv_dealloc_mw(v.v));
            v.v = nullptr;
        });
    });
}

/* Neither did this */
TEST_F(test_device_window, of_type_2_gives_no_access_once_it_is_invalid)
{
    run(1, [](rank&) {
        expect_quiet([](windows &w, window &v) {
            /* flushed, if the write has failed before */
            ibv_wc_status status = w.invalidate(v.v->rkey);

            REQUIRE((status == IBV_WC_SUCCESS) ||
                    (status == IBV_WC_WR_FLUSH_ERR));
        });
    });
}
