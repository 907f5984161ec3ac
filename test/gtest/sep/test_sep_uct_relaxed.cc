/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct_pair.h>

#include <uct/ib/sep/recv/sep_srq.h>

#include <infiniband/verbs.h>

#include <dlfcn.h>

#include <cstring>
#include <map>

using namespace sep_uct_test;

/*
 * Which memory may be written out of order where PCI_RELAXED_ORDERING is on.
 * The device does not tell with which access memory was registered, so
 * functions in front of libibverbs' keep it, by local key.
 */

static std::map<uint32_t, int> accesses;
static pthread_mutex_t accesses_lock = PTHREAD_MUTEX_INITIALIZER;

static struct ibv_mr *keep_access(struct ibv_mr *mr, int access)
{
    if (mr != NULL) {
        pthread_mutex_lock(&accesses_lock);
        accesses[mr->lkey] = access;
        pthread_mutex_unlock(&accesses_lock);
    }
    return mr;
}

extern "C" {

/* With access flags that older kernels may not know */
__attribute__((visibility("default"))) struct ibv_mr *
ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                 unsigned access)
{
    static auto real = (decltype(&ibv_reg_mr_iova2))dlsym(RTLD_NEXT,
                                                          "ibv_reg_mr_iova2");

    return keep_access(real(pd, addr, length, iova, access), access);
}

/* Without, as far as the compiler knows */
#undef ibv_reg_mr
__attribute__((visibility("default"))) struct ibv_mr *
ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    static auto real = (decltype(&ibv_reg_mr))dlsym(RTLD_NEXT, "ibv_reg_mr");

    return keep_access(real(pd, addr, length, access), access);
}
}

namespace {

const int everything = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

class test_sep_uct_relaxed : public eager_pair,
                             public testing::WithParamInterface<const char*> {
protected:
    static bool is_on()
    {
        return !strcmp(GetParam(), "on");
    }

    static int relaxed_if_on(int access)
    {
        return access | (is_on() ? IBV_ACCESS_RELAXED_ORDERING : 0);
    }

    void open(const char *category)
    {
        settings config = {{"EAGER", "y"}, {"CATEGORY", category}};

        m_e[0] = entity::create(config, {{"PCI_RELAXED_ORDERING", GetParam()}});
        ASSERT_TRUE(m_e[0] != nullptr);
        m_e[1] = entity::create(*m_e[0], config);
        ASSERT_TRUE(m_e[1] != nullptr);
        for (unsigned i = 0; i < 2; ++i) {
            m_ep[i] = m_e[i]->connect(m_e[1 - i]->addr());
        }
    }

    static int access(uint32_t lkey)
    {
        pthread_mutex_lock(&accesses_lock);
        int value = accesses.count(lkey) ? accesses[lkey] : -1;
        pthread_mutex_unlock(&accesses_lock);
        return value;
    }

    static int access(const uct_sep_mem_t *mem)
    {
        return access(mem->mr->lkey);
    }
};

/* We look at it while it is written: the tail of a message, and a counter of
 * slots, would be there before what is in front of them */
TEST_P(test_sep_uct_relaxed, what_is_polled_is_written_in_order)
{
    for (const char *category : {"dynamic", "mpi_everywhere"}) {
        ASSERT_NO_FATAL_FAILURE(open(category));
        ASSERT_NO_FATAL_FAILURE(open_ring());
        EXPECT_EQ(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
                  access(ring()->memh)) << category;
        EXPECT_EQ(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
                  access(sep(0)->eager.counters_memh)) << category;

        /* And these are the keys that the peer has, once it has accepted */
        ASSERT_TRUE(wait([&]() {
            return txwq(1)->eager->return_to.rkey != 0;
        }));
        EXPECT_EQ(ring()->memh->mr->rkey, be32toh(txwq(0)->ring.rkey));
        EXPECT_EQ(sep(0)->eager.counters_memh->mr->rkey,
                  txwq(1)->eager->return_to.rkey);
        TearDown();
    }
}

/* What users look at has a strict key, too: they may poll on it */
TEST_P(test_sep_uct_relaxed, memory_of_users_has_both_or_the_strict_key)
{
    ASSERT_NO_FATAL_FAILURE(open("dynamic"));
    memory region(m_e[0]->md(), 4096);
    auto *mem = (uct_sep_mem_t*)region.memh();

    EXPECT_EQ(everything, access(mem));
    EXPECT_EQ(is_on(), mem->relaxed_mr != NULL);
    EXPECT_EQ(relaxed_if_on(everything), access(mem->lkey));
}

/* It is looked at when a completion says so */
TEST_P(test_sep_uct_relaxed, buffers_of_ours_are_relaxed)
{
    for (const char *category : {"dynamic", "mpi_everywhere"}) {
        ASSERT_NO_FATAL_FAILURE(open(category));
        uct_sep_srq_t &srq = sep(1)->srq;
        unsigned i;

        for (i = 0; srq.descs[i] == NULL; ++i);
        EXPECT_EQ(relaxed_if_on(IBV_ACCESS_LOCAL_WRITE),
                  access(srq.descs[i]->lkey)) << category;
        EXPECT_EQ(relaxed_if_on(IBV_ACCESS_LOCAL_WRITE),
                  access(uct_sep_desc_lkey(sep(1)->tx.scratch))) << category;
        TearDown();
    }
}

/* In the context from which a worker sends, of memory that is a user's */
TEST_P(test_sep_uct_relaxed, keys_of_workers_are_for_local_access)
{
    ASSERT_NO_FATAL_FAILURE(open("mpi_everywhere"));
    memory region(m_e[0]->md(), 4096);
    uct_iov_t iov          = {region.ptr(), 64, region.memh(), 0, 1};
    uct_rkey_bundle_t rkey = {};
    bytes packed           = region.packed_rkey();
    completion done;

    ASSERT_EQ(UCS_OK, uct_rkey_unpack(m_e[0]->component(), packed.data(),
                                      &rkey));
    ASSERT_TRUE(wait([&]() {
        return uct_ep_get_zcopy(m_ep[1], &iov, 1, region.va() + 64, rkey.rkey,
                                &done.comp) == UCS_INPROGRESS;
    }));
    ASSERT_TRUE(wait([&]() { return done.calls > 0; }));
    EXPECT_EQ(UCS_OK, done.status);
    uct_rkey_release(m_e[0]->component(), &rkey);

    /* The first worker uses the domain's context */
    uct_sep_context_t *own = sep(1)->channel.own;
    ASSERT_NE((void*)NULL, own);
    EXPECT_EQ(relaxed_if_on(IBV_ACCESS_LOCAL_WRITE),
              access(uct_sep_own_keys_lkey(&own->keys,
                                           (uct_sep_mem_t*)region.memh())));
}

INSTANTIATE_TEST_SUITE_P(is, test_sep_uct_relaxed,
                         testing::Values("on", "off"),
                         [](const testing::TestParamInfo<const char*> &info) {
                             return std::string(info.param);
                         });

} /* namespace */
