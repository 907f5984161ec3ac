/* SPDX-License-Identifier: BSD-3-Clause */

/**
 * @file sanitizer.h
 *
 * What programs that are built with a sanitizer can't do.
 */

#ifndef TEST_COMMON_SANITIZER_H_
#define TEST_COMMON_SANITIZER_H_

/* A sanitizer's mmap() comes before the device's, which then learns of a new
 * UAR page of the legacy regime when it is used, not when it is mapped, and
 * can't refuse it */
#ifdef __SANITIZE_ADDRESS__
#  define SKIP_WITHOUT_MMAP_HOOK() \
    GTEST_SKIP() << "AddressSanitizer has mmap() to itself"
#else
#  define SKIP_WITHOUT_MMAP_HOOK()
#endif

#endif
