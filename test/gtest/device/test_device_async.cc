/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * What happens to devices and their ports, and who is told.
 */

#include <device/device.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include <fcntl.h>
#include <poll.h>

using namespace device;

namespace {

class test_device_async : public device::test {
protected:
    /* mlx5sim-stat with options, in a process of the test */
    void control(const std::string &options)
    {
        std::string output;

        REQUIRE_EQ(0, stat(options, &output));
    }
};

void expect_event(ibv_context *ctx, ibv_event_type type, int port)
{
    ibv_async_event event;

    REQUIRE_EQ(0, ibv_get_async_event(ctx, &event));
    REQUIRE_EQ(type, event.event_type);
    REQUIRE_EQ(port, event.element.port_num);
    ibv_ack_async_event(&event);
}

void expect_no_event(ibv_context *ctx)
{
    pollfd pfd = {ctx->async_fd, POLLIN, 0};

    REQUIRE_EQ(0, poll(&pfd, 1, 0));
}

std::string read_line(const std::string &path)
{
    std::ifstream file(path);
    std::string line;

    std::getline(file, line);
    return line;
}

void expect_port(ibv_context *ctx, unsigned port, ibv_port_state state,
                 const char *text)
{
    std::string path = std::string("/sys/class/infiniband/") +
                       ibv_get_device_name(ctx->device) + "/ports/" +
                       std::to_string(port) + "/state";
    ibv_port_attr attr;

    REQUIRE_EQ(0, ibv_query_port(ctx, port, &attr));
    REQUIRE_EQ(state, attr.state);
    REQUIRE(read_line(path) == text);
}

} // namespace


TEST_F(test_device_async, ports_go_down_and_come_up)
{
    set_env("MLX5SIM_PORTS", "2");
    set_env("MLX5SIM_DEVICES", "2");
    run(1, [this](rank&) {
        context first, again, other(1);

        control("--port-down mlx5_0:2");
        expect_event(first.ctx, IBV_EVENT_PORT_ERR, 2);
        expect_event(again.ctx, IBV_EVENT_PORT_ERR, 2);
        expect_no_event(first.ctx);
        expect_no_event(other.ctx);
        expect_port(first.ctx, 2, IBV_PORT_DOWN, "1: DOWN");
        expect_port(first.ctx, 1, IBV_PORT_ACTIVE, "4: ACTIVE");
        expect_port(other.ctx, 2, IBV_PORT_ACTIVE, "4: ACTIVE");

        control("--port-up mlx5_0:2");
        expect_event(first.ctx, IBV_EVENT_PORT_ACTIVE, 2);
        expect_event(again.ctx, IBV_EVENT_PORT_ACTIVE, 2);
        expect_port(first.ctx, 2, IBV_PORT_ACTIVE, "4: ACTIVE");

        std::string output;
        for (const char *wrong : {"--port-down mlx5_2:1", "--port-up mlx5_0:3",
                                  "--port-down mlx5_0", "--fatal mlx5_0:1",
                                  "--fatal mlx5_5", "--port-down mlx5_0:1x"}) {
            REQUIRE(stat(wrong, &output) != 0);
        }
        expect_no_event(first.ctx);
    });
}

/* A link that is slower tells so, and all that is known of it is the new
 * speed. The event is newer than this rdma-core, and names no port. */
TEST_F(test_device_async, ports_change_their_speed)
{
    const auto speed_change = (ibv_event_type)20;

    set_env("MLX5SIM_PORTS", "2");
    set_env("MLX5SIM_DEVICES", "2");
    set_env("MLX5SIM_MODEL", "cx6");
    run(1, [this, speed_change](rank&) {
        static const struct {
            const char *text;
            unsigned   width, lane;
            const char *rate;
        } speeds[] = {
            {"2xHDR", 16, 64, "100 Gb/sec (2X HDR)"},
            {"1xFDR", 1, 16, "14 Gb/sec (1X FDR)"},
            {"1xSDR", 1, 1, "2.5 Gb/sec (1X)"},
            {"12xQDR", 8, 4, "120 Gb/sec (12X QDR)"},
            {"8xEDR", 4, 32, "200 Gb/sec (8X EDR)"},
            {"4xHDR", 2, 64, "200 Gb/sec (4X HDR)"}
        };
        context first, again, other(1);
        const std::string rate = std::string("/sys/class/infiniband/") +
                                 ibv_get_device_name(first.ctx->device) +
                                 "/ports/2/rate";
        ibv_port_attr before, attr;

        REQUIRE_EQ(0, ibv_query_port(first.ctx, 1, &before));
        REQUIRE_EQ(64, before.active_speed);
        for (const auto &s : speeds) {
            control(std::string("--port-speed mlx5_0:2=") + s.text);
            expect_event(first.ctx, speed_change, 0);
            expect_event(again.ctx, speed_change, 0);
            expect_no_event(first.ctx);
            expect_no_event(other.ctx);
            REQUIRE_EQ(0, ibv_query_port(first.ctx, 2, &attr));
            REQUIRE_EQ(s.width, attr.active_width);
            REQUIRE_EQ(s.lane, attr.active_speed);
            REQUIRE_EQ(IBV_PORT_ACTIVE, attr.state);
            REQUIRE(read_line(rate) == s.rate);
            REQUIRE_EQ(0, ibv_query_port(first.ctx, 1, &attr));
            REQUIRE_EQ(before.active_width, attr.active_width);
            REQUIRE_EQ(before.active_speed, attr.active_speed);
        }

        std::string output;
        for (const char *wrong : {"mlx5_0:2", "mlx5_0:2=", "mlx5_0:2=4xNDR",
                                  "mlx5_0:2=3xEDR", "mlx5_0:2=4xEDRs",
                                  "mlx5_0:3=4xEDR", "=4xEDR",
                                  "mlx5_0:2=12xHDR"}) {
            REQUIRE(stat(std::string("--port-speed ") + wrong, &output) != 0);
        }
        expect_no_event(first.ctx);
    });
}

/* Requesters repeat until it is up again */
TEST_F(test_device_async, messages_wait_for_a_port_that_is_down)
{
    run(1, [this](rank&) {
        loop l;

        l.b.recv(1, l.peer_mem.sge(0, 64));
        control("--port-down mlx5_0:1");
        l.mem.data[0] = 77;
        send_wr wr(IBV_WR_SEND, 1, {l.mem.sge(0, 1)});
        l.a.send(wr);
        l.scq.empty();
        l.peer_cq.empty();
        control("--port-up mlx5_0:1");
        l.scq.good();
        l.peer_cq.good();
        REQUIRE_EQ(77, l.peer_mem.data[0]);
    });
}

TEST_F(test_device_async, a_port_that_stays_down_exceeds_the_retries)
{
    run(1, [this](rank&) {
        qp_options options;
        options.timeout   = 10; /* 4 ms */
        options.retry_cnt = 1;
        loop l(options);

        control("--port-down mlx5_0:1");
        send_wr wr(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 1)});
        l.a.send(wr.to(l.to_b));
        REQUIRE_EQ(IBV_WC_RETRY_EXC_ERR, l.scq.next().status);
    });
}

TEST_F(test_device_async, a_failed_device_does_nothing_any_more)
{
    run(1, [this](rank&) {
        /* never destroyed: that fails as well */
        loop &l      = *new loop({.timeout = 10, .retry_cnt = 1});
        ibv_port_attr attr;

        l.b.recv(1, l.peer_mem.sge(0, 64));
        control("--fatal mlx5_0");
        expect_event(l.c.ctx, IBV_EVENT_DEVICE_FATAL, 1);
        REQUIRE_EQ(EIO, ibv_query_port(l.c.ctx, 1, &attr));
        REQUIRE(ibv_alloc_pd(l.c.ctx) == nullptr);
        REQUIRE_EQ(EIO, errno);

        send_wr wr(IBV_WR_SEND, 1, {l.mem.sge(0, 1)});
        l.a.send(wr);
        l.scq.empty();
        l.peer_cq.empty();

        /* Who opens it now finds it in order */
        loop fresh;
        fresh.b.recv(1, fresh.peer_mem.sge(0, 64));
        send_wr next(IBV_WR_SEND, 1, {fresh.mem.sge(0, 1)});
        fresh.a.send(next);
        fresh.scq.good();
        fresh.peer_cq.good();
        l.scq.empty();
    });
}

TEST_F(test_device_async, peers_of_a_failed_device_exceed_their_retries)
{
    set_env("MLX5SIM_DEVICES", "2");
    run(1, [this](rank&) {
        qp_options options = {.timeout = 10, .retry_cnt = 1};

        context &gone = *new context(1);
        context here(0);
        cq &gone_cq = *new cq(gone, 16), cq_here(here, 16);
        qp &b = *new qp(gone, gone_cq, gone_cq, options);
        qp a(here, cq_here, cq_here, options);
        memory mem(here, 4096);

        a.connect(b.addr());
        b.connect(a.addr());
        control("--fatal mlx5_1");
        send_wr wr(IBV_WR_SEND, 1, {mem.sge(0, 1)});
        a.send(wr);
        REQUIRE_EQ(IBV_WC_RETRY_EXC_ERR, cq_here.next().status);
        expect_no_event(here.ctx);
    });
}
