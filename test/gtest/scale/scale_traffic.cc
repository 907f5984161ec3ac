/* SPDX-License-Identifier: BSD-3-Clause */

#include <scale/scale_traffic.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace scale {

const std::vector<traffic_name> traffic_names = {
    {traffic::zipf, "zipf"},       {traffic::alltoall, "alltoall"},
    {traffic::stencil, "stencil"}, {traffic::bsp, "bsp"},
    {traffic::random, "random"},   {traffic::sets, "sets"},
    {traffic::hot, "hot"},         {traffic::lock, "lock"}
};

namespace {

const unsigned BSP_PARTNERS = 32;
const unsigned BSP_STEPS    = 8; /* With the same partners */

} // namespace

uint64_t mixed(uint64_t value)
{
    value += 0x9e3779b97f4a7c15ull;
    value  = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
    value  = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
    return value ^ (value >> 31);
}

generator::generator(const params &how, uint32_t num_peers) :
    m_how(how), m_num_peers(num_peers), m_rng(mixed(how.seed))
{
    if (how.kind == traffic::zipf) {
        double sum = 0;

        for (uint32_t k = 1; k <= num_peers; ++k) {
            sum += 1.0 / k;
            m_sums.push_back(sum);
        }
    } else if (how.kind == traffic::stencil) {
        /* Everybody is on a torus of as many as there are; peer i is i + 1
         * places further on */
        int64_t size = num_peers + 1;
        int64_t side = std::max(1.0, std::round(std::cbrt(size)));

        for (int64_t x = -1; x <= 1; ++x) {
            for (int64_t y = -1; y <= 1; ++y) {
                for (int64_t z = -1; z <= 1; ++z) {
                    int64_t to = x + (y * side) + (z * side * side);

                    to = ((to % size) + size) % size;
                    if (to != 0) {
                        m_neighbours.push_back(to - 1);
                    }
                }
            }
        }
        std::sort(m_neighbours.begin(), m_neighbours.end());
        m_neighbours.erase(std::unique(m_neighbours.begin(),
                                       m_neighbours.end()),
                           m_neighbours.end());
        m_step = m_neighbours.size();
    } else if (how.kind == traffic::bsp) {
        m_step = std::min(BSP_PARTNERS, num_peers);
    }
}

/* One of the peers for each rank, another one for each sender */
uint32_t
generator::permuted(uint32_t sender, uint64_t rank, uint64_t salt) const
{
    uint64_t factor = mixed(mixed(m_how.seed + salt) + sender) % m_num_peers;
    uint64_t offset = mixed(mixed(m_how.seed + salt + 1) + sender);

    while (std::gcd<uint64_t>(factor, m_num_peers) != 1) {
        ++factor;
    }
    return ((rank * factor) + (offset % m_num_peers)) % m_num_peers;
}

uint32_t generator::peer(uint32_t sender, uint64_t number)
{
    uint64_t size;
    double value;

    switch (m_how.kind) {
    case traffic::zipf:
        value = std::uniform_real_distribution<>(0, m_sums.back())(m_rng);
        return permuted(sender,
                        std::min<size_t>(std::upper_bound(m_sums.begin(),
                                                          m_sums.end(), value) -
                                         m_sums.begin(), m_num_peers - 1), 0);
    case traffic::alltoall:
        return number % m_num_peers;
    case traffic::stencil:
        return m_neighbours[number % m_step];
    case traffic::bsp:
        return permuted(sender, number % m_step,
                        2 * (1 + (number / m_step / BSP_STEPS)));
    case traffic::random:
        return m_rng() % m_num_peers;
    case traffic::sets:
        size = std::min<uint64_t>(2 * std::max(1u, 3 * m_how.budget / 4),
                                  m_num_peers);
        return permuted(sender, m_rng() % size, 0);
    case traffic::hot:
        size = (number % 2) ? m_num_peers :
               std::min<uint64_t>(std::max(1u, m_how.budget / 2), m_num_peers);
        return permuted(sender, m_rng() % size, 0);
    case traffic::lock:
        return (sender == 0) ? 0 : (m_num_peers - sender);
    }
    return 0;
}

} // namespace scale
