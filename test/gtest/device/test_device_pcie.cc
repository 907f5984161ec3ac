/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What crosses PCI Express, as mlx5sim-stat counts it, and data that come with
 * a completion instead of on their own.
 */

#include <device/device_wqe.h>

#include <cstring>

#include <endian.h>

using namespace device;

namespace {

/** A queue pair that is connected to itself, and counters of its process. */
class test_device_pcie : public device::test {
protected:
    struct counters {
        long reads, writes, mmio, blueflames;
    };

    counters now()
    {
        return {stat_total("dma_reads"), stat_total("dma_writes"),
                stat_total("mmio_writes"), stat_total("blueflames")};
    }

    /** Counters moved by as much: work requests that come by BlueFlame are not
     *  fetched. A work request is of one basic block. */
    void expect(const counters &before, long reads, long writes)
    {
        counters after = now();
        long fetches   = 1 - (after.blueflames - before.blueflames);

        REQUIRE_EQ(reads + fetches, after.reads - before.reads);
        REQUIRE_EQ(writes, after.writes - before.writes);
        REQUIRE_EQ(1, after.mmio - before.mmio);
    }

    struct loop {
        explicit loop(bool sig_all, unsigned cqe_size = 64) :
            mem(c, 4096), scq(c, 64, cqe_size), rcq(c, 64, cqe_size),
            q(c, scq, rcq, options(sig_all))
        {
            q.connect(q.addr());
        }

        static qp_options options(bool sig_all)
        {
            return {.sig_all = sig_all};
        }

        context c;
        memory  mem;
        cq      scq;
        cq      rcq;
        qp      q;
    };
};

} // namespace


TEST_F(test_device_pcie, writes_and_sends_are_counted)
{
    run(1, [this](rank&) {
        loop l(false);

        /* payload read and written, completion written */
        counters before = now();
        send_wr write(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 1024)});
        l.q.send(write.to(l.q.addr(&l.mem), 2048));
        l.scq.good();
        expect(before, 1, 2);

        /* nobody wants a completion, and inline data need not be read */
        before = now();
        send_wr inl(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 8)}, IBV_SEND_INLINE);
        l.q.send(inl.to(l.q.addr(&l.mem), 2048));
        send_wr last(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 8)},
                     IBV_SEND_INLINE | IBV_SEND_SIGNALED);
        l.q.send(last.to(l.q.addr(&l.mem), 2048));
        l.scq.good();
        counters after = now();
        REQUIRE_EQ(3, after.writes - before.writes);
        REQUIRE_EQ(2, after.mmio - before.mmio);

        /* a receive's work request is read; its data take two pieces */
        ibv_sge pieces[] = {l.mem.sge(3000, 100), l.mem.sge(3500, 100)};
        l.q.recv(1, pieces, 2);
        before = now();
        send_wr send(IBV_WR_SEND, 1, {l.mem.sge(0, 150)});
        l.q.send(send);
        l.scq.good();
        l.rcq.good();
        expect(before, 2, 4);
    });
}

/* What is copied behind the end of a work request, up to that of its block, is
 * taken with it */
TEST_F(test_device_pcie, a_block_takes_one_signal)
{
    set_env("MLX5SIM_PATCH_AFTER", "0");
    run(1, [this](rank&) {
        loop l(false);
        raw_sq sq(l.q.v);

        long before = 0;

        /* the first finds out where the page is */
        for (unsigned i = 0; i < 5; ++i) {
            raw_wqe w(sq, MLX5_OPCODE_RDMA_WRITE);

            w.raddr(l.mem.addr(2048), l.mem.mr->rkey).data(l.mem.sge(0, 8));
            w.post(true);
            l.scq.good();
            before = (i == 0) ? stat_total("traps") : before;
        }
        REQUIRE_EQ(4, stat_total("traps") - before);
    });
}

/* libmlx5 copies such data to where they belong when it polls */
TEST_F(test_device_pcie, short_messages_come_with_the_completion)
{
    run(1, [this](rank&) {
        for (unsigned size : {64, 128}) {
            unsigned max = size / 2;
            loop l(false, size);

            for (unsigned length : {max, max + 1}) {
                pattern::fill(l.mem.data, length, length);
                memset(l.mem.data + 2048, 0, 256);
                l.q.recv(1, l.mem.sge(2048, 256));
                counters before = now();
                send_wr send(IBV_WR_SEND, 1, {l.mem.sge(0, length)});
                l.q.send(send);
                l.scq.good();
                expect(before, 2, (length <= max) ? 2 : 3);
                if (length <= max) {
                    REQUIRE_EQ(0, l.mem.data[2048]);
                }
                l.rcq.good();
                REQUIRE_EQ(length, pattern::check(l.mem.data + 2048, length,
                                                  length));
            }
        }
    });
}

/* The kernel asks for it if all work requests are signaled, or with the flag
 * MLX5_QP_FLAG_ALLOW_SCATTER_CQE */
TEST_F(test_device_pcie, short_answers_come_with_the_completion)
{
    run(1, [this](rank&) {
        for (bool sig_all : {false, true}) {
            loop l(sig_all);

            for (unsigned length : {8u, 32u, 33u}) {
                bool in_cqe = sig_all && (length <= 32);

                pattern::fill(l.mem.data, length, length);
                memset(l.mem.data + 2048, 0, 256);
                counters before = now();
                send_wr get(IBV_WR_RDMA_READ, 1, {l.mem.sge(2048, length)});
                l.q.send(get.to(l.q.addr(&l.mem)));
                l.scq.good();
                expect(before, 1, in_cqe ? 1 : 2);
                REQUIRE_EQ(length, pattern::check(l.mem.data + 2048, length,
                                                  length));
            }

            /* an atomic reads and writes its target, too */
            uint64_t value = 41;
            memcpy(l.mem.data, &value, sizeof(value));
            counters before = now();
            send_wr add(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, {l.mem.sge(2048, 8)});
            l.q.send(add.atomic(l.q.addr(&l.mem), 0, 1));
            l.scq.good();
            expect(before, 1, sig_all ? 2 : 3);
            /* in a CQE it is big endian, and libmlx5 copies it as it is */
            uint64_t old = sig_all ? htobe64(value) : value;
            REQUIRE_EQ(0, memcmp(l.mem.data + 2048, &old, sizeof(old)));
            ++value;
            REQUIRE_EQ(0, memcmp(l.mem.data, &value, sizeof(value)));
        }
    });
}
