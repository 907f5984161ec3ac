/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_ucp_opt.h"

extern "C" {
#include <ucp/opt/ucp_opt_mem.h>
}

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>


class test_ucp_opt_mem : public test_ucp_opt {
public:
    test_ucp_opt_mem() : test_ucp_opt("MEM")
    {
    }

protected:
    static constexpr size_t SIZE = 16384;

    static char *map(char *address = NULL)
    {
        char *result = (char*)mmap(address, SIZE, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        EXPECT_NE(MAP_FAILED, (void*)result);
        return result;
    }

    void send_and_check(const char *buffer)
    {
        const ucp_request_param_t param = {};
        std::string received(SIZE, 0);
        void *rreq = ucp_tag_recv_nbx(receiver().worker(), &received[0], SIZE,
                                      0, 0, &param);
        void *sreq = ucp_tag_send_nbx(sender().ep(), buffer, SIZE, 0, &param);

        ASSERT_UCS_OK(requests_wait({sreq, rreq}));
        flush_ep(sender());
        ASSERT_EQ(0, memcmp(buffer, received.data(), SIZE));
    }

    /* What the sender remembers of a buffer, and may use */
    ucp_mem_h remembered(const char *buffer)
    {
        ucp_opt_mem_t *mem = sender().worker()->opt_mem;
        uintptr_t address  = (uintptr_t)buffer;

        for (int i = 0; (mem != NULL) && (i < UCP_OPT_MEM_ENTRIES); ++i) {
            ucp_mem_h memh = &mem->entries[i]->memh;
            if ((memh->parent != NULL) && (mem->entries[i]->end != 0) &&
                (address >= memh->super.super.start) &&
                (address < memh->super.super.end) &&
                ucs_test_all_flags(memh->parent->super.flags,
                                   UCS_RCACHE_REGION_FLAG_REGISTERED |
                                   UCS_RCACHE_REGION_FLAG_PGTABLE)) {
                return memh->parent;
            }
        }
        return NULL;
    }

    /* One that is used again is the same registration; other memory at its
     * address can be sent as well */
    void test_reuse()
    {
        char *buffer = map();

        memset(buffer, 'a', SIZE);
        send_and_check(buffer);
        ucp_mem_h memh = remembered(buffer);
        EXPECT_EQ(is_opt(), memh != NULL);
        for (char value = 'b'; value < 'f'; ++value) {
            memset(buffer, value, SIZE);
            send_and_check(buffer);
            EXPECT_EQ(memh, remembered(buffer));
        }

        munmap(buffer, SIZE);
        char *other = map(buffer);
        memset(other, 'z', SIZE);
        send_and_check(other);
        EXPECT_EQ(is_opt(), remembered(other) != NULL);
        munmap(other, SIZE);
    }
};

UCS_TEST_P(test_ucp_opt_mem, zcopy, "ZCOPY_THRESH=1", "RNDV_THRESH=inf")
{
    test_reuse();
}

UCS_TEST_P(test_ucp_opt_mem, rndv, "RNDV_THRESH=0", "RNDV_SCHEME=get_zcopy")
{
    test_reuse();
}

UCS_TEST_P(test_ucp_opt_mem, more_than_are_remembered, "ZCOPY_THRESH=1",
           "RNDV_THRESH=inf")
{
    std::vector<char*> buffers;

    for (unsigned round = 0; round < 3; ++round) {
        for (unsigned i = 0; i < 2 * UCP_OPT_MEM_ENTRIES; ++i) {
            if (round == 0) {
                buffers.push_back(map());
            }
            memset(buffers[i], 'a' + i + round, SIZE);
            send_and_check(buffers[i]);
        }
    }
    for (char *buffer : buffers) {
        munmap(buffer, SIZE);
    }
}

UCS_TEST_P(test_ucp_opt_mem, fork)
{
    char *buffer = map();
    memset(buffer, 'a', SIZE);
    send_and_check(buffer);

    EXPECT_EQ(is_opt(), remembered(buffer) != NULL);

    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    EXPECT_EQ(child, waitpid(child, NULL, 0));

    const ucp_opt_mem_t *mem = sender().worker()->opt_mem;
    EXPECT_EQ(is_opt(), mem != NULL);
    for (int i = 0; (mem != NULL) && (i < UCP_OPT_MEM_ENTRIES); ++i) {
        EXPECT_TRUE(mem->entries[i]->memh.parent == NULL);
    }
    send_and_check(buffer);
    munmap(buffer, SIZE);
}

UCP_INSTANTIATE_TEST_CASE_TLS(test_ucp_opt_mem, rcx, "rc_x")
UCP_INSTANTIATE_TEST_CASE_TLS(test_ucp_opt_mem, rc, "rc_v")
