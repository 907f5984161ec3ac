/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_random_model.h>

#include <algorithm>
#include <cstring>
#include <sstream>

namespace sep_random {

void model::add_put(uint32_t number, size_t offset, size_t length)
{
    m_puts.push_back({number, offset, length, m_barrier});
    fill_data(number, &m_latest[offset], length);
}

void model::add_message(uint32_t number, size_t length)
{
    bool is_fenced = m_fenced > m_told;

    m_sent.push_back({number, length, is_fenced, snapshot()});
    if (is_fenced) {
        /* The last put before the fence is the one that may be late */
        const put &last         = m_puts[m_fenced - 1];
        m_sent.back().place     = take(last.offset, last.length);
        m_sent.back().place.num = m_fenced;
        m_told                  = m_fenced;
    }
}

void model::add_fence()
{
    m_fenced  = m_puts.size();
    m_barrier = m_fenced;
    for (; m_open_gets < m_gets.size(); ++m_open_gets) {
        m_gets[m_open_gets].end = m_puts.size();
    }
}

void model::add_barrier(const snapshot &flushed)
{
    m_barrier = std::max(m_barrier, flushed.num);
}

size_t model::begin_get(size_t offset, size_t length)
{
    m_gets.push_back(take(offset, length));
    return m_gets.size() - 1;
}

std::string model::end_get(size_t get, const void *data, size_t length)
{
    if (length != m_gets[get].data.size()) {
        return "a read of " + std::to_string(m_gets[get].data.size()) +
               " bytes had " + std::to_string(length);
    }
    return check(m_gets[get], (const uint8_t*)data);
}

snapshot model::take(size_t offset, size_t length) const
{
    return {offset,
            {m_latest.begin() + offset, m_latest.begin() + offset + length},
            m_puts.size()};
}

/* Whether byte i of what was expected may be this: of the last put that it was
 * made of, of one that is not ordered with that, or of a later one */
bool model::is_right(const snapshot &expected, size_t i, uint8_t byte) const
{
    size_t at    = expected.offset + i;
    size_t end   = std::min(expected.end, m_puts.size());
    size_t first = expected.num;

    auto covers = [&](size_t p) {
        return (at >= m_puts[p].offset) &&
               (at - m_puts[p].offset < m_puts[p].length);
    };

    if (byte == expected.data[i]) {
        return true;
    }

    for (size_t p = expected.num; p-- > 0;) {
        if (covers(p)) {
            first = m_puts[p].barrier;
            break;
        }
    }
    for (size_t p = first; p < end; ++p) {
        if (covers(p) && (byte == data_byte(m_puts[p].number,
                                            at - m_puts[p].offset))) {
            return true;
        }
    }
    return false;
}

std::string model::check(const snapshot &expected, const uint8_t *data) const
{
    if (memcmp(expected.data.data(), data, expected.data.size()) == 0) {
        return "";
    }

    for (size_t i = 0; i < expected.data.size(); ++i) {
        if (!is_right(expected, i, data[i])) {
            std::ostringstream os;

            os << "byte " << expected.offset + i << " is " << (unsigned)data[i]
               << ", not " << (unsigned)expected.data[i] << " as after put "
               << expected.num << " of " << m_puts.size();
            return os.str();
        }
    }
    return "";
}

std::string model::receive(uint32_t seq, const void *data, size_t length)
{
    std::ostringstream os;

    if (seq != m_received) {
        os << "message " << seq << " came instead of " << m_received;
        return os.str();
    }

    if (m_received >= m_sent.size()) {
        return "a message came that was not sent";
    }

    const sent_message &sent = m_sent[m_received++];
    if (length != sent.length) {
        os << "message " << seq << " has " << length << " bytes, not "
           << sent.length;
        return os.str();
    }

    for (size_t i = 0; i < length; ++i) {
        if (((const uint8_t*)data)[i] != data_byte(sent.number, i)) {
            os << "message " << seq << " of " << length << " bytes is wrong "
               << "from byte " << i << " on";
            return os.str();
        }
    }

    if (sent.is_fenced) {
        std::string wrong = check(sent.place);

        return wrong.empty() ? "" : "fenced, but not there: " + wrong;
    }
    return "";
}

std::string model::check_lost() const
{
    words now;

    memcpy(&now, m_place + data_size, sizeof(now));
    if (std::none_of(history.begin(), history.end(), [&](const words &past) {
            return past.wide == now.wide;
        }) || std::none_of(history.begin(), history.end(),
                           [&](const words &past) {
            return past.narrow == now.narrow;
        })) {
        return "the words never had these values";
    }
    return check({0, std::vector<uint8_t>(data_size), 0});
}

std::string model::check_all() const
{
    std::ostringstream os;
    words now;

    if (m_received != m_sent.size()) {
        os << m_received << " of " << m_sent.size() << " messages have come";
        return os.str();
    }

    memcpy(&now, m_place + data_size, sizeof(now));
    if ((now.wide != current.wide) || (now.narrow != current.narrow)) {
        os << "the words are " << now.wide << ", " << now.narrow << " and not "
           << current.wide << ", " << current.narrow;
        return os.str();
    }
    return check(take());
}

} // namespace sep_random
