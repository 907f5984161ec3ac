/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Memory regions that get other access, another domain or other memory. What
 * is kept and what is refused is as in Linux 6.9: ib_uverbs_rereg_mr(),
 * mlx5_ib_rereg_user_mr().
 */

#include <device/device_method.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <rdma/ib_user_verbs.h>
#include <sys/mman.h>

using namespace device;

namespace {

const unsigned local_remote = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

class test_device_rereg : public device::test {
};

/** The command itself, of any length. @return 0 or errno */
int command(context &c, const ib_uverbs_rereg_mr &in, size_t in_size,
            size_t out_size = sizeof(ib_uverbs_rereg_mr_resp))
{
    ib_uverbs_rereg_mr_resp out;

    return method(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE)
           .add(UVERBS_ATTR_WRITE_CMD, 0, IB_USER_VERBS_CMD_REREG_MR)
           .add(UVERBS_ATTR_CORE_IN, in_size, (uintptr_t)&in)
           .add(UVERBS_ATTR_CORE_OUT, out_size, (uintptr_t)&out)
           .call(c);
}

int command(context &c, const ib_uverbs_rereg_mr &in)
{
    return command(c, in, sizeof(in));
}

ib_uverbs_rereg_mr request(const memory &m, unsigned flags)
{
    ib_uverbs_rereg_mr in = {};

    in.mr_handle    = m.mr->handle;
    in.flags        = flags;
    in.start        = m.addr();
    in.hca_va       = m.addr();
    in.length       = m.size;
    in.pd_handle    = m.mr->pd->handle;
    in.access_flags = local_remote;
    return in;
}

/** Write 64 bytes to a region. */
ibv_wc_status put(loop &l, uint64_t addr, uint32_t rkey)
{
    send_wr wr(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 64)});

    wr.wr.rdma.remote_addr = addr;
    wr.wr.rdma.rkey        = rkey;
    l.a.send(wr);
    return l.scq.next().status;
}

} // namespace

TEST_F(test_device_rereg, access_that_the_kernel_can_change_keeps_the_key)
{
    run(1, [](rank&) {
        loop l;
        memory m(l.c, 4096, local_remote);
        uint32_t key = m.mr->rkey;

        pattern::fill(l.mem.data, 64, 1);
        REQUIRE_EQ(IBV_WC_SUCCESS, put(l, m.addr(), key));
        REQUIRE_EQ(0, ibv_rereg_mr(m.mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr,
                                   nullptr, 0, local_remote |
                                   IBV_ACCESS_REMOTE_READ));
        REQUIRE_EQ(key, m.mr->rkey);
        REQUIRE_EQ(key, m.mr->lkey);
        REQUIRE_EQ(IBV_WC_SUCCESS, put(l, m.addr(), key));
        REQUIRE_EQ(64, pattern::check(m.data, 64, 1));

        REQUIRE_EQ(0, ibv_rereg_mr(m.mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr,
                                   nullptr, 0, IBV_ACCESS_LOCAL_WRITE));
        REQUIRE_EQ(key, m.mr->rkey);
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, put(l, m.addr(), key));
    });
}

/* can_use_umr_rereg_access(): not atomics */
TEST_F(test_device_rereg, other_access_takes_another_key)
{
    run(1, [](rank&) {
        loop l;
        memory m(l.c, 4096, local_remote);
        uint32_t key = m.mr->rkey;

        REQUIRE_EQ(0, ibv_rereg_mr(m.mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr,
                                   nullptr, 0, all_access));
        REQUIRE(key != m.mr->rkey);
        REQUIRE_EQ(m.mr->lkey, m.mr->rkey);
        send_wr add(IBV_WR_ATOMIC_FETCH_AND_ADD, 2, {l.mem.sge(0, 8)});
        address to = {};
        to.addr    = m.addr();
        to.rkey    = m.mr->rkey;
        l.a.send(add.atomic(to, 0, 5));
        REQUIRE_EQ(IBV_WC_SUCCESS, l.scq.next().status);
        REQUIRE_EQ(5, m.data[0]);
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, put(l, m.addr(), key));
    });
}

TEST_F(test_device_rereg, a_region_in_another_domain)
{
    run(1, [](rank&) {
        loop l;
        ibv_pd *old = ibv_alloc_pd(l.c.ctx);
        memory m(l.c, 4096, local_remote, old);
        uint32_t key = m.mr->rkey;

        REQUIRE(old != nullptr);
        REQUIRE_EQ(EBUSY, ibv_dealloc_pd(old));
        REQUIRE_EQ(0, ibv_rereg_mr(m.mr, IBV_REREG_MR_CHANGE_PD, l.c.pd,
                                   nullptr, 0, 0));
        REQUIRE_EQ(key, m.mr->rkey);
        REQUIRE_EQ(0, ibv_dealloc_pd(old));
        REQUIRE_EQ(IBV_WC_SUCCESS, put(l, m.addr(), key));

        ibv_pd *other = ibv_alloc_pd(l.c.ctx);
        REQUIRE_EQ(0, ibv_rereg_mr(m.mr, IBV_REREG_MR_CHANGE_PD, other,
                                   nullptr, 0, 0));
        REQUIRE_EQ(EBUSY, ibv_dealloc_pd(other));
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, put(l, m.addr(), key));
        REQUIRE_EQ(0, ibv_rereg_mr(m.mr, IBV_REREG_MR_CHANGE_PD, l.c.pd,
                                   nullptr, 0, 0));
        REQUIRE_EQ(0, ibv_dealloc_pd(other));
    });
}

/* can_use_umr_rereg_pas(): keys are for 4 pages, or for a power of 2 above */
TEST_F(test_device_rereg, other_memory_keeps_the_key_where_it_fits)
{
    run(1, [](rank&) {
        loop l;
        memory m(l.c, 4096, local_remote), other(l.c, 65536);
        uint32_t key = m.mr->rkey;

        pattern::fill(l.mem.data, 64, 2);
        REQUIRE_EQ(0, ibv_rereg_mr(m.mr, IBV_REREG_MR_CHANGE_TRANSLATION,
                                   nullptr, other.data, 16384, 0));
        REQUIRE_EQ(key, m.mr->rkey);
        REQUIRE(m.mr->addr == other.data);
        REQUIRE_EQ(16384, m.mr->length);
        REQUIRE_EQ(IBV_WC_SUCCESS, put(l, other.addr(16384 - 64), key));
        REQUIRE_EQ(64, pattern::check(other.data + 16384 - 64, 64, 2));

        REQUIRE_EQ(0, ibv_rereg_mr(m.mr, IBV_REREG_MR_CHANGE_TRANSLATION,
                                   nullptr, other.data, 16385, 0));
        REQUIRE(key != m.mr->rkey);
        key = m.mr->rkey;
        REQUIRE_EQ(IBV_WC_SUCCESS, put(l, other.addr(16385 - 64), key));

        /* now it has room for 8 pages */
        REQUIRE_EQ(0, ibv_rereg_mr(m.mr, IBV_REREG_MR_CHANGE_TRANSLATION,
                                   nullptr, m.data, 4096, 0));
        REQUIRE_EQ(0, ibv_rereg_mr(m.mr, IBV_REREG_MR_CHANGE_TRANSLATION,
                                   nullptr, other.data, 32768, 0));
        REQUIRE_EQ(key, m.mr->rkey);
        REQUIRE_EQ(0, ibv_rereg_mr(m.mr, IBV_REREG_MR_CHANGE_TRANSLATION,
                                   nullptr, m.data, 4096, 0));
        REQUIRE_EQ(IBV_WC_SUCCESS, put(l, m.addr(4096 - 64), key));
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, put(l, other.addr(), key));
    });
}

TEST_F(test_device_rereg, all_at_once)
{
    run(1, [](rank&) {
        loop l;
        ibv_pd *old = ibv_alloc_pd(l.c.ctx);
        memory m(l.c, 4096, IBV_ACCESS_LOCAL_WRITE, old);
        uint32_t key = m.mr->rkey;
        memory other(l.c, 4096);

        pattern::fill(l.mem.data, 64, 3);
        REQUIRE_EQ(0, ibv_rereg_mr(m.mr, IBV_REREG_MR_FLAGS_SUPPORTED, l.c.pd,
                                   other.data, 4096, local_remote));
        REQUIRE_EQ(key, m.mr->rkey);
        REQUIRE_EQ(0, ibv_dealloc_pd(old));
        REQUIRE_EQ(IBV_WC_SUCCESS, put(l, other.addr(), key));
        REQUIRE_EQ(64, pattern::check(other.data, 64, 3));
    });
}

TEST_F(test_device_rereg, what_is_wrong_leaves_the_region_as_it_is)
{
    set_env("MLX5SIM_LOG", "none"); /* of commands that are too short */
    run(1, [](rank&) {
        loop l;
        context foreign;
        memory m(l.c, 4096, local_remote);
        memory theirs(foreign, 4096);
        ib_uverbs_rereg_mr in;
        uint32_t key = m.mr->rkey;
        void *hole;

        REQUIRE_EQ(EINVAL, command(l.c, request(m, 0)));
        REQUIRE_EQ(EOPNOTSUPP, command(l.c, request(m, 8)));
        REQUIRE_EQ(EOPNOTSUPP,
                   command(l.c, request(m, 8 | IBV_REREG_MR_CHANGE_ACCESS)));

        in = request(m, IBV_REREG_MR_CHANGE_ACCESS);
        REQUIRE_EQ(EINVAL, command(l.c, in, sizeof(in) - 4));
        REQUIRE_EQ(EINVAL, command(l.c, in, sizeof(in), 4));
        in.access_flags = IBV_ACCESS_REMOTE_WRITE;
        REQUIRE_EQ(EINVAL, command(l.c, in));
        in.access_flags = IBV_ACCESS_REMOTE_ATOMIC;
        REQUIRE_EQ(EINVAL, command(l.c, in));

        /* a handle of nobody, and one of another context */
        in           = request(m, IBV_REREG_MR_CHANGE_ACCESS);
        in.mr_handle = 0x12345;
        REQUIRE_EQ(ENOENT, command(l.c, in));
        in.mr_handle = theirs.mr->handle;
        REQUIRE_EQ(ENOENT, command(l.c, in));

        in           = request(m, IBV_REREG_MR_CHANGE_PD);
        in.pd_handle = foreign.pd->handle;
        REQUIRE_EQ(EINVAL, command(l.c, in));

        in        = request(m, IBV_REREG_MR_CHANGE_TRANSLATION);
        in.hca_va = in.start + 8;
        REQUIRE_EQ(EINVAL, command(l.c, in));

        hole = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                    0);
        REQUIRE(hole != MAP_FAILED);
        munmap(hole, 4096);
        in       = request(m, IBV_REREG_MR_CHANGE_TRANSLATION);
        in.start = in.hca_va = (uintptr_t)hole;
        REQUIRE_EQ(EFAULT, command(l.c, in));

        setenv("MLX5SIM_FAIL", "mr:1", 1);
        REQUIRE_EQ(ENOMEM, command(l.c, request(m,
                                                IBV_REREG_MR_CHANGE_ACCESS)));
        unsetenv("MLX5SIM_FAIL");

        REQUIRE_EQ(IBV_WC_SUCCESS, put(l, m.addr(), key));
    });
}
