/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_ucp_opt.h"

extern "C" {
#include <ucp/core/ucp_context.h>
#include <ucs/memory/memtype_cache.h>
#include <ucs/sys/ptr_arith.h>
}

#include <sched.h>
#include <thread>


/* There need be no memory of a GPU: regions are entered by hand */
class test_ucp_opt_memtype : public test_ucp_opt {
public:
    test_ucp_opt_memtype() : test_ucp_opt("MEMTYPE")
    {
    }

protected:
    static constexpr size_t PAGE = 4096;

    void init() override
    {
        ucs_memory_info_t info;

        test_ucp_opt::init();
        /* The first lookup makes the cache */
        ucs_memtype_cache_lookup(this, 1, &info);
        if (ucs_memtype_cache_bounds == NULL) {
            UCS_TEST_SKIP_R("there is no cache of memory types");
        }
        m_num_mds = sender().ucph()->num_mem_type_detect_mds;
    }

    void cleanup() override
    {
        sender().ucph()->num_mem_type_detect_mds = m_num_mds;
        test_ucp_opt::cleanup();
    }

    ucs_memory_type_t detect(const void *address)
    {
        ucp_memory_info_t info;

        ucp_memory_detect(sender().ucph(), address, PAGE, &info);
        return (ucs_memory_type_t)info.type;
    }

    ucp_md_index_t m_num_mds = 0;
};

/* Who looks memory up waits for whoever has the cache's lock */
UCS_TEST_P(test_ucp_opt_memtype, no_lock)
{
    volatile int done = 0;

    sender().ucph()->num_mem_type_detect_mds = 1;
    ucs_spin_lock(&ucs_memtype_cache_global_instance->lock);
    std::thread thread([&]() {
        EXPECT_EQ(UCS_MEMORY_TYPE_HOST, detect(this));
        done = 1;
    });
    wait_for_cond([&]() { return done; }, sched_yield, is_opt() ? 10 : 0.1);
    EXPECT_EQ(is_opt(), done);
    ucs_spin_unlock(&ucs_memtype_cache_global_instance->lock);
    thread.join();
}

/* Also of memory of the host between other memory */
UCS_TEST_P(test_ucp_opt_memtype, types)
{
    std::vector<char> memory(7 * PAGE);
    char *page = (char*)ucs_align_up((uintptr_t)memory.data(), PAGE);

    sender().ucph()->num_mem_type_detect_mds = 1;
    for (int i : {1, 3}) {
        ucs_memtype_cache_update(page + (i * PAGE), PAGE, UCS_MEMORY_TYPE_CUDA,
                                 UCS_SYS_DEVICE_ID_UNKNOWN,
                                 1); /* Attributes need not be asked for */
    }
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ((i % 2) ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST,
                  detect(page + (i * PAGE))) << i;
    }

    ucs_memtype_cache_remove(page, 5 * PAGE);
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(UCS_MEMORY_TYPE_HOST, detect(page + (i * PAGE))) << i;
    }
}

UCP_INSTANTIATE_TEST_CASE_TLS(test_ucp_opt_memtype, self, "self")
