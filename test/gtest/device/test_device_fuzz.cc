/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Random sequences of all operations on one connection, compared with a model
 * of the target's memory.
 */

#include <device/device.h>

#include <common/seed.h>

#include <cstring>
#include <deque>

using namespace device;

namespace {

class test_device_fuzz : public device::test {
};

} // namespace


TEST_F(test_device_fuzz, random_operations_match_a_model)
{
    unsigned rounds = seed::cases(4);

    for (unsigned i = 0; (i < rounds) && !HasFailure(); ++i) {
        uint64_t random = seed::get(i);

        run(2, [random](rank &r) {
            const size_t size = 2 << 20, max = 1 << 20;
            const unsigned depth = 8, num = 300;
            qp_options options = {.recv_wr = 32, .send_sge = 8};
            side s(r, options, (r.index == 0) ? depth * max : size);
            pattern rnd(random);

            if (r.index == 1) {
                memory sink(s.c, 32 * max);

                for (unsigned i = 0; i < 32; ++i) {
                    s.q.recv(i, sink.sge(i * max, max));
                }
                r.barrier();
                for (;;) {
                    ibv_wc wc = s.rcq.good();

                    if (wc.imm_data == 0) {
                        break;
                    }
                    if (wc.opcode == IBV_WC_RECV) {
                        REQUIRE_EQ(wc.byte_len,
                                   pattern::check(sink.data + wc.wr_id * max,
                                                  wc.byte_len, wc.imm_data));
                    }
                    s.q.recv(wc.wr_id, sink.sge(wc.wr_id * max, max));
                }
                r.barrier();
                return;
            }

            struct pending {
                unsigned             slot;
                bool                 compare;
                std::vector<uint8_t> expected;
            };
            /* the model knows of no read that a later write overtakes */
            const unsigned fence = IBV_SEND_FENCE;
            std::vector<uint8_t> model(size);
            std::deque<pending> queue;

            r.barrier();
            for (unsigned i = 1; i <= num + depth; ++i) {
                if ((queue.size() == depth) || (i > num)) {
                    if (queue.empty()) {
                        break;
                    }
                    pending p = queue.front();
                    ibv_wc wc = s.scq.good();
                    REQUIRE_EQ(p.slot, wc.wr_id);
                    if (p.compare && !p.expected.empty()) {
                        REQUIRE(memcmp(s.mem.data + p.slot * max,
                                       p.expected.data(),
                                       p.expected.size()) == 0);
                    }
                    queue.pop_front();
                }
                if (i > num) {
                    continue;
                }

                unsigned slot  = i % depth;
                uint8_t *local = s.mem.data + slot * max;
                size_t length  = rnd.below(1ul << rnd.below(21));
                size_t offset  = rnd.below(size - length);
                pending p      = {slot, false, {}};
                std::vector<ibv_sge> list;
                unsigned flags = IBV_SEND_SIGNALED;

                /* up to 8 pieces */
                size_t at = 0;
                for (unsigned n = rnd.below(8); (n > 0) && (at < length); --n) {
                    size_t part = 1 + rnd.below(length - at);
                    list.push_back(s.mem.sge(slot * max + at, part));
                    at += part;
                }
                if ((at < length) && (list.size() < 8)) {
                    list.push_back(s.mem.sge(slot * max + at, length - at));
                } else {
                    length = at;
                }
                if ((length <= 64) && rnd.below(2)) {
                    flags |= IBV_SEND_INLINE;
                }

                switch (rnd.below(6)) {
                case 0:
                case 1: {
                    pattern::fill(local, length, i);
                    memcpy(model.data() + offset, local, length);
                    send_wr wr(IBV_WR_RDMA_WRITE, slot, list, flags | fence);
                    s.q.send(wr.to(s.peer, offset));
                    break;
                }
                case 2: {
                    pattern::fill(local, length, i);
                    send_wr wr(IBV_WR_SEND_WITH_IMM, slot, list, flags);
                    wr.imm_data = i;
                    s.q.send(wr);
                    break;
                }
                case 3: {
                    pattern::fill(local, length, i);
                    memcpy(model.data() + offset, local, length);
                    send_wr wr(IBV_WR_RDMA_WRITE_WITH_IMM, slot, list,
                               flags | fence);
                    wr.imm_data = i;
                    s.q.send(wr.to(s.peer, offset));
                    break;
                }
                case 4: {
                    send_wr wr(IBV_WR_RDMA_READ, slot, list);
                    p.compare = true;
                    p.expected.assign(model.begin() + offset,
                                      model.begin() + offset + length);
                    s.q.send(wr.to(s.peer, offset));
                    break;
                }
                case 5: {
                    bool is_cas = rnd.below(2);
                    uint64_t add = rnd.next(), old;
                    send_wr wr(is_cas ? IBV_WR_ATOMIC_CMP_AND_SWP :
                                        IBV_WR_ATOMIC_FETCH_AND_ADD, slot,
                               {s.mem.sge(slot * max, 8)},
                               IBV_SEND_SIGNALED | fence);

                    offset = rnd.below(size / 8) * 8;
                    memcpy(&old, model.data() + offset, 8);
                    p.compare = true;
                    p.expected.assign(model.begin() + offset,
                                      model.begin() + offset + 8);
                    uint64_t compare = rnd.below(2) ? old : add;
                    wr.atomic(s.peer, offset, is_cas ? compare : add, add);
                    s.q.send(wr);
                    if (!is_cas) {
                        add += old;
                    } else if (compare != old) {
                        add = old;
                    }
                    memcpy(model.data() + offset, &add, 8);
                    break;
                }
                }
                queue.push_back(p);
            }

            /* all of it at once, then tell the peer to stop */
            for (size_t at = 0; at < size; at += max) {
                send_wr rd(IBV_WR_RDMA_READ, 1, {s.mem.sge(0, max)});
                s.q.send(rd.to(s.peer, at));
                s.scq.good();
                REQUIRE(memcmp(s.mem.data, model.data() + at, max) == 0);
            }
            send_wr stop(IBV_WR_SEND_WITH_IMM, 2, {});
            s.q.send(stop);
            s.scq.good();
            r.barrier();
        });
    }
}
