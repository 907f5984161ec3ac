/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef TEST_SEP_RANDOM_SCHEDULE_H
#define TEST_SEP_RANDOM_SCHEDULE_H

#include <sep/test_sep_uct.h>

#include <functional>
#include <string>
#include <vector>

/*
 * What a random test of the transport does: interfaces with their settings, and
 * operations one after the other. All of it follows from a number, and it can
 * be made shorter.
 */
namespace sep_random {

using sep_uct_test::settings;

/* What an operation is; its value says the rest */
enum kind : uint8_t {
    PUT_SHORT,
    PUT_BCOPY,
    PUT_ZCOPY,
    GET_BCOPY,
    GET_ZCOPY,
    AM_SHORT,
    AM_SHORT_IOV,
    AM_BCOPY,
    AM_ZCOPY,
    ATOMIC_POST,
    ATOMIC_FETCH,
    FENCE,
    IFACE_FENCE,
    FLUSH,
    IFACE_FLUSH,
    BURST,       /* Messages, until there are no resources */
    RELEASE,     /* Descriptors that were kept */
    DESTROY,     /* The endpoint; the next operation makes another */
    EXPIRE,      /* Timers of the connection manager */
    IDLE,        /* Look for connections that nobody uses */
    /* What makes connections fail */
    FIRST_FAULT,
    CLOSE = FIRST_FAULT, /* The interface; the next operation opens another */
    BREAK,       /* The queue pair */
    WRONG_KEY,   /* Write with one */
    CANCEL,      /* What is outstanding */
    NUM_KINDS
};

struct operation {
    kind     what;
    uint8_t  iface;    /* Whose it is */
    uint8_t  position; /* Of the endpoint in its interface */
    uint8_t  rounds;   /* Of the device, afterwards */
    uint8_t  progress; /* Interfaces that progress then, one bit each */
    uint32_t value;
};

struct schedule {
    uint64_t               seed; /* Of the device */
    std::vector<settings>  ifaces;
    std::vector<operation> ops;
    unsigned               cm_loss = 0;     /* Of 256 packets of the connection
                                               manager, how many are lost, and
                                               how many come twice */
    bool                   destroys = false; /* Endpoints that fail, in their
                                                error handler */
    unsigned               acts     = 0;     /* What callbacks do, ACT_* */
    unsigned               sleepers = 0;     /* Interfaces that progress only
                                                when they are woken, one bit
                                                each */
};

/* What callbacks do now and then */
enum {
    ACT_PROGRESS = 1,
    ACT_DESTROY  = 2, /* The endpoint of what has completed, or waited */
    ACT_CANCEL   = 4  /* ... what is outstanding on it: a fault */
};

/* Endpoints of an interface at a time */
const unsigned max_positions = 4;

/* With or without what makes connections fail */
schedule generate(uint64_t seed, bool has_faults);

/* As a person reads it, an operation a line */
std::string to_string(const schedule &plan);
std::string to_string(const operation &op);

/* A schedule that fails as well, with as few operations and settings as
 * leaving out halves, then quarters, and at last single ones comes to */
schedule shrink(const schedule &plan,
                const std::function<bool(const schedule&)> &fails);

} // namespace sep_random

#endif
