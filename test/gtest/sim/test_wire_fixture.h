/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef TEST_WIRE_FIXTURE_H_
#define TEST_WIRE_FIXTURE_H_

#include <sim/wire/roce.h>

#include <gtest/gtest.h>

#include <sys/mman.h>

#include <cstring>
#include <random>
#include <vector>

typedef std::vector<uint8_t> bytes_t;

/** Packets that are read where a page ends behind which nothing can be read, so
 *  that looking behind them is a crash. */
class test_wire_fixture : public testing::Test {
protected:
    static constexpr unsigned ROOM = 8192;

    void SetUp() override
    {
        void *two = mmap(nullptr, ROOM + 4096, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        ASSERT_NE(MAP_FAILED, two);
        m_map = static_cast<uint8_t*>(two);
        ASSERT_EQ(0, mprotect(m_map + ROOM, 4096, PROT_NONE));
    }

    void TearDown() override
    {
        munmap(m_map, ROOM + 4096);
    }

    void fill(uint8_t *bytes, size_t size)
    {
        for (size_t i = 0; i < size; ++i) {
            bytes[i] = m_random();
        }
    }

    bytes_t encode(const mlx5sim_roce_path_t &path,
                   const mlx5sim_roce_t &packet, const bytes_t &payload)
    {
        bytes_t bytes(MLX5SIM_ROCE_MAX);

        bytes.resize(mlx5sim_roce_encode_net(&path, &packet, payload.data(),
                                             payload.size(), bytes.data()));
        return bytes;
    }

    /* Room at the end of the page, with these bytes in it */
    const uint8_t *place(const uint8_t *bytes, size_t length)
    {
        uint8_t *start = m_map + ROOM - length;

        if (length > 0) {
            memcpy(start, bytes, length);
        }
        return start;
    }

    mlx5sim_roce_verdict_t decode(const bytes_t &bytes, size_t length)
    {
        return mlx5sim_roce_decode(place(bytes.data(), length), length, &m_path,
                                   &m_packet, &m_payload, &m_length);
    }

    mlx5sim_roce_verdict_t decode(const bytes_t &bytes)
    {
        return decode(bytes, bytes.size());
    }

    static void set16(bytes_t *bytes, unsigned offset, unsigned value)
    {
        (*bytes)[offset]     = value >> 8;
        (*bytes)[offset + 1] = value;
    }

    static void set_icrc(bytes_t *bytes, unsigned offset, uint32_t icrc)
    {
        for (unsigned i = 0; i < 4; ++i) {
            (*bytes)[offset + i] = icrc >> (8 * i);
        }
    }

    std::mt19937_64     m_random{1};
    uint8_t             *m_map = nullptr;
    mlx5sim_roce_path_t m_path;
    mlx5sim_roce_t      m_packet;
    const uint8_t       *m_payload;
    unsigned            m_length;
};

#endif
