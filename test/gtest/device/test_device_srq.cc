/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Shared receive queues of another process. Its receives are read ahead: one
 * that was not posted yet at that time must not be taken, and one that was has
 * to be found wherever it is in the list.
 */

#include <device/device.h>

#include <algorithm>

using namespace device;

namespace {

const unsigned num_messages = 3000;
const size_t   message_size = 200; /* not into the completion */

class test_device_srq : public device::test {
};

/* Receives are posted again some at a time, in any order */
void receive(cq &q, srq &shared, memory &mem, unsigned num_recvs)
{
    std::vector<unsigned> free(num_recvs);
    pattern random(1);

    for (unsigned i = 0; i < num_recvs; ++i) {
        free[i] = i;
    }
    for (uint64_t seq = 0; seq < num_messages; ++seq) {
        unsigned keep = random.below(num_recvs);
        ibv_wc wc;

        if ((seq == 0) || (free.size() > keep)) {
            while (!free.empty()) {
                std::swap(free[random.below(free.size())], free.back());
                shared.recv(free.back(),
                            mem.sge(free.back() * message_size, message_size));
                free.pop_back();
            }
        }
        wc = q.good();
        REQUIRE_EQ(message_size, wc.byte_len);
        REQUIRE_EQ(0, memcmp(&mem.data[wc.wr_id * message_size], &seq,
                             sizeof(seq)));
        free.push_back(wc.wr_id);
    }
}

} // namespace


TEST_F(test_device_srq, receives_of_another_process_are_taken_in_order)
{
    for (unsigned num_recvs : {1, 7, 63, 255}) {
        run(2, [=](rank &r) {
            context c;
            memory mem(c, 65536);
            srq shared(c, num_recvs);
            cq scq(c, 64), rcq(c, 512);
            qp q(c, scq, rcq, {.srq = shared.v});

            r.publish(q.addr());
            q.connect(r.lookup<address>(1 - r.index));
            r.barrier();
            if (r.index == 1) {
                receive(rcq, shared, mem, num_recvs);
            } else {
                for (uint64_t seq = 0; seq < num_messages; ++seq) {
                    memcpy(&mem.data[0], &seq, sizeof(seq));
                    send_wr wr(IBV_WR_SEND, seq, {mem.sge(0, message_size)});
                    q.send(wr);
                    scq.good();
                }
            }
            r.barrier();
        });
    }
}

/* What another process has read ahead is of before */
TEST_F(test_device_srq, the_owner_takes_receives_of_its_own_in_between)
{
    run(2, [](rank &r) {
        context c;
        memory mem(c, 65536);
        srq shared(c, 15);
        cq scq(c, 64), rcq(c, 64);
        qp q(c, scq, rcq, {.srq = shared.v});
        qp a(c, scq, rcq), b(c, scq, rcq, {.srq = shared.v});

        r.publish(q.addr());
        q.connect(r.lookup<address>(1 - r.index));
        a.connect(b.addr());
        b.connect(a.addr());
        for (unsigned own = 1; own < 10; ++own) {
            /* receives that the peer's first message finds, and others */
            const unsigned posted[] = {3, own, 0}, sent[] = {1, own, 2};

            for (unsigned step = 0; step < 3; ++step) {
                for (unsigned i = 0; (r.index == 1) && (i < posted[step]);
                     ++i) {
                    shared.recv(i, mem.sge(i * message_size, message_size));
                }
                r.barrier();
                for (unsigned i = 0; i < sent[step]; ++i) {
                    if (r.index == (step == 1)) {
                        send_wr wr(IBV_WR_SEND, i, {mem.sge(0, message_size)});

                        ((step == 1) ? a : q).send(wr);
                        scq.good();
                    }
                    if (r.index == 1) {
                        rcq.good();
                    }
                }
                r.barrier();
            }
        }
    });
}
