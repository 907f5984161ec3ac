/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The page that shows the device's clock (ibv_query_rt_values_ex).
 */

#include <device/device.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include <endian.h>
#include <fcntl.h>
#include <rdma/mlx5-abi.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace device;

namespace {

const size_t page_size = 4096;

class test_device_clock : public device::test {
};

/* The device's clock is this one, 1 GHz */
uint64_t now()
{
    timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

uint64_t ask(ibv_context *ctx)
{
    ibv_values_ex values = {};

    values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
    REQUIRE_EQ(0, ibv_query_rt_values_ex(ctx, &values));
    REQUIRE_EQ(IBV_VALUES_MASK_RAW_CLOCK, values.comp_mask);
    REQUIRE_EQ(0, values.raw_clock.tv_sec);
    return values.raw_clock.tv_nsec;
}

/* It goes on, and agrees with the clock that it is */
void check_going(ibv_context *ctx, int times = 100)
{
    uint64_t last = now();

    for (int i = 0; i < times; ++i) {
        uint64_t ticks = ask(ctx);

        REQUIRE(ticks > last);
        REQUIRE(ticks < now());
        last = ticks;
    }
}

/** A page of a context, mapped by its command as libmlx5 does, with index 0 or
 *  MLX5_IB_CLOCK_INFO_V1, which are the same. */
void *map(ibv_context *ctx, mlx5_ib_mmap_cmd cmd, void *where = nullptr,
          int prot = PROT_READ, size_t size = page_size)
{
    return mmap(where, size, prot, MAP_SHARED | (where ? MAP_FIXED : 0),
                ctx->cmd_fd, ((off_t)cmd << 8) * page_size);
}

/** With the number of the context. */
std::string file_name(ibv_context *ctx)
{
    std::string link = "/proc/self/fd/" + std::to_string(ctx->cmd_fd);
    char name[256];
    ssize_t length = readlink(link.c_str(), name, sizeof(name));

    REQUIRE(length > 0);
    return std::string(name, length);
}

uint64_t read_page(const void *page)
{
    return be64toh(*(const volatile uint64_t*)page);
}

/* No sanitizer looks at what is there, nor calls the copying anything else */
__attribute__((no_sanitize("address", "undefined"))) void
check_page(volatile uint8_t *page, uint64_t before)
{
    uint64_t all = read_page((void*)page);
    uint8_t copy[64];

    REQUIRE(all > before);
    REQUIRE(all < now());
    REQUIRE_EQ(all >> 48, (uint64_t)(page[0] << 8 | page[1]));
    REQUIRE_EQ(all >> 32, (uint64_t)be32toh(*(volatile uint32_t*)page));
    REQUIRE_EQ(all >> 32, (read_page((void*)(page + 1)) >> 40) |
                          ((uint64_t)page[0] << 24));
    /* the lower half, and what is behind it */
    uint64_t low = read_page((void*)(page + 4));
    REQUIRE_EQ(0u, low & 0xffffffff);
    REQUIRE_EQ(0u, *(volatile uint64_t*)(page + 8));
    REQUIRE_EQ(0u, page[page_size - 1]);
    /* by vector registers */
    memset(copy, 0xff, sizeof(copy));
    memcpy(copy, (void*)page, sizeof(copy));
    REQUIRE(read_page(copy) > all);
    REQUIRE(read_page(copy) < now());
    for (unsigned i = 8; i < sizeof(copy); ++i) {
        REQUIRE_EQ(0, copy[i]);
    }
}

} // namespace


TEST_F(test_device_clock, goes_on)
{
    run(1, [](rank&) {
        context c;

        check_going(c.ctx, 1000);
    });
}

TEST_F(test_device_clock, goes_on_with_static_uars)
{
    set_env("MLX5SIM_UAR_MODE", "legacy");
    run(1, [](rank&) {
        context c;

        check_going(c.ctx);
    });
}

/* ... and this is seen in pages, not only in libmlx5's way to read them */
TEST_F(test_device_clock, can_be_read_by_any_load)
{
    run(1, [](rank&) {
        context c;
        uint64_t before = now();
        auto page       = (uint8_t*)map(c.ctx, MLX5_IB_MMAP_CORE_CLOCK);

        REQUIRE(page != MAP_FAILED);
        check_page(page, before);
        check_page(page, now());
        REQUIRE_EQ(0, munmap(page, page_size));
    });
}

TEST_F(test_device_clock, can_not_be_mapped_for_stores)
{
    SKIP_WITHOUT_MMAP_HOOK();
    run(1, [](rank&) {
        context c;

        for (auto cmd : {MLX5_IB_MMAP_CORE_CLOCK, MLX5_IB_MMAP_CLOCK_INFO}) {
            REQUIRE(map(c.ctx, cmd, nullptr, PROT_READ | PROT_WRITE) ==
                    MAP_FAILED);
            REQUIRE_EQ(EPERM, errno);
            REQUIRE(map(c.ctx, cmd, nullptr, PROT_READ, 2 * page_size) ==
                    MAP_FAILED);
            REQUIRE_EQ(EINVAL, errno);
        }
    });
}

/* Completions are stamped with it, and it is what the page of the time of day
 * is about */
TEST_F(test_device_clock, is_that_of_completions)
{
    run(1, [](rank&) {
        loop l;
        ibv_cq_init_attr_ex attr = {};
        ibv_poll_cq_attr poll    = {};
        mlx5dv_clock_info info   = {};
        ibv_cq_ex *timed;

        attr.cqe      = 16;
        attr.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
        timed         = ibv_create_cq_ex(l.c.ctx, &attr);
        REQUIRE(timed != nullptr);
        {
            cq used(l.c, 16);
            ibv_cq *saved = used.v;

            used.v = ibv_cq_ex_to_cq(timed);
            qp q(l.c, used, l.rcq);
            used.v = saved;
            q.connect(q.addr());
            for (int i = 0; i < 10; ++i) {
                send_wr wr(IBV_WR_RDMA_WRITE, i, {l.mem.sge(0, 64)});
                uint64_t before = ask(l.c.ctx);

                q.send(wr.to(q.addr(&l.peer_mem)));
                while (ibv_start_poll(timed, &poll) == ENOENT) {
                }
                uint64_t ticks = ibv_wc_read_completion_ts(timed);
                ibv_end_poll(timed);
                REQUIRE(before < ticks);
                REQUIRE(ticks < ask(l.c.ctx));
            }
        }
        REQUIRE_EQ(0, ibv_destroy_cq(ibv_cq_ex_to_cq(timed)));

        REQUIRE_EQ(0, mlx5dv_get_clock_info(l.c.ctx, &info));
        REQUIRE(info.last_cycles < ask(l.c.ctx));
    });
}

TEST_F(test_device_clock, is_one_for_all_processes)
{
    run(3, [](rank &r) {
        context c;

        for (int round = 0; round < 20; ++round) {
            uint64_t before = ask(c.ctx);

            r.publish(before);
            r.barrier();
            uint64_t after = ask(c.ctx);
            for (int from = 0; from < r.count; ++from) {
                REQUIRE(r.lookup<uint64_t>(from) < after);
            }
            r.barrier();
        }
    });
}

TEST_F(test_device_clock, is_inherited_by_children)
{
    run(1, [](rank&) {
        context c;
        int status, go[2];
        char byte = 0;

        check_going(c.ctx, 2);
        REQUIRE_EQ(0, pipe(go));
        pid_t pid = fork();
        if (pid == 0) {
            check_going(c.ctx);
            /* the parent may have closed the device, but not its page here */
            if (read(go[0], &byte, 1) == 1) {
                check_going(c.ctx);
            }
            _exit(0);
        }
        check_going(c.ctx);
        REQUIRE_EQ(0, ibv_dealloc_pd(c.pd));
        REQUIRE_EQ(0, ibv_close_device(c.ctx));
        REQUIRE_EQ(1, write(go[1], &byte, 1));
        REQUIRE_EQ(pid, waitpid(pid, &status, 0));
        REQUIRE_EQ(0, status);
        _exit(0); /* without destructors */
    });
}

TEST_F(test_device_clock, is_there_for_imported_contexts)
{
    set_env("MLX5SIM_UAR_MODE", "dynamic");
    run(1, [](rank&) {
        context c;
        ibv_context *copy;

        copy = ibv_import_device(fcntl(c.ctx->cmd_fd, F_DUPFD_CLOEXEC, 0));
        REQUIRE(copy != nullptr);
        check_going(copy);
        check_going(c.ctx);
        REQUIRE_EQ(0, ibv_close_device(copy));
        check_going(c.ctx);
    });
}

/* Pages of contexts come and go meanwhile, at the same addresses */
TEST_F(test_device_clock, goes_on_while_threads_open_and_close)
{
    run(1, [](rank&) {
        std::vector<std::thread> threads;
        std::atomic<bool> stop(false);
        context c;

        for (int t = 0; t < 2; ++t) {
            threads.emplace_back([&]() {
                while (!stop) {
                    check_going(c.ctx, 10);
                }
            });
            threads.emplace_back([]() {
                for (int i = 0; i < 60; ++i) {
                    loop l;

                    check_going(l.c.ctx, 2);
                    send_wr wr(IBV_WR_RDMA_WRITE, i, {l.mem.sge(0, 8)});
                    l.a.send(wr.to(l.to_b));
                    l.scq.good();
                }
            });
        }
        threads[1].join();
        threads[3].join();
        stop = true;
        threads[0].join();
        threads[2].join();
    });
}

/* A doorbell was taken for a load of the clock, and lost, if the page of a
 * clock had been at its address when somebody last looked */
TEST_F(test_device_clock, leaves_doorbells_at_its_former_address_alone)
{
    run(1, [](rank&) {
        loop l;
        mlx5dv_qp dv   = {};
        mlx5dv_obj obj = {};

        obj.qp.in  = l.a.v;
        obj.qp.out = &dv;
        REQUIRE_EQ(0, mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP));
        auto uar = (void*)((uintptr_t)dv.bf.reg & ~(page_size - 1));

        for (int i = 0; i < 10; ++i) {
            void *saved = mremap(uar, page_size, page_size,
                                 MREMAP_MAYMOVE | MREMAP_FIXED,
                                 mmap(nullptr, page_size, PROT_NONE,
                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
            REQUIRE(saved != MAP_FAILED);
            REQUIRE_EQ(uar, map(l.c.ctx, MLX5_IB_MMAP_CORE_CLOCK, uar));
            REQUIRE(read_page(uar) < now());
            REQUIRE(read_page(uar) > 0);
            REQUIRE_EQ(uar, mremap(saved, page_size, page_size,
                                   MREMAP_MAYMOVE | MREMAP_FIXED, uar));
            send_wr wr(IBV_WR_RDMA_WRITE, i, {l.mem.sge(0, 8)});
            l.a.send(wr.to(l.to_b));
            REQUIRE_EQ((uint64_t)i, l.scq.good().wr_id);
        }
    });
}

/* ... and the same for another page that is read first, of a context that has
 * the number of one that was closed */
TEST_F(test_device_clock, leaves_loads_at_its_former_address_alone)
{
    set_env("MLX5SIM_UAR_MODE", "dynamic"); /* nobody looks at the mappings */
    run(1, [](rank&) {
        void *place = nullptr;
        std::string name;

        for (int i = 0; i < 5000; ++i) {
            context c;
            uint64_t before = now();

            if (i == 0) {
                name  = file_name(c.ctx);
                place = map(c.ctx, MLX5_IB_MMAP_CORE_CLOCK);
                REQUIRE(place != MAP_FAILED);
                REQUIRE(read_page(place) > before);
            } else if (file_name(c.ctx) == name) {
                REQUIRE_EQ(place, map(c.ctx, MLX5_IB_MMAP_CLOCK_INFO, place));
                auto info = (volatile mlx5_ib_clock_info*)place;
                REQUIRE(info->nsec > before);
                REQUIRE_EQ(8u, info->shift);
                return;
            }
        }
        REQUIRE(!"a number is used again");
    });
}

/* A load from the page is one of the instructions between two stores */
TEST_F(test_device_clock, can_be_read_between_stores_that_are_combined)
{
    set_env("MLX5SIM_WC", "30");
    run(1, [](rank&) {
        loop l;

        for (int i = 0; i < 200; ++i) {
            send_wr wr(IBV_WR_RDMA_WRITE, i, {l.mem.sge(0, 8)});
            uint64_t before = ask(l.c.ctx);

            l.a.send(wr.to(l.to_b));
            REQUIRE(ask(l.c.ctx) > before);
            REQUIRE_EQ((uint64_t)i, l.scq.good().wr_id);
        }
    });
}
