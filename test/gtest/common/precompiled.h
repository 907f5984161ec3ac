/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What many unit tests include, see --enable-precompiled-headers of configure.
 * Each test still includes what it uses.
 */
#ifndef SEP_TEST_PRECOMPILED_H
#define SEP_TEST_PRECOMPILED_H

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#endif
