/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef LITMUS_H
#define LITMUS_H

/**
 * @file litmus.h
 *
 * The transport's own code under Relacy, a checker of C++'s relaxed memory
 * model: a program includes its sources behind this file. What is replaced is
 * what they do to memory that is shared:
 * - gcc's __atomic builtins, by Relacy's atomics. These are known by the
 *   address that a builtin is given.
 * - The fences of sep_fence.h, by C++'s. There is none for stores alone, so
 *   what the difference between uct_sep_fence_to_device() and _give_back() is,
 *   no program here can see.
 * - Types of what is shared without a builtin: litmus_word for words that one
 *   side writes while the other looks (Relacy's atomics, relaxed), litmus_data
 *   for all that has to be ordered by these (Relacy's variables: it finds
 *   races).
 *
 * The adapter is a thread: it writes data, and last the word that says so.
 *
 * A program's argument is the number of a barrier that is left out, 0: none.
 * With one, it has to fail.
 */

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <relacy/relacy.hpp>

#undef new
#undef delete
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef assert
#undef errno
#undef pthread_mutex_destroy
#undef pthread_mutex_init
#undef pthread_mutex_lock
#undef pthread_mutex_t
#undef pthread_mutex_unlock
#undef pthread_mutexattr_t
#include <cassert>
#define errno (*__errno_location())

/** The barrier that is left out. */
static int litmus_mutant;

/** Memory of an execution, known by the address that the sources use. */
class litmus_memory {
public:
    litmus_memory() : m_num_words(0), m_num_data(0)
    {
        instance = this;
    }

    rl::atomic<uint64_t> &word(const volatile void *address)
    {
        return m_words[find(m_word_of, address, &m_num_words)];
    }

    rl::var<uint64_t> &data(const volatile void *address)
    {
        return m_data[find(m_data_of, address, &m_num_data)];
    }

    static litmus_memory *instance;

private:
    enum {
        SIZE = 64
    };

    /* Relacy has allocators of its own, which are not for std::map */
    static unsigned find(const volatile void **addresses,
                         const volatile void *address, unsigned *num_p)
    {
        unsigned i = 0;
        while ((i < *num_p) && (addresses[i] != address)) {
            ++i;
        }
        if (i == SIZE) {
            fprintf(stderr, "more than %u words\n", i);
            abort();
        }
        addresses[i] = address;
        *num_p       = std::max(*num_p, i + 1);
        return i;
    }

    const volatile void  *m_word_of[SIZE], *m_data_of[SIZE];
    unsigned             m_num_words, m_num_data;
    rl::atomic<uint64_t> m_words[SIZE];
    rl::var<uint64_t>    m_data[SIZE];
};

litmus_memory *litmus_memory::instance;

enum {
    LITMUS_ACQUIRE = __ATOMIC_ACQUIRE
};

inline rl::memory_order litmus_order(int order)
{
    switch (order) {
    case __ATOMIC_RELAXED:
        return rl::mo_relaxed;
    case LITMUS_ACQUIRE:
        return rl::mo_acquire;
    case __ATOMIC_RELEASE:
        return rl::mo_release;
    default:
        return rl::mo_seq_cst;
    }
}

/** A word of memory that is written while others look. */
template<typename T> struct litmus_word {
    T raw;

    operator T() const volatile
    {
        return litmus_memory::instance->word(this).load(rl::mo_relaxed, $);
    }

    litmus_word &operator=(T value)
    {
        litmus_memory::instance->word(this).store(value, rl::mo_relaxed, $);
        return *this;
    }

    litmus_word &operator=(const litmus_word &other)
    {
        return *this = (T)other;
    }
};

/** Memory that is ordered by such words, or by locks. */
template<typename T> struct litmus_data {
    T raw;

    litmus_data() = default;

    litmus_data(T value)
    {
        *this = value;
    }

    operator T() const
    {
        return (T)litmus_memory::instance->data(this)($);
    }

    litmus_data &operator=(T value)
    {
        litmus_memory::instance->data(this)($) = value;
        return *this;
    }

    litmus_data &operator=(const litmus_data &other)
    {
        return *this = (T)other;
    }
};

/* Builtins leave the value in memory, too: what holds a lock reads it there. */
template<typename T> T litmus_load(const T *ptr, int order)
{
    return (T)litmus_memory::instance->word(ptr).load(litmus_order(order), $);
}

template<typename T> T litmus_load(const litmus_word<T> *ptr, int order)
{
    return (T)litmus_memory::instance->word(ptr).load(litmus_order(order), $);
}

template<typename T, typename V>
void litmus_store(T *ptr, V value, int order)
{
    *ptr = (T)value;
    litmus_memory::instance->word(ptr).store((T)value, litmus_order(order), $);
}

template<typename T, typename V> T litmus_add(T *ptr, V value, int order)
{
    uint64_t old = litmus_memory::instance->word(ptr).fetch_add(
            value, litmus_order(order), $);
    return *ptr = (T)(old + value);
}

template<typename T, typename V> T litmus_exchange(T *ptr, V value, int order)
{
    uint64_t old = litmus_memory::instance->word(ptr).exchange(
            value, litmus_order(order), $);
    *ptr = (T)value;
    return (T)old;
}

#define __atomic_load_n(_ptr, _order)         litmus_load(_ptr, _order)
#define __atomic_store_n(_ptr, _value, _order) \
    litmus_store(_ptr, _value, _order)
#define __atomic_add_fetch(_ptr, _value, _order) \
    litmus_add(_ptr, _value, _order)
#define __atomic_sub_fetch(_ptr, _value, _order) \
    litmus_add(_ptr, -(int64_t)(_value), _order)
#define __atomic_exchange_n(_ptr, _value, _order) \
    litmus_exchange(_ptr, _value, _order)

/* sep_fence.h, as of a processor that needs them */
#define UCT_SEP_FENCE_H
#define litmus_release()            rl::atomic_thread_fence(rl::mo_release, $)
#define litmus_acquire()            rl::atomic_thread_fence(rl::mo_acquire, $)
#define litmus_unless(_mutant, _fence) \
    ((litmus_mutant == (_mutant)) ? (void)0 : _fence)
#define uct_sep_fence_to_device()   litmus_release()
#define uct_sep_fence_from_device() litmus_unless(1, litmus_acquire())
#define uct_sep_fence_give_back()   litmus_unless(2, litmus_release())
#define uct_sep_fence_slots()       litmus_unless(2, litmus_release())

/** Whoever waits lets others run. */
#define litmus_wait() rl::yield(1, $)

/**
 * Run a test with a scheduler that chooses by chance, and a short one also in
 * all ways that have up to two changes of the thread where it need not change.
 * With LITMUS_VERBOSE in the environment, what an execution has done that fails
 * is printed.
 *
 * @param executions  By chance.
 * @param is_short    Whether all ways can be tried in seconds.
 *
 * @return Exit status.
 */
template<typename T>
int litmus_run(int argc, char **argv, const char *name, unsigned executions,
               bool is_short = true)
{
    static const struct {
        rl::scheduler_type_e type;
        const char           *name;
    } searches[] = {{rl::sched_random, "by chance"},
                    {rl::sched_bound, "2 changes"}};

    litmus_mutant = (argc > 1) ? atoi(argv[1]) : 0;
    for (const auto &search : searches) {
        if ((search.type == rl::sched_bound) && !is_short) {
            continue;
        }

        rl::test_params params;
        /* A buffer would grow by Relacy's allocators, and be freed without
         * them */
        std::ostream out(getenv("LITMUS_VERBOSE") ? std::cout.rdbuf() : NULL);

        params.search_type           = search.type;
        params.context_bound         = 2;
        params.iteration_count       = executions;
        params.execution_depth_limit = 4000;
        params.output_stream         = &out;
        params.progress_stream       = &out;
        params.progress_output_period = 1000000;
        bool ok = rl::simulate<T>(params);
        printf("%s mutant %d, %s: %llu executions, %s\n", name, litmus_mutant,
               search.name, (unsigned long long)params.stop_iteration,
               ok ? "passed" : rl::test_result_str(params.test_result));
        if (!ok) {
            return 1;
        }
    }
    return 0;
}

#endif
