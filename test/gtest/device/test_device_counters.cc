/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Counters of a port in sysfs: what the device of all processes did.
 */

#include <device/device.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include <fcntl.h>
#include <unistd.h>

using namespace device;

namespace {

class test_device_counters : public device::test {
protected:
    void SetUp() override
    {
        device::test::SetUp();
        set_env("MLX5SIM_LINK", "ib");
    }

    static long number(const std::string &path)
    {
        FILE *file = fopen(path.c_str(), "r");
        long value = -1;

        REQUIRE(file != nullptr);
        REQUIRE_EQ(1, fscanf(file, "%ld", &value));
        fclose(file);
        return value;
    }

    static long counter(const char *name, unsigned port = 1)
    {
        return number("/sys/class/infiniband/mlx5_0/ports/" +
                      std::to_string(port) + "/" + name);
    }

    /** Sent or received, all of the adapter: packets, and words. */
    static void expect(const char *direction, long packets, long bytes,
                       unsigned port = 1)
    {
        std::string name = std::string("counters/port_") + direction;

        REQUIRE_EQ(packets, counter((name + "_packets").c_str(), port));
        REQUIRE_EQ(bytes / 4, counter((name + "_data").c_str(), port));
        name = std::string("counters/unicast_") + direction + "_packets";
        REQUIRE_EQ(packets, counter(name.c_str(), port));
    }
};

/** LRH, BTH and ICRC */
const long ib_headers = 8 + 12 + 4;

/** How work is carried out. */
class test_device_counters_exec :
    public test_device_counters,
    public ::testing::WithParamInterface<const char*> {
protected:
    void SetUp() override
    {
        test_device_counters::SetUp();
        set_env("MLX5SIM_EXEC", GetParam());
    }
};

} // namespace


TEST_P(test_device_counters_exec, packets_and_their_bytes_are_counted)
{
    run(1, [](rank&) {
        loop l(qp_options{.mtu = IBV_MTU_1024});
        long packets = 0, bytes = 0;
        auto both    = [&](long more_packets, long payload, long headers) {
            packets += more_packets;
            bytes   += more_packets * ib_headers + payload + headers;
            expect("xmit", packets, bytes);
            expect("rcv", packets, bytes);
        };

        both(0, 0, 0);

        /* three packets with one RETH, and an acknowledgement with AETH; one
         * byte is padded to a word */
        send_wr write(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 2049)});
        l.a.send(write.to(l.to_b));
        l.scq.good();
        both(4, 2052, 16 + 4);

        /* the answer has AETH twice */
        send_wr read(IBV_WR_RDMA_READ, 1, {l.mem.sge(0, 4096)});
        l.a.send(read.to(l.to_b));
        l.scq.good();
        both(5, 4096, 16 + 4 + 4);

        l.b.recv(1, l.peer_mem.sge(0, 100));
        send_wr send(IBV_WR_SEND_WITH_IMM, 1, {l.mem.sge(0, 100)});
        l.a.send(send);
        l.scq.good();
        both(2, 100, 4 + 4);

        send_wr add(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, {l.mem.sge(0, 8)});
        l.a.send(add.atomic(l.to_b, 0, 1));
        l.scq.good();
        both(2, 0, 28 + 4 + 8);

        REQUIRE_EQ(1, counter("hw_counters/rx_write_requests"));
        REQUIRE_EQ(1, counter("hw_counters/rx_read_requests"));
        REQUIRE_EQ(1, counter("hw_counters/rx_atomic_requests"));
        REQUIRE_EQ(0, counter("hw_counters/out_of_buffer"));
        REQUIRE_EQ(0, counter("counters/port_rcv_errors"));
    });
}

TEST_P(test_device_counters_exec, each_port_has_its_own)
{
    set_env("MLX5SIM_PORTS", "2");
    run(1, [](rank&) {
        qp_options options;
        context c1(0, 1), c2(0, 2);
        memory mem1(c1, 4096), mem2(c2, 4096);
        cq cq1(c1, 64), cq2(c2, 64);
        qp a(c1, cq1, cq1, options), b(c2, cq2, cq2, options);

        a.connect(b.addr());
        b.connect(a.addr());
        send_wr write(IBV_WR_RDMA_WRITE, 1, {mem1.sge(0, 4000)});
        a.send(write.to(b.addr(&mem2)));
        cq1.good();
        expect("xmit", 1, ib_headers + 16 + 4000, 1);
        expect("rcv", 1, ib_headers + 4, 1);
        expect("xmit", 1, ib_headers + 4, 2);
        expect("rcv", 1, ib_headers + 16 + 4000, 2);
    });
}

TEST_P(test_device_counters_exec, datagrams_are_counted)
{
    set_env("MLX5SIM_LINK", "roce");
    run(1, [](rank&) {
        qp_options options = {.type = IBV_QPT_UD};
        context c;
        memory mem(c, 4096);
        cq cq(c, 64);
        qp q(c, cq, cq, options);
        ibv_ah_attr path = {};
        const long bytes = 14 + 20 + 8 + 12 + 8 + 100 + 4;

        q.connect(q.addr());
        path.is_global      = 1;
        path.port_num       = 1;
        path.grh.sgid_index = 3; /* RoCE v2, IPv4 */
        REQUIRE_EQ(0, ibv_query_gid(c.ctx, 1, 3, &path.grh.dgid));
        ibv_ah *ah = ibv_create_ah(c.pd, &path);
        REQUIRE(ah != nullptr);
        for (int is_there : {1, 0}) {
            send_wr wr(IBV_WR_SEND, 1, {mem.sge(0, 100)});

            q.recv(1, mem.sge(1000, 1000));
            wr.wr.ud.ah          = ah;
            wr.wr.ud.remote_qpn  = is_there ? q.v->qp_num : 0x777777;
            wr.wr.ud.remote_qkey = default_qkey;
            q.send(wr);
            cq.good();
            if (is_there) {
                cq.good();
            }
        }
        expect("xmit", 2, 2 * bytes);
        expect("rcv", 1, bytes);
        REQUIRE_EQ(0, ibv_destroy_ah(ah));
    });
}

/* IBTA C10-93.1.1 */
TEST_P(test_device_counters_exec, datagrams_beyond_the_mtu_are_not_sent)
{
    set_env("MLX5SIM_LINK", "roce");
    run(1, [](rank&) {
        qp_options options = {.type = IBV_QPT_UD};
        context c;
        memory mem(c, 16384);
        cq scq(c, 64), rcq(c, 64);
        qp q(c, scq, rcq, options);
        ibv_ah_attr path   = {};
        const long headers = 14 + 20 + 8 + 12 + 8 + 4;

        q.connect(q.addr());
        path.is_global      = 1;
        path.port_num       = 1;
        path.grh.sgid_index = 3; /* RoCE v2, IPv4 */
        REQUIRE_EQ(0, ibv_query_gid(c.ctx, 1, 3, &path.grh.dgid));
        ibv_ah *ah = ibv_create_ah(c.pd, &path);
        REQUIRE(ah != nullptr);
        q.recv(1, mem.sge(8192, 8192));
        for (unsigned length : {1025, 4096, 1024}) {
            send_wr wr(IBV_WR_SEND, 1, {mem.sge(0, length)});

            wr.wr.ud.ah          = ah;
            wr.wr.ud.remote_qpn  = q.v->qp_num;
            wr.wr.ud.remote_qkey = default_qkey;
            q.send(wr);
            scq.good();
        }
        REQUIRE_EQ(40 + 1024u, rcq.good().byte_len);
        rcq.empty();
        expect("xmit", 1, headers + 1024);
        expect("rcv", 1, headers + 1024);
        REQUIRE_EQ(IBV_QPS_RTS, q.state());
        REQUIRE_EQ(0, ibv_destroy_ah(ah));
    });
}

INSTANTIATE_TEST_SUITE_P(exec, test_device_counters_exec,
                         ::testing::Values("sync", "deferred"),
                         [](const auto &info) {
                             return std::string(info.param);
                         });

/* Whoever did it: processes count together, and what one did stays */
TEST_F(test_device_counters, processes_that_have_ended_are_counted)
{
    const long bytes = 2 * ib_headers + 16 + 4 + 1000;

    for (unsigned i = 1; i <= 3; ++i) {
        run(2, [=](rank &r) {
            loop l;

            send_wr write(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 1000)});
            l.a.send(write.to(l.to_b));
            l.scq.good();
            r.barrier();
            expect("xmit", 4 * i, 2 * bytes * i);
        });
    }

    /* and in a process that does not use the device */
    run(1, [=](rank&) {
        expect("rcv", 12, 6 * bytes);
    });
}

TEST_F(test_device_counters, what_did_not_go_well_is_counted)
{
    run(1, [](rank&) {
        loop l(qp_options{.rnr_retry = 1});

        send_wr send(IBV_WR_SEND, 1, {l.mem.sge(0, 100)});
        l.a.send(send);
        l.a.send(send);
        REQUIRE_EQ(IBV_WC_RNR_RETRY_EXC_ERR, l.scq.next().status);
        REQUIRE_EQ(IBV_WC_WR_FLUSH_ERR, l.scq.next().status);
        /* the second doorbell may have the first request tried once more */
        REQUIRE(counter("hw_counters/out_of_buffer") >= 2);
        REQUIRE_EQ(1, counter("hw_counters/req_cqe_error"));
        REQUIRE_EQ(1, counter("hw_counters/req_cqe_flush_error"));
    });
}

/* A packet that is sent again is one more; one that is lost does not arrive */
TEST_F(test_device_counters, what_is_lost_is_seen)
{
    set_env("MLX5SIM_EXEC", "deferred");
    set_env("MLX5SIM_LOSS", "200");
    run(1, [](rank&) {
        loop l(qp_options{.mtu = IBV_MTU_256});

        for (unsigned i = 0; i < 20; ++i) {
            send_wr write(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 5120)});
            l.a.send(write.to(l.to_b));
            l.scq.good();
        }
        REQUIRE(counter("counters/port_xmit_packets") >
                counter("counters/port_rcv_packets"));
        REQUIRE(counter("counters/port_rcv_packets") > 20 * 20);
        REQUIRE(counter("hw_counters/out_of_sequence") > 0);
        REQUIRE(counter("hw_counters/packet_seq_err") > 0);
        REQUIRE(counter("hw_counters/duplicate_request") > 0);
    });
}

/* By the directory, and by names that are relative to it, as scripts do */
TEST_F(test_device_counters, a_directory_has_what_is_counted_now)
{
    run(1, [](rank&) {
        loop l;
        const char *dir = "/sys/class/infiniband/mlx5_0/ports/1/hw_counters/";
        char text[32]   = "";

        send_wr write(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 8)});
        l.a.send(write.to(l.to_b));
        l.scq.good();
        int dir_fd = open(dir, O_RDONLY | O_DIRECTORY);
        int fd     = openat(dir_fd, "rx_write_requests", O_RDONLY);
        REQUIRE_EQ(2, read(fd, text, sizeof(text)));
        REQUIRE_EQ('1', text[0]);
        close(fd);
        close(dir_fd);

        dir_fd = open("/sys/class/infiniband/mlx5_0", O_RDONLY | O_DIRECTORY);
        l.a.send(write.to(l.to_b));
        l.scq.good();
        fd = openat(dir_fd, "ports/1/hw_counters/rx_write_requests", O_RDONLY);
        REQUIRE_EQ(2, read(fd, text, sizeof(text)));
        REQUIRE_EQ('2', text[0]);
        close(fd);
        close(dir_fd);
    });
}

/* Programs without the device's library read what mlx5sim-stat has written */
TEST_F(test_device_counters, stat_tells_those_outside)
{
    run(1, [this](rank&) {
        loop l;
        std::string path = dir() + "/sysfs/class/infiniband/mlx5_0/ports/1/"
                           "counters/port_rcv_packets";
        std::string output;

        send_wr write(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 8)});
        l.a.send(write.to(l.to_b));
        l.scq.good();
        REQUIRE_EQ(0, number(path));
        REQUIRE_EQ(0, stat("", &output));
        REQUIRE_EQ(2, number(path));
    });
}
