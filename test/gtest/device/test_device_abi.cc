/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What the kernel makes of a request: rounds it, fills it in, or refuses it.
 */

#include <device/device.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace device;

namespace {

/** A command that destroys what has a handle. That is the first number of its
 *  input, or the one behind the place of a reply. @return errno */
int destroy(context &c, unsigned number, uint32_t handle)
{
    alignas(8) char room[sizeof(ib_uverbs_ioctl_hdr) +
                         3 * sizeof(ib_uverbs_attr)] = {};
    auto hdr = reinterpret_cast<ib_uverbs_ioctl_hdr*>(room);
    uint64_t in[3] = {}, out[2];

    in[0]                 = handle;
    in[1]                 = handle;
    hdr->length           = sizeof(room);
    hdr->object_id        = UVERBS_OBJECT_DEVICE;
    hdr->method_id        = UVERBS_METHOD_INVOKE_WRITE;
    hdr->num_attrs        = 3;
    hdr->attrs[0].attr_id = UVERBS_ATTR_WRITE_CMD;
    hdr->attrs[0].data    = number;
    hdr->attrs[1].attr_id = UVERBS_ATTR_CORE_IN;
    hdr->attrs[1].len     = sizeof(in);
    hdr->attrs[1].data    = (uintptr_t)in;
    hdr->attrs[2].attr_id = UVERBS_ATTR_CORE_OUT;
    hdr->attrs[2].len     = sizeof(out);
    hdr->attrs[2].data    = (uintptr_t)out;
    return (ioctl(c.ctx->cmd_fd, RDMA_VERBS_IOCTL, room) == 0) ? 0 : errno;
}

class test_device_abi : public device::test {
protected:
    /** Run @a body in a process with an open device. */
    void on_device(const std::function<void(context&)> &body)
    {
        run(1, [&](rank &) {
            context c;

            body(c);
        });
    }
};

} // namespace

/* mlx5_ib_query_qp() tells the receive queue's length in WQEs; what had been
 * asked for is forgotten. libmlx5 rounds up to a power of two. */
TEST_F(test_device_abi, query_qp_tells_the_receive_queue_as_it_was_made)
{
    on_device([](context &c) {
        ibv_qp_init_attr init;
        ibv_qp_attr attr;
        cq q(c, 16);

        qp_options options = {.recv_wr = 100, .recv_sge = 3};
        qp made(c, q, q, options);
        REQUIRE_EQ(0, ibv_query_qp(made.v, &attr, IBV_QP_CAP, &init));
        REQUIRE_EQ(128u, init.cap.max_recv_wr);
        REQUIRE_EQ(4u, init.cap.max_recv_sge);
        REQUIRE_EQ(128u, attr.cap.max_recv_wr);
        REQUIRE(init.cap.max_send_wr >= options.send_wr);
    });
}

TEST_F(test_device_abi, a_qp_without_receive_queue_has_none_to_tell)
{
    on_device([](context &c) {
        ibv_qp_init_attr init;
        ibv_qp_attr attr;
        cq q(c, 16);
        srq s(c, 16);

        qp made(c, q, q, {.srq = s.v});
        REQUIRE_EQ(0, ibv_query_qp(made.v, &attr, IBV_QP_CAP, &init));
        REQUIRE_EQ(0u, init.cap.max_recv_wr);
        REQUIRE_EQ(0u, init.cap.max_recv_sge);
    });
}

TEST_F(test_device_abi, a_completion_vector_that_is_not_there_is_refused)
{
    on_device([](context &c) {
        int num = c.ctx->num_comp_vectors;
        ibv_cq_init_attr_ex attr = {};
        ibv_cq *q;

        REQUIRE(num > 0);
        q = ibv_create_cq(c.ctx, 16, nullptr, nullptr, num - 1);
        REQUIRE(q != nullptr);
        REQUIRE_EQ(0, ibv_destroy_cq(q));
        for (int vector : {num, -1}) {
            errno = 0;
            REQUIRE(ibv_create_cq(c.ctx, 16, nullptr, nullptr, vector) ==
                    nullptr);
            REQUIRE_EQ(EINVAL, errno);
        }

        attr.cqe         = 16;
        attr.comp_vector = num;
        errno            = 0;
        REQUIRE(ibv_create_cq_ex(c.ctx, &attr) == nullptr);
        REQUIRE_EQ(EINVAL, errno);
    });
}

/* mlx5_ib_create_srq() has no lower limit: the list is one WQE, which libmlx5
 * never hands out */
TEST_F(test_device_abi, an_srq_for_no_receives_is_made_and_takes_none)
{
    on_device([](context &c) {
        memory mem(c, 4096);
        ibv_sge sge              = mem.sge(0, 64);
        ibv_recv_wr wr           = {}, *bad;
        ibv_srq_init_attr attr   = {};
        ibv_srq_attr found;
        ibv_srq *made;

        attr.attr.max_sge = 1;
        made              = ibv_create_srq(c.pd, &attr);
        REQUIRE(made != nullptr);
        REQUIRE_EQ(0u, attr.attr.max_wr);
        REQUIRE_EQ(0, ibv_query_srq(made, &found));
        REQUIRE_EQ(0u, found.max_wr);

        wr.sg_list = &sge;
        wr.num_sge = 1;
        REQUIRE_EQ(ENOMEM, ibv_post_srq_recv(made, &wr, &bad));
        REQUIRE_EQ(0, ibv_destroy_srq(made));
    });
}

/* uobj_get_destroy(): who can't be found is not there. Commands that use an
 * object say EINVAL. */
TEST_F(test_device_abi, what_is_not_there_can_not_be_destroyed)
{
    on_device([](context &c) {
        for (unsigned number :
             {IB_USER_VERBS_CMD_DEALLOC_PD, IB_USER_VERBS_CMD_DEREG_MR,
              IB_USER_VERBS_CMD_DESTROY_CQ, IB_USER_VERBS_CMD_DESTROY_SRQ,
              IB_USER_VERBS_CMD_DESTROY_QP, IB_USER_VERBS_CMD_DESTROY_AH}) {
            REQUIRE_EQ(ENOENT, destroy(c, number, 0x7fffffff));
        }
    });
}

/* ib_umem_get(): it is no page, unless its start is inside of one */
TEST_F(test_device_abi, a_region_of_nothing_is_one_inside_of_a_page)
{
    on_device([](context &c) {
        memory mem(c, 8192);
        uint8_t *page = (uint8_t*)((mem.addr() + 4095) & ~4095ul);
        ibv_mr *mr    = ibv_reg_mr(c.pd, page + 8, 0, 0);

        REQUIRE(mr != nullptr);
        REQUIRE_EQ(0, ibv_dereg_mr(mr));
        errno = 0;
        REQUIRE(ibv_reg_mr(c.pd, page, 0, 0) == nullptr);
        REQUIRE_EQ(EINVAL, errno);
    });
}

namespace {

uint64_t now(clockid_t id)
{
    timespec ts;

    clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

void check_timestamps()
{
    loop l;
    ibv_cq_init_attr_ex attr  = {};
    ibv_device_attr_ex device = {};
    ibv_poll_cq_attr poll     = {};
    mlx5dv_clock_info info    = {};
    uint64_t before, last = 0, ticks, nsec;
    qp_options options;
    ibv_cq_ex *timed;

    REQUIRE_EQ(0, ibv_query_device_ex(l.c.ctx, nullptr, &device));
    REQUIRE_EQ(1000000u, device.hca_core_clock);
    REQUIRE(device.completion_timestamp_mask != 0);
    REQUIRE_EQ(0, mlx5dv_get_clock_info(l.c.ctx, &info));
    REQUIRE_EQ(0u, info.last_cycles & ~device.completion_timestamp_mask);
    REQUIRE(info.last_cycles <= now(CLOCK_MONOTONIC));
    /* the time of day, if roughly: it may be set meanwhile */
    REQUIRE(info.nsec > now(CLOCK_REALTIME) - 3600000000000ul);
    REQUIRE(info.nsec < now(CLOCK_REALTIME) + 3600000000000ul);

    attr.cqe      = 16;
    attr.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
    timed         = ibv_create_cq_ex(l.c.ctx, &attr);
    REQUIRE(timed != nullptr);
    {
        cq plain(l.c, 16);
        cq peer_cq(l.c, 16);
        ibv_cq *saved = plain.v;

        plain.v = ibv_cq_ex_to_cq(timed);
        qp a(l.c, plain, plain, options), b(l.c, peer_cq, peer_cq);
        plain.v = saved;
        a.connect(b.addr(&l.peer_mem));
        b.connect(a.addr(&l.mem));
        for (int i = 0; i < 3; ++i) {
            send_wr wr(IBV_WR_RDMA_WRITE, i, {l.mem.sge(0, 64)});

            before = now(CLOCK_MONOTONIC);
            a.send(wr.to(b.addr(&l.peer_mem)));
            while (ibv_start_poll(timed, &poll) == ENOENT) {
            }
            REQUIRE_EQ(IBV_WC_SUCCESS, timed->status);
            ticks = ibv_wc_read_completion_ts(timed);
            nsec  = ibv_wc_read_completion_wallclock_ns(timed);
            ibv_end_poll(timed);
            REQUIRE(ticks >= before);
            REQUIRE(ticks >= last);
            REQUIRE(ticks <= now(CLOCK_MONOTONIC));
            REQUIRE_EQ(mlx5dv_ts_to_ns(&info, ticks), nsec);
            REQUIRE_EQ(info.nsec + (ticks - info.last_cycles), nsec);
            last = ticks;
        }
    }
    REQUIRE_EQ(0, ibv_destroy_cq(ibv_cq_ex_to_cq(timed)));
}

} // namespace

/* Ticks of completions, and what the kernel's page makes of them */
TEST_F(test_device_abi, completions_have_timestamps)
{
    run(1, [](rank &) {
        check_timestamps();
    });
}

TEST_F(test_device_abi, completions_have_timestamps_with_static_uars)
{
    set_env("MLX5SIM_UAR_MODE", "legacy");
    run(1, [](rank &) {
        check_timestamps();
    });
}

/* linux, 16ab330fa5cc ("net/mlx5: Add ability to read and write ECE options"):
 * a command takes options that are requested, and tells which are enabled */
TEST_F(test_device_abi, connections_have_no_options_to_enhance_them)
{
    on_device([](context &c) {
        const uint32_t mellanox = 0x15b3;
        memory mem(c, 4096);
        cq scq(c, 16), rcq(c, 16);
        qp a(c, scq, rcq), b(c, scq, rcq);
        ibv_ece ece;

        REQUIRE_EQ(0, ibv_query_ece(a.v, &ece));
        REQUIRE_EQ(mellanox, ece.vendor_id);
        REQUIRE_EQ(0, ece.options);

        ece.options = 43223;
        REQUIRE_EQ(0, ibv_set_ece(a.v, &ece));
        a.connect(b.addr(&mem));
        b.connect(a.addr(&mem));
        REQUIRE_EQ(0, ibv_query_ece(a.v, &ece));
        REQUIRE_EQ(0, ece.options);

        b.recv(1, mem.sge(0, 100));
        send_wr wr(IBV_WR_SEND, 2, {mem.sge(1000, 100)});
        a.send(wr);
        scq.good();
        rcq.good();
    });
}

/* A file that comes to the number of a device, which was closed by other means
 * than close(), and perhaps unseen */
TEST_F(test_device_abi, another_file_is_no_device)
{
    static int (*const ways[])(int fd, int other) = {
        [](int fd, int other) { return (int)syscall(SYS_dup2, other, fd); },
        [](int fd, int other) { return dup2(other, fd); },
        [](int fd, int other) { return dup3(other, fd, 0); },
        [](int fd, int other) {
            return (close_range(fd, fd, 0) == 0) ?
                   fcntl(other, F_DUPFD, fd) : -1;
        },
        [](int fd, int other) {
            closefrom(fd);
            return fcntl(other, F_DUPFD, fd);
        }
    };

    run(1, [](rank&) {
        const size_t size = 8192;
        int other         = memfd_create("other", 0);
        struct statx stx;
        struct stat st;

        REQUIRE_EQ(0, ftruncate(other, size));
        for (auto way : ways) {
            int fd = open("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC);

            REQUIRE_EQ(0, fstat(fd, &st));
            REQUIRE(S_ISCHR(st.st_mode));
            REQUIRE_EQ(fd, way(fd, other));
            REQUIRE_EQ(0, fstat(fd, &st));
            REQUIRE(S_ISREG(st.st_mode));
            REQUIRE_EQ(size, st.st_size);
            REQUIRE_EQ(0, statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS,
                                &stx));
            REQUIRE(S_ISREG(stx.stx_mode));
            void *ptr = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED,
                             fd, 0);
            REQUIRE(ptr != MAP_FAILED);
            memset(ptr, 1, size);
            REQUIRE_EQ(0, munmap(ptr, size));
            close(fd);
        }
        context c;
    });
}
