/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_TEST_DEVICE_MESH_H_
#define MLX5SIM_TEST_DEVICE_MESH_H_

/*
 * Processes that are all connected to each other and exchange numbered, checked
 * messages, while some of them are killed and started again.
 */

#include <device/device.h>

namespace device {

/** Words of the board that a mesh uses. */
struct mesh_words {
    static const unsigned max_nodes = 64;

    /** Life of a node, counted from 1. */
    static unsigned life(int node)
    {
        return 8 + node;
    }

    /** Lives that have been ended. */
    static unsigned killed(int node)
    {
        return 72 + node;
    }

    /** Messages that one got from another's present life. */
    static unsigned received(int from, int to)
    {
        return 136 + from * max_nodes + to;
    }

    /** Nodes stop sending. */
    static const unsigned stop = 0;
    /** Nodes that have nothing outstanding. */
    static const unsigned idle = 1;
    /** Nodes leave. */
    static const unsigned leave = 2;
};


/** Offers of connections, in memory that all share: one per ordered pair. */
struct mesh_offers {
    std::atomic<uint64_t> pair[mesh_words::max_nodes][mesh_words::max_nodes];
};


/** How a mesh works. */
struct mesh_options {
    unsigned window      = 8;     /* messages under way to each peer */
    unsigned num_recv    = 32;    /* of the SRQ */
    bool     sleeps      = false; /* waits for events */
    unsigned max_message = 2000;
    uint64_t messages    = 0;     /* to each peer, 0: until told to stop */
    uint64_t seed        = 0;     /* of their lengths and contents */
};


/** Life of one node. */
void mesh_node(rank &r, mesh_offers *offers, const mesh_options &options);

} // namespace device

#endif
