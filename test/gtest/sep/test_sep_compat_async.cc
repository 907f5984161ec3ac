/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

extern "C" {
#include <ucs/debug/assert.h>
#include <ucs/type/spinlock.h>

/* UCX's own headers, as for a UCX that is configured the other way round */
static const int has_assertions = UCS_ENABLE_ASSERT;
#if UCS_ENABLE_ASSERT
#undef UCS_ENABLE_ASSERT
#define UCS_ENABLE_ASSERT 0
#else
#undef UCS_ENABLE_ASSERT
#define UCS_ENABLE_ASSERT 1
#endif
#include <ucs/async/async.h>

#include <uct/ib/sep/compat/sep_compat_async.h>
}

#include <gtest/gtest.h>
#include <cstddef>
#include <cstring>
#include <pthread.h>

/* A context of a UCX with assertions if this was compiled for one without, or
 * the other way round */
class test_sep_compat_async : public ::testing::Test {
protected:
    void SetUp() override
    {
        uct_sep_compat_async_init(!has_assertions);
        memset(&m_async, 0xa5, sizeof(m_async));
    }

    void TearDown() override
    {
        uct_sep_compat_async_init(has_assertions);
    }

    ucs_async_context_t m_async;
};

TEST_F(test_sep_compat_async, mode_is_where_the_other_ucx_has_it)
{
    EXPECT_EQ(offsetof(ucs_async_context_t, mode),
              uct_sep_compat_async_mode_offset());
    for (auto mode : {UCS_ASYNC_MODE_SIGNAL, UCS_ASYNC_MODE_THREAD_SPINLOCK,
                      UCS_ASYNC_MODE_THREAD_MUTEX, UCS_ASYNC_MODE_POLL}) {
        m_async.mode = mode;
        EXPECT_EQ(mode, uct_sep_compat_async_mode(&m_async));
    }
}

TEST_F(test_sep_compat_async, both_kinds_of_ucx_differ)
{
    size_t offset = uct_sep_compat_async_mode_offset();

    uct_sep_compat_async_init(has_assertions);
    EXPECT_NE(offset, uct_sep_compat_async_mode_offset());
}

TEST_F(test_sep_compat_async, mutex_is_held_as_the_other_ucx_holds_it)
{
    ucs_async_thread_mutex_t *mutex = &m_async.thread.mutex;
    ucs_async_thread_mutex_t before;
    pthread_mutexattr_t attr;

    m_async.mode = UCS_ASYNC_MODE_THREAD_MUTEX;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&mutex->lock, &attr);
#if UCS_ENABLE_ASSERT
    mutex->owner = UCS_ASYNC_PTHREAD_ID_NULL;
    mutex->count = 0;
#endif
    memcpy(&before, mutex, sizeof(before));

    uct_sep_compat_async_block(&m_async);
    uct_sep_compat_async_block(&m_async);
#if UCS_ENABLE_ASSERT
    EXPECT_EQ(2u, mutex->count);
    EXPECT_TRUE(pthread_equal(pthread_self(), mutex->owner));
#endif
    uct_sep_compat_async_unblock(&m_async);
#if UCS_ENABLE_ASSERT
    EXPECT_TRUE(pthread_equal(pthread_self(), mutex->owner));
#endif
    EXPECT_EQ(UCS_ASYNC_MODE_THREAD_MUTEX, m_async.mode);
    uct_sep_compat_async_unblock(&m_async);
    EXPECT_EQ(0, memcmp(&before, mutex, sizeof(before)));
    pthread_mutex_destroy(&mutex->lock);
    pthread_mutexattr_destroy(&attr);
}

TEST_F(test_sep_compat_async, spinlock_and_poll_as_well)
{
    m_async.mode = UCS_ASYNC_MODE_THREAD_SPINLOCK;
    ucs_recursive_spinlock_init(&m_async.thread.spinlock, 0);
    uct_sep_compat_async_block(&m_async);
    EXPECT_TRUE(ucs_recursive_spinlock_is_held(&m_async.thread.spinlock));
    uct_sep_compat_async_unblock(&m_async);
    EXPECT_FALSE(ucs_recursive_spinlock_is_held(&m_async.thread.spinlock));

    m_async.mode       = UCS_ASYNC_MODE_POLL;
    m_async.poll_block = 0;
    uct_sep_compat_async_block(&m_async);
    EXPECT_EQ(1, m_async.poll_block);
    uct_sep_compat_async_unblock(&m_async);
    EXPECT_EQ(0, m_async.poll_block);
}
