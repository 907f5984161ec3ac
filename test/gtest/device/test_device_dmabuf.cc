/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Memory that is registered by a descriptor. Rules are those of Linux,
 * ib_umem_dmabuf_get() and UVERBS_METHOD_REG_DMABUF_MR. That files of memory
 * are taken for dma-bufs is the device's own.
 */

#include <common/seed.h>
#include <device/device_devx.h>
#include <device/device_method.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <rdma/ib_user_verbs.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace device;

namespace {

const size_t   page = 4096;
const uint64_t iova = 0x7000123000; /* nothing is there */

class test_device_dmabuf : public device::test {
protected:
    void SetUp() override
    {
        device::test::SetUp();
        set_env("MLX5SIM_DEVX", "y");
    }
};

/** A file of memory, and how often this process has it mapped. */
struct memfd {
    explicit memfd(size_t size) : fd(memfd_create("dmabuf", MFD_CLOEXEC |
                                                            MFD_ALLOW_SEALING))
    {
        REQUIRE(fd >= 0);
        REQUIRE_EQ(0, ftruncate(fd, size));
    }

    ~memfd()
    {
        close(fd);
    }

    memfd(const memfd&) = delete;

    void fill(off_t offset, size_t length, uint64_t seed)
    {
        std::vector<uint8_t> data(length);

        pattern::fill(data.data(), length, seed);
        REQUIRE_EQ(length, pwrite(fd, data.data(), length, offset));
    }

    void check(off_t offset, size_t length, uint64_t seed)
    {
        std::vector<uint8_t> data(length);

        REQUIRE_EQ(length, pread(fd, data.data(), length, offset));
        REQUIRE_EQ(length, pattern::check(data.data(), length, seed));
    }

    static unsigned mapped(const char *name = "/memfd:dmabuf")
    {
        FILE *maps     = fopen("/proc/self/maps", "r");
        unsigned count = 0;
        char line[512];

        REQUIRE(maps != nullptr);
        while (fgets(line, sizeof(line), maps) != nullptr) {
            count += strstr(line, name) != nullptr;
        }
        fclose(maps);
        return count;
    }

    const int fd;
};

/** Register, or tell why not. @return 0 or errno */
int try_reg(context &c, uint64_t offset, size_t length, uint64_t at, int fd,
            unsigned access = all_access)
{
    ibv_mr *mr = ibv_reg_dmabuf_mr(c.pd, offset, length, at, fd, access);

    if (mr == nullptr) {
        return errno;
    }

    REQUIRE_EQ(0, ibv_dereg_mr(mr));
    return 0;
}

} // namespace


/* All work requests, with either side's or both sides' data in such memory */
TEST_F(test_device_dmabuf, work_requests_reach_it)
{
    run(2, [](rank &r) {
        side s(r);
        memfd file(4 * page);
        ibv_mr *mr = ibv_reg_dmabuf_mr(s.c.pd, page + 64, 2 * page, iova + 64,
                                       file.fd, all_access);
        address here = s.peer;

        REQUIRE(mr != nullptr);
        REQUIRE_EQ(mr->lkey, mr->rkey);
        here.rkey = mr->rkey;
        here.addr = iova + 64;
        if (r.index == 1) {
            s.q.recv(1, {iova + 64 + 4000, 1000, mr->lkey});
            r.publish(here);
            r.barrier();
            REQUIRE_EQ(1000, s.rcq.good().byte_len);
            file.check(page + 64 + 4000, 1000, 7);
            r.barrier();
            file.check(page + 64 + 2000, 500, 8);
            uint64_t number;
            REQUIRE_EQ(8, pread(file.fd, &number, 8, page + 64 + 3000));
            REQUIRE_EQ(40, number);
        } else {
            r.barrier();
            address there = r.lookup<address>(1);
            auto at       = [&](uint64_t offset, uint32_t length) {
                return ibv_sge{iova + 64 + offset, length, mr->lkey};
            };

            file.fill(page + 64, 1000, 7);
            send_wr sending(IBV_WR_SEND, 1, {at(0, 1000)});
            s.q.send(sending);
            s.scq.good();

            file.fill(page + 64, 500, 8);
            send_wr write(IBV_WR_RDMA_WRITE, 2, {at(0, 500)});
            s.q.send(write.to(there, 2000));
            s.scq.good();
            send_wr read(IBV_WR_RDMA_READ, 3, {at(4096, 500)});
            s.q.send(read.to(there, 2000));
            s.scq.good();
            file.check(page + 64 + 4096, 500, 8);

            send_wr add(IBV_WR_ATOMIC_FETCH_AND_ADD, 4, {at(1024, 8)});
            s.q.send(add.atomic(there, 3000, 40));
            s.scq.good();
            send_wr beyond(IBV_WR_RDMA_WRITE, 5, {at(0, 500)});
            s.q.send(beyond.to(there, 2 * page - 499));
            REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, s.scq.next().status);
            r.barrier();
        }
        REQUIRE_EQ(0, ibv_dereg_mr(mr));
        r.barrier();
    });
}

/* Neither does it need the descriptor, nor does anything stay of it */
TEST_F(test_device_dmabuf, a_region_lives_as_long_as_it_is_registered)
{
    run(1, [](rank&) {
        loop l;
        memfd file(page);
        int fd     = dup(file.fd);
        ibv_mr *mr = ibv_reg_dmabuf_mr(l.c.pd, 0, page, iova, fd, all_access);

        REQUIRE(mr != nullptr);
        close(fd);
        REQUIRE_EQ(1, memfd::mapped());
        pid_t child = fork();
        if (child == 0) {
            _exit(memfd::mapped());
        }
        int status = 1;
        REQUIRE_EQ(child, waitpid(child, &status, 0));
        REQUIRE_EQ(0, status);

        address there = {};
        there.addr    = iova;
        there.rkey    = mr->rkey;
        pattern::fill(l.mem.data, page, 3);
        send_wr write(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, page)});
        l.a.send(write.to(there));
        l.scq.good();
        file.check(0, page, 3);

        REQUIRE_EQ(0, ibv_dereg_mr(mr));
        REQUIRE_EQ(0, memfd::mapped());
        send_wr again(IBV_WR_RDMA_WRITE, 2, {l.mem.sge(0, page)});
        l.a.send(again.to(there));
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, l.scq.next().status);
    });
}

/* The descriptor of the device is closed under libibverbs */
TEST_F(test_device_dmabuf, what_a_context_leaves_is_unmapped)
{
    run(1, [](rank&) {
        context c;
        memfd file(2 * page);
        mlx5dv_devx_umem_in in = {};

        in.size        = page;
        in.comp_mask   = MLX5DV_UMEM_MASK_DMABUF;
        in.dmabuf_fd   = file.fd;
        in.pgsz_bitmap = page;
        REQUIRE(mlx5dv_devx_umem_reg_ex(c.ctx, &in) != nullptr);
        REQUIRE_EQ(1, memfd::mapped());
        REQUIRE(ibv_reg_dmabuf_mr(c.pd, 0, 2 * page, iova, file.fd,
                                  all_access) != nullptr);
        REQUIRE_EQ(2, memfd::mapped());
        REQUIRE_EQ(0, close(c.ctx->cmd_fd));
        REQUIRE_EQ(0, memfd::mapped());
        _exit(0); /* libibverbs does not know */
    });
}

/* mlx5_ib_rereg_user_mr(): such memory can't be kept. libibverbs refuses to
 * ask. */
TEST_F(test_device_dmabuf, a_region_takes_other_memory)
{
    run(1, [](rank&) {
        loop l;
        memfd file(page);
        ibv_mr *mr   = ibv_reg_dmabuf_mr(l.c.pd, 0, page, iova, file.fd,
                                         IBV_ACCESS_REMOTE_READ);
        auto command = [&](const ib_uverbs_rereg_mr &in) {
            ib_uverbs_rereg_mr_resp out = {};

            REQUIRE_EQ(0, method(UVERBS_OBJECT_DEVICE,
                                 UVERBS_METHOD_INVOKE_WRITE)
                          .add(UVERBS_ATTR_WRITE_CMD, 0,
                               IB_USER_VERBS_CMD_REREG_MR)
                          .add(UVERBS_ATTR_CORE_IN, sizeof(in), (uintptr_t)&in)
                          .out(UVERBS_ATTR_CORE_OUT, out)
                          .call(l.c));
            return out.rkey;
        };
        ib_uverbs_rereg_mr in = {};
        address there         = {};

        REQUIRE(mr != nullptr);
        in.mr_handle    = mr->handle;
        in.flags        = IBV_REREG_MR_CHANGE_ACCESS;
        in.access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
        REQUIRE_EQ(mr->rkey, command(in));
        REQUIRE_EQ(1, memfd::mapped());
        there.addr = iova;
        there.rkey = mr->rkey;
        pattern::fill(l.mem.data, page, 3);
        send_wr first(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, page)});
        l.a.send(first.to(there));
        l.scq.good();
        file.check(0, page, 3);

        in.flags   = IBV_REREG_MR_CHANGE_TRANSLATION;
        in.start   = l.peer_mem.addr();
        in.hca_va  = l.peer_mem.addr();
        in.length  = page;
        there.addr = in.start;
        there.rkey = command(in);
        REQUIRE(there.rkey != mr->rkey);
        REQUIRE_EQ(0, memfd::mapped());

        pattern::fill(l.mem.data, page, 4);
        send_wr write(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, page)});
        l.a.send(write.to(there));
        l.scq.good();
        REQUIRE_EQ(page, pattern::check(l.peer_mem.data, page, 4));
        REQUIRE_EQ(0, ibv_dereg_mr(mr));
    });
}

TEST_F(test_device_dmabuf, what_is_no_dmabuf_is_refused)
{
    run(1, [](rank&) {
        context c;
        memfd file(2 * page);
        int ends[2];

        /* so UCX asks whether there are dma-bufs */
        REQUIRE_EQ(EBADF, try_reg(c, 0, page, 0, -1));
        REQUIRE_EQ(EBADF, try_reg(c, 0, page, 0, 100000));
        setenv("MLX5SIM_FAIL", "mr:1", 1);
        REQUIRE_EQ(ENOMEM, try_reg(c, 0, page, 0, file.fd));
        unsetenv("MLX5SIM_FAIL");
        REQUIRE_EQ(0, pipe(ends));
        REQUIRE_EQ(EINVAL, try_reg(c, 0, page, 0, ends[0]));
        REQUIRE_EQ(EINVAL, try_reg(c, 0, page, 0, c.ctx->cmd_fd));

        REQUIRE_EQ(0, try_reg(c, 0, 2 * page, 0, file.fd));
        REQUIRE_EQ(0, try_reg(c, page, page, 0, file.fd));
        REQUIRE_EQ(0, try_reg(c, 2 * page - 1, 1, 4095, file.fd));
        REQUIRE_EQ(EINVAL, try_reg(c, 0, 2 * page + 1, 0, file.fd));
        REQUIRE_EQ(EINVAL, try_reg(c, 2 * page, page, 0, file.fd));
        REQUIRE_EQ(EINVAL, try_reg(c, 1, ~0ul, 1, file.fd));
        REQUIRE_EQ(EINVAL, try_reg(c, ~0ul & ~4095ul, page, 0, file.fd));
        REQUIRE_EQ(EINVAL, try_reg(c, 0, 0, 0, file.fd));
        REQUIRE_EQ(EINVAL, try_reg(c, 0, page, 64, file.fd));
        REQUIRE_EQ(EINVAL, try_reg(c, 0, page, 0, file.fd,
                                   IBV_ACCESS_REMOTE_WRITE));
        REQUIRE_EQ(EINVAL, try_reg(c, 0, page, 0, file.fd,
                                   all_access | IBV_ACCESS_ON_DEMAND));
        REQUIRE_EQ(0, memfd::mapped());

        mlx5dv_devx_umem_in in = {};
        in.size                = page;
        in.comp_mask           = MLX5DV_UMEM_MASK_DMABUF;
        in.dmabuf_fd           = 100000;
        in.pgsz_bitmap         = page;
        REQUIRE(mlx5dv_devx_umem_reg_ex(c.ctx, &in) == nullptr);
        in.dmabuf_fd = file.fd;
        in.addr      = (void*)(2 * page);
        REQUIRE(mlx5dv_devx_umem_reg_ex(c.ctx, &in) == nullptr);
        REQUIRE_EQ(EINVAL, errno);
        REQUIRE_EQ(0, memfd::mapped());
    });
}

/* What can only be read is mapped for reading, and else refused by name */
TEST_F(test_device_dmabuf, what_cant_be_mapped_is_refused_by_name)
{
    catch_errors();
    run(1, [](rank&) {
        context c;
        memfd file(page);
        std::string path = "/proc/self/fd/" + std::to_string(file.fd);
        int fd           = open(path.c_str(), O_RDONLY | O_CLOEXEC);

        REQUIRE(fd >= 0);
        REQUIRE_EQ(0, try_reg(c, 0, page, 0, fd, IBV_ACCESS_REMOTE_READ));
        REQUIRE_EQ(EOPNOTSUPP, try_reg(c, 0, page, 0, fd));
        close(fd);

        fd = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB);
        if (fd >= 0) { /* there are such files */
            REQUIRE_EQ(0, ftruncate(fd, 2 << 20));
            REQUIRE_EQ(EOPNOTSUPP, try_reg(c, 0, page, 0, fd));
            close(fd);
        }
    });
    EXPECT_NE(std::string::npos,
              errors().find("not emulated: dma-buf that can't be mapped"))
            << errors();
}

/* Kernel, pagefault_dmabuf_mr() */
TEST_F(test_device_dmabuf, it_can_be_fetched_ahead)
{
    set_env("MLX5SIM_ODP", "y");
    run(1, [](rank&) {
        context c;
        memfd file(page);
        ibv_mr *mr = ibv_reg_dmabuf_mr(c.pd, 0, page, iova, file.fd,
                                       all_access);
        ibv_sge sge;

        REQUIRE(mr != nullptr);
        sge = {iova, page, mr->lkey};
        REQUIRE_EQ(0, ibv_advise_mr(c.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
                                    IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1));
        REQUIRE_EQ(0, ibv_dereg_mr(mr));
    });
}

TEST_F(test_device_dmabuf, malformed_calls_are_refused)
{
    run(1, [](rank&) {
        context c;
        memfd file(page);
        uint32_t lkey, rkey;
        const struct {
            uint16_t id, length;
            uint64_t good, bad;
        } attrs[] = {
            {UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, 0, c.pd->handle, 1ull << 40},
            {UVERBS_ATTR_REG_DMABUF_MR_OFFSET, 8, 0, 1ull << 40},
            {UVERBS_ATTR_REG_DMABUF_MR_LENGTH, 8, page, 0},
            {UVERBS_ATTR_REG_DMABUF_MR_IOVA, 8, iova, iova + 1},
            {UVERBS_ATTR_REG_DMABUF_MR_FD, 4, (uint64_t)file.fd, 100000},
            {UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, 4, all_access,
             IBV_ACCESS_REMOTE_WRITE},
            {UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, 4, (uintptr_t)&lkey, 0},
            {UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, 4, (uintptr_t)&rkey, 0},
            {UVERBS_ATTR_REG_DMABUF_MR_HANDLE, 0, 0, 0}
        };
        const int count = sizeof(attrs) / sizeof(attrs[0]);
        enum { missing, length, value };

        for (int what : {missing, length, value}) {
            for (int which = 0; which <= count; ++which) {
                method call(UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR);
                bool is_good = which == count;

                for (int i = 0; i < count; ++i) {
                    bool is_bad = i == which;

                    if (is_bad && (what == missing)) {
                        /* flags need not be there */
                        is_good |= attrs[i].id ==
                                   UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS;
                        continue;
                    }
                    is_good |= is_bad && (what == value) &&
                               (attrs[i].good == attrs[i].bad);
                    call.add(attrs[i].id, attrs[i].length +
                             ((is_bad && (what == length)) ? 2 : 0),
                             (is_bad && (what == value)) ? attrs[i].bad :
                                                           attrs[i].good);
                }
                REQUIRE_EQ(is_good, call.call(c) == 0);
            }
        }
        _exit(0); /* the regions are left */
    });
}

/* Queues of firmware commands in such memory: WQEs, CQEs, doorbell records */
TEST_F(test_device_dmabuf, queues_are_in_it)
{
    run(1, [](rank&) {
        {
            devx_loop l(0, ring_log, true);

            REQUIRE_EQ(2, memfd::mapped("/memfd:umem"));
            l.connect();
            for (unsigned i = 0; i < 40; ++i) {
                pattern::fill(l.mem.data, 64, i);
                l.write(l.mem.sge(0, 64), l.mem.sge(1024, 64));
                REQUIRE_EQ(MLX5_CQE_REQ, l.next());
                REQUIRE_EQ(64, pattern::check(l.mem.data + 1024, 64, i));
                l.recv(l.mem.sge(2048, 64));
                l.send(l.mem.sge(0, 64));
                l.next();
                l.next();
                REQUIRE_EQ(64, pattern::check(l.mem.data + 2048, 64, i));
            }
        }
        REQUIRE_EQ(0, memfd::mapped("/memfd:umem"));
    });
}
