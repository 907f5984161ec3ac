/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Files of captures: of processes that are killed, of threads and of children,
 * and paths that do not do.
 */

#include <device/device_capture.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include <signal.h>
#include <sys/stat.h>

using namespace device;
using namespace device::pcap;

TEST_F(test_device_capture, a_killed_process_leaves_whole_packets)
{
    for (unsigned i = 0; i < 5; ++i) {
        start(0, 1, [](rank &r) {
            loop l;

            r.word(0) = getpid();
            for (;;) {
                send_wr wr(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 20000)});
                l.a.send(wr.to(l.to_b));
                l.scq.good();
                ++r.word(1);
            }
        });
        uint64_t before = word(1);
        REQUIRE(patience::until([&]() { return word(1) > before + 3 + i; }));
        kill(0);
        EXPECT_EQ(SIGKILL, finish(0));

        capture c(m_path + "." + std::to_string(word(0).load()));
        EXPECT_GT(c.frames.size(), 3 * 5u);
        for (const bytes_t &frame : c.frames) {
            packet p(c.link, frame);

            ASSERT_EQ(p.icrc(), p.sent_icrc());
        }
    }
}

/* Nobody knows at which packet, and so it is the first */
TEST_F(test_device_capture, a_long_message_is_refused)
{
    if (!has_tshark()) {
        GTEST_SKIP() << "no tshark (Debian's package tshark)";
    }

    set_env("MLX5SIM_LINK", networks[0].link);
    set_env("MLX5SIM_EXEC", "sync");
    run(1, [](rank &r) {
        context c;
        link_pair l(c, {.mtu = IBV_MTU_1024}, networks[0], 65536);
        send_wr wrong(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 3000)});

        wrong.to(l.to_b);
        wrong.wr.rdma.rkey ^= 1;
        l.a.send(wrong);
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, l.scq.next().status);
        r.word(0) = l.a.v->qp_num;
        r.word(1) = l.b.v->qp_num;
        r.word(2) = l.to_b.addr;
        r.word(3) = l.to_b.rkey;
    });

    std::vector<fields_t> expected = {
        basic(0x06, 0, word(1),
              {{"va", word(2)}, {"key", word(3) ^ 1}, {"len", 3000}}),
        basic(0x11, 0, word(0), {{"syn", 0x62}, {"msn", 0}})
    };
    EXPECT_EQ(expected, packets(networks[0]));
}

/* Each rings, and so executes, by itself */
TEST_F(test_device_capture, threads_share_a_file)
{
    const unsigned num_threads = 4, count = 400, length = 3000, packets = 3;

    if (!has_tshark()) {
        GTEST_SKIP() << "no tshark (Debian's package tshark)";
    }

    set_env("MLX5SIM_LINK", networks[0].link);
    set_env("MLX5SIM_EXEC", "sync");
    run(1, [=](rank &r) {
        std::vector<std::thread> threads;
        std::atomic<unsigned> ready(0);
        context c;

        for (unsigned i = 0; i < num_threads; ++i) {
            threads.emplace_back([&, i]() {
                link_pair l(c, {.mtu = IBV_MTU_1024}, networks[0], 65536);

                ++ready;
                while (ready < num_threads) {
                    std::this_thread::yield();
                }
                r.word(2 * i)     = l.a.v->qp_num;
                r.word(2 * i + 1) = l.b.v->qp_num;
                for (unsigned k = 0; k < count; ++k) {
                    send_wr write(IBV_WR_RDMA_WRITE, 1,
                                  {l.mem.sge(0, length)});

                    l.a.send(write.to(l.to_b, 8192));
                    l.scq.good();
                }
            });
        }
        for (std::thread &thread : threads) {
            thread.join();
        }
    });

    std::map<uint64_t, unsigned> sent, answered;
    for (fields_t &fields : this->packets(networks[0])) {
        unsigned &number = (fields["op"] == 0x11) ? answered[fields["qp"]] :
                                                    sent[fields["qp"]];

        ++number;
        if (fields["op"] == 0x11) {
            EXPECT_EQ(number, fields["msn"]);
            EXPECT_EQ(number * packets - 1, fields["psn"]);
        } else {
            EXPECT_EQ(number - 1, fields["psn"]);
        }
    }

    EXPECT_EQ(num_threads, sent.size());
    EXPECT_EQ(num_threads, answered.size());
    for (unsigned i = 0; i < num_threads; ++i) {
        EXPECT_EQ(count, answered[word(2 * i)]);
        EXPECT_EQ(count * packets, sent[word(2 * i + 1)]);
    }
}

TEST_F(test_device_capture, children_have_their_own)
{
    run(1, [](rank &r) {
        loop l;
        send_wr wr(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 8)});
        pid_t child;
        int status;

        l.a.send(wr.to(l.to_b));
        l.scq.good();
        child = fork();
        if (child == 0) {
            context c;

            _exit(0);
        }
        REQUIRE_EQ(child, waitpid(child, &status, 0));
        REQUIRE_EQ(0, status);
        send_wr again(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 8)});
        l.a.send(again.to(l.to_b));
        l.scq.good();
        r.word(0) = getpid();
        r.word(1) = child;
    });
    EXPECT_EQ(4u, capture(m_path + "." + std::to_string(word(0).load()))
                      .frames.size());
    EXPECT_EQ(0u, capture(m_path + "." + std::to_string(word(1).load()))
                      .frames.size());
}

/* The number of a descriptor that the program closes may be that of a file of
 * its own a moment later */
TEST_F(test_device_capture, files_of_the_program_are_left_alone)
{
    catch_errors();
    run(1, [this](rank&) {
        std::string own = dir() + ".own";
        loop l;

        for (int fd = 3; fd < 256; ++fd) {
            char path[4096] = "";
            std::string link = "/proc/self/fd/" + std::to_string(fd);

            if ((readlink(link.c_str(), path, sizeof(path) - 1) > 0) &&
                (strncmp(path, m_path.c_str(), m_path.length()) == 0)) {
                FILE *file = fopen(own.c_str(), "w");

                REQUIRE(file != nullptr);
                REQUIRE_EQ(fd, dup2(fileno(file), fd));
                fclose(file);
            }
        }
        send_wr wr(IBV_WR_RDMA_WRITE, 1, {l.mem.sge(0, 8)});
        l.a.send(wr.to(l.to_b));
        l.scq.good();
        REQUIRE_EQ(0, std::filesystem::file_size(own));
        unlink(own.c_str());
    });
    EXPECT_NE(std::string::npos, errors().find("the capture ends")) << errors();
}

TEST_F(test_device_capture, paths_that_do_not_do_are_refused)
{
    set_env("MLX5SIM_PCAP", "here");
    EXPECT_NE(std::string::npos, refused().find("an absolute path"))
            << errors();

    set_env("MLX5SIM_PCAP", m_path + ".not_there/file");
    EXPECT_NE(std::string::npos, refused().find("No such file")) << errors();
}

TEST_F(test_device_capture, nothing_is_overwritten_and_no_link_followed)
{
    std::string target = dir() + ".target";

    for (bool is_link : {false, true}) {
        catch_errors();
        run(1, [=](rank&) {
            std::string own   = m_path + "." + std::to_string(getpid());
            ibv_device **list = ibv_get_device_list(nullptr);

            if (is_link) {
                REQUIRE_EQ(0, symlink(target.c_str(), own.c_str()));
            } else {
                std::ofstream(own) << "mine";
            }
            REQUIRE((list != nullptr) && (list[0] != nullptr));
            REQUIRE(ibv_open_device(list[0]) == nullptr);
            ibv_free_device_list(list);
            if (!is_link) {
                REQUIRE_EQ(4, std::filesystem::file_size(own));
            }
        });
        EXPECT_NE(std::string::npos,
                  errors().find(is_link ? "symbolic link" : "not overwritten"))
                << errors();
    }
    EXPECT_NE(0, access(target.c_str(), F_OK));
}
