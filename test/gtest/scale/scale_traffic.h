/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef TEST_SCALE_TRAFFIC_H_
#define TEST_SCALE_TRAFFIC_H_

#include <scale/scale_world.h>

#include <random>

namespace scale {

/** Who each sender sends to next: a number of a peer, from 0. */
class generator {
public:
    /**
     * @param num_peers  Of each sender.
     */
    generator(const params &how, uint32_t num_peers);

    /** For the message with this number of a sender. */
    uint32_t peer(uint32_t sender, uint64_t number);

    /** Messages of a step; 0 if there are no steps. */
    uint64_t step() const
    {
        return m_step;
    }

private:
    uint32_t permuted(uint32_t sender, uint64_t rank, uint64_t salt) const;

    const params        m_how;
    const uint32_t      m_num_peers;
    uint64_t            m_step = 0;
    std::mt19937_64     m_rng;
    std::vector<double> m_sums; /* Zipf: of the probabilities */
    std::vector<uint32_t> m_neighbours;
};

/** A number that looks random, for a number. */
uint64_t mixed(uint64_t value);

} // namespace scale

#endif
