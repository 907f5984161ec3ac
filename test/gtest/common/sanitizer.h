/* SPDX-License-Identifier: BSD-3-Clause */

/**
 * @file sanitizer.h
 *
 * What programs that are built with a sanitizer can't do.
 */

#ifndef TEST_COMMON_SANITIZER_H_
#define TEST_COMMON_SANITIZER_H_

extern "C" void __asan_init(void) __attribute__((weak));


/** Whether AddressSanitizer is in the program. Tests themselves are compiled
 * without it. */
inline bool has_asan()
{
    return __asan_init != nullptr;
}

/* A sanitizer's mmap() comes before the device's, which then learns of a new
 * UAR page of the legacy regime when it is used, not when it is mapped, and
 * can't refuse it */
#define SKIP_WITHOUT_MMAP_HOOK() \
    if (has_asan()) { \
        GTEST_SKIP() << "AddressSanitizer has mmap() to itself"; \
    }

#endif
