/* SPDX-License-Identifier: BSD-3-Clause */

/**
 * @file scale_world.h
 *
 * Many interfaces in one process, in virtual time, without a device. What is
 * compiled from the transport as it is: the connection manager and its state
 * machine (conn/), the budget, and endpoints with their connections and who of
 * them is given up (ep/). What is made of a few lines here instead: queue pairs
 * (ep/sep_link_qp.h), the manager's datagrams (conn/sep_cm_ud.c), and users.
 * Nobody has a device context of his own, or rings.
 *
 * Datagrams are lost, and overtake one another. Messages of a queue pair arrive
 * in order if the two ends are connected to each other, and never otherwise:
 * that is counted as lost, for the transport must not let it happen.
 */

#ifndef TEST_SCALE_WORLD_H_
#define TEST_SCALE_WORLD_H_

#include <stdint.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace scale {

/** Who sends to whom. */
enum class traffic {
    zipf,     /**< Few peers get most messages: the k-th one 1/k of them */
    alltoall, /**< One peer after the other */
    stencil,  /**< 26 neighbours in steps, which wait for all of the previous
                   one */
    bsp,      /**< Bulk-synchronous: 32 partners for 8 steps, then others; a
                   step begins when all messages have arrived */
    random,   /**< Each peer is as likely as any other */
    sets,     /**< Any of two sets of peers, each of which is three quarters of
                   the budget */
    hot,      /**< In turn, any of a set that is half of the budget, and any
                   other peer */
    lock      /**< All other senders send to the first one, as if it had a
                   lock that they wait for */
};

/** All of them, with their names. */
struct traffic_name {
    traffic    kind;
    const char *name;
};
extern const std::vector<traffic_name> traffic_names;

struct params {
    traffic  kind     = traffic::zipf;
    uint32_t senders  = 1;    /**< Interfaces that have a budget, and send. If
                                   there is one, its peers answer, and have
                                   none. Otherwise they are one another's
                                   peers */
    uint32_t peers    = 1000; /**< Of each; ignored with several senders */
    unsigned budget   = 16;   /**< Queue pairs, UCX_SEP_MAX_QPS; 0: inf */
    unsigned node     = 0;    /**< Queue pairs that all senders may hold, as
                                   processes of a node do with
                                   UCX_SEP_MAX_QPS_NODE; 0: inf */
    uint64_t messages = 10000; /**< Of each sender, and of the peers to it */
    unsigned window   = 64;   /**< Messages that a sender has under way, where
                                   there are no steps */
    double   loss     = 0.01; /**< Chance of a datagram */
    uint64_t seed     = 1;

    /* Nanoseconds */
    uint64_t latency  = 2000;   /**< Shortest way */
    uint64_t jitter   = 20000;  /**< Datagrams take up to so much longer */
    double   slow     = 0;      /**< Chance that a message takes much longer:
                                     it is long, or was lost. Those behind it
                                     do so, too */
    uint64_t poll     = 2000;   /**< Between two calls of progress */
    uint64_t qp_cost  = 100000; /**< To create and connect a queue pair */
    uint64_t limit    = 3600ull * 1000 * 1000 * 1000; /**< End of the run */
};

struct results {
    uint64_t messages   = 0; /**< That have arrived */
    uint64_t lost       = 0; /**< Sent to a queue pair that was not connected */
    uint64_t disordered = 0; /**< Arrived out of order, or twice */
    uint64_t failures   = 0; /**< Of endpoints */
    uint64_t time       = 0; /**< Nanoseconds, until the last one arrived */
    uint64_t connects   = 0; /**< Connections that were made; each has two
                                  ends */
    uint64_t packets    = 0; /**< Datagrams of the connection managers */
    uint64_t lost_packets = 0;
    uint64_t asked      = 0; /**< Connections that were to be given up */
    uint64_t waits      = 0; /**< ... that have waited for room */
    uint64_t exceeded   = 0; /**< ... that were made beyond the budget */
    unsigned max_qps    = 0; /**< Most that a sender has held */
    unsigned max_node   = 0; /**< ... that all senders have held */
    double   unused     = 0; /**< Bytes for a peer before anything is sent */
    double   evicted    = 0; /**< ... and at the end, without queue pairs */
    std::map<uint64_t, uint64_t> lives; /**< Connections by the messages of
                                             both directions */
    bool     is_done    = false; /**< All have arrived */

    /** What must not be has happened; nothing more will. */
    bool is_wrong() const
    {
        return (lost > 0) || (disordered > 0) || (failures > 0);
    }

    double per_message(uint64_t count) const
    {
        return messages ? static_cast<double>(count) / messages : 0;
    }
};

/** Let it happen. */
results run(const params &how);

} // namespace scale

#endif
