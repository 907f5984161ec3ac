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
        qp_options options;
        unsigned steps;
        /* 7 times 655 ms, and 8 times 1 s */
        options.rnr_retry = 6;
        options.rnr_timer = 0;
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
