/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * ibv_import_device() and what may be imported of a device, by a copy of the
 * descriptor of a context in the same process.
 */

#include <common/seed.h>
#include <device/device.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include <fcntl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl.h>
#include <sys/ioctl.h>
#include <unistd.h>

using namespace device;

namespace {

class test_device_import : public device::test {
protected:
    void SetUp() override
    {
        device::test::SetUp();
        set_env("MLX5SIM_UAR_MODE", "dynamic");
    }
};

/** A context that is a copy of another one, with a domain of its own. */
struct imported : public context {
    explicit imported(const context &of)
    {
        REQUIRE_EQ(0, ibv_dealloc_pd(pd));
        REQUIRE_EQ(0, ibv_close_device(ctx));
        ctx = ibv_import_device(fcntl(of.ctx->cmd_fd, F_DUPFD_CLOEXEC, 0));
        REQUIRE(ctx != nullptr);
        pd = ibv_alloc_pd(ctx);
        REQUIRE(pd != nullptr);
    }
};

/** A write of a QP to itself */
void write_to_oneself(qp &q, cq &scq, const memory &mem, unsigned seed)
{
    pattern::fill(mem.data, 1000, seed);
    memset(mem.data + 2000, 0, 1000);
    send_wr wr(IBV_WR_RDMA_WRITE, 1, {mem.sge(0, 1000)});
    q.send(wr.to(q.addr(&mem), 2000));
    scq.good();
    REQUIRE_EQ(1000, pattern::check(mem.data + 2000, 1000, seed));
}

} // namespace


TEST_F(test_device_import, domains_and_regions_are_those_of_the_context)
{
    run(1, [](rank&) {
        context c;
        memory mem(c, 4096);
        imported i(c);

        ibv_pd *pd = ibv_import_pd(i.ctx, c.pd->handle);
        REQUIRE(pd != nullptr);
        ibv_mr *mr = ibv_import_mr(pd, mem.mr->handle);
        REQUIRE(mr != nullptr);
        REQUIRE_EQ(mem.mr->lkey, mr->lkey);
        REQUIRE_EQ(mem.mr->rkey, mr->rkey);
        REQUIRE_EQ(4096, mr->length);

        /* queues of the copy, memory of the context */
        cq scq(i, 16), rcq(i, 16);
        qp q(i, scq, rcq, qp_options{.pd = pd});
        q.connect(q.addr());
        write_to_oneself(q, scq, mem, 1);
        q.destroy();
        ibv_unimport_mr(mr);
        ibv_unimport_pd(pd);

        REQUIRE(ibv_import_pd(i.ctx, 0x7777) == nullptr);
        REQUIRE(ibv_import_mr(c.pd, 0x7777) == nullptr);
    });
}

TEST_F(test_device_import, all_queues_can_be_made)
{
    run(1, [](rank&) {
        context c;
        imported i(c);
        memory mem(i, 4096);
        ibv_comp_channel *channel = ibv_create_comp_channel(i.ctx);
        ibv_cq *from;
        void *arg;

        REQUIRE(channel != nullptr);
        {
            cq scq(i, 16), rcq(i, 16, channel);
            srq s(i, 16);
            qp q(i, scq, rcq, qp_options{.srq = s.v});

            q.connect(q.addr());
            REQUIRE_EQ(0, ibv_req_notify_cq(rcq.v, 0));
            s.recv(7, mem.sge(2000, 1000));
            send_wr wr(IBV_WR_SEND, 1, {mem.sge(0, 1000)});
            q.send(wr);
            scq.good();
            REQUIRE_EQ(0, ibv_get_cq_event(channel, &from, &arg));
            REQUIRE(from == rcq.v);
            ibv_ack_cq_events(from, 1);
            REQUIRE_EQ(7, rcq.good().wr_id);
        }
        REQUIRE_EQ(0, ibv_destroy_comp_channel(channel));
    });
}

/* The context is there as long as one of its descriptors is, and no longer */
/* More imports than places that the device remembers */
TEST_F(test_device_import, device_memory_is_the_same)
{
    const size_t length = 5000;

    set_env("MLX5SIM_DM", "y");
    run(1, [](rank&) {
        ibv_alloc_dm_attr attr = {};
        std::vector<uint8_t> data(length);
        context c;
        imported i(c);
        memory mem(i, 4096);
        cq scq(i, 16), rcq(i, 16);
        qp q(i, scq, rcq);

        attr.length = length;
        ibv_dm *dm  = ibv_alloc_dm(c.ctx, &attr);
        REQUIRE(dm != nullptr);
        for (unsigned n = 0; n < 20; ++n) {
            ibv_dm *copy = ibv_import_dm(i.ctx, dm->handle);
            REQUIRE(copy != nullptr);
            pattern::fill(data.data(), length, n);
            REQUIRE_EQ(0, ibv_memcpy_to_dm((n & 1) ? dm : copy, 0, data.data(),
                                           length));
            memset(data.data(), 0, length);
            REQUIRE_EQ(0, ibv_memcpy_from_dm(data.data(), (n & 1) ? copy : dm,
                                             0, length));
            REQUIRE_EQ(length, pattern::check(data.data(), length, n));
            REQUIRE(ibv_memcpy_from_dm(data.data(), copy, length, 4) != 0);
            ibv_unimport_dm(copy);
        }

        /* a region of the copy outlives the import */
        ibv_dm *copy = ibv_import_dm(i.ctx, dm->handle);
        ibv_mr *mr   = ibv_reg_dm_mr(i.pd, copy, 0, length, all_access |
                                     IBV_ACCESS_ZERO_BASED);
        REQUIRE(mr != nullptr);
        ibv_unimport_dm(copy);
        q.connect(q.addr());
        address there = q.addr();
        there.addr    = 0;
        there.rkey    = mr->rkey;
        pattern::fill(mem.data, 1000, 7);
        send_wr wr(IBV_WR_RDMA_WRITE, 1, {mem.sge(0, 1000)});
        q.send(wr.to(there, 100));
        scq.good();
        REQUIRE_EQ(0, ibv_memcpy_from_dm(data.data(), dm, 100, 1000));
        REQUIRE_EQ(1000, pattern::check(data.data(), 1000, 7));
        REQUIRE_EQ(EBUSY, ibv_free_dm(dm));
        REQUIRE_EQ(0, ibv_dereg_mr(mr));
        REQUIRE_EQ(0, ibv_free_dm(dm));

        REQUIRE(ibv_import_dm(i.ctx, 0x7777) == nullptr);
        REQUIRE_EQ(ENOENT, errno);
    });
}

TEST_F(test_device_import, who_imports_may_go_on_alone)
{
    run(1, [this](rank&) {
        auto c = std::make_unique<context>();
        {
            imported i(*c), last((const context&)*c);

            c.reset();
            REQUIRE_EQ(1, stat_total("contexts"));
            memory mem(i, 4096);
            cq scq(i, 16), rcq(i, 16);
            qp q(i, scq, rcq);
            q.connect(q.addr());
            write_to_oneself(q, scq, mem, 2);

            /* nobody reads events any more; there is one */
            q.to_state(IBV_QPS_ERR);
        }
        REQUIRE_EQ(0, stat_total("contexts"));

        context again;
        memory mem(again, 4096);
        cq scq(again, 16), rcq(again, 16);
        qp q(again, scq, rcq);
        q.connect(q.addr());
        write_to_oneself(q, scq, mem, 3);
    });
}

/* Attributes that are missing, empty, of other lengths, or lead nowhere: the
 * context goes on */
TEST_F(test_device_import, fuzz_of_attributes_makes_nothing)
{
    const struct {
        uint16_t object, method, attrs, driver;
    } methods[] = {
        {UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE, 8, 0},
        {UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, 14, 0},
        {UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, 15, 0},
        {UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR, 5, 0},
        {UVERBS_OBJECT_PD, MLX5_IB_METHOD_PD_QUERY, 2,
         1u << UVERBS_ID_NS_SHIFT},
        {UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT, 2, 0}
    };

    run(1, [&](rank&) {
        context c;
        imported i(c);
        pattern random(seed::get());
        char scratch[128] = "";

        for (unsigned n = 0; n < seed::cases(5000); ++n) {
            const auto &m = methods[random.below(6)];
            union {
                ib_uverbs_ioctl_hdr hdr;
                char room[sizeof(ib_uverbs_ioctl_hdr) +
                          20 * sizeof(ib_uverbs_attr)];
            } u;

            memset(&u, 0, sizeof(u));
            u.hdr.object_id = m.object;
            u.hdr.method_id = m.method;
            for (unsigned k = 0; k < m.attrs + 2u; ++k) {
                if (random.below(4) == 0) {
                    continue;
                }
                ib_uverbs_attr &attr = u.hdr.attrs[u.hdr.num_attrs++];
                attr.attr_id = (k < m.attrs) ? m.driver + k :
                               (uint16_t)UVERBS_ATTR_UHW_IN + k - m.attrs;
                attr.len     = random.below(3) * (random.below(2) ? 4 : 48);
                attr.data    = random.below(2) ? (uintptr_t)scratch : 0;
            }
            u.hdr.length = sizeof(u.hdr) +
                           u.hdr.num_attrs * sizeof(ib_uverbs_attr);
            (void)ioctl(i.ctx->cmd_fd, RDMA_VERBS_IOCTL, &u.hdr);
        }

        memory mem(i, 4096);
        cq scq(i, 16), rcq(i, 16);
        qp q(i, scq, rcq);
        q.connect(q.addr());
        write_to_oneself(q, scq, mem, 4);
    });
}

/* That of another process is refused, with a sentence */
TEST_F(test_device_import, of_another_process_is_refused)
{
    catch_errors();
    run(2, [](rank &r) {
        if (r.index == 0) {
            context c;

            r.word(0) = getpid();
            r.word(1) = c.ctx->cmd_fd;
            r.barrier();
            r.barrier();
            return;
        }

        context own;
        r.barrier();
        int fd = open(("/proc/" + std::to_string(r.word(0)) + "/fd/" +
                       std::to_string(r.word(1))).c_str(), O_RDWR | O_CLOEXEC);
        REQUIRE(fd >= 0);
        REQUIRE(ibv_import_device(fd) == nullptr);
        REQUIRE_EQ(EOPNOTSUPP, errno);
        r.barrier();
    });
    EXPECT_NE(std::string::npos,
              errors().find("not emulated: imported devices")) << errors();
}
