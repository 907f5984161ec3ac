/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The legacy UAR regime: static pages of the context, uUARs by the kernel's
 * policy, dynamic pages by mmap() for thread domains.
 */

#include <device/device.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>

#include <link.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/mlx5-abi.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace device;

namespace {

class test_device_legacy : public device::test {
protected:
    void SetUp() override
    {
        device::test::SetUp();
        set_env("MLX5SIM_UAR_MODE", "legacy");
    }
};

typedef std::unique_ptr<qp> qp_ptr;

/* What stat says of QP @a number, in the order of QP numbers */
std::string uuar(const std::string &json, unsigned number)
{
    return stat_qps(json, "uuar_class")[number] + " " +
           stat_qps(json, "uuar")[number];
}

mlx5dv_qp direct(qp &q)
{
    mlx5dv_qp out  = {};
    mlx5dv_obj obj = {};

    obj.qp.in  = q.v;
    obj.qp.out = &out;
    REQUIRE_EQ(0, mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP));
    return out;
}

/* One write of eight bytes to the QP's own process */
void write_to_self(qp &q, cq &c, memory &mem, unsigned value)
{
    unsigned flags = IBV_SEND_SIGNALED | ((value & 1) ? IBV_SEND_INLINE : 0);
    size_t at      = (value % 64) * 8;

    mem.data[at]        = value;
    mem.data[2048 + at] = ~value;
    send_wr wr(IBV_WR_RDMA_WRITE, value, {mem.sge(at, 8)}, flags);
    q.send(wr.to(q.addr(&mem), 2048 + at));
    c.good();
    REQUIRE_EQ(mem.data[at], mem.data[2048 + at]);
}

void *raw_mmap(void *addr, size_t length, int prot, int flags, int fd,
               off_t offset)
{
    return (void*)syscall(SYS_mmap, addr, length, prot, flags, fd, offset);
}

/* A library calls another function */
struct hook {
    const char *library;
    const char *name;
    void       *function;
    unsigned   count; /* of pointers that were replaced */
};

/* Replace a library's pointer to a function, as memory hooks of UCX and MPIs
 * do */
int take(dl_phdr_info *info, size_t, void *arg)
{
    hook *taken            = (hook*)arg;
    ElfW(Rela) *relocation = nullptr;
    ElfW(Sym) *symbols     = nullptr;
    const char *names      = nullptr;
    size_t size            = 0;

    if (strstr(info->dlpi_name, taken->library) == nullptr) {
        return 0;
    }

    for (int i = 0; i < info->dlpi_phnum; ++i) {
        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) {
            continue;
        }
        for (ElfW(Dyn) *dyn = (ElfW(Dyn)*)(info->dlpi_addr +
                                           info->dlpi_phdr[i].p_vaddr);
             dyn->d_tag != DT_NULL; ++dyn) {
            switch (dyn->d_tag) {
            case DT_JMPREL:
                relocation = (ElfW(Rela)*)dyn->d_un.d_ptr;
                break;
            case DT_PLTRELSZ:
                size = dyn->d_un.d_val / sizeof(*relocation);
                break;
            case DT_SYMTAB:
                symbols = (ElfW(Sym)*)dyn->d_un.d_ptr;
                break;
            case DT_STRTAB:
                names = (const char*)dyn->d_un.d_ptr;
                break;
            }
        }
    }

    for (size_t i = 0; i < size; ++i, ++relocation) {
        ElfW(Sym) *symbol = &symbols[ELF64_R_SYM(relocation->r_info)];
        uintptr_t place   = info->dlpi_addr + relocation->r_offset;

        if (!strcmp(names + symbol->st_name, taken->name)) {
            REQUIRE_EQ(0, mprotect((void*)(place & ~4095ul), 4096,
                                   PROT_READ | PROT_WRITE));
            *(void**)place = taken->function;
            ++taken->count;
        }
    }
    return 0;
}

/* ioctl() of libibverbs, with a flag of queue pairs that only newer kernels
 * know */
int ask_for_page(int fd, unsigned long request, ib_uverbs_ioctl_hdr *hdr)
{
    for (unsigned i = 0; i < hdr->num_attrs; ++i) {
        if (hdr->attrs[i].attr_id == UVERBS_ATTR_UHW_IN) {
            ((mlx5_ib_create_qp*)(uintptr_t)hdr->attrs[i].data)->flags |=
                    MLX5_QP_FLAG_UAR_PAGE_INDEX;
        }
    }
    return ioctl(fd, request, hdr);
}

} // namespace


TEST_F(test_device_legacy, a_context_comes_with_8_pages_of_16_uuars)
{
    run(1, [this](rank&) {
        context c;
        mlx5dv_context dv = {};

        REQUIRE_EQ(8, stat_total("uars"));
        REQUIRE_EQ(8, stat_total("uars_static"));
        REQUIRE_EQ(0, stat_total("uars_dynamic"));
        REQUIRE_EQ(0, stat_total("uars_nc"));
        REQUIRE_EQ(16, stat_total("uuars"));
        REQUIRE(stat_json().find("\"uar_mode\": \"legacy\", "
                                 "\"uuars_static\": 16, "
                                 "\"uuars_low_latency\": 4") !=
                std::string::npos);

        dv.comp_mask = MLX5DV_CONTEXT_MASK_DYN_BFREGS;
        REQUIRE_EQ(0, mlx5dv_query_device(c.ctx, &dv));
        REQUIRE_EQ(1024, dv.max_dynamic_bfregs);
    });
}

TEST_F(test_device_legacy, the_environment_of_libmlx5_sets_the_numbers)
{
    static const struct {
        const char *total;
        const char *low;
        long       uuars;   /* -1: the context can't be opened */
    } cases[] = {
        {"2", "1", 2}, {"5", "4", 6}, {"64", "60", 64}, {"512", "511", 512},
        {"514", "4", -1}, {"16", "16", -1}
    };

    for (const auto &c : cases) {
        set_env("MLX5_TOTAL_UUARS", c.total);
        set_env("MLX5_NUM_LOW_LAT_UUARS", c.low);
        run(1, [&](rank&) {
            ibv_device **list = ibv_get_device_list(nullptr);
            ibv_context *ctx  = ibv_open_device(list[0]);

            REQUIRE_EQ(c.uuars > 0, ctx != nullptr);
            if (ctx != nullptr) {
                REQUIRE_EQ(c.uuars, stat_total("uuars"));
                REQUIRE_EQ(c.uuars / 2, stat_total("uars_static"));
                REQUIRE_EQ(0, ibv_close_device(ctx));
            }
            ibv_free_device_list(list);
        });
    }
}

TEST_F(test_device_legacy, qps_get_uuars_as_the_kernel_chooses)
{
    run(1, [this](rank&) {
        context c;
        cq q(c, 16);
        std::vector<qp_ptr> qps;

        /* 12 to 15 are of low latency, for one QP each; the others then share
         * 1 to 11, which are of medium latency, and nobody uses 0 */
        for (int i = 0; i < 4 + 2 * 11 + 1; ++i) {
            qps.emplace_back(new qp(c, q, q));
        }

        std::string json = stat_json();
        for (int i = 0; i < 4; ++i) {
            REQUIRE(uuar(json, i) == "\"low\" " + std::to_string(12 + i));
        }
        for (int i = 0; i < 2 * 11 + 1; ++i) {
            REQUIRE(uuar(json, 4 + i) ==
                    "\"medium\" " + std::to_string(1 + (i % 11)));
        }
        REQUIRE_EQ(15, stat_total("uuars_used"));

        /* the library rings where the kernel says, and only with doorbells on
         * none of these */
        std::set<void*> registers;
        for (auto &p : qps) {
            mlx5dv_qp dv = direct(*p);

            registers.insert(dv.bf.reg);
            REQUIRE_EQ(256, dv.bf.size);
        }
        REQUIRE_EQ(15, registers.size());

        /* what is given back is used again: a dedicated one first */
        qps[1].reset();
        qps[7].reset();
        qps.emplace_back(new qp(c, q, q));
        qps.emplace_back(new qp(c, q, q));
        json = stat_json();
        REQUIRE_EQ(27, stat_qps(json, "uuar").size());
        REQUIRE(uuar(json, 25) == "\"low\" 13");
        REQUIRE(uuar(json, 26) == "\"medium\" 4");
    });
}

TEST_F(test_device_legacy, without_medium_latency_the_first_is_shared)
{
    /* the kernel's policy, although libmlx5 does not lock that one */
    set_env("MLX5_TOTAL_UUARS", "2");
    set_env("MLX5_NUM_LOW_LAT_UUARS", "1");
    run(1, [this](rank&) {
        context c;
        cq q(c, 16);
        qp a(c, q, q), b(c, q, q);
        std::string json = stat_json();

        REQUIRE(uuar(json, 0) == "\"low\" 1");
        REQUIRE(uuar(json, 1) == "\"medium\" 1");
    });
}

TEST_F(test_device_legacy, every_uuar_carries_data)
{
    run(1, [](rank&) {
        const int num = 40;
        context c;
        memory mem(c, 4096 * num);
        std::vector<std::unique_ptr<cq>> cqs;
        std::vector<qp_ptr> qps;
        std::vector<std::unique_ptr<domain>> domains;

        for (int i = 0; i < num; ++i) {
            qp_options options;

            if (i >= num / 2) {
                domains.emplace_back(new domain(c));
                options.pd = domains.back()->pd;
            }
            cqs.emplace_back(new cq(c, 16));
            qps.emplace_back(new qp(c, *cqs[i], *cqs[i], options));
            qps[i]->connect(qps[i]->addr());
        }

        std::vector<std::thread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&, t]() {
                for (int n = 0; n < 20; ++n) {
                    for (int i = t; i < num; i += 4) {
                        size_t at = 4096 * i;
                        memset(mem.data + at, n + i, 16);
                        send_wr wr(IBV_WR_RDMA_WRITE, n, {mem.sge(at, 16)},
                                   IBV_SEND_SIGNALED |
                                   ((n & 1) ? IBV_SEND_INLINE : 0));
                        qps[i]->send(wr.to(qps[i]->addr(&mem), at + 2048));
                        cqs[i]->good();
                        REQUIRE(memcmp(mem.data + at, mem.data + at + 2048,
                                       16) == 0);
                    }
                }
            });
        }
        for (auto &thread : threads) {
            thread.join();
        }
        qps.clear();
        cqs.clear();
    });
}

TEST_F(test_device_legacy, pages_mapped_without_combining_carry_doorbells)
{
    set_env("MLX5_SHUT_UP_BF", "1");
    run(1, [this](rank&) {
        context c;
        memory mem(c, 4096);
        cq q(c, 16);
        qp self(c, q, q);

        self.connect(self.addr());
        for (int i = 0; i < 8; ++i) {
            write_to_self(self, q, mem, i);
        }
        REQUIRE_EQ(8, stat_total("uars_static"));
    });
}

TEST_F(test_device_legacy, pairs_of_thread_domains_share_a_dynamic_page)
{
    run(1, [this](rank&) {
        context c;
        cq q(c, 16);
        memory mem(c, 4096);
        std::vector<std::unique_ptr<domain>> domains;
        std::vector<qp_ptr> qps;
        std::string json;

        for (int i = 0; i < 5; ++i) {
            domains.emplace_back(new domain(c));
            qps.emplace_back(new qp(c, q, q, {.pd = domains[i]->pd}));
            qps[i]->connect(qps[i]->addr());
            REQUIRE_EQ(8 + i / 2 + 1, stat_total("uars"));
            REQUIRE_EQ(i / 2 + 1, stat_total("uars_dynamic"));
        }
        REQUIRE_EQ(16 + 6, stat_total("uuars"));
        REQUIRE_EQ(5, stat_total("uuars_used"));

        json = stat_json();
        for (int i = 0; i < 5; ++i) {
            REQUIRE(uuar(json, i) == "\"dynamic\" " + std::to_string(i));
            REQUIRE(stat_qps(json, "uuar_register")[i] ==
                    std::to_string(i % 2));
            for (int n = 0; n < 4; ++n) {
                write_to_self(*qps[i], q, mem, n);
            }
        }
        REQUIRE(stat_qps(json, "uar")[0] == stat_qps(json, "uar")[1]);
        REQUIRE(stat_qps(json, "uar")[1] != stat_qps(json, "uar")[2]);

        /* a domain that goes leaves its uUAR to the next */
        qps.clear();
        domains[3].reset();
        domains[3].reset(new domain(c));
        REQUIRE_EQ(3, stat_total("uars_dynamic"));
    });
}

TEST_F(test_device_legacy, a_context_has_512_dynamic_pages)
{
    SKIP_WITHOUT_MMAP_HOOK();
    run(1, [this](rank&) {
        std::vector<ibv_td*> domains;
        context c;

        for (int i = 0; i < 1024; ++i) {
            domains.push_back(c.new_domain());
            REQUIRE(domains.back() != nullptr);
        }
        REQUIRE_EQ(512, stat_total("uars_dynamic"));
        REQUIRE(c.new_domain() == nullptr);

        {
            /* the last one, whose page number does not fit in 8 bits */
            ibv_parent_domain_init_attr attr = {};
            memory mem(c, 4096);
            cq q(c, 16);

            attr.pd    = c.pd;
            attr.td    = domains.back();
            qp_options options = {.pd = ibv_alloc_parent_domain(c.ctx, &attr)};
            REQUIRE(options.pd != nullptr);
            {
                qp self(c, q, q, options);
                self.connect(self.addr());
                write_to_self(self, q, mem, 3);
                REQUIRE(uuar(stat_json(), 0) == "\"dynamic\" 1023");
            }
            REQUIRE_EQ(0, ibv_dealloc_pd(options.pd));
        }
        for (ibv_td *td : domains) {
            REQUIRE_EQ(0, ibv_dealloc_td(td));
        }
    });
}

TEST_F(test_device_legacy, what_cannot_be_mapped_is_refused)
{
    SKIP_WITHOUT_MMAP_HOOK();
    run(1, [](rank&) {
        context c;
        auto map = [&](unsigned command, unsigned index, size_t length) {
            off_t offset = (off_t)4096 * ((command << 8) | (index & 0xff) |
                                          ((index >> 8) << 16));
            void *ptr    = mmap(nullptr, length, PROT_WRITE, MAP_SHARED,
                                c.ctx->cmd_fd, offset);
            int ret      = (ptr == MAP_FAILED) ? errno : 0;

            if (ptr != MAP_FAILED) {
                munmap(ptr, length);
            }
            return ret;
        };

        for (unsigned command : {0, 2, 3}) {
            REQUIRE_EQ(0, map(command, 7, 4096));
            REQUIRE_EQ(EINVAL, map(command, 8, 4096));
        }
        REQUIRE_EQ(EINVAL, map(0, 0, 8192));
        REQUIRE_EQ(EINVAL, map(9, 0, 4096));

        /* a dynamic page exists from its first mapping on */
        REQUIRE_EQ(0, map(6, 300, 4096));
        REQUIRE_EQ(EINVAL, map(6, 300, 4096));
        REQUIRE_EQ(EINVAL, map(6, 512, 4096));
    });
}

TEST_F(test_device_legacy, dynamic_pages_are_found_behind_memory_hooks)
{
    set_env("MLX5SIM_UARS", "9");
    run(1, [this](rank&) {
        context c;
        hook mmaps = {"libmlx5.so", "mmap", (void*)raw_mmap, 0};

        dl_iterate_phdr(take, &mmaps);
        REQUIRE_EQ(1, mmaps.count);

        memory mem(c, 4096);
        cq q(c, 16);
        domain a(c), b(c), other_page(c);

        REQUIRE_EQ(0, stat_total("uars_dynamic"));
        {
            qp self(c, q, q, {.pd = b.pd});
            self.connect(self.addr());
            REQUIRE_EQ(1, stat_total("uars_dynamic"));
            write_to_self(self, q, mem, 1);
            write_to_self(self, q, mem, 2);
        }

        /* the device had no page for this one */
        ibv_qp_init_attr attr = {};
        attr.send_cq          = q.v;
        attr.recv_cq          = q.v;
        attr.qp_type          = IBV_QPT_RC;
        attr.cap.max_send_wr  = 1;
        attr.cap.max_send_sge = 1;
        errno                 = 0;
        REQUIRE(ibv_create_qp(other_page.pd, &attr) == nullptr);
        REQUIRE_EQ(ENOMEM, errno);
    });
}

TEST_F(test_device_legacy, pages_of_newer_kernels_are_refused)
{
    run(1, [](rank&) {
        context c;
        cq q(c, 16);
        ibv_qp_init_attr attr = {};
        hook ioctls = {"libibverbs.so", "ioctl", (void*)ask_for_page, 0};

        dl_iterate_phdr(take, &ioctls);
        REQUIRE_EQ(1, ioctls.count);
        attr.send_cq          = q.v;
        attr.recv_cq          = q.v;
        attr.qp_type          = IBV_QPT_RC;
        attr.cap.max_send_wr  = 1;
        attr.cap.max_send_sge = 1;
        REQUIRE(ibv_create_qp(c.pd, &attr) == nullptr);
        REQUIRE_EQ(EINVAL, errno);
        ioctls.function = (void*)ioctl;
        dl_iterate_phdr(take, &ioctls);
    });
}

TEST_F(test_device_legacy, contexts_and_domains_without_pages_left_say_enomem)
{
    SKIP_WITHOUT_MMAP_HOOK();
    set_env("MLX5SIM_UARS", "17");
    run(1, [this](rank&) {
        ibv_device **list = ibv_get_device_list(nullptr);

        {
            context a, b;

            errno = 0;
            REQUIRE(ibv_open_device(list[0]) == nullptr);
            REQUIRE_EQ(ENOMEM, errno);
            REQUIRE_EQ(16, stat_total("uars"));

            domain d(a);
            errno = 0;
            REQUIRE(b.new_domain() == nullptr);
            REQUIRE_EQ(ENOMEM, errno);
            /* the other uUAR of a page that is there */
            domain e(a);
        }

        REQUIRE_EQ(0, stat_total("uars"));
        context c, d;
        ibv_free_device_list(list);
    });
}

/* "Naive endpoints": a context with a thread domain for each thread takes 9
 * pages, and uses one of their 18 uUARs. */
TEST_F(test_device_legacy, contexts_with_a_domain_each_exhaust_8k_pages_at_907)
{
    SKIP_WITHOUT_MMAP_HOOK();
    const int num = 3, some = 303;

    for (int i = 0; i < num; ++i) {
        start(i, num, [=](rank &r) {
            std::vector<std::unique_ptr<context>> contexts;
            std::vector<ibv_td*> domains;

            /* descriptors: as many as need no higher limit; one after
             * another */
            r.wait_word(0, i);
            for (;;) {
                contexts.emplace_back(new context);
                ibv_td *td = contexts.back()->new_domain();
                if (td == nullptr) {
                    REQUIRE_EQ(ENOMEM, errno);
                    break;
                }
                domains.push_back(td);
                if ((i < num - 1) && (domains.size() == some)) {
                    break;
                }
            }
            r.word(1) += domains.size();
            r.word(0)  = i + 1;
            if (i == num - 1) {
                REQUIRE_EQ(907, r.word(1));
                REQUIRE_EQ(908, stat_total("contexts"));
                REQUIRE_EQ(907, stat_total("uars_dynamic"));
                REQUIRE_EQ(908 * 8, stat_total("uars_static"));
                REQUIRE_EQ(907 * 18 + 16, stat_total("uuars"));
                r.word(0) = num + 1;
            }
            r.wait_word(0, num + 1);
            for (ibv_td *td : domains) {
                REQUIRE_EQ(0, ibv_dealloc_td(td));
            }
        });
    }
    finish_all();
}
