/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_TEST_JOB_PATTERN_H
#define SEP_TEST_JOB_PATTERN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Contents of test messages. Every byte depends on who sends, who receives,
 * which message it is and where in the message it lies, so a lost, repeated,
 * shifted, stale or misdirected message cannot pass for the right one.
 */

/** Bytes on each side of a buffer that must keep their value, @ref
 *  job_buffer_check. One page, so that the payload itself is page aligned. */
#define JOB_GUARD_LEN   4096
#define JOB_GUARD_BYTE  0xa5


/**
 * A buffer between two guard areas. Freed with @ref job_buffer_free.
 */
typedef struct job_buffer {
    uint8_t *data;      /**< First usable byte, page aligned */
    size_t  length;     /**< Usable bytes, without the guards */
} job_buffer_t;


/** One step of the splitmix64 sequence: every input bit reaches every output
 *  bit, so neighbouring words and seeds share nothing. */
static inline uint64_t job_pattern_mix(uint64_t value)
{
    value += 0x9e3779b97f4a7c15ull;
    value  = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
    value  = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
    return value ^ (value >> 31);
}

/**
 * @param [in]  source    Rank that produces the data.
 * @param [in]  target    Rank that is meant to get it.
 * @param [in]  sequence  Number of the message between the two.
 *
 * @return Seed of the message's contents.
 */
static inline uint64_t
job_pattern_seed(int source, int target, uint64_t sequence)
{
    return job_pattern_mix(job_pattern_mix(((uint64_t)(uint32_t)source << 32) |
                                           (uint32_t)target) ^
                           sequence);
}

/** 8 bytes of a message, at byte offset @a word * 8. */
static inline uint64_t job_pattern_word(uint64_t seed, size_t word)
{
    return job_pattern_mix(seed + word);
}

/** Write the contents that belong to @a seed. */
static inline void job_pattern_fill(void *buffer, size_t length, uint64_t seed)
{
    uint8_t *data = buffer;
    uint64_t value;
    size_t word;

    for (word = 0; word < length / sizeof(value); ++word) {
        value = job_pattern_word(seed, word);
        memcpy(data + (word * sizeof(value)), &value, sizeof(value));
    }

    value = job_pattern_word(seed, word);
    memcpy(data + (word * sizeof(value)), &value, length % sizeof(value));
}

/** @return Byte that belongs at @a offset of the message with @a seed. */
static inline uint8_t job_pattern_byte(uint64_t seed, size_t offset)
{
    uint64_t value = job_pattern_word(seed, offset / sizeof(value));

    return ((const uint8_t*)&value)[offset % sizeof(value)];
}

/** @return Offset of the first byte that is wrong, or @a length if none. */
static inline size_t
job_pattern_mismatch(const void *buffer, size_t length, uint64_t seed)
{
    const uint8_t *data = buffer;
    uint64_t value;
    size_t offset, word;

    for (word = 0; word < length / sizeof(value); ++word) {
        value = job_pattern_word(seed, word);
        if (memcmp(data + (word * sizeof(value)), &value, sizeof(value))) {
            break;
        }
    }

    for (offset = word * sizeof(value); offset < length; ++offset) {
        if (data[offset] != job_pattern_byte(seed, offset)) {
            return offset;
        }
    }

    return length;
}

/** Allocate @a length usable bytes, set to the guard value: a receive that
 *  never happened is then never taken for one. Ends the process without
 *  memory, naming the size. */
static inline job_buffer_t job_buffer_alloc(size_t length)
{
    size_t padded       = ((length + JOB_GUARD_LEN - 1) / JOB_GUARD_LEN) *
                          JOB_GUARD_LEN;
    size_t total        = padded + (2 * JOB_GUARD_LEN);
    uint8_t *allocation = aligned_alloc(JOB_GUARD_LEN, total);
    job_buffer_t buffer;

    if (allocation == NULL) {
        fprintf(stderr, "out of memory: a test buffer of %zu bytes\n", length);
        exit(EXIT_FAILURE);
    }

    memset(allocation, JOB_GUARD_BYTE, total);
    buffer.data   = allocation + JOB_GUARD_LEN;
    buffer.length = length;
    return buffer;
}

/** Forget what a buffer holds, before it is received into again. */
static inline void job_buffer_clear(const job_buffer_t *buffer)
{
    memset(buffer->data, JOB_GUARD_BYTE, buffer->length);
}

/**
 * @return Offset, relative to the data, of a guard byte next to the data that
 *         was overwritten, or 0 if none was (offset 0 is no guard).
 */
static inline ptrdiff_t job_buffer_check(const job_buffer_t *buffer)
{
    ptrdiff_t i;

    for (i = 1; i <= JOB_GUARD_LEN; ++i) {
        if (buffer->data[-i] != JOB_GUARD_BYTE) {
            return -i;
        }
    }

    for (i = 0; i < JOB_GUARD_LEN; ++i) {
        if (buffer->data[buffer->length + i] != JOB_GUARD_BYTE) {
            return buffer->length + i;
        }
    }

    return 0;
}

static inline void job_buffer_free(job_buffer_t *buffer)
{
    free(buffer->data - JOB_GUARD_LEN);
    buffer->data   = NULL;
    buffer->length = 0;
}

/**
 * What all ranks do with each rank in turn takes as many messages as there are
 * pairs, or more, and each may be a connection if queue pairs are few: among
 * many, they do it with at most 16 of them, or so many times less often.
 *
 * @return Every how many ranks or times, from the first or to the last.
 */
static inline int job_stride(int ranks)
{
    return (ranks + 15) / 16;
}

#endif
