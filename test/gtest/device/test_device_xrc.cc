/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Extended reliable connections. Rules are those of IBTA volume 1, annex A14,
 * of Linux, ib_uverbs_open_xrcd() and qp_state_table, and of libmlx5.
 */

#include <common/seed.h>
#include <common/step.h>
#include <device/device.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include <fcntl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/rdma_user_ioctl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace device;

namespace {

class test_device_xrc : public device::test {
};

ibv_xrcd *open_domain(context &c, int fd, int flags)
{
    ibv_xrcd_init_attr attr = {};

    attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    attr.fd        = fd;
    attr.oflags    = flags;
    return ibv_open_xrcd(c.ctx, &attr);
}

struct xrcd {
    explicit xrcd(context &c, int fd = -1) : v(open_domain(c, fd, O_CREAT))
    {
        REQUIRE(v != nullptr);
    }

    ~xrcd()
    {
        REQUIRE_EQ(0, ibv_close_xrcd(v));
    }

    xrcd(const xrcd&) = delete;

    ibv_xrcd *v;
};

struct xsrq {
    xsrq(context &c, xrcd &domain, cq &done, ibv_pd *pd = nullptr)
    {
        ibv_srq_init_attr_ex attr = {};

        attr.attr.max_wr  = 64;
        attr.attr.max_sge = 2;
        attr.comp_mask    = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                            IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
        attr.srq_type     = IBV_SRQT_XRC;
        attr.pd           = (pd != nullptr) ? pd : c.pd;
        attr.xrcd         = domain.v;
        attr.cq           = done.v;
        v                 = ibv_create_srq_ex(c.ctx, &attr);
        REQUIRE(v != nullptr);
        REQUIRE_EQ(0, ibv_get_srq_num(v, &number));
    }

    ~xsrq()
    {
        REQUIRE_EQ(0, ibv_destroy_srq(v));
    }

    xsrq(const xsrq&) = delete;

    void recv(uint64_t id, ibv_sge sge)
    {
        ibv_recv_wr wr = {}, *bad;

        wr.wr_id   = id;
        wr.sg_list = &sge;
        wr.num_sge = 1;
        REQUIRE_EQ(0, ibv_post_srq_recv(v, &wr, &bad));
    }

    ibv_srq  *v;
    uint32_t number;
};

/** A target of @a domain, or an initiator. */
struct part {
    part(context &c, xrcd *domain, cq *done = nullptr, ibv_pd *pd = nullptr) :
        c(c), is_target(domain != nullptr)
    {
        ibv_qp_init_attr_ex attr = {};

        attr.qp_type = is_target ? IBV_QPT_XRC_RECV : IBV_QPT_XRC_SEND;
        if (is_target) {
            attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
            attr.xrcd      = domain->v;
        } else {
            attr.comp_mask           = IBV_QP_INIT_ATTR_PD;
            attr.pd                  = (pd != nullptr) ? pd : c.pd;
            attr.send_cq             = done->v;
            attr.cap.max_send_wr     = 32;
            attr.cap.max_send_sge    = 2;
            attr.cap.max_inline_data = 64;
        }
        v = ibv_create_qp_ex(c.ctx, &attr);
        REQUIRE(v != nullptr);
    }

    ~part()
    {
        REQUIRE_EQ(0, ibv_destroy_qp(v));
    }

    part(const part&) = delete;

    address addr() const
    {
        address a = {};

        a.qpn = v->qp_num;
        a.lid = c.lid;
        a.gid = c.gid;
        return a;
    }

    void connect(const address &peer)
    {
        ibv_qp_attr attr = {};
        int rtr          = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                           IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
        int rts          = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN;

        attr.qp_state        = IBV_QPS_INIT;
        attr.port_num        = c.port;
        attr.qp_access_flags = is_target ? IBV_ACCESS_REMOTE_WRITE |
                                           IBV_ACCESS_REMOTE_READ |
                                           IBV_ACCESS_REMOTE_ATOMIC : 0;
        REQUIRE_EQ(0, ibv_modify_qp(v, &attr, IBV_QP_STATE | IBV_QP_PORT |
                                              IBV_QP_PKEY_INDEX |
                                              IBV_QP_ACCESS_FLAGS));

        attr.qp_state                  = IBV_QPS_RTR;
        attr.path_mtu                  = IBV_MTU_1024;
        attr.dest_qp_num               = peer.qpn;
        attr.max_dest_rd_atomic        = 4;
        attr.min_rnr_timer             = 1;
        attr.ah_attr.dlid              = peer.lid;
        attr.ah_attr.port_num          = c.port;
        attr.ah_attr.is_global         = c.is_roce;
        attr.ah_attr.grh.dgid          = peer.gid;
        attr.ah_attr.grh.sgid_index    = 0;
        attr.ah_attr.grh.hop_limit     = 1;
        if (is_target) {
            rtr |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        }
        REQUIRE_EQ(0, ibv_modify_qp(v, &attr, rtr));

        attr.qp_state      = IBV_QPS_RTS;
        attr.timeout       = 18;
        attr.retry_cnt     = 7;
        attr.rnr_retry     = 7;
        attr.max_rd_atomic = 4;
        if (!is_target) {
            rts |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                   IBV_QP_MAX_QP_RD_ATOMIC;
        }
        REQUIRE_EQ(0, ibv_modify_qp(v, &attr, rts));
    }

    void send(send_wr &&wr, uint32_t srq)
    {
        ibv_send_wr *bad;

        wr.qp_type.xrc.remote_srqn = srq;
        REQUIRE_EQ(0, ibv_post_send(v, &wr, &bad));
    }

    context &c;
    bool    is_target;
    ibv_qp  *v;
};

/** An initiator and a target in one process, and an SRQ behind that. */
struct pair {
    pair() : mem(c, size), done(c, 256), received(c, 256), domain(c),
        shared(c, domain, received), from(c, nullptr, &done), to(c, &domain)
    {
        to.connect(from.addr());
        from.connect(to.addr());
    }

    /** @return status of what is sent to an SRQ */
    ibv_wc_status send(uint32_t srq, uint32_t length = 100)
    {
        from.send(send_wr(IBV_WR_SEND, 1, {mem.sge(0, length)}), srq);
        return done.next().status;
    }

    static const size_t size = 256 << 10;

    context c;
    memory  mem;
    cq      done, received;
    xrcd    domain;
    xsrq    shared;
    part    from, to;
};

/** A long message to an SRQ of another context, while that is closed or the SRQ
 *  destroyed: memory has to stay as it is from then on. Whether the message is
 *  there by then, or fails, is a matter of chance. */
void expect_quiet(bool closes)
{
    const size_t size = 16 << 20;
    int fd            = open("/dev/null", O_RDONLY);

    for (int i = 0; i < 8; ++i) {
        context c;
        memory mem(c, size);
        cq done(c, 16);
        xrcd domain(c, fd);
        part from(c, nullptr, &done), to(c, &domain);
        auto other    = std::make_unique<context>();
        auto there    = std::make_unique<memory>(*other, size);
        auto received = std::make_unique<cq>(*other, 16);
        auto same     = std::make_unique<xrcd>(*other, fd);
        auto shared   = std::make_unique<xsrq>(*other, *same, *received);
        std::atomic<bool> is_done{false};
        std::vector<uint8_t> then(size);

        to.connect(from.addr());
        from.connect(to.addr());
        memset(mem.data, 1, size);
        shared->recv(1, there->sge(0, size));
        uint32_t number = shared->number;
        std::thread peer([&] {
            from.send(send_wr(IBV_WR_SEND, 1, {mem.sge(0, size)}), number);
            done.next();
            is_done = true;
        });
        while ((*(volatile uint8_t*)there->data == 0) && !is_done) {
            sched_yield();
        }
        if (closes) {
            /* nobody can destroy the rest any more */
            REQUIRE_EQ(0, ibv_close_device(other->ctx));
            (void)other.release();
            (void)same.release();
            (void)received.release();
            (void)shared.release();
        } else {
            shared.reset();
            received.reset();
        }
        memcpy(then.data(), there->data, size);
        peer.join();
        REQUIRE(memcmp(then.data(), there->data, size) == 0);
        if (closes) {
            (void)there.release();
        }
    }
    close(fd);
}

/** Steps until there is a completion. */
ibv_wc step_until(cq &queue)
{
    unsigned steps;
    ibv_wc wc;

    for (steps = 0; !queue.poll(&wc); ++steps) {
        REQUIRE(steps < 100000);
        REQUIRE_EQ(1, step::make());
    }
    return wc;
}

uint32_t cq_number(const cq &queue)
{
    return queue.direct().cqn;
}

} // namespace


TEST_F(test_device_xrc, it_is_announced)
{
    run(1, [](rank&) {
        ibv_device_attr attr;
        context c;

        REQUIRE_EQ(0, ibv_query_device(c.ctx, &attr));
        REQUIRE(attr.device_cap_flags & IBV_DEVICE_XRC);
    });

    /* it can't be relied on there */
    set_env("MLX5SIM_DIR", dir() + "/wire");
    set_env("MLX5SIM_LINK", "roce");
    set_env("MLX5SIM_WIRE", "lo");
    run(1, [](rank&) {
        ibv_device_attr attr;
        context c;

        REQUIRE_EQ(0, ibv_query_device(c.ctx, &attr));
        REQUIRE(!(attr.device_cap_flags & IBV_DEVICE_XRC));
    });
}

/* By the key of all memory, of which some comes later and goes again */
TEST_F(test_device_xrc, on_demand_paging)
{
    set_env("MLX5SIM_ODP", "y");
    run(1, [](rank&) {
        const size_t size       = 16384;
        ibv_device_attr_ex attr = {};
        pair p;

        REQUIRE_EQ(0, ibv_query_device_ex(p.c.ctx, nullptr, &attr));
        REQUIRE_EQ(0x3d, attr.xrc_odp_caps);

        ibv_mr *all = ibv_reg_mr(p.c.pd, nullptr, SIZE_MAX,
                                 all_access | IBV_ACCESS_ON_DEMAND);
        REQUIRE(all != nullptr);
        auto *later = (uint8_t*)mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(later != MAP_FAILED);
        address to = {};
        to.addr    = (uintptr_t)later;
        to.rkey    = all->rkey;
        pattern::fill(p.mem.data, 5000, 1);
        ibv_sge from = {p.mem.addr(), 5000, all->lkey};

        p.from.send(std::move(send_wr(IBV_WR_RDMA_WRITE, 1, {from}).to(to)),
                    p.shared.number);
        REQUIRE_EQ(IBV_WC_SUCCESS, p.done.next().status);
        REQUIRE_EQ(5000, pattern::check(later, 5000, 1));

        p.shared.recv(2, {(uintptr_t)later + 8192, 8192, all->lkey});
        p.from.send(send_wr(IBV_WR_SEND, 2, {from}), p.shared.number);
        REQUIRE_EQ(IBV_WC_SUCCESS, p.done.next().status);
        REQUIRE_EQ(5000, p.received.good().byte_len);
        REQUIRE_EQ(5000, pattern::check(later + 8192, 5000, 1));

        REQUIRE_EQ(0, munmap(later, size));
        send_wr read(IBV_WR_RDMA_READ, 3, {p.mem.sge(0, 8)});
        p.from.send(std::move(read.to(to)), p.shared.number);
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, p.done.next().status);
        REQUIRE_EQ(0, ibv_dereg_mr(all));
    });
}

/* One connection, and the SRQ that each message names */
TEST_F(test_device_xrc, messages_go_to_the_srq_that_they_name)
{
    for (const char *link : {"ib", "roce"}) {
        set_env("MLX5SIM_DIR", dir() + "/" + link);
        set_env("MLX5SIM_LINK", link);
        run(1, [](rank&) {
            pair p;
            cq other_done(p.c, 64);
            xsrq other(p.c, p.domain, other_done);
            const size_t half = pair::size / 2, slot = 8192;
            pattern rnd(1);

            for (unsigned i = 0; i < 40; ++i) {
                bool is_other   = rnd.below(2);
                uint32_t length = rnd.below(5000);
                send_wr wr((i & 1) ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND, i,
                           {p.mem.sge(0, length)});

                wr.imm_data = i;
                pattern::fill(p.mem.data, length, i);
                (is_other ? other : p.shared)
                        .recv(i, p.mem.sge(half + (i % 8) * slot, slot));
                p.from.send(std::move(wr),
                            is_other ? other.number : p.shared.number);
                REQUIRE_EQ(i, p.done.good().wr_id);
                ibv_wc wc = (is_other ? other_done : p.received).good();
                REQUIRE_EQ(i, wc.wr_id);
                REQUIRE_EQ(length, wc.byte_len);
                REQUIRE_EQ(p.to.v->qp_num, wc.qp_num);
                if (i & 1) {
                    REQUIRE_EQ(i, wc.imm_data);
                }
                REQUIRE_EQ(length, pattern::check(p.mem.data + half +
                                                  (i % 8) * slot, length, i));
            }
            p.received.empty();
            other_done.empty();
        });
    }
}

TEST_F(test_device_xrc, memory_is_written_and_read)
{
    run(1, [](rank&) {
        pair p;
        const size_t half = pair::size / 2;
        address to        = {};
        uint64_t number   = 40;

        to.addr = p.mem.addr(half);
        to.rkey = p.mem.mr->rkey;
        pattern::fill(p.mem.data, 100000, 3);
        p.from.send(std::move(send_wr(IBV_WR_RDMA_WRITE, 1,
                                      {p.mem.sge(0, 100000)}).to(to)),
                    p.shared.number);
        p.done.good();
        REQUIRE_EQ(100000, pattern::check(p.mem.data + half, 100000, 3));
        memset(p.mem.data, 0, 100000);
        p.from.send(std::move(send_wr(IBV_WR_RDMA_READ, 2,
                                      {p.mem.sge(0, 100000)}).to(to)),
                    p.shared.number);
        p.done.good();
        REQUIRE_EQ(100000, pattern::check(p.mem.data, 100000, 3));

        memcpy(p.mem.data + half, &number, 8);
        p.from.send(std::move(send_wr(IBV_WR_ATOMIC_FETCH_AND_ADD, 3,
                                      {p.mem.sge(0, 8)}).atomic(to, 0, 7)),
                    p.shared.number);
        p.done.good();
        REQUIRE_EQ(40, *(uint64_t*)p.mem.data);
        REQUIRE_EQ(47, *(uint64_t*)(p.mem.data + half));
        p.from.send(std::move(send_wr(IBV_WR_ATOMIC_CMP_AND_SWP, 4,
                                      {p.mem.sge(0, 8)}).atomic(to, 0, 47, 5)),
                    p.shared.number);
        p.done.good();
        REQUIRE_EQ(5, *(uint64_t*)(p.mem.data + half));

        p.shared.recv(9, p.mem.sge(0, 64));
        send_wr last(IBV_WR_RDMA_WRITE_WITH_IMM, 5, {p.mem.sge(0, 64)});
        last.imm_data = 77;
        p.from.send(std::move(last.to(to)), p.shared.number);
        p.done.good();
        ibv_wc wc = p.received.good();
        REQUIRE_EQ(9, wc.wr_id);
        REQUIRE_EQ(77, wc.imm_data);
    });
}

/* It is the SRQ that has a protection domain, not the target */
TEST_F(test_device_xrc, keys_are_those_of_the_srqs_domain)
{
    run(1, [](rank&) {
        for (bool is_other : {false, true}) {
            pair p;
            ibv_pd *pd = ibv_alloc_pd(p.c.ctx);

            REQUIRE(pd != nullptr);
            {
                xsrq other(p.c, p.domain, p.received, pd);
                memory target(p.c, 4096, all_access, pd);
                address to = {};

                /* of the SRQ of the request, not that of the one before it */
                p.shared.recv(1, p.mem.sge(0, 64));
                REQUIRE_EQ(IBV_WC_SUCCESS, p.send(p.shared.number, 64));
                to.addr = target.addr();
                to.rkey = target.mr->rkey;
                p.from.send(std::move(send_wr(IBV_WR_RDMA_WRITE, 1,
                                              {p.mem.sge(0, 64)}).to(to)),
                            is_other ? other.number : p.shared.number);
                REQUIRE_EQ(is_other ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR,
                           p.done.next().status);
            }
            REQUIRE_EQ(0, ibv_dealloc_pd(pd));
        }
    });
}

/* Data may come when the target has turned to another SRQ */
TEST_F(test_device_xrc, keys_of_a_read_stay_those_of_its_srq)
{
    set_env("MLX5SIM_EXEC", "stepped");
    run(1, [](rank&) {
        const size_t half = pair::size / 2, length = 50000;
        pair p;
        ibv_pd *pd = ibv_alloc_pd(p.c.ctx);

        REQUIRE(pd != nullptr);
        {
            xsrq other(p.c, p.domain, p.received, pd);
            memory into(p.c, 1 << 20, all_access, pd);
            address to = {};

            to.addr = p.mem.addr(half);
            to.rkey = p.mem.mr->rkey;
            pattern::fill(p.mem.data + half, length, 1);
            for (unsigned i = 0; i < 8; ++i) {
                other.recv(i, into.sge(i * 100000, 100000));
                p.from.send(std::move(send_wr(IBV_WR_RDMA_READ, 2 * i,
                                              {p.mem.sge(0, length)}).to(to)),
                            p.shared.number);
                p.from.send(send_wr(IBV_WR_SEND, 2 * i + 1,
                                    {p.mem.sge(half, length)}), other.number);
            }
            for (unsigned i = 0; i < 16; ++i) {
                REQUIRE_EQ(IBV_WC_SUCCESS, step_until(p.done).status);
            }
            REQUIRE_EQ(length, pattern::check(p.mem.data, length, 1));
            REQUIRE_EQ(length, pattern::check(into.data, length, 1));
        }
        REQUIRE_EQ(0, ibv_dealloc_pd(pd));
    });
}

TEST_F(test_device_xrc, an_srq_that_is_empty_is_waited_for)
{
    run(1, [](rank&) {
        pair p;

        p.from.send(send_wr(IBV_WR_SEND, 1, {p.mem.sge(0, 3000)}),
                    p.shared.number);
        usleep(2000);
        p.done.empty();
        p.shared.recv(2, p.mem.sge(8192, 4096));
        p.done.good();
        REQUIRE_EQ(3000, p.received.good().byte_len);
    });
}

/* One that is in another domain, of another kind, or not there: an invalid
 * request. The target fails, as one of RC */
TEST_F(test_device_xrc, srqs_that_are_not_the_targets)
{
    run(1, [](rank&) {
        for (unsigned kind = 0; kind < 4; ++kind) {
            pair p;
            xrcd domain(p.c);
            xsrq other(p.c, domain, p.received);
            srq basic(p.c, 16);
            uint32_t basic_number;
            ibv_qp_init_attr init;
            ibv_qp_attr attr;
            mlx5dv_srq dv  = {};
            mlx5dv_obj obj = {};

            dv.comp_mask = MLX5DV_SRQ_MASK_SRQN;
            obj.srq.in   = basic.v;
            obj.srq.out  = &dv;
            REQUIRE_EQ(0, mlx5dv_init_obj(&obj, MLX5DV_OBJ_SRQ));
            basic_number = dv.srqn;

            const uint32_t numbers[] = {other.number, basic_number, 0,
                                        0xffffff};
            other.recv(1, p.mem.sge(0, 4096));
            basic.recv(1, p.mem.sge(0, 4096));
            REQUIRE_EQ(IBV_WC_REM_INV_REQ_ERR, p.send(numbers[kind]));
            REQUIRE_EQ(0, ibv_query_qp(p.to.v, &attr, IBV_QP_STATE, &init));
            REQUIRE_EQ(IBV_QPS_ERR, attr.qp_state);
            p.received.empty();
            REQUIRE_EQ(IBV_WC_WR_FLUSH_ERR, p.send(p.shared.number));
        }
    });
}

TEST_F(test_device_xrc, an_srq_that_has_gone)
{
    run(1, [](rank&) {
        pair p;
        uint32_t number;
        {
            xsrq other(p.c, p.domain, p.received);

            number = other.number;
            other.recv(1, p.mem.sge(0, 4096));
            REQUIRE_EQ(IBV_WC_SUCCESS, p.send(number));
            p.received.good();
        }
        REQUIRE_EQ(IBV_WC_REM_INV_REQ_ERR, p.send(number));
    });
}

/* It did not wait for targets that were about to deliver there */
TEST_F(test_device_xrc, nothing_is_delivered_to_an_srq_that_is_destroyed)
{
    run(1, [](rank&) {
        expect_quiet(false);
    });
}

/* Neither did this */
TEST_F(test_device_xrc, nothing_is_delivered_to_a_context_that_is_closed)
{
    run(1, [](rank&) {
        expect_quiet(true);
    });
}

/* A receive of which a part had landed was flushed to the completion queue that
 * had the number of the SRQ's by then */
TEST_F(test_device_xrc, a_target_forgets_an_srq_that_is_destroyed)
{
    set_env("MLX5SIM_EXEC", "stepped");
    run(1, [](rank&) {
        const size_t length = 100000;
        context c;
        memory mem(c, 2 * length);
        cq done(c, 16);
        xrcd domain(c);
        part from(c, nullptr, &done), to(c, &domain);
        auto received    = std::make_unique<cq>(c, 16);
        auto shared      = std::make_unique<xsrq>(c, domain, *received);
        ibv_qp_attr attr = {};
        uint32_t number  = cq_number(*received);

        to.connect(from.addr());
        from.connect(to.addr());
        memset(mem.data, 1, length);
        shared->recv(1, mem.sge(length, length));
        from.send(send_wr(IBV_WR_SEND, 1, {mem.sge(0, length)}),
                  shared->number);
        while (*(volatile uint8_t*)(mem.data + length) == 0) {
            REQUIRE_EQ(1, step::make());
        }
        shared.reset();
        received.reset();
        do {
            received = std::make_unique<cq>(c, 16);
        } while (cq_number(*received) != number);
        attr.qp_state = IBV_QPS_ERR;
        for (part *each : {&from, &to}) {
            REQUIRE_EQ(0, ibv_modify_qp(each->v, &attr, IBV_QP_STATE));
        }
        for (unsigned i = 0; i < 1000; ++i) {
            REQUIRE(step::make() >= 0);
        }
        received->empty();
    });
}

/* Packets that a target drops had it look for another SRQ, and the rest of the
 * message under way went to the next receive: those of who is not its peer */
TEST_F(test_device_xrc, strangers_do_not_part_a_message)
{
    set_env("MLX5SIM_EXEC", "stepped");
    run(1, [](rank&) {
        const size_t length = 100000;
        pair p;
        memory to(p.c, 2 * length);
        cq done(p.c, 16);
        qp stranger(p.c, done, done, {.timeout = 1, .retry_cnt = 0});
        stranger.connect(p.to.addr());
        pattern::fill(p.mem.data, length, 1);
        p.shared.recv(1, to.sge(0, length));
        p.shared.recv(2, to.sge(length, length));
        p.from.send(send_wr(IBV_WR_SEND, 1, {p.mem.sge(0, length)}),
                    p.shared.number);
        while (*(volatile uint8_t*)to.data == 0) {
            REQUIRE_EQ(1, step::make());
        }
        send_wr wr(IBV_WR_SEND, 1, {p.mem.sge(0, 8)});
        stranger.send(wr);
        REQUIRE_EQ(IBV_WC_SUCCESS, step_until(p.done).status);
        REQUIRE_EQ(1, p.received.good().wr_id);
        REQUIRE_EQ(length, pattern::check(to.data, length, 1));
        REQUIRE_EQ(length, std::count(to.data + length, to.data + 2 * length,
                                      0));
    });
}

/* The same of packets that came too early */
TEST_F(test_device_xrc, packets_out_of_order_do_not_part_a_message)
{
    set_env("MLX5SIM_EXEC", "stepped");
    set_env("MLX5SIM_LOSS", "50");
    run(1, [](rank&) {
        context first; /* seeds are for a device that is open */

        for (uint64_t seed = 1; seed <= 30; ++seed) {
            const size_t half = pair::size / 2, length = 10000;

            step::restart(seed);
            pair p;
            pattern::fill(p.mem.data, length, seed);
            p.shared.recv(1, p.mem.sge(half, length));
            p.shared.recv(2, p.mem.sge(half + length, length));
            p.from.send(send_wr(IBV_WR_SEND, 1, {p.mem.sge(0, length)}),
                        p.shared.number);
            p.from.send(send_wr(IBV_WR_SEND, 2, {p.mem.sge(0, 8)}), 0xffffff);
            REQUIRE_EQ(IBV_WC_SUCCESS, step_until(p.done).status);
            REQUIRE(step_until(p.done).status != IBV_WC_SUCCESS);
            REQUIRE_EQ(1, p.received.good().wr_id);
            REQUIRE_EQ(length, pattern::check(p.mem.data + half, length,
                                              seed));
            p.received.empty();
        }
    });
}

/* create_qp() of Linux' uverbs_cmd.c */
TEST_F(test_device_xrc, srqs_of_it_serve_no_other_queue_pairs)
{
    run(1, [](rank&) {
        pair p;
        ibv_qp_init_attr attr = {};

        attr.qp_type          = IBV_QPT_RC;
        attr.send_cq          = p.done.v;
        attr.recv_cq          = p.done.v;
        attr.srq              = p.shared.v;
        attr.cap.max_send_wr  = 1;
        attr.cap.max_send_sge = 1;
        REQUIRE(ibv_create_qp(p.c.pd, &attr) == nullptr);
        REQUIRE_EQ(EINVAL, errno);
    });
}

/* RC queue pairs take nothing from initiators, nor targets from RC */
TEST_F(test_device_xrc, other_queue_pairs_do_not_answer)
{
    set_env("MLX5SIM_GONE_AFTER", "0");
    run(1, [](rank&) {
        qp_options options = {.timeout = 1, .retry_cnt = 0};
        loop l(options);
        xrcd domain(l.c);
        part target(l.c, &domain);
        qp rc(l.c, l.scq, l.scq, options);

        target.connect(rc.addr());
        rc.connect(target.addr());
        send_wr wr(IBV_WR_SEND, 1, {l.mem.sge(0, 8)});
        rc.send(wr);
        REQUIRE_EQ(IBV_WC_RETRY_EXC_ERR, l.scq.next().status);
    });
}

TEST_F(test_device_xrc, processes_send_to_each_other)
{
    run(2, [](rank &r) {
        char path[] = "/tmp/mlx5sim.xrcd.XXXXXX";
        int fd      = mkstemp(path);
        context c;
        memory mem(c, 1 << 20);
        cq done(c, 256), received(c, 256);

        REQUIRE(fd >= 0);
        unlink(path);
        {
            xrcd domain(c, fd);
            xsrq shared(c, domain, received);
            part from(c, nullptr, &done), to(c, &domain);
            address here = to.addr();

            here.qpn2 = from.addr().qpn;
            here.rkey = shared.number;
            r.publish(here);
            address there = r.lookup<address>(1 - r.index), target = there;
            from.connect(there);
            target.qpn = there.qpn2;
            to.connect(target);
            for (unsigned i = 0; i < 64; ++i) {
                shared.recv(i, mem.sge((i + 64) * 8192, 8192));
            }
            r.barrier();
            for (unsigned i = 0; i < 64; ++i) {
                pattern::fill(mem.data + (i % 8) * 8192, 100 * i, i);
                from.send(send_wr(IBV_WR_SEND, i,
                                  {mem.sge((i % 8) * 8192, 100 * i)}),
                          there.rkey);
                done.good();
            }
            for (unsigned i = 0; i < 64; ++i) {
                REQUIRE_EQ(100 * i, received.good().byte_len);
                REQUIRE_EQ(100 * i, pattern::check(mem.data + (i + 64) * 8192,
                                                   100 * i, i));
            }
            r.barrier();
        }
        close(fd);
    });
}

TEST_F(test_device_xrc, domains_are_files)
{
    run(1, [](rank&) {
        char path[] = "/tmp/mlx5sim.xrcd.XXXXXX";
        int fd      = mkstemp(path);
        context c;
        cq done(c, 16);

        REQUIRE(fd >= 0);
        REQUIRE(open_domain(c, fd, 0) == nullptr);
        REQUIRE_EQ(EAGAIN, errno);
        REQUIRE(open_domain(c, 1000, O_CREAT) == nullptr);
        REQUIRE_EQ(EBADF, errno);
        {
            xrcd domain(c, fd);
            int again = open(path, O_RDONLY);

            REQUIRE(open_domain(c, fd, O_CREAT | O_EXCL) == nullptr);
            REQUIRE_EQ(EINVAL, errno);

            /* the same one: an SRQ of one handle, a target of the other */
            xrcd same(c, again);
            xsrq shared(c, domain, done);
            part from(c, nullptr, &done), to(c, &same);
            memory mem(c, 4096);

            REQUIRE_EQ(EBUSY, ibv_close_xrcd(domain.v));
            REQUIRE_EQ(EBUSY, ibv_close_xrcd(same.v));
            REQUIRE_EQ(EBUSY, ibv_destroy_cq(done.v));
            to.connect(from.addr());
            from.connect(to.addr());
            shared.recv(1, mem.sge(0, 64));
            from.send(send_wr(IBV_WR_SEND, 2, {mem.sge(64, 8)}),
                      shared.number);
            done.good();
            done.good();
            close(again);
        }
        REQUIRE(open_domain(c, fd, 0) == nullptr);
        unlink(path);
        close(fd);
    });
}

/* What a process had open is closed when it has died, whoever finds out */
TEST_F(test_device_xrc, domains_of_the_dead_are_closed)
{
    int fd = open("/dev/null", O_RDONLY);

    start(0, 2, [fd](rank &r) {
        context c;
        xrcd domain(c, fd);

        r.word(0) = 1;
        for (;;) {
            pause();
        }
    });
    start(1, 2, [fd](rank &r) {
        context c;

        r.wait_word(0, 1);
        ibv_xrcd *v = open_domain(c, fd, 0);
        REQUIRE(v != nullptr);
        REQUIRE_EQ(0, ibv_close_xrcd(v));
        r.word(1) = 1;
        r.wait_word(2, 1);
        REQUIRE(open_domain(c, fd, 0) == nullptr);
        REQUIRE_EQ(EAGAIN, errno);
        v = open_domain(c, fd, O_CREAT | O_EXCL);
        REQUIRE(v != nullptr);
        REQUIRE_EQ(0, ibv_close_xrcd(v));
    });
    while (word(1) == 0) {
        usleep(1000);
    }
    kill(0);
    EXPECT_TRUE(WIFSIGNALED(finish(0)));
    word(2) = 1;
    EXPECT_EQ(0, finish(1));
    close(fd);
}

/* An SRQ of another process, which a target of that domain can't reach here */
TEST_F(test_device_xrc, srqs_of_other_processes_are_not_found)
{
    int fd = open("/dev/null", O_RDONLY);

    run(2, [fd](rank &r) {
        context c;
        memory mem(c, 8192);
        cq done(c, 64), received(c, 64);
        xrcd domain(c, fd);
        xsrq shared(c, domain, received);

        r.publish(shared.number);
        r.barrier();
        if (r.index == 0) {
            part from(c, nullptr, &done), to(c, &domain);

            to.connect(from.addr());
            from.connect(to.addr());
            from.send(send_wr(IBV_WR_SEND, 1, {mem.sge(0, 8)}),
                      r.lookup<uint32_t>(1));
            REQUIRE_EQ(IBV_WC_REM_INV_REQ_ERR, done.next().status);
        }
        r.barrier();
    });
    close(fd);
}

/* What each part needs to know, and no more */
TEST_F(test_device_xrc, attributes_of_transitions)
{
    run(1, [](rank&) {
        pair p;
        part from(p.c, nullptr, &p.done), to(p.c, &p.domain);
        ibv_qp_attr attr = {};
        int rtr          = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                           IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

        attr.qp_state = IBV_QPS_INIT;
        attr.port_num = 1;
        for (part *each : {&from, &to}) {
            REQUIRE_EQ(0, ibv_modify_qp(each->v, &attr, IBV_QP_STATE |
                                        IBV_QP_PORT | IBV_QP_PKEY_INDEX |
                                        IBV_QP_ACCESS_FLAGS));
        }
        attr.qp_state       = IBV_QPS_RTR;
        attr.path_mtu       = IBV_MTU_1024;
        attr.ah_attr.dlid   = p.c.lid;
        attr.ah_attr.port_num = 1;
        REQUIRE_EQ(EINVAL, ibv_modify_qp(to.v, &attr, rtr));
        REQUIRE_EQ(EINVAL, ibv_modify_qp(from.v, &attr,
                                         rtr & ~IBV_QP_RQ_PSN));

        /* Programs give what RC has, and Linux drops what is of the other part:
         * perftest and librdmacm do */
        attr.min_rnr_timer      = 12;
        attr.max_dest_rd_atomic = 4;
        for (part *each : {&from, &to}) {
            REQUIRE_EQ(0, ibv_modify_qp(each->v, &attr,
                                        rtr | IBV_QP_MIN_RNR_TIMER |
                                        IBV_QP_MAX_DEST_RD_ATOMIC));
        }
        attr.qp_state      = IBV_QPS_RTS;
        attr.timeout       = 14;
        attr.retry_cnt     = 5;
        attr.rnr_retry     = 6;
        attr.max_rd_atomic = 2;
        for (part *each : {&from, &to}) {
            REQUIRE_EQ(0, ibv_modify_qp(each->v, &attr, IBV_QP_STATE |
                                        IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
                                        IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                        IBV_QP_MAX_QP_RD_ATOMIC));
        }

        ibv_qp_init_attr init;
        REQUIRE_EQ(0, ibv_query_qp(from.v, &attr, IBV_QP_CAP, &init));
        REQUIRE_EQ(0, attr.min_rnr_timer);
        REQUIRE_EQ(5, attr.retry_cnt);
        REQUIRE_EQ(0, ibv_query_qp(to.v, &attr, IBV_QP_CAP, &init));
        REQUIRE_EQ(12, attr.min_rnr_timer);
        REQUIRE_EQ(0, attr.retry_cnt);
    });
    EXPECT_EQ(2u, take_violations().size());
}

/* Any handles: an error, or an object */
TEST_F(test_device_xrc, fuzz_of_commands)
{
    uint64_t random = seed::get();

    set_env("MLX5SIM_LOG", "error");
    run(1, [random](rank&) {
        pair p;
        pattern rnd(random);
        unsigned made = 0;

        for (unsigned i = 0; i < 3000; ++i) {
            alignas(8) uint8_t room[sizeof(ib_uverbs_ioctl_hdr) +
                                    5 * sizeof(ib_uverbs_attr)] = {};
            auto hdr = reinterpret_cast<ib_uverbs_ioctl_hdr*>(room);
            static uint8_t queues[65536], replies[2][4096];
            ib_uverbs_create_xsrq xsrq = {};
            ib_uverbs_create_qp xqp    = {};
            ib_uverbs_open_xrcd open   = {};
            mlx5_ib_create_srq usrq    = {};
            mlx5_ib_create_qp uqp      = {};
            unsigned kind              = rnd.below(3);
            const uint32_t commands[]  = {IB_USER_VERBS_CMD_CREATE_XSRQ,
                                          IB_USER_VERBS_CMD_CREATE_QP,
                                          IB_USER_VERBS_CMD_OPEN_XRCD};
            auto handle = [&]() -> uint32_t {
                return rnd.below(8) ? rnd.below(6) : rnd.next();
            };

            xsrq.srq_type    = rnd.below(4);
            xsrq.pd_handle   = handle();
            xsrq.max_wr      = rnd.below(64);
            xsrq.max_sge     = rnd.below(4);
            xsrq.xrcd_handle = handle();
            xsrq.cq_handle   = handle();
            usrq.buf_addr    = (uintptr_t)queues;
            usrq.db_addr     = (uintptr_t)queues;
            xqp.qp_type      = 9 + rnd.below(2);
            xqp.pd_handle    = handle();
            xqp.send_cq_handle = handle();
            xqp.recv_cq_handle = handle();
            xqp.srq_handle   = handle();
            xqp.is_srq       = rnd.below(2);
            uqp.buf_addr     = (uintptr_t)queues;
            uqp.db_addr      = (uintptr_t)queues;
            uqp.sq_wqe_count = 1 << rnd.below(5);
            uqp.rq_wqe_count = 1 << rnd.below(5);
            uqp.bfreg_index  = handle();
            uqp.flags        = rnd.below(2) ? +MLX5_QP_FLAG_UAR_PAGE_INDEX :
                                              rnd.next();
            open.fd          = rnd.below(2) ? rnd.below(10) : ~0u;
            open.oflags      = rnd.below(2) ? O_CREAT : rnd.next();

            hdr->length           = sizeof(room);
            hdr->object_id        = UVERBS_OBJECT_DEVICE;
            hdr->method_id        = UVERBS_METHOD_INVOKE_WRITE;
            hdr->num_attrs        = 5;
            hdr->attrs[0].attr_id = UVERBS_ATTR_WRITE_CMD;
            hdr->attrs[0].data    = commands[kind];
            hdr->attrs[1].attr_id = UVERBS_ATTR_CORE_IN;
            hdr->attrs[1].len     = (kind == 0) ? sizeof(xsrq) :
                                    (kind == 1) ? sizeof(xqp) : sizeof(open);
            hdr->attrs[1].data    = (kind == 0) ? (uintptr_t)&xsrq :
                                    (kind == 1) ? (uintptr_t)&xqp :
                                                  (uintptr_t)&open;
            hdr->attrs[2].attr_id = UVERBS_ATTR_CORE_OUT;
            hdr->attrs[2].len     = rnd.below(64) ? sizeof(replies[0]) : 4;
            hdr->attrs[2].data    = (uintptr_t)replies[0];
            hdr->attrs[3].attr_id = UVERBS_ATTR_UHW_IN;
            hdr->attrs[3].len     = (kind == 0) ? sizeof(usrq) : sizeof(uqp);
            hdr->attrs[3].data    = (kind == 0) ? (uintptr_t)&usrq :
                                                  (uintptr_t)&uqp;
            hdr->attrs[4].attr_id = UVERBS_ATTR_UHW_OUT;
            hdr->attrs[4].len     = sizeof(replies[1]);
            hdr->attrs[4].data    = (uintptr_t)replies[1];
            made += ioctl(p.c.ctx->cmd_fd, RDMA_VERBS_IOCTL, room) == 0;
        }
        REQUIRE(made > 0);

        /* and the device lives on */
        p.shared.recv(1, p.mem.sge(8192, 4096));
        REQUIRE_EQ(IBV_WC_SUCCESS, p.send(p.shared.number));
        _exit(0); /* with references from objects that nobody destroys */
    });
}
