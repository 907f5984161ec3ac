/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef TEST_SEP_RANDOM_MODEL_H
#define TEST_SEP_RANDOM_MODEL_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/*
 * What must have arrived, and in which order, of all that one endpoint was
 * given. It writes to a place that is nobody else's, and its messages are
 * numbered.
 */
namespace sep_random {

/* Byte i of the data that a number stands for: of two that differ in the number
 * or in i, few are alike in a row */
inline uint8_t data_byte(uint32_t number, size_t i)
{
    uint32_t x = number * 0x9e3779b1u + (uint32_t)i * 0x85ebca6bu;

    return (x ^ (x >> 15)) >> 8;
}

inline void fill_data(uint32_t number, void *dest, size_t length)
{
    for (size_t i = 0; i < length; ++i) {
        ((uint8_t*)dest)[i] = data_byte(number, i);
    }
}

/* A write: of whose data, and where to. Others without a fence or a flush
 * between them may be written in any order. */
struct put {
    uint32_t number;
    size_t   offset, length;
    size_t   barrier; /* Puts that are surely earlier */
};

/* Bytes of the place as some puts make them, if all are written in order. What
 * may be found is told by model::check(). */
struct snapshot {
    size_t               offset;
    std::vector<uint8_t> data;
    size_t               num;            /* Puts it is made of */
    size_t               end = SIZE_MAX; /* One after the last that may have
                                            been written */
};

/* A message as it was sent */
struct sent_message {
    uint32_t number;
    size_t   length;
    bool     is_fenced; /* All puts before it have arrived when it has */
    snapshot place;
};

/* The words of a place for atomics */
struct words {
    uint64_t wide   = 0;
    uint32_t narrow = 0;
    uint32_t pad    = 0;
};

class model {
public:
    /* Of a place, in bytes: what is written, and behind it the words */
    static constexpr size_t data_size  = 9000;
    static constexpr size_t place_size = data_size + sizeof(words);

    /* The place starts with zeros */
    explicit model(const uint8_t *place) : m_place(place), m_latest(data_size)
    {
    }

    /* What was given to the endpoint, and accepted */
    void add_put(uint32_t number, size_t offset, size_t length);
    void add_message(uint32_t number, size_t length);
    void add_fence();

    /* All puts of this are in memory, before others come */
    void add_barrier(const snapshot &flushed);

    /* The data that a read finds, when it completes */
    size_t begin_get(size_t offset, size_t length);
    std::string end_get(size_t get, const void *data, size_t length);

    /* What has been given until now will be there, when it is flushed */
    snapshot take(size_t offset = 0, size_t length = data_size) const;

    /* How the place differs from that, or "" */
    std::string check(const snapshot &expected) const
    {
        return check(expected, m_place + expected.offset);
    }

    /* The next message arrives: how it differs from what was sent, or "" */
    std::string receive(uint32_t seq, const void *data, size_t length);

    /* The place holds nothing but what was written, whether or not all of it
     * has arrived */
    std::string check_lost() const;

    /* The place and all messages have arrived */
    std::string check_all() const;

    size_t num_sent() const { return m_sent.size(); }
    size_t num_received() const { return m_received; }

    /* What the atomics that were accepted make of the words */
    words current;
    /* ... with each of them */
    std::vector<words> history{1};

private:
    bool is_right(const snapshot &expected, size_t i, uint8_t byte) const;
    std::string check(const snapshot &expected, const uint8_t *data) const;

    const uint8_t             *m_place;
    std::vector<uint8_t>      m_latest;
    std::vector<put>          m_puts;
    std::vector<snapshot>     m_gets;
    std::vector<sent_message> m_sent;
    size_t                    m_received  = 0;
    size_t                    m_barrier   = 0; /* Puts before the last fence, or
                                                  before what was flushed */
    size_t                    m_fenced    = 0; /* Puts before the last fence */
    size_t                    m_told      = 0; /* Puts before the last fence in
                                                  front of a message */
    size_t                    m_open_gets = 0; /* First one not fenced off */
};

} // namespace sep_random

#endif
