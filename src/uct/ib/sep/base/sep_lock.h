/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_LOCK_H
#define UCT_SEP_LOCK_H

#include <ucs/sys/compiler_def.h>
#include <ucs/type/spinlock.h>
#include <ucs/type/status.h>
#include <pthread.h>

BEGIN_C_DECLS

/**
 * @file sep_lock.h
 *
 * Locks that are declared: what they protect, which functions need them, and
 * which must not be called with them. clang's thread safety analysis holds the
 * sources to that (contrib/check-sources.sh locks). GCC sees a mutex or a spin
 * lock, and nothing else.
 *
 * Each lock has a type of its own, and the analysis knows it by the name of its
 * type: clang 14 can't name another field of the same struct in C. What follows
 * from that:
 * - Two locks of one type must not be held at a time.
 * - That the lock is another object's is not noticed.
 *
 * Nor does the analysis look at fields whose address is taken, such as heads of
 * lists. So functions declare that they need the lock.
 */

#ifdef __clang__
#  define UCT_SEP_LOCK_ATTRIBUTE(_attribute)  __attribute__((_attribute))

/** What the analysis calls a lock. Only attributes name such objects, so there
 *  need not be any. */
struct UCT_SEP_LOCK_ATTRIBUTE(capability("lock")) uct_sep_lock_role {
    char unused;
};

#  define UCT_SEP_LOCK_ROLE(_name)  extern struct uct_sep_lock_role _name;
#else
#  define UCT_SEP_LOCK_ATTRIBUTE(_attribute)
#  define UCT_SEP_LOCK_ROLE(_name)
#endif

/** A field or variable that is used only with the lock held. */
#define UCT_SEP_GUARDED_BY(_name) \
    UCT_SEP_LOCK_ATTRIBUTE(guarded_by(_name))

/** A function whose caller holds the lock. */
#define UCT_SEP_REQUIRES(_name) \
    UCT_SEP_LOCK_ATTRIBUTE(requires_capability(_name))

/** A function whose caller does not hold the lock. */
#define UCT_SEP_EXCLUDES(_name) \
    UCT_SEP_LOCK_ATTRIBUTE(locks_excluded(_name))

/** A function that returns with the lock held. */
#define UCT_SEP_ACQUIRES(_name) \
    UCT_SEP_LOCK_ATTRIBUTE(acquire_capability(_name))

/** A function that returns with the lock held if what it returns is not 0. */
#define UCT_SEP_TRY_ACQUIRES(_name) \
    UCT_SEP_LOCK_ATTRIBUTE(try_acquire_capability(1, _name))

/** A function that releases the lock of its caller. */
#define UCT_SEP_RELEASES(_name) \
    UCT_SEP_LOCK_ATTRIBUTE(release_capability(_name))

/** A function that the analysis can't follow. A comment gives the reason. */
#define UCT_SEP_NO_LOCK_ANALYSIS \
    UCT_SEP_LOCK_ATTRIBUTE(no_thread_safety_analysis)


/* Implementation of the following; the functions are what the analysis stands
 * on, so it does not look into them */
#define UCT_SEP_LOCK_FUNCTION(_attribute, _result) \
    static UCS_F_ALWAYS_INLINE _attribute UCT_SEP_NO_LOCK_ANALYSIS _result

#define UCT_SEP_LOCK_DEFINE(_name, _type, _take, _try_to_take, _release) \
    UCT_SEP_LOCK_ROLE(_name) \
    \
    typedef struct { \
        _type impl; \
    } _name##_t; \
    \
    UCT_SEP_LOCK_FUNCTION(UCT_SEP_ACQUIRES(_name), void) \
    _name##_lock(_name##_t *lock) \
    { \
        _take(&lock->impl); \
    } \
    \
    UCT_SEP_LOCK_FUNCTION(UCT_SEP_TRY_ACQUIRES(_name), int) \
    _name##_trylock(_name##_t *lock) \
    { \
        return _try_to_take(&lock->impl); \
    } \
    \
    UCT_SEP_LOCK_FUNCTION(UCT_SEP_RELEASES(_name), void) \
    _name##_unlock(_name##_t *lock) \
    { \
        _release(&lock->impl); \
    }

/** As ucs_spin_try_lock(). */
#define UCT_SEP_MUTEX_TRYLOCK(_mutex)  (pthread_mutex_trylock(_mutex) == 0)


/**
 * Define a mutex, e.g. with _name uct_sep_hub_mutex: type uct_sep_hub_mutex_t
 * and functions uct_sep_hub_mutex_init, _destroy, _lock, _trylock and _unlock.
 * The arguments of _init are the mutex, and attributes or NULL. What _trylock
 * returns is whether the caller has the lock.
 */
#define UCT_SEP_MUTEX_DEFINE(_name) \
    UCT_SEP_LOCK_DEFINE(_name, pthread_mutex_t, pthread_mutex_lock, \
                        UCT_SEP_MUTEX_TRYLOCK, pthread_mutex_unlock) \
    \
    static inline void \
    _name##_init(_name##_t *lock, const pthread_mutexattr_t *attr) \
    { \
        pthread_mutex_init(&lock->impl, attr); \
    } \
    \
    static inline void _name##_destroy(_name##_t *lock) \
    { \
        pthread_mutex_destroy(&lock->impl); \
    }

/** Value of a mutex that is a variable. */
#define UCT_SEP_MUTEX_INITIALIZER \
    { \
        PTHREAD_MUTEX_INITIALIZER \
    }


/**
 * Define a spin lock, e.g. with _name uct_sep_bf_spinlock. It is UCX's, not
 * recursive. Its functions have such names as those of a mutex. _init takes no
 * attributes, and returns the status of ucs_spinlock_init().
 */
#define UCT_SEP_SPINLOCK_DEFINE(_name) \
    UCT_SEP_LOCK_DEFINE(_name, ucs_spinlock_t, ucs_spin_lock, \
                        ucs_spin_try_lock, ucs_spin_unlock) \
    \
    static inline ucs_status_t _name##_init(_name##_t *lock) \
    { \
        return ucs_spinlock_init(&lock->impl, 0); \
    } \
    \
    static inline void _name##_destroy(_name##_t *lock) \
    { \
        ucs_spinlock_destroy(&lock->impl); \
    }

END_C_DECLS

#endif
