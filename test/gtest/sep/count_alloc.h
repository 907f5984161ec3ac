/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef COUNT_ALLOC_H
#define COUNT_ALLOC_H

#include <cstddef>

/*
 * Bytes that the transport has asked of the C library, as long as an object of
 * this class exists: its allocations, and not those of libraries, go through
 * the linker's --wrap. Memory freed in between is taken off.
 */
class count_alloc {
public:
    count_alloc();
    ~count_alloc();

    long bytes() const;

    count_alloc(const count_alloc&) = delete;
};

#endif
