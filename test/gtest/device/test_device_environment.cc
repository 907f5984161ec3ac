/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What a system can be like: memory that is read only, GIDs of other network
 * namespaces, atomics on PCIe, receives that fail.
 */

#include <device/device.h>

#include <cerrno>
#include <cstring>

#include <poll.h>
#include <sys/mman.h>

using namespace device;

namespace {

class test_device_environment : public device::test {
};

/* Fresh memory of which @a length bytes from @a offset on are read only */
char *map_read_only(size_t size, size_t offset, size_t length)
{
    void *p = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    REQUIRE(p != MAP_FAILED);
    REQUIRE_EQ(0, mprotect((char*)p + offset, length, PROT_READ));
    return (char*)p;
}

void expect_reg(context &c, void *p, size_t size, unsigned access, int error)
{
    ibv_mr *mr = ibv_reg_mr(c.pd, p, size, access);

    if (error == 0) {
        REQUIRE(mr != nullptr);
        REQUIRE_EQ(0, ibv_dereg_mr(mr));
    } else {
        REQUIRE(mr == nullptr);
        REQUIRE_EQ(error, errno);
    }
}

/* A string literal */
const char text[8192] = "not to be written";

} // namespace


TEST_F(test_device_environment, what_cant_be_written_is_registered_to_read_only)
{
    run(1, [](rank&) {
        const size_t large = 32 << 20;
        context c;
        char *p = map_read_only(16384, 4096, 4096);

        for (unsigned access : {(unsigned)IBV_ACCESS_LOCAL_WRITE, all_access}) {
            expect_reg(c, p, 16384, access, EFAULT);
            expect_reg(c, p + 4096 + 100, 10, access, EFAULT);
            expect_reg(c, (void*)text, sizeof(text), access, EFAULT);
            /* around it */
            expect_reg(c, p, 4096, access, 0);
            expect_reg(c, p + 8192, 8192, access, 0);
        }
        for (unsigned access : {0u, (unsigned)IBV_ACCESS_REMOTE_READ}) {
            expect_reg(c, p, 16384, access, 0);
            expect_reg(c, (void*)text, sizeof(text), access, 0);
        }

        char *q = map_read_only(large, 0, large);
        expect_reg(c, q, large, IBV_ACCESS_LOCAL_WRITE, EFAULT);
        expect_reg(c, q, large, IBV_ACCESS_REMOTE_READ, 0);
    });
}

/* What was there before is there afterwards, and no page becomes another */
TEST_F(test_device_environment, registering_changes_no_byte)
{
    run(1, [](rank&) {
        const size_t size = 64 * 4096;
        context c;
        uint8_t *p = (uint8_t*)mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        REQUIRE(p != MAP_FAILED);
        pattern::fill(p, size / 2, 7);
        expect_reg(c, p, size, all_access, 0);
        REQUIRE_EQ(size / 2, pattern::check(p, size / 2, 7));
        for (size_t i = size / 2; i < size; ++i) {
            REQUIRE_EQ(0, p[i]);
        }
    });
}

TEST_F(test_device_environment, bad_gids_make_no_address_handles)
{
    set_env("MLX5SIM_LINK", "roce");
    set_env("MLX5SIM_BAD_GIDS", "3,0");
    run(1, [](rank&) {
        context c;
        ibv_ah_attr attr = {};

        attr.is_global     = 1;
        attr.port_num      = 1;
        attr.grh.hop_limit = 64;
        for (int index = 0; index < 4; ++index) {
            REQUIRE_EQ(0, ibv_query_gid(c.ctx, 1, index, &attr.grh.dgid));
            attr.grh.sgid_index = index;
            ibv_ah *ah          = ibv_create_ah(c.pd, &attr);
            if ((index == 0) || (index == 3)) {
                REQUIRE(ah == nullptr);
                REQUIRE_EQ(ENODEV, errno);
            } else {
                REQUIRE(ah != nullptr);
                REQUIRE_EQ(0, ibv_destroy_ah(ah));
            }
        }
    });
}

TEST_F(test_device_environment, bad_gids_connect_no_queue_pair)
{
    set_env("MLX5SIM_LINK", "roce");
    set_env("MLX5SIM_BAD_GIDS", "3");
    run(1, [](rank&) {
        context c;
        cq send_cq(c, 16), recv_cq(c, 16);

        for (int index : {3, 2}) {
            qp q(c, send_cq, recv_cq);
            ibv_qp_attr attr = {};

            q.to_init();
            attr.qp_state               = IBV_QPS_RTR;
            attr.path_mtu               = IBV_MTU_1024;
            attr.dest_qp_num            = q.v->qp_num;
            attr.min_rnr_timer          = 1;
            attr.max_dest_rd_atomic     = 1;
            attr.ah_attr.is_global      = 1;
            attr.ah_attr.port_num       = 1;
            attr.ah_attr.grh.sgid_index = index;
            attr.ah_attr.grh.hop_limit  = 64;
            REQUIRE_EQ(0, ibv_query_gid(c.ctx, 1, index,
                                        &attr.ah_attr.grh.dgid));
            REQUIRE_EQ((index == 3) ? ENODEV : 0,
                       ibv_modify_qp(q.v, &attr,
                                     IBV_QP_STATE | IBV_QP_AV |
                                     IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                     IBV_QP_RQ_PSN |
                                     IBV_QP_MAX_DEST_RD_ATOMIC |
                                     IBV_QP_MIN_RNR_TIMER));
        }
    });
}

TEST_F(test_device_environment, atomics_on_pcie_are_reported)
{
    static const struct {
        const char *value;
        unsigned   fadd, swap;
    } rows[] = {
        {"none", 0, 0},
        {"fadd8", IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP, 0},
        {"8", IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP,
         IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP},
        {"4_8", IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP |
                IBV_PCI_ATOMIC_OPERATION_4_BYTE_SIZE_SUP,
         IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP |
         IBV_PCI_ATOMIC_OPERATION_4_BYTE_SIZE_SUP}
    };

    for (auto &row : rows) {
        std::string dir = this->dir() + "/" + row.value;

        set_env("MLX5SIM_PCI_ATOMICS", row.value);
        set_env("MLX5SIM_DIR", dir);
        run(1, [&row](rank&) {
            ibv_device_attr_ex attr;
            context c;

            REQUIRE_EQ(0, ibv_query_device_ex(c.ctx, nullptr, &attr));
            REQUIRE_EQ(row.fadd, attr.pci_atomic_caps.fetch_add);
            REQUIRE_EQ(row.swap, attr.pci_atomic_caps.swap);
            REQUIRE_EQ(row.swap, attr.pci_atomic_caps.compare_swap);
        });
    }
}

/* The message comes again, and takes the next receive */
TEST_F(test_device_environment, an_aborted_receive_leaves_the_connection)
{
    for (const char *value : {"2:0x22:0x93", "1+:0x22:0x99"}) {
        bool always = strchr(value, '+') != nullptr;

        set_env("MLX5SIM_RECV_ERROR", value);
        run(1, [always](rank&) {
            loop l;

            for (unsigned i = 0; i < 20; ++i) {
                l.b.recv(i, l.peer_mem.sge(i * 64, 64));
            }
            unsigned next = 0;
            for (unsigned i = 0; i < 5; ++i) {
                l.mem.data[0] = 100 + i;
                send_wr wr(IBV_WR_SEND, i, {l.mem.sge(0, 1)});
                l.a.send(wr);
                l.scq.good();
                if (always || (i == 1)) {
                    ibv_wc wc = l.peer_cq.next();
                    REQUIRE_EQ(IBV_WC_REM_ABORT_ERR, wc.status);
                    REQUIRE_EQ(always ? 0x99 : 0x93, wc.vendor_err);
                    REQUIRE_EQ(next++, wc.wr_id);
                }
                REQUIRE_EQ(next, l.peer_cq.good().wr_id);
                REQUIRE_EQ(100 + i, l.peer_mem.data[next++ * 64]);
            }
            l.peer_cq.empty();
            REQUIRE_EQ(IBV_QPS_RTS, l.b.state());
        });
    }
}

TEST_F(test_device_environment, a_receive_with_another_error_fails_both_sides)
{
    set_env("MLX5SIM_RECV_ERROR", "1:0x04:0x51");
    run(1, [](rank&) {
        loop l;

        l.b.recv(1, l.peer_mem.sge(0, 64));
        send_wr wr(IBV_WR_SEND, 1, {l.mem.sge(0, 1)});
        l.a.send(wr);
        REQUIRE_EQ(IBV_WC_REM_OP_ERR, l.scq.next().status);
        ibv_wc wc = l.peer_cq.next();
        REQUIRE_EQ(IBV_WC_LOC_PROT_ERR, wc.status);
        REQUIRE_EQ(0x51, wc.vendor_err);
        REQUIRE_EQ(IBV_QPS_ERR, l.b.state());
    });
}

namespace {

/* Two QPs on an SRQ with a receive for each number, and one that sends */
struct prefetching {
    prefetching() :
        mem(c, 4096), srq_queue(c, 64), send_cq(c, 64), recv_cq(c, 256),
        options(with_srq()), a(c, send_cq, recv_cq, options),
        b(c, send_cq, recv_cq, options), sender_a(c, send_cq, send_cq),
        sender_b(c, send_cq, send_cq, without_retries())
    {
        connect(a, sender_a);
        connect(b, sender_b);
        for (unsigned i = 0; i < count; ++i) {
            srq_queue.recv(i, mem.sge(i * 8, 8));
        }
    }

    qp_options with_srq()
    {
        return {.srq = srq_queue.v};
    }

    /* Fails if there is no receive */
    static qp_options without_retries()
    {
        return {.rnr_retry = 0};
    }

    static void connect(qp &x, qp &y)
    {
        x.connect(y.addr());
        y.connect(x.addr());
    }

    /* Returns which receive was used */
    uint64_t message(qp &sender)
    {
        send_wr wr(IBV_WR_SEND, 1, {mem.sge(0, 8)});

        sender.send(wr);
        send_cq.good();
        return recv_cq.good().wr_id;
    }

    static const unsigned count = 48;
    context    c;
    memory     mem;
    srq        srq_queue;
    cq         send_cq, recv_cq;
    qp_options options;
    qp         a, b, sender_a, sender_b;
};

} // namespace

/* Flush errors, then the event, and then all receives are accounted for */
TEST_F(test_device_environment, receives_taken_beforehand_come_back_by_flushing)
{
    set_env("MLX5SIM_SRQ_PREFETCH", "15");
    run(1, [](rank&) {
        prefetching p;
        std::vector<bool> seen(p.count);
        ibv_async_event event;
        unsigned flushed = 0;
        ibv_wc wc;

        for (unsigned i = 0; i < 3; ++i) {
            seen[p.message(p.sender_a)] = true;
            seen[p.message(p.sender_b)] = true;
        }
        p.a.to_state(IBV_QPS_ERR);
        REQUIRE_EQ(0, ibv_get_async_event(p.c.ctx, &event));
        REQUIRE_EQ(IBV_EVENT_QP_LAST_WQE_REACHED, event.event_type);
        REQUIRE(event.element.qp == p.a.v);
        ibv_ack_async_event(&event);
        while (p.recv_cq.poll(&wc)) {
            REQUIRE_EQ(IBV_WC_WR_FLUSH_ERR, wc.status);
            REQUIRE_EQ(p.a.v->qp_num, wc.qp_num);
            REQUIRE(!seen[wc.wr_id]);
            seen[wc.wr_id] = true;
            ++flushed;
        }
        REQUIRE(flushed > 0);
        p.a.destroy();

        for (unsigned i = 6 + flushed; i < p.count; ++i) {
            uint64_t index = p.message(p.sender_b);
            REQUIRE(!seen[index]);
            seen[index] = true;
        }
    });
}

TEST_F(test_device_environment, a_qp_destroyed_too_early_keeps_receives)
{
    catch_errors();
    set_env("MLX5SIM_SRQ_PREFETCH", "15");
    run(1, [](rank&) {
        prefetching p;

        p.message(p.sender_a);
        p.a.to_state(IBV_QPS_ERR);
        p.a.destroy(); /* nobody has waited for the event */
        /* Where it has come meanwhile, a receive posted later tells of that */
        p.srq_queue.recv(0, p.mem.sge(0, 8));

        unsigned left = 0;
        for (; left < p.count; ++left) {
            send_wr wr(IBV_WR_SEND, 1, {p.mem.sge(0, 8)});

            p.sender_b.send(wr);
            if (p.send_cq.next().status == IBV_WC_RNR_RETRY_EXC_ERR) {
                break;
            }
            p.recv_cq.good();
        }
        REQUIRE(left < p.count);
    });

    std::vector<std::string> lines = take_violations();
    ASSERT_EQ(1u, lines.size());
    EXPECT_EQ("srq_leak", lines[0].substr(0, lines[0].find(' ')));
}

/* A QP that has taken nothing, or has given it back, may be one that has: to
 * know that, one has to wait for the event, and to read it */
static void
leave_early(bool has_failed, bool is_read, bool is_reset, bool is_used_further)
{
    prefetching p;
    ibv_async_event event;

    p.message(p.sender_a);
    if (has_failed) {
        p.a.to_state(IBV_QPS_ERR);
        pollfd fd = {p.c.ctx->async_fd, POLLIN, 0};
        REQUIRE_EQ(1, poll(&fd, 1, patience_ms));
    }
    if (is_read) {
        REQUIRE_EQ(0, ibv_get_async_event(p.c.ctx, &event));
        REQUIRE_EQ(IBV_EVENT_QP_LAST_WQE_REACHED, event.event_type);
        ibv_ack_async_event(&event);
    }
    if (is_reset) {
        p.a.to_state(IBV_QPS_RESET);
        REQUIRE_EQ(IBV_QPS_RESET, p.a.state());
    } else {
        p.a.destroy();
    }

    /* no mistake as long as nobody needs the SRQ any more: what is posted may
     * still arrive */
    for (unsigned i = 0; i < p.count - 1; ++i) {
        p.message(p.sender_b);
    }
    if (is_used_further) {
        p.srq_queue.recv(1, p.mem.sge(0, 8));
        p.message(p.sender_b);
    }
}

TEST_F(test_device_environment, the_last_wqe_event_has_to_be_read)
{
    catch_errors();
    for (bool is_reset : {false, true}) {
        for (bool has_failed : {false, true}) {
            run(1, [=](rank&) {
                leave_early(has_failed, false, is_reset, false);
            });
            EXPECT_TRUE(take_violations().empty());
            run(1, [=](rank&) {
                leave_early(has_failed, false, is_reset, true);
            });
            std::vector<std::string> lines = take_violations();
            ASSERT_EQ(1u, lines.size());
            EXPECT_EQ("srq_leak", lines[0].substr(0, lines[0].find(' ')));
            EXPECT_NE(std::string::npos, lines[0].find("was read"));
        }
        run(1, [=](rank&) { leave_early(true, true, is_reset, true); });
        EXPECT_TRUE(take_violations().empty());
    }
}

/* As when everything ends: nobody misses them */
TEST_F(test_device_environment, receives_of_an_srq_that_goes_too_are_not_missed)
{
    set_env("MLX5SIM_SRQ_PREFETCH", "15");
    run(1, [](rank&) {
        prefetching p;

        p.message(p.sender_a);
        p.message(p.sender_b);
    });
}
