/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/compat/sep_compat_async.h>

#include <ucs/arch/cpu.h>
#include <ucs/async/async.h>
#include <ucs/debug/assert.h>
#include <ucs/sys/compiler_def.h>

#include <pthread.h>
#include <string.h>


/* Both kinds of ucs_async_thread_mutex_t. Neither has changed since UCX 1.13 */
typedef struct uct_sep_compat_plain_mutex {
    pthread_mutex_t lock;
} uct_sep_compat_plain_mutex_t;

typedef struct uct_sep_compat_checked_mutex {
    pthread_mutex_t lock;
    pthread_t       owner;
    unsigned        count;
} uct_sep_compat_checked_mutex_t;

/* Both kinds of ucs_async_context_t, up to the mode */
#define UCT_SEP_COMPAT_ASYNC_CONTEXT(_mutex) \
    struct { \
        union { \
            ucs_recursive_spinlock_t   spinlock; \
            _mutex                     mutex; \
            ucs_async_signal_context_t signal; \
            int                        poll_block; \
        }; \
        ucs_async_mode_t mode; \
    }

typedef UCT_SEP_COMPAT_ASYNC_CONTEXT(uct_sep_compat_plain_mutex_t)
        uct_sep_compat_plain_context_t;
typedef UCT_SEP_COMPAT_ASYNC_CONTEXT(uct_sep_compat_checked_mutex_t)
        uct_sep_compat_checked_context_t;

static int uct_sep_compat_async_is_checked = UCS_ENABLE_ASSERT;


void uct_sep_compat_async_init(int has_assertions)
{
    /* What the headers say is one of them */
    UCS_STATIC_ASSERT(ucs_offsetof(ucs_async_context_t, mode) ==
                      (UCS_ENABLE_ASSERT ?
                       ucs_offsetof(uct_sep_compat_checked_context_t, mode) :
                       ucs_offsetof(uct_sep_compat_plain_context_t, mode)));
    UCS_STATIC_ASSERT(sizeof(ucs_async_thread_mutex_t) ==
                      (UCS_ENABLE_ASSERT ?
                       sizeof(uct_sep_compat_checked_mutex_t) :
                       sizeof(uct_sep_compat_plain_mutex_t)));

    uct_sep_compat_async_is_checked = has_assertions;
}

size_t uct_sep_compat_async_mode_offset(void)
{
    return uct_sep_compat_async_is_checked ?
           ucs_offsetof(uct_sep_compat_checked_context_t, mode) :
           ucs_offsetof(uct_sep_compat_plain_context_t, mode);
}

ucs_async_mode_t uct_sep_compat_async_mode(const ucs_async_context_t *async)
{
    ucs_async_mode_t mode;

    memcpy(&mode, (const char*)async + uct_sep_compat_async_mode_offset(),
           sizeof(mode));
    return mode;
}

static void uct_sep_compat_mutex_block(ucs_async_context_t *async)
{
    uct_sep_compat_checked_mutex_t *mutex = (void*)async;

    (void)pthread_mutex_lock(&mutex->lock);
    if (uct_sep_compat_async_is_checked && (mutex->count++ == 0)) {
        mutex->owner = pthread_self();
    }
}

static void uct_sep_compat_mutex_unblock(ucs_async_context_t *async)
{
    uct_sep_compat_checked_mutex_t *mutex = (void*)async;

    if (uct_sep_compat_async_is_checked && (--mutex->count == 0)) {
        mutex->owner = UCS_ASYNC_PTHREAD_ID_NULL;
    }
    (void)pthread_mutex_unlock(&mutex->lock);
}

/* All of them are at the beginning of the context */
void uct_sep_compat_async_block(ucs_async_context_t *async)
{
    switch (uct_sep_compat_async_mode(async)) {
    case UCS_ASYNC_MODE_THREAD_SPINLOCK:
        ucs_recursive_spin_lock(&async->thread.spinlock);
        break;
    case UCS_ASYNC_MODE_THREAD_MUTEX:
        uct_sep_compat_mutex_block(async);
        break;
    case UCS_ASYNC_MODE_SIGNAL:
        UCS_ASYNC_SIGNAL_BLOCK(async);
        break;
    default:
        ++async->poll_block;
        break;
    }
}

void uct_sep_compat_async_unblock(ucs_async_context_t *async)
{
    switch (uct_sep_compat_async_mode(async)) {
    case UCS_ASYNC_MODE_THREAD_SPINLOCK:
        ucs_recursive_spin_unlock(&async->thread.spinlock);
        break;
    case UCS_ASYNC_MODE_THREAD_MUTEX:
        uct_sep_compat_mutex_unblock(async);
        break;
    case UCS_ASYNC_MODE_SIGNAL:
        UCS_ASYNC_SIGNAL_UNBLOCK(async);
        break;
    default:
        --async->poll_block;
        break;
    }
}
