/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Stepped execution: the program makes the rounds of the scheduler.
 */

#include <common/step.h>
#include <device/device_verbs.h>
#include <device/device.h>

using namespace device;

namespace {

class test_device_stepped : public device::test {
protected:
    void SetUp() override
    {
        device::test::SetUp();
        set_env("MLX5SIM_EXEC", "stepped");
    }
};

/* Steps until a completion, which is returned */
ibv_wc step_until(cq &queue, unsigned *steps_p)
{
    ibv_wc wc;

    for (*steps_p = 0; !queue.poll(&wc); ++*steps_p) {
        REQUIRE(*steps_p < 10000);
        REQUIRE_EQ(1, step::make());
    }
    return wc;
}

/* Two connections at work: which of the completions come when */
std::vector<unsigned> trace(uint64_t seed)
{
    std::vector<unsigned> result;
    unsigned steps;

    step::restart(seed);
    loop first, second;
    for (unsigned i = 0; i < 20; ++i) {
        for (loop *l : {&first, &second}) {
            send_wr wr(IBV_WR_RDMA_WRITE, i, {l->mem.sge(0, 20000)});
            l->a.send(wr.to(l->to_b));
        }
        REQUIRE_EQ(i, step_until(second.scq, &steps).wr_id);
        result.push_back(steps);
        REQUIRE_EQ(i, step_until(first.scq, &steps).wr_id);
        result.push_back(steps);
    }
    while (step::make() != 0) {
        result.push_back(0);
    }
    return result;
}

} // namespace

TEST_F(test_device_stepped, nothing_happens_between_steps)
{
    run(1, [](rank&) {
        loop l;
        unsigned steps;

        l.peer_mem.data[0] = 0;
        l.mem.data[0]      = 1;
        send_wr wr(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 8)});
        l.a.send(wr.to(l.to_b));
        usleep(20000);
        REQUIRE_EQ(0, l.peer_mem.data[0]);
        REQUIRE_EQ(IBV_WC_SUCCESS, step_until(l.scq, &steps).status);
        REQUIRE(steps > 0);
        REQUIRE_EQ(1, l.peer_mem.data[0]);
        REQUIRE_EQ(0, step::make());
    });
}

TEST_F(test_device_stepped, a_seed_does_the_same_again_in_the_same_process)
{
    run(1, [](rank&) {
        context first; /* seeds are for a device that is open */
        std::vector<unsigned> seen = trace(7);

        REQUIRE(seen != trace(8));
        REQUIRE(seen == trace(7));
    });
}

TEST_F(test_device_stepped, time_is_what_rounds_take)
{
    run(1, [](rank&) {
        unsigned steps;
        /* 7 times 655 ms, and 8 times 1 s */
        qp_options options = {.rnr_retry = 6, .rnr_timer = 0};
        loop l(options);

        send_wr msg(IBV_WR_SEND, 1, {l.mem.sge(0, 8)});
        l.a.send(msg);
        REQUIRE_EQ(IBV_WC_RNR_RETRY_EXC_ERR, step_until(l.scq, &steps).status);

        qp late(l.c, l.scq, l.scq, options);
        late.connect(l.to_a); /* which is not connected back, nor working */
        send_wr wr(IBV_WR_RDMA_WRITE, 2, {l.mem.sge(0, 8)});
        late.send(wr.to(l.to_a));
        REQUIRE_EQ(IBV_WC_RETRY_EXC_ERR, step_until(l.scq, &steps).status);
    });
}

/* A packet and its answer arrive together one time in two. With a second
 * attempt it would be three times in four. */
TEST_F(test_device_stepped, what_is_lost_is_sent_again_as_often_as_allowed)
{
    set_env("MLX5SIM_LOSS", "293");
    run(1, [](rank&) {
        context first; /* seeds are for a device that is open */
        unsigned steps, lost = 0;
        for (uint64_t seed = 1; seed <= 200; ++seed) {
            step::restart(seed);
            loop l({.retry_cnt = 0});
            send_wr wr(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 8)});

            l.a.send(wr.to(l.to_b));
            lost += step_until(l.scq, &steps).status == IBV_WC_RETRY_EXC_ERR;
        }
        REQUIRE(lost > 75);
        REQUIRE(lost < 125);
    });
}

/* The next read or atomic need not wait until the CQE of the last is written.
 * Chance decides whether it does. */
TEST_F(test_device_stepped, an_answer_makes_room_for_the_next_request)
{
    run(1, [](rank&) {
        qp_options options;
        options.max_rd = options.max_dest_rd = 1;
        loop l(options);
        volatile uint64_t *counter = (uint64_t*)l.peer_mem.data;
        unsigned steps, seen = 0;
        ibv_wc wc;

        for (unsigned i = 0; i < 100; ++i) {
            bool is_late;

            *counter = 0;
            send_wr read(IBV_WR_RDMA_READ, 1, {l.mem.sge(0, 8)});
            send_wr add(IBV_WR_ATOMIC_FETCH_AND_ADD, 2, {l.mem.sge(8, 8)});
            read.next = &add.atomic(l.to_b, 0, 1);
            l.a.send(read.to(l.to_b, 8));
            while (*counter == 0) {
                REQUIRE_EQ(1, step::make());
            }
            is_late = !l.scq.poll(&wc);
            seen   += is_late;
            if (is_late) {
                wc = step_until(l.scq, &steps);
            }
            REQUIRE_EQ(1, wc.wr_id);
            REQUIRE_EQ(2, step_until(l.scq, &steps).wr_id);
        }
        REQUIRE(seen > 0);
    });
}

/* A mistake that is found at once, when the peer has not yet said what it
 * thinks of the request before: the first has to complete with an error */
TEST_F(test_device_stepped, of_two_errors_the_first_is_told)
{
    run(1, [](rank&) {
        unsigned steps;

        for (unsigned i = 0; i < 20; ++i) {
            loop l;
            send_wr first(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 8)});
            send_wr second(IBV_WR_RDMA_WRITE, 2, {l.mem.sge(0, 8)});

            first.to(l.to_b);
            first.wr.rdma.rkey      += 1;
            second.to(l.to_b);
            second.sg_list[0].lkey  += 1;
            first.next               = &second;
            l.a.send(first);
            ibv_wc wc = step_until(l.scq, &steps);
            REQUIRE_EQ(1, wc.wr_id);
            REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, wc.status);
            wc = step_until(l.scq, &steps);
            REQUIRE_EQ(2, wc.wr_id);
            REQUIRE_EQ(IBV_WC_WR_FLUSH_ERR, wc.status);
        }
    });
}

TEST_F(test_device_stepped, there_are_no_steps_otherwise)
{
    REQUIRE_EQ(-1, step::make());
    for (const char *exec : {"sync", "deferred"}) {
        set_env("MLX5SIM_EXEC", exec);
        run(1, [](rank&) {
            context c;

            REQUIRE_EQ(-1, step::make());
            REQUIRE_EQ(EINVAL, errno);
        });
    }
}
