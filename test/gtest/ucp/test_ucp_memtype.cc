/* SPDX-License-Identifier: BSD-3-Clause */

#include <ucp/test_ucp_procs.h>

#include <dlfcn.h>
#include <sys/mman.h>

/* UCX_OPT_MEMTYPE is in the series of this release and later ones */
#if UCP_API_VERSION >= UCP_VERSION(1, 18)

#include <uct/api/v2/uct_v2.h>

/* Memory domains say that they know memory of GPUs, and UCP looks for it. */
static bool has_types;
static unsigned lookups;

extern "C" {

/* Of UCX, in no header that is installed. Before 1.22 without the flags. */
void ucs_memtype_cache_update(const void *address, size_t size,
                              ucs_memory_type_t mem_type,
                              ucs_sys_device_t sys_dev, uint8_t mem_flags);
void ucs_memtype_cache_remove(const void *address, size_t size);

__attribute__((visibility("default"))) ucs_status_t
uct_md_query_v2(uct_md_h md, uct_md_attr_v2_t *attr)
{
    static auto real = (decltype(&uct_md_query_v2))dlsym(RTLD_NEXT,
                                                         "uct_md_query_v2");
    const ucs_status_t status = real(md, attr);

    if (has_types && (status == UCS_OK) &&
        (attr->field_mask & UCT_MD_ATTR_FIELD_DETECT_MEM_TYPES)) {
        attr->detect_mem_types |= UCS_BIT(UCS_MEMORY_TYPE_CUDA);
    }
    return status;
}

/* What UCP asks. It is told that all memory is that of the host, since there is
 * nobody who could read any other. */
__attribute__((visibility("default"))) ucs_status_t
ucs_memtype_cache_lookup(const void *address, size_t size, void *info)
{
    static auto real = (decltype(&ucs_memtype_cache_lookup))dlsym(
            RTLD_NEXT, "ucs_memtype_cache_lookup");

    ++lookups;
    real(address, size, info);
    return UCS_ERR_NO_ELEM;
}
}

/* Types of memory are looked up where there has been memory that is not of the
 * host (UCX_OPT_MEMTYPE). */
class UcpMemtype : public UcpPair {
public:
    static constexpr size_t SIZE = 3 * 4096;

    void SetUp() override
    {
        env.set("UCX_OPT_MEMTYPE", wanted);
        has_types = true;
        UcpPair::SetUp();
        has_types = false;
        /* Below all that earlier tests had, and above it: what they allocated
         * is not forgotten */
        static uintptr_t low = 0x200000000000, high = low;
        low   -= 1ul << 30;
        high  += 1ul << 30;
        memory = map(low);
        above  = map(high);
        ASSERT_NE(MAP_FAILED, memory);
        ASSERT_NE(MAP_FAILED, above);
        if ((memory != reinterpret_cast<char*>(low)) ||
            (above != reinterpret_cast<char*>(high))) {
            GTEST_SKIP() << "the system chooses addresses itself";
        }
        /* The first one makes the cache */
        lookups_at(memory);
    }

    void TearDown() override
    {
        for (char *each : {memory, above}) {
            if (each != MAP_FAILED) {
                ucs_memtype_cache_remove(each, SIZE);
                munmap(each, SIZE);
            }
        }
        UcpPair::TearDown();
    }

    static char *map(uintptr_t place)
    {
        return static_cast<char*>(mmap(reinterpret_cast<void*>(place), SIZE,
                                       PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    }

    /* How often the type of a buffer is looked up that the user registers */
    unsigned lookups_at(char *buffer)
    {
        ucp_mem_map_params_t params = {};
        params.field_mask           = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                                      UCP_MEM_MAP_PARAM_FIELD_LENGTH;
        params.address              = buffer;
        params.length               = PAGE;
        ucp_mem_h memh;
        lookups = 0;
        EXPECT_EQ(UCS_OK, ucp_mem_map(sender->context, &params, &memh));
        const unsigned found = lookups;
        EXPECT_EQ(UCS_OK, ucp_mem_unmap(sender->context, memh));
        return found;
    }

    void allocate(char *buffer, size_t size = PAGE)
    {
        ucs_memtype_cache_update(buffer, size, UCS_MEMORY_TYPE_CUDA,
                                 UCS_SYS_DEVICE_ID_UNKNOWN, 0);
    }

    static constexpr size_t PAGE = 4096;

    UcpEnv env;
    const char *wanted = "y";
    char *memory       = static_cast<char*>(MAP_FAILED);
    char *above        = static_cast<char*>(MAP_FAILED);
};

TEST_F(UcpMemtype, HostMemoryIsLookedUpOnlyWhereOtherHasBeen)
{
    char *pages[] = {memory, memory + PAGE, memory + 2 * PAGE};

    for (char *page : pages) {
        EXPECT_EQ(0u, lookups_at(page));
    }

    allocate(pages[2]);
    EXPECT_EQ(0u, lookups_at(pages[1]));
    EXPECT_LT(0u, lookups_at(pages[2]));

    /* Between two of them, and where there are none any more */
    allocate(pages[0]);
    EXPECT_LT(0u, lookups_at(pages[1]));
    ucs_memtype_cache_remove(memory, SIZE);
    for (char *page : pages) {
        EXPECT_LT(0u, lookups_at(page));
    }
}

/* The first byte of the buffer tells, as in the cache */
TEST_F(UcpMemtype, ABufferThatBeginsInOtherMemoryIsLookedUp)
{
    allocate(above, PAGE + 64);
    EXPECT_LT(0u, lookups_at(above + PAGE + 63));
    EXPECT_EQ(0u, lookups_at(above + PAGE + 64));
}

TEST_F(UcpMemtype, AllMemoryIsLookedUpWithoutIt)
{
    TearDown();
    wanted = "n";
    SetUp();
    EXPECT_LT(0u, lookups_at(memory));
}

#endif
