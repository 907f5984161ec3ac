// SPDX-License-Identifier: BSD-3-Clause
// What google's rdma-unit-test uses of Abseil's logging, which Debian 12's
// Abseil has not yet: messages to standard error.
#ifndef DEVICE_SUITES_LOG_H
#define DEVICE_SUITES_LOG_H

#include <cstdlib>
#include <iostream>
#include <sstream>

namespace device_suites {

class Message {
public:
    explicit Message(bool fatal, const char *condition = "") : m_fatal(fatal)
    {
        m_text << condition;
    }

    ~Message()
    {
        std::cerr << m_text.str() << std::endl;
        if (m_fatal) {
            std::abort();
        }
    }

    std::ostream &stream()
    {
        return m_text;
    }

private:
    bool               m_fatal;
    std::ostringstream m_text;
};

// Lets a message be the second half of ?:
struct Void {
    void operator&(const std::ostream &)
    {
    }
};

} // namespace device_suites

#define DEVICE_SUITES_INFO    false
#define DEVICE_SUITES_WARNING false
#define DEVICE_SUITES_ERROR   false
#define DEVICE_SUITES_FATAL   true

#define LOG(_severity) \
    ::device_suites::Message(DEVICE_SUITES_##_severity).stream()
#define LOG_EVERY_N_SEC(_severity, _seconds) LOG(_severity)

#define LOG_IF(_severity, _condition) \
    !(_condition) ? (void)0 : ::device_suites::Void() & LOG(_severity)

#define CHECK(_condition) \
    (_condition) ? (void)0 : \
                   ::device_suites::Void() & \
                           ::device_suites::Message(true, #_condition ": ") \
                                   .stream()
#define CHECK_EQ(_a, _b) CHECK((_a) == (_b))
#define CHECK_NE(_a, _b) CHECK((_a) != (_b))
#define CHECK_LE(_a, _b) CHECK((_a) <= (_b))
#define CHECK_LT(_a, _b) CHECK((_a) < (_b))
#define CHECK_GE(_a, _b) CHECK((_a) >= (_b))
#define CHECK_GT(_a, _b) CHECK((_a) > (_b))
#define DCHECK           CHECK
#define DCHECK_EQ        CHECK_EQ
#define DCHECK_NE        CHECK_NE
#define DCHECK_LE        CHECK_LE
#define DCHECK_LT        CHECK_LT
#define DCHECK_GE        CHECK_GE
#define DCHECK_GT        CHECK_GT

#endif
