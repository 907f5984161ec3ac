/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * On-demand paging: memory regions that are not pinned. Rules are those of
 * Linux, create_user_odp_mr(), mlx5_ib_advise_mr_prefetch() and pagefault_mr().
 */

#include <device/device.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <sys/mman.h>

using namespace device;

namespace {

const unsigned on_demand = all_access | IBV_ACCESS_ON_DEMAND;
const uint32_t flush     = IBV_ADVISE_MR_FLAG_FLUSH;
const size_t   page      = 4096;

class test_device_odp : public device::test {
protected:
    void SetUp() override
    {
        device::test::SetUp();
        set_env("MLX5SIM_ODP", "y");
    }
};

/** Pages that are reserved, with a region of them all. Nobody else gets their
 *  place as long as they are. */
struct reserved {
    reserved(context &c, size_t size, unsigned access = on_demand,
             ibv_pd *pd = nullptr) :
        size(size)
    {
        /* Far from what the kernel gives to those who do not say where: nobody
         * is to get the hole that unmap() leaves */
        static uint8_t *place = (uint8_t*)0x300000000000;

        data   = (uint8_t*)mmap(place, size, PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        place += 2 * size;
        REQUIRE(data != MAP_FAILED);
        mr = ibv_reg_mr((pd != nullptr) ? pd : c.pd, data, size, access);
        REQUIRE(mr != nullptr);
    }

    ~reserved()
    {
        REQUIRE_EQ(0, ibv_dereg_mr(mr));
        if (is_mapped) {
            munmap(data, size);
        }
    }

    /** Now there is memory. */
    void map(int prot = PROT_READ | PROT_WRITE)
    {
        REQUIRE(mmap(data, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                     -1, 0) == data);
        is_mapped = true;
    }

    /** Not even reserved */
    void unmap()
    {
        REQUIRE_EQ(0, munmap(data, size));
        is_mapped = false;
    }

    ibv_sge sge(size_t offset, size_t length) const
    {
        return {(uintptr_t)data + offset, (uint32_t)length, mr->lkey};
    }

    size_t  size;
    uint8_t *data;
    ibv_mr  *mr;
    bool    is_mapped = true;
};

ibv_wc_status request(loop &l, ibv_wr_opcode opcode, ibv_sge sge,
                      const void *to, uint32_t rkey)
{
    send_wr wr(opcode, 1, {sge});
    address peer = {};

    peer.addr = (uintptr_t)to;
    peer.rkey = rkey;
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.atomic(peer, 0, 3);
    } else {
        wr.to(peer);
    }
    l.a.send(wr);
    return l.scq.next().status;
}

int advise(ibv_pd *pd, ibv_sge sge, uint32_t flags = flush,
           ib_uverbs_advise_mr_advice advice =
                   IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE)
{
    return ibv_advise_mr(pd, advice, flags, &sge, 1);
}

} // namespace

TEST_F(test_device_odp, what_the_device_tells)
{
    auto caps = [](context &c) {
        ibv_device_attr_ex attr = {};

        REQUIRE_EQ(0, ibv_query_device_ex(c.ctx, nullptr, &attr));
        return attr.odp_caps;
    };

    run(1, [&](rank&) {
        context c;
        ibv_odp_caps odp = caps(c);

        REQUIRE_EQ(IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT,
                   odp.general_caps);
        REQUIRE_EQ(0x3f, odp.per_transport_caps.rc_odp_caps);
        REQUIRE_EQ(0, odp.per_transport_caps.uc_odp_caps);
        REQUIRE_EQ(IBV_ODP_SUPPORT_SEND, odp.per_transport_caps.ud_odp_caps);
    });
}

TEST_F(test_device_odp, is_off_by_default)
{
    set_env("MLX5SIM_ODP", "n");
    set_env("MLX5SIM_LOG", "none");
    run(1, [](rank&) {
        context c;
        memory m(c, page);
        ibv_device_attr_ex attr = {};

        REQUIRE_EQ(0, ibv_query_device_ex(c.ctx, nullptr, &attr));
        REQUIRE_EQ(0, attr.odp_caps.general_caps);
        REQUIRE_EQ(0, attr.xrc_odp_caps);
        REQUIRE(ibv_reg_mr(c.pd, m.data, page, on_demand) == nullptr);
        REQUIRE_EQ(EOPNOTSUPP, errno);
        REQUIRE(advise(c.pd, m.sge(0, page)) != 0);
    });
}

TEST_F(test_device_odp, memory_may_come_and_go)
{
    run(1, [](rank&) {
        loop l;
        reserved r(l.c, 4 * page);
        uint64_t old = 0;

        for (int i = 0; i < 2; ++i) {
            r.map();
            pattern::fill(l.mem.data, 2 * page, i);
            REQUIRE_EQ(IBV_WC_SUCCESS,
                       request(l, IBV_WR_RDMA_WRITE, l.mem.sge(0, 2 * page),
                               r.data + 100, r.mr->rkey));
            REQUIRE_EQ(2 * page, pattern::check(r.data + 100, 2 * page, i));
            REQUIRE_EQ(IBV_WC_SUCCESS,
                       request(l, IBV_WR_RDMA_READ, r.sge(0, page),
                               l.peer_mem.data, l.peer_mem.mr->rkey));
            memcpy(&old, r.data, sizeof(old));
            REQUIRE_EQ(IBV_WC_SUCCESS,
                       request(l, IBV_WR_ATOMIC_FETCH_AND_ADD,
                               r.sge(page, 8), r.data, r.mr->rkey));
            old += 3;
            REQUIRE_EQ(0, memcmp(&old, r.data, sizeof(old)));
            r.unmap();
        }
    });
}

/* And nothing is said about memory that is gone: that is for pinned memory */
TEST_F(test_device_odp, memory_that_is_not_there)
{
    catch_errors();
    run(1, [](rank&) {
        for (auto opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
                            IBV_WR_ATOMIC_FETCH_AND_ADD}) {
            loop remote, local;
            reserved r(remote.c, page), mine(local.c, page);

            r.unmap();
            mine.unmap();
            REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR,
                       request(remote, opcode, remote.mem.sge(0, 8), r.data,
                               r.mr->rkey));
            REQUIRE_EQ(IBV_WC_LOC_PROT_ERR,
                       request(local, opcode, mine.sge(0, 8),
                               local.peer_mem.data, local.peer_mem.mr->rkey));
        }
    });
    EXPECT_EQ(std::string::npos, errors().find(" is gone")) << errors();
}

/* Pinned memory is out of reach for mprotect() */
TEST_F(test_device_odp, protection_holds)
{
    run(1, [](rank&) {
        loop l, remote, local, pinned;
        reserved r(l.c, page), theirs(remote.c, page), mine(local.c, page);

        r.map(PROT_READ);
        theirs.map(PROT_READ);
        mine.map(PROT_READ);
        REQUIRE_EQ(IBV_WC_SUCCESS,
                   request(l, IBV_WR_RDMA_READ, l.mem.sge(0, 64), r.data,
                           r.mr->rkey));
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR,
                   request(remote, IBV_WR_RDMA_WRITE, remote.mem.sge(0, 64),
                           theirs.data, theirs.mr->rkey));
        REQUIRE_EQ(IBV_WC_LOC_PROT_ERR,
                   request(local, IBV_WR_RDMA_READ, mine.sge(0, 64),
                           local.peer_mem.data, local.peer_mem.mr->rkey));
        REQUIRE_EQ(0, mprotect(pinned.peer_mem.data, page, PROT_READ));
        REQUIRE_EQ(IBV_WC_SUCCESS,
                   request(pinned, IBV_WR_RDMA_WRITE, pinned.mem.sge(0, 64),
                           pinned.peer_mem.data, pinned.peer_mem.mr->rkey));
    });
}

TEST_F(test_device_odp, all_memory_of_the_process)
{
    run(1, [](rank&) {
        loop l;
        ibv_mr *all = ibv_reg_mr(l.c.pd, nullptr, SIZE_MAX, on_demand);
        static uint8_t later[100];
        ibv_sge sge;

        REQUIRE(all != nullptr);
        pattern::fill(l.mem.data, 64, 1);
        sge = {l.mem.addr(), 64, all->lkey};
        REQUIRE_EQ(IBV_WC_SUCCESS, request(l, IBV_WR_RDMA_WRITE, sge, later,
                                           all->rkey));
        REQUIRE_EQ(64, pattern::check(later, 64, 1));
        REQUIRE_EQ(0, advise(l.c.pd, sge));
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR,
                   request(l, IBV_WR_RDMA_WRITE, sge, (void*)8, all->rkey));
        REQUIRE_EQ(0, ibv_dereg_mr(all));

        /* only from address 0 on, as others see it, too */
        REQUIRE(ibv_reg_mr_iova(l.c.pd, nullptr, SIZE_MAX, page, on_demand) ==
                nullptr);
        REQUIRE_EQ(EINVAL, errno);
        /* all but the last byte are too many */
        REQUIRE(ibv_reg_mr(l.c.pd, (void*)page, SIZE_MAX - 1, on_demand) ==
                nullptr);
        REQUIRE_EQ(EOVERFLOW, errno);
    });
}

TEST_F(test_device_odp, prefetch)
{
    run(1, [](rank&) {
        context c;
        ibv_pd *pd = ibv_alloc_pd(c.ctx);
        unsigned char is_there;
        {
            reserved r(c, 2 * page + 100), foreign(c, page, on_demand, pd);
            reserved readable(c, page, IBV_ACCESS_ON_DEMAND);
            memory pinned(c, page);
            ibv_sge none[2];

            REQUIRE_EQ(EFAULT, advise(c.pd, r.sge(0, page)));
            REQUIRE_EQ(0, advise(c.pd, r.sge(0, page), 0));
            REQUIRE_EQ(0, advise(c.pd, r.sge(0, page), flush,
                                 IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT));
            r.map();
            REQUIRE_EQ(0, advise(c.pd, r.sge(page + 8, 8)));
            REQUIRE_EQ(0, mincore(r.data, page, &is_there));
            REQUIRE_EQ(0, is_there & 1);
            REQUIRE_EQ(0, mincore(r.data + page, page, &is_there));
            REQUIRE_EQ(1, is_there & 1);

            /* up to the end of its last page */
            REQUIRE_EQ(0, advise(c.pd, r.sge(0, 3 * page)));
            REQUIRE_EQ(EFAULT, advise(c.pd, r.sge(0, 3 * page + 1)));
            REQUIRE_EQ(EFAULT, advise(c.pd, {r.sge(0, 0).addr - 1, 8,
                                             r.mr->lkey}));

            REQUIRE_EQ(ENOENT, advise(c.pd, pinned.sge(0, 8)));
            REQUIRE_EQ(ENOENT, advise(c.pd, {pinned.addr(), 8, 0x123456}));
            REQUIRE_EQ(ENOENT, advise(c.pd, {pinned.addr(), 8, 0x123456}, 0));
            REQUIRE_EQ(EPERM, advise(c.pd, foreign.sge(0, 8)));
            readable.map();
            REQUIRE_EQ(EPERM, advise(c.pd, readable.sge(0, 8)));
            REQUIRE_EQ(0, advise(c.pd, readable.sge(0, 8), flush,
                                 IBV_ADVISE_MR_ADVICE_PREFETCH));
            REQUIRE_EQ(EOPNOTSUPP, advise(c.pd, r.sge(0, 8), flush,
                                          (ib_uverbs_advise_mr_advice)77));
            REQUIRE_EQ(EINVAL, advise(c.pd, r.sge(0, 8), 2));
            REQUIRE_EQ(EINVAL, ibv_advise_mr(
                    c.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, flush, none, 0));
        }
        REQUIRE_EQ(0, ibv_dealloc_pd(pd));
    });
}

/* mlx5_ib_rereg_user_mr() */
TEST_F(test_device_odp, registering_again)
{
    run(1, [](rank&) {
        loop l;
        reserved r(l.c, page, on_demand);
        memory m(l.c, page);
        uint32_t key = r.mr->rkey;

        /* in place */
        REQUIRE_EQ(0, ibv_rereg_mr(r.mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr,
                                   nullptr, 0,
                                   on_demand & ~IBV_ACCESS_REMOTE_READ));
        REQUIRE_EQ(key, r.mr->rkey);
        /* anew, for which there is no range */
        REQUIRE_EQ(IBV_REREG_MR_ERR_CMD,
                   ibv_rereg_mr(r.mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr,
                                nullptr, 0, IBV_ACCESS_ON_DEMAND));
        REQUIRE_EQ(EOVERFLOW, errno);
        /* other memory */
        REQUIRE_EQ(0, ibv_rereg_mr(r.mr, IBV_REREG_MR_CHANGE_TRANSLATION,
                                   nullptr, m.data, page, 0));
        REQUIRE(key != r.mr->rkey);
        REQUIRE_EQ(IBV_WC_SUCCESS,
                   request(l, IBV_WR_RDMA_WRITE, l.mem.sge(0, 64), m.data,
                           r.mr->rkey));
        /* pinned memory stays so as long as it is the same */
        key = m.mr->rkey;
        REQUIRE_EQ(0, ibv_rereg_mr(m.mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr,
                                   nullptr, 0, on_demand));
        REQUIRE(key != m.mr->rkey);
        REQUIRE_EQ(ENOENT, advise(l.c.pd, m.sge(0, 8)));
    });
}
