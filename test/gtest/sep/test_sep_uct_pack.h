/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef TEST_SEP_UCT_PACK_H
#define TEST_SEP_UCT_PACK_H

#include <sep/test_sep_uct.h>

#include <algorithm>

namespace sep_uct_test {

/* Callbacks of buffered operations, whose argument is the data */
inline size_t pack(void *dest, void *arg)
{
    auto *data = (const bytes*)arg;

    std::copy(data->begin(), data->end(), (uint8_t*)dest);
    return data->size();
}

inline void unpack(void *arg, const void *data, size_t length)
{
    ((bytes*)arg)->assign((const uint8_t*)data, (const uint8_t*)data + length);
}

} // namespace sep_uct_test

#endif
