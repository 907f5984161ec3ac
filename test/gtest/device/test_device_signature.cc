/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Keys with signatures of blocks (mlx5dv_wr_set_mkey_sig_block(3)). What they
 * are to be is computed here bit by bit.
 */

#include <common/seed.h>
#include <device/device_layout.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <random>

using namespace device;

namespace {

class test_device_signature : public device::test {
protected:
    void SetUp() override
    {
        device::test::SetUp();
        set_env("MLX5SIM_DEVX", "y");
        set_env("MLX5SIM_LOG", "error");
    }

    /** In one process, at once and in deferred execution. */
    void run_both(const std::function<void()> &body)
    {
        run(1, [&](rank&) { body(); });
        set_env("MLX5SIM_EXEC", "deferred");
        for (const char *seed : {"1", "2", "3"}) {
            set_env("MLX5SIM_SEED", seed);
            run(1, [&](rank&) { body(); });
        }
    }
};

/* What a domain has */
struct sig_domain {
    unsigned length() const
    {
        static const unsigned sizes[] = {512, 520, 4048, 4096, 4160};

        return sizes[block - MLX5DV_BLOCK_SIZE_512];
    }

    unsigned size() const
    {
        return (type == MLX5DV_SIG_TYPE_CRC) ? 4 : 8;
    }

    /** As one number, of block @a n. */
    uint64_t value(unsigned n, const uint8_t *data) const
    {
        uint32_t crc = seed ? ~0u : 0, sum = seed ? 0xffff : 0;

        if (type == MLX5DV_SIG_TYPE_CRC) {
            for (unsigned i = 0; i < length() * 8; ++i) {
                crc = ((crc ^ (data[i / 8] >> (i % 8))) & 1) ?
                      (crc >> 1) ^ 0xedb88320 : crc >> 1;
            }
            return (uint64_t)~crc << 32;
        }

        crc &= 0xffff;
        for (unsigned i = 0; i < length() * 8; ++i) {
            unsigned bit = ((crc >> 15) ^ (data[i / 8] >> (7 - i % 8))) & 1;

            crc = ((crc << 1) ^ (bit ? 0x8bb7 : 0)) & 0xffff;
        }
        for (unsigned i = 0; i < length(); i += 2) {
            sum += data[i] * 256 + data[i + 1];
            sum  = (sum & 0xffff) + (sum >> 16);
        }
        return ((uint64_t)(is_csum ? ~sum & 0xffff : crc) << 48) |
               ((uint64_t)app << 32) |
               (uint32_t)(ref + ((flags & MLX5DV_SIG_T10DIF_FLAG_REF_REMAP) ?
                                 n : 0));
    }

    static void store(uint8_t *to, uint64_t value, unsigned size)
    {
        for (unsigned i = 0; i < size; ++i) {
            to[i] = (size == 4) ? value >> (32 + 8 * i) : value >> (56 - 8 * i);
        }
    }

    /** The same data with signatures. */
    bytes with(const bytes &data) const
    {
        bytes out;

        for (unsigned n = 0; n * length() < data.size(); ++n) {
            out.insert(out.end(), &data[n * length()],
                       &data[n * length()] + length());
            out.resize(out.size() + size());
            store(&out[out.size() - size()], value(n, &data[n * length()]),
                  size());
        }
        return out;
    }

    mlx5dv_sig_type   type  = MLX5DV_SIG_TYPE_T10DIF;
    mlx5dv_block_size block = MLX5DV_BLOCK_SIZE_512;
    bool              seed  = true;
    bool              is_csum = false;
    uint16_t          app   = 0xabcd;
    uint32_t          ref   = 0xfffffffe;
    uint16_t          flags = MLX5DV_SIG_T10DIF_FLAG_REF_REMAP;
};

const sig_domain t10  = {};
const sig_domain crc  = {MLX5DV_SIG_TYPE_CRC};
const uint8_t all = 0xff;

struct signer;

/* A key with room for signatures */
struct sig_key : public mkey {
    explicit sig_key(signer &s);

    /** What is wrong with it. */
    mlx5dv_mkey_err check();

    signer &s;
};

struct signer : public layouts {
    explicit signer(ibv_mtu mtu = IBV_MTU_4096, uint32_t flags = 0) :
        layouts(IBV_ACCESS_LOCAL_WRITE, {.inline_len = 512,
                                         .dv_ops     = layout_ops,
                                         .dv_flags   = flags,
                                         .mtu        = mtu})
    {
    }

    /** Have signatures in memory and on the wire. @return as configure() */
    int sign(const mkey &key, const std::vector<ibv_sge> &entries,
             const sig_domain *in_mem, const sig_domain *on_wire,
             uint8_t check = all, int copy = -1)
    {
        mlx5dv_sig_t10dif dif[2];
        mlx5dv_sig_crc crcs[2];
        mlx5dv_sig_block_domain domains[2];
        mlx5dv_sig_block_attr attr = {};

        attr.mem        = fill_in(in_mem, &dif[0], &crcs[0], &domains[0]);
        attr.wire       = fill_in(on_wire, &dif[1], &crcs[1], &domains[1]);
        attr.check_mask = check;
        if (copy >= 0) {
            attr.flags     = MLX5DV_SIG_BLOCK_ATTR_FLAG_COPY_MASK;
            attr.copy_mask = copy;
        }
        return configure(key, 3, [&](mlx5dv_qp_ex *dv) {
            mlx5dv_wr_set_mkey_access_flags(dv, all_access);
            mlx5dv_wr_set_mkey_layout_list(dv, entries.size(), entries.data());
            mlx5dv_wr_set_mkey_sig_block(dv, &attr);
        });
    }

    /** Pieces of the target, of that many bytes, no block in one of them. */
    std::vector<ibv_sge> pieces(size_t length)
    {
        REQUIRE(length > 700);
        return {target.sge(300000, 300), target.sge(5000, length - 700),
                target.sge(64, 400)};
    }

    static const mlx5dv_sig_block_domain *
    fill_in(const sig_domain *from, mlx5dv_sig_t10dif *dif,
            mlx5dv_sig_crc *crcs, mlx5dv_sig_block_domain *to)
    {
        if (from == nullptr) {
            return nullptr;
        }

        *dif = {from->is_csum ? MLX5DV_SIG_T10DIF_CSUM : MLX5DV_SIG_T10DIF_CRC,
                (uint16_t)(from->seed ? 0xffff : 0), from->app, from->ref,
                from->flags};
        *crcs = {MLX5DV_SIG_CRC_TYPE_CRC32, from->seed ? 0xffffffff : 0};
        to->sig_type   = from->type;
        to->block_size = from->block;
        to->comp_mask  = 0;
        if (from->type == MLX5DV_SIG_TYPE_CRC) {
            to->sig.crc = crcs;
        } else {
            to->sig.dif = dif;
        }
        return to;
    }
};

sig_key::sig_key(signer &owner) :
    mkey(owner.c, 8, MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE), s(owner)
{
}

mlx5dv_mkey_err sig_key::check()
{
    mlx5dv_mkey_err err;

    s.peer_cq.empty(); /* libmlx5 keeps what it finds there for this */
    REQUIRE_EQ(0, mlx5dv_mkey_check(v, &err));
    return err;
}

bytes some(size_t length, uint64_t seed = 1)
{
    bytes data(length);

    pattern::fill(data.data(), length, seed);
    return data;
}

void load(const places &to, const bytes &from)
{
    for (size_t i = 0; i < from.size(); ++i) {
        *to[i] = from[i];
    }
}

/* All four ways: what is on the wire a peer sees as plain bytes */
void expect_all_ways(signer &s, const sig_domain *in_mem,
                     const sig_domain *on_wire, size_t length)
{
    const bytes data  = some(length);
    const bytes image = (in_mem != nullptr) ? in_mem->with(data) : data;
    const bytes wire  = (on_wire != nullptr) ? on_wire->with(data) : data;
    const auto list   = s.pieces(image.size());
    const places at   = layouts::of(list);
    uint8_t *back     = s.mem.data + s.mem.size / 2;
    sig_key key(s);

    REQUIRE_EQ(IBV_WC_SUCCESS, s.sign(key, list, in_mem, on_wire));

    memcpy(s.mem.data, wire.data(), wire.size());
    REQUIRE_EQ(IBV_WC_SUCCESS, s.put(key, 0, wire.size()));
    REQUIRE(has(at, 0, image.data(), image.size()));

    memset(s.mem.data, 0, s.mem.size);
    REQUIRE_EQ(IBV_WC_SUCCESS, s.get(key, 0, wire.size()));
    REQUIRE_EQ(0, memcmp(wire.data(), s.mem.data, wire.size()));

    memset(back, 0, wire.size());
    REQUIRE_EQ(IBV_WC_SUCCESS, s.send(key.sge(0, wire.size())));
    REQUIRE_EQ(0, memcmp(wire.data(), back, wire.size()));

    load(at, bytes(image.size()));
    REQUIRE_EQ(IBV_WC_SUCCESS, s.receive(key.sge(0, wire.size())));
    REQUIRE(has(at, 0, image.data(), image.size()));
    REQUIRE_EQ(MLX5DV_MKEY_NO_ERR, key.check().err_type);
}

void expect_domains(ibv_mtu mtu)
{
    const sig_domain plain  = {.seed = false, .flags = 0};
    const sig_domain csum   = {.is_csum = true, .app = 1};
    const sig_domain csum_0 = {.block = MLX5DV_BLOCK_SIZE_520, .seed = false,
                           .is_csum = true};
    const sig_domain large  = {.block = MLX5DV_BLOCK_SIZE_4160};
    const sig_domain crc_0  = {MLX5DV_SIG_TYPE_CRC, MLX5DV_BLOCK_SIZE_4096,
                               false};
    signer s(mtu);

    for (const sig_domain *one : {&t10, &plain, &csum, &csum_0, &large, &crc,
                              &crc_0}) {
        expect_all_ways(s, one, nullptr, 3 * one->length());
        expect_all_ways(s, nullptr, one, 3 * one->length());
        expect_all_ways(s, one, one, 2 * one->length());
    }
    expect_all_ways(s, &t10, &csum, 4096);
    expect_all_ways(s, &csum, &t10, 4096);
    expect_all_ways(s, &crc, &t10, 4096);
    expect_all_ways(s, &crc_0, &t10, 8192);
    expect_all_ways(s, &t10, &crc_0, 8192);
}

} // namespace

TEST_F(test_device_signature, in_memory_and_on_the_wire)
{
    run(1, [](rank&) { expect_domains(IBV_MTU_4096); });
    set_env("MLX5SIM_LINK", "roce");
    run(1, [](rank&) { expect_domains(IBV_MTU_1024); });
}

/* Packets end in the middle of signatures, and come again */
TEST_F(test_device_signature, in_deferred_execution)
{
    set_env("MLX5SIM_EXEC", "deferred");
    for (const char *seed : {"1", "2", "3", "4"}) {
        set_env("MLX5SIM_SEED", seed);
        run(1, [](rank&) { expect_domains(IBV_MTU_256); });
    }
}

/* The parts that are not known, and are to stay as they are */
TEST_F(test_device_signature, parts_are_copied)
{
    run_both([] {
        signer s(IBV_MTU_256);
        sig_domain other = t10;

        other.app   = 0x1234;
        other.flags = 0;
        sig_key key(s);
        const bytes data  = some(1536);
        const auto list   = s.pieces(t10.with(data).size());
        const places at   = layouts::of(list);
        bytes wire        = other.with(data);
        bytes image       = t10.with(data);

        /* tags are the sender's, the guard is checked and made */
        REQUIRE_EQ(IBV_WC_SUCCESS,
                   s.sign(key, list, &t10, &t10, MLX5DV_SIG_MASK_T10DIF_GUARD,
                          MLX5DV_SIG_MASK_T10DIF_APPTAG |
                          MLX5DV_SIG_MASK_T10DIF_REFTAG));
        memcpy(s.mem.data, wire.data(), wire.size());
        REQUIRE_EQ(IBV_WC_SUCCESS, s.put(key, 0, wire.size()));
        REQUIRE(has(at, 0, wire.data(), wire.size()));
        REQUIRE_EQ(IBV_WC_SUCCESS, s.get(key, 0, wire.size()));
        REQUIRE_EQ(0, memcmp(wire.data(), s.mem.data, wire.size()));

        /* of the application tag, one byte */
        REQUIRE_EQ(IBV_WC_SUCCESS, s.sign(key, list, &t10, &t10, 0, 0x20));
        REQUIRE_EQ(IBV_WC_SUCCESS, s.put(key, 0, wire.size()));
        for (unsigned n = 0; n < 3; ++n) {
            image[n * 520 + 514] = 0x12;
        }
        REQUIRE(has(at, 0, image.data(), image.size()));
        REQUIRE_EQ(MLX5DV_MKEY_NO_ERR, key.check().err_type);
    });
}

/* Messages need not begin or end where blocks do */
TEST_F(test_device_signature, piece_by_piece)
{
    run_both([] {
        signer s(IBV_MTU_256);
        sig_key key(s);
        const bytes data  = some(2048);
        const bytes image = crc.with(data);
        const bytes wire  = t10.with(data);
        const auto list   = s.pieces(image.size());
        const places at   = layouts::of(list);
        uint32_t length   = 0;

        REQUIRE_EQ(IBV_WC_SUCCESS, s.sign(key, list, &crc, &t10));
        for (uint32_t done = 0; done < wire.size(); done += length) {
            length = std::min<uint32_t>(97, wire.size() - done);
            memcpy(s.mem.data, &wire[done], length);
            REQUIRE_EQ(IBV_WC_SUCCESS, s.put(key, done, length));
        }
        REQUIRE(has(at, 0, image.data(), image.size()));
        for (uint32_t done = 0; done < wire.size(); done += length) {
            length = std::min<uint32_t>(101, wire.size() - done);
            REQUIRE_EQ(IBV_WC_SUCCESS, s.get(key, done, length));
            REQUIRE_EQ(0, memcmp(s.mem.data, &wire[done], length));
        }
        REQUIRE_EQ(MLX5DV_MKEY_NO_ERR, key.check().err_type);
    });
}

/* Nor need they have data */
TEST_F(test_device_signature, of_which_there_is_nothing_else)
{
    run_both([] {
        signer s;
        sig_key key(s);
        const bytes data = some(1024);
        const bytes wire = t10.with(data);
        const auto list  = s.pieces(1024);
        send_wr parts(IBV_WR_SEND, 2, {key.sge(0, 512), key.sge(512, 8),
                                       key.sge(520, 512), key.sge(1032, 8)});

        REQUIRE_EQ(IBV_WC_SUCCESS, s.sign(key, list, nullptr, &t10));
        memcpy(s.mem.data, wire.data(), 512);
        REQUIRE_EQ(IBV_WC_SUCCESS, s.put(key, 0, 512));
        memcpy(s.mem.data, &wire[512], 8);
        REQUIRE_EQ(IBV_WC_SUCCESS, s.put(key, 512, 8));
        memcpy(s.mem.data, &wire[520], 520);
        REQUIRE_EQ(IBV_WC_SUCCESS, s.put(key, 520, 520));
        REQUIRE(has(layouts::of(list), 0, data.data(), data.size()));
        REQUIRE_EQ(IBV_WC_SUCCESS, s.get(key, 1032, 8));
        REQUIRE_EQ(0, memcmp(s.mem.data, &wire[1032], 8));

        memset(s.mem.data, 0, 2000);
        s.a.recv(5, s.mem.sge(0, 2000));
        s.b.send(parts);
        s.peer_cq.good();
        REQUIRE_EQ(1040u, s.rcq.good().byte_len);
        REQUIRE_EQ(0, memcmp(s.mem.data, wire.data(), 1040));
        REQUIRE_EQ(MLX5DV_MKEY_NO_ERR, key.check().err_type);

        /* messages that take turns in the middle of signatures */
        REQUIRE_EQ(IBV_WC_SUCCESS, s.sign(key, list, nullptr, &t10));
        for (const auto &part : {std::make_pair(0, 514), {520, 515},
                                 {514, 6}, {1035, 5}}) {
            memcpy(s.mem.data, &wire[part.first], part.second);
            REQUIRE_EQ(IBV_WC_SUCCESS, s.put(key, part.first, part.second));
        }
        REQUIRE_EQ(MLX5DV_MKEY_NO_ERR, key.check().err_type);
    });
}

/* Data that may come before their turn do not, where there are signatures */
TEST_F(test_device_signature, with_relaxed_ordering)
{
    set_env("MLX5SIM_EXEC", "deferred");
    set_env("MLX5SIM_PCI_WR_ORDERING", "force_relax");
    for (const char *seed : {"1", "2", "3"}) {
        set_env("MLX5SIM_SEED", seed);
        run(1, [](rank&) {
            signer s(IBV_MTU_1024);
            sig_key key(s);
            const bytes data  = some(30720);
            const bytes image = t10.with(data);
            const auto list   = s.pieces(image.size());

            REQUIRE_EQ(IBV_WC_SUCCESS, s.sign(key, list, &t10, nullptr));
            memcpy(s.mem.data, data.data(), data.size());
            REQUIRE_EQ(IBV_WC_SUCCESS, s.put(key, 0, data.size()));
            REQUIRE(has(layouts::of(list), 0, image.data(), image.size()));
        });
    }
}

/* Memory on demand is as the program has protected it */
TEST_F(test_device_signature, of_memory_on_demand)
{
    set_env("MLX5SIM_ODP", "y");
    set_env("MLX5SIM_LOSS", "0");
    run_both([] {
        signer s;
        sig_key key(s);
        const size_t page = 4096;
        void *data        = mmap(nullptr, page, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ibv_mr *mr        = ibv_reg_mr(s.c.pd, data, page,
                                       IBV_ACCESS_LOCAL_WRITE |
                                       IBV_ACCESS_ON_DEMAND);

        REQUIRE((data != MAP_FAILED) && (mr != nullptr));
        REQUIRE_EQ(IBV_WC_SUCCESS,
                   s.sign(key, {{(uintptr_t)data, 520, mr->lkey}}, &t10,
                          nullptr));
        REQUIRE_EQ(IBV_WC_SUCCESS, s.put(key, 0, 512));
        REQUIRE_EQ(0, mprotect(data, page, PROT_READ));
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, s.put(key, 0, 512));
        s.again();
        REQUIRE_EQ(IBV_WC_SUCCESS, s.get(key, 0, 512));
        REQUIRE_EQ(0, ibv_dereg_mr(mr));
        munmap(data, page);
    });
}

/* With signatures on both sides of a message, by keys of both */
TEST_F(test_device_signature, from_one_key_into_another)
{
    run_both([] {
        signer s;
        sig_key from(s), to(s);
        const bytes data  = some(4096);
        const bytes image = t10.with(data);
        const auto first  = s.pieces(image.size());
        const auto second = std::vector<ibv_sge>{s.target.sge(500000, 4096)};
        const size_t wire = crc.with(data).size();

        REQUIRE_EQ(IBV_WC_SUCCESS, s.sign(from, first, &t10, &crc));
        REQUIRE_EQ(IBV_WC_SUCCESS, s.sign(to, second, nullptr, &crc));
        load(layouts::of(first), image);
        REQUIRE_EQ(IBV_WC_SUCCESS,
                   s.access(IBV_WR_RDMA_WRITE, from.sge(0, wire), to.v->rkey,
                            0));
        REQUIRE_EQ(0, memcmp(s.target.data + 500000, data.data(), 4096));
        REQUIRE_EQ(IBV_WC_SUCCESS,
                   s.access(IBV_WR_RDMA_READ, from.sge(0, wire), to.v->rkey,
                            0));
        REQUIRE(has(layouts::of(first), 0, image.data(), image.size()));
        REQUIRE_EQ(MLX5DV_MKEY_NO_ERR, from.check().err_type);
        REQUIRE_EQ(MLX5DV_MKEY_NO_ERR, to.check().err_type);
    });
}

namespace {

/* A message of three blocks whose second signature, or data, is wrong */
void expect_wrong(signer &s, sig_key &key, const sig_domain &d, unsigned byte,
                  mlx5dv_mkey_err_type type, uint64_t expected, uint64_t actual,
                  uint8_t check = all)
{
    const unsigned unit = d.length() + d.size();
    bytes wire          = d.with(some(3 * d.length()));
    const auto list     = s.pieces(3 * d.length());
    mlx5dv_mkey_err err;

    wire[unit + byte] ^= 0x80;
    memcpy(s.mem.data, wire.data(), wire.size());
    REQUIRE_EQ(IBV_WC_SUCCESS, s.sign(key, list, nullptr, &d, check));
    REQUIRE_EQ(IBV_WC_SUCCESS, s.put(key, 0, wire.size()));
    err = key.check();
    REQUIRE_EQ((int)type, (int)err.err_type);
    if (type != MLX5DV_MKEY_NO_ERR) {
        REQUIRE_EQ(unit, err.err.sig.offset);
        REQUIRE_EQ(expected, err.err.sig.expected_value);
        REQUIRE_EQ(actual, err.err.sig.actual_value);
    }

    /* the data are there all the same */
    REQUIRE(has(layouts::of(list), 0, wire.data(), d.length()));
    REQUIRE(has(layouts::of(list), d.length(), &wire[unit], d.length()));
}

} // namespace

TEST_F(test_device_signature, wrong_ones_are_told)
{
    run_both([] {
        signer s(IBV_MTU_256);
        sig_key key(s);
        const bytes data  = some(1536);
        uint64_t right    = t10.value(1, &data[512]);
        uint64_t right_4  = crc.value(1, &data[512]) >> 32;
        bytes other       = data;

        other[512] ^= 0x80;
        expect_wrong(s, key, t10, 512, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD,
                     (right >> 48) ^ 0x8000, right >> 48);
        expect_wrong(s, key, t10, 514, MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG,
                     0x2bcd, 0xabcd);
        expect_wrong(s, key, t10, 516, MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG,
                     0x7fffffff, 0xffffffff);
        expect_wrong(s, key, t10, 0, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD,
                     right >> 48, t10.value(1, &other[512]) >> 48);
        expect_wrong(s, key, crc, 515, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD,
                     right_4 ^ 0x80000000, right_4);

        /* what is not asked for is not looked at: a byte of the tag, too */
        expect_wrong(s, key, t10, 512, MLX5DV_MKEY_NO_ERR, 0, 0,
                     MLX5DV_SIG_MASK_T10DIF_APPTAG |
                     MLX5DV_SIG_MASK_T10DIF_REFTAG);
        expect_wrong(s, key, t10, 514, MLX5DV_MKEY_NO_ERR, 0, 0, all & ~0x20);
        expect_wrong(s, key, t10, 515, MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG,
                     0xab4d, 0xabcd, all & ~0x20);
        expect_wrong(s, key, crc, 515, MLX5DV_MKEY_NO_ERR, 0, 0, all & ~0x80);
    });
}

/* In memory, the sender finds out; there is one message of it until the key is
 * configured again */
TEST_F(test_device_signature, only_the_first_is_told)
{
    run_both([] {
        signer s;
        sig_key key(s);
        const bytes data = some(1536);
        const auto list  = s.pieces(t10.with(data).size());
        const places at  = layouts::of(list);
        mlx5dv_mkey_err err;

        load(at, t10.with(data));
        *at[520 + 517] ^= 1;
        *at[512]       ^= 1;
        REQUIRE_EQ(IBV_WC_SUCCESS, s.sign(key, list, &t10, nullptr));
        for (unsigned again = 0; again < 2; ++again) {
            REQUIRE_EQ(IBV_WC_SUCCESS, s.send(key.sge(0, 1536)));
            err = key.check();
            REQUIRE_EQ((int)MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD, (int)err.err_type);
            REQUIRE_EQ(0u, err.err.sig.offset);
            REQUIRE_EQ(IBV_WC_SUCCESS, s.send(key.sge(0, 1536)));
            REQUIRE_EQ(MLX5DV_MKEY_NO_ERR, key.check().err_type);
            REQUIRE_EQ(IBV_WC_SUCCESS, s.list(key, list));
        }

        /* blocks that a message does not end are not looked at */
        REQUIRE_EQ(IBV_WC_SUCCESS, s.send(key.sge(0, 511)));
        REQUIRE_EQ(MLX5DV_MKEY_NO_ERR, key.check().err_type);
        *at[512] ^= 1;
        REQUIRE_EQ(IBV_WC_SUCCESS, s.send(key.sge(0, 1023)));
        REQUIRE_EQ(MLX5DV_MKEY_NO_ERR, key.check().err_type);
        REQUIRE_EQ(IBV_WC_SUCCESS, s.get(key, 512, 512));
        err = key.check();
        REQUIRE_EQ((int)MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG, (int)err.err_type);
        REQUIRE_EQ(520u, err.err.sig.offset);
    });
}

/* Tags that say that a block has no signature */
TEST_F(test_device_signature, escapes)
{
    run_both([] {
        signer s;
        sig_key key(s);
        sig_domain escaped = t10;
        const auto list = s.pieces(1536);
        bytes wire      = t10.with(some(1536));
        const int guard = MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD;

        memset(&wire[514], 0xff, 2);
        wire[512] ^= 1;
        memcpy(s.mem.data, wire.data(), wire.size());
        REQUIRE_EQ(IBV_WC_SUCCESS, s.sign(key, list, nullptr, &t10));
        REQUIRE_EQ(IBV_WC_SUCCESS, s.put(key, 0, wire.size()));
        REQUIRE_EQ(guard, key.check().err_type);

        escaped.flags |= MLX5DV_SIG_T10DIF_FLAG_APP_ESCAPE;
        REQUIRE_EQ(IBV_WC_SUCCESS, s.sign(key, list, nullptr, &escaped));
        REQUIRE_EQ(IBV_WC_SUCCESS, s.put(key, 0, wire.size()));
        REQUIRE_EQ(MLX5DV_MKEY_NO_ERR, key.check().err_type);

        escaped.flags |= MLX5DV_SIG_T10DIF_FLAG_APP_REF_ESCAPE;
        REQUIRE_EQ(IBV_WC_SUCCESS, s.sign(key, list, nullptr, &escaped));
        REQUIRE_EQ(IBV_WC_SUCCESS, s.put(key, 0, wire.size()));
        REQUIRE_EQ(guard, key.check().err_type);

        memset(s.mem.data + 516, 0xff, 4);
        REQUIRE_EQ(IBV_WC_SUCCESS, s.sign(key, list, nullptr, &escaped));
        REQUIRE_EQ(IBV_WC_SUCCESS, s.put(key, 0, wire.size()));
        REQUIRE_EQ(MLX5DV_MKEY_NO_ERR, key.check().err_type);
    });
}

/* The send queue stops at a wrong one, behind what was begun, until it is told
 * to go on; and what it has not done may be taken back */
TEST_F(test_device_signature, stop_a_send_queue)
{
    run_both([] {
        signer s(IBV_MTU_256, MLX5DV_QP_CREATE_SIG_PIPELINING);
        mlx5dv_qp_ex *dv = mlx5dv_qp_ex_from_ibv_qp_ex(ibv_qp_to_qp_ex(s.b.v));
        sig_key key(s);
        const bytes data = some(1536);
        const auto list  = s.pieces(crc.with(data).size());
        const places at  = layouts::of(list);
        const address to = {.rkey = s.mem.mr->rkey, .addr = s.mem.addr()};
        send_wr bad(IBV_WR_RDMA_WRITE, 1, {key.sge(0, 1536)}, 0);
        send_wr back(IBV_WR_SEND, 2, {s.target.sge(0, 16)},
                     IBV_SEND_SIGNALED | IBV_SEND_FENCE);
        send_wr more(IBV_WR_SEND, 3, {s.target.sge(0, 8)},
                     IBV_SEND_SIGNALED | IBV_SEND_FENCE);
        ibv_async_event event;

        bad.to(to);
        for (unsigned turn = 0; turn < 3; ++turn) {
            bytes image = crc.with(data);

            image[turn * 516 + 512] ^= 1;
            load(at, image);
            REQUIRE_EQ(IBV_WC_SUCCESS, s.sign(key, list, &crc, nullptr));
            s.a.recv(5, s.mem.sge(40000, 64));
            s.b.send(bad);
            s.b.send(back);
            s.b.send(more);
            REQUIRE_EQ(0, ibv_get_async_event(s.c.ctx, &event));
            REQUIRE_EQ(IBV_EVENT_SQ_DRAINED, event.event_type);
            REQUIRE(event.element.qp == s.b.v);
            ibv_ack_async_event(&event);
            REQUIRE_EQ(IBV_QPS_SQD, s.b.state());

            s.rcq.empty();
            REQUIRE_EQ((int)MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD,
                       (int)key.check().err_type);
            REQUIRE_EQ(0, memcmp(s.mem.data, data.data(), data.size()));

            REQUIRE_EQ(1, mlx5dv_qp_cancel_posted_send_wrs(dv, 2));
            ibv_qp_attr attr = {};
            attr.qp_state     = IBV_QPS_RTS;
            attr.cur_qp_state = IBV_QPS_SQD;
            REQUIRE_EQ(0, ibv_modify_qp(s.b.v, &attr,
                                        IBV_QP_STATE | IBV_QP_CUR_STATE));
            REQUIRE_EQ(2u, s.peer_cq.good().wr_id);
            REQUIRE_EQ(3u, s.peer_cq.good().wr_id);
            REQUIRE_EQ(8u, s.rcq.good().byte_len);
            REQUIRE_EQ(IBV_QPS_RTS, s.b.state());
        }

        /* without a wrong one nothing stops */
        load(at, crc.with(data));
        REQUIRE_EQ(IBV_WC_SUCCESS, s.sign(key, list, &crc, nullptr));
        REQUIRE_EQ(IBV_WC_SUCCESS, s.send(key.sge(0, 1536)));
        REQUIRE_EQ(IBV_QPS_RTS, s.b.state());
    });
}

/* What was to stop before RESET does not after it. A read with a wrong one, and
 * what can't be complete until then */
TEST_F(test_device_signature, do_not_stop_after_reset)
{
    set_env("MLX5SIM_EXEC", "deferred");
    for (unsigned seed = 1; seed <= 12; ++seed) {
        set_env("MLX5SIM_SEED", std::to_string(seed));
        run(1, [](rank&) {
            signer s(IBV_MTU_256, MLX5DV_QP_CREATE_SIG_PIPELINING);
            sig_key key(s);
            const address to = {.rkey = s.mem.mr->rkey, .addr = s.mem.addr()};
            send_wr bad(IBV_WR_RDMA_READ, 1, {key.sge(0, 516)}, 0);
            send_wr stuck(IBV_WR_SEND, 2, {s.target.sge(0, 8)}, 0);
            ibv_wc wc;

            REQUIRE_EQ(IBV_WC_SUCCESS,
                       s.sign(key, s.pieces(1024), nullptr, &crc));
            bad.to(to);
            s.b.send(bad);
            s.b.send(stuck);
            usleep(2000);
            s.again();
            while (s.peer_cq.poll(&wc)) {
            }
            REQUIRE_EQ(IBV_WC_SUCCESS, s.send(s.target.sge(0, 64)));
            REQUIRE_EQ(IBV_QPS_RTS, s.b.state());
        });
    }
}

/* Who has not asked for it goes on */
TEST_F(test_device_signature, do_not_stop_others)
{
    run_both([] {
        signer s;
        sig_key key(s);

        REQUIRE_EQ(IBV_WC_SUCCESS,
                   s.sign(key, {s.target.sge(0, 516)}, &crc, nullptr));
        REQUIRE_EQ(IBV_WC_SUCCESS, s.send(key.sge(0, 512)));
        REQUIRE_EQ(IBV_QPS_RTS, s.b.state());
        REQUIRE_EQ(IBV_WC_SUCCESS, s.send(s.target.sge(0, 512)));
        REQUIRE_EQ((int)MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD,
                   (int)key.check().err_type);
    });
}

/* Between processes, each with its own memory */
TEST_F(test_device_signature, of_another_process)
{
    run(2, [](rank &r) {
        const bytes data  = some(8192);
        const bytes image = t10.with(data);
        const bytes wire  = crc.with(data);

        if (r.index == 0) {
            side me(r);
            r.barrier();
            const address to = {.rkey = r.lookup<uint32_t>(1)};
            send_wr put(IBV_WR_RDMA_WRITE, 1, {me.mem.sge(0, wire.size())});
            send_wr get(IBV_WR_RDMA_READ, 2, {me.mem.sge(65536, wire.size())});

            memcpy(me.mem.data, wire.data(), wire.size());
            put.to(to);
            get.to(to);
            me.q.send(put);
            me.q.send(get);
            me.scq.good();
            me.scq.good();
            REQUIRE_EQ(0, memcmp(me.mem.data + 65536, wire.data(),
                                 wire.size()));
            r.barrier();
            return;
        }

        signer s;
        qp other(s.c, s.peer_cq, s.peer_cq);
        sig_key key(s);
        const auto list = s.pieces(image.size());

        REQUIRE_EQ(IBV_WC_SUCCESS, s.sign(key, list, &t10, &crc));
        r.publish(other.addr(&s.mem));
        other.connect(r.lookup<address>(0));
        r.barrier();
        r.publish(key.v->rkey);
        r.barrier();
        r.barrier();
        REQUIRE(has(layouts::of(list), 0, image.data(), image.size()));
        REQUIRE_EQ(MLX5DV_MKEY_NO_ERR, key.check().err_type);
    });
}

/* A key gives access to as many bytes as its memory is on the wire */
TEST_F(test_device_signature, end_where_memory_does)
{
    set_env("MLX5SIM_LOSS", "0");
    run_both([] {
        signer s;
        sig_key key(s);
        const struct {
            const sig_domain *in_mem, *on_wire;
            size_t       memory, wire;
        } cases[] = {
            {&t10, nullptr, 1040, 1024},  {&t10, nullptr, 1039, 1023},
            {nullptr, &t10, 1024, 1040},  {nullptr, &t10, 1023, 1031},
            {&crc, &t10, 1032, 1040},     {&crc, nullptr, 1030, 1024}
        };

        for (const auto &one : cases) {
            const auto list = std::vector<ibv_sge>{
                    s.target.sge(100, one.memory)};

            REQUIRE_EQ(IBV_WC_SUCCESS,
                       s.sign(key, list, one.in_mem, one.on_wire));
            if ((one.memory == 1030) || (one.memory == 1039)) {
                /* the last block has no room for its signature */
                REQUIRE_EQ(IBV_WC_SUCCESS, s.put(key, 0, 512 + 511));
                REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, s.put(key, 0, 1024));
            } else {
                REQUIRE_EQ(IBV_WC_SUCCESS, s.put(key, 0, one.wire));
                REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, s.put(key, 1, one.wire));
            }
            s.again();
        }
    });
}

/* No signatures any more */
TEST_F(test_device_signature, are_taken_away)
{
    run_both([] {
        signer s;
        sig_key key(s);
        const auto list            = s.pieces(2000);
        mlx5dv_mkey_conf_attr attr = {MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR, 0};
        ibv_qp_ex *ex              = ibv_qp_to_qp_ex(s.b.v);
        mlx5dv_qp_ex *dv           = mlx5dv_qp_ex_from_ibv_qp_ex(ex);

        REQUIRE_EQ(IBV_WC_SUCCESS, s.sign(key, list, &t10, nullptr));
        ibv_wr_start(ex);
        ex->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
        mlx5dv_wr_mkey_configure(dv, key.v, 2, &attr);
        mlx5dv_wr_set_mkey_access_flags(dv, all_access);
        mlx5dv_wr_set_mkey_layout_list(dv, list.size(), list.data());
        REQUIRE_EQ(0, ibv_wr_complete(ex));
        s.peer_cq.good();

        REQUIRE_EQ(IBV_WC_SUCCESS, s.put(key, 0, 2000));
        REQUIRE(has(layouts::of(list), 0, s.mem.data, 2000));
    });
}

namespace {

/* A BSF and the UMR around it, by hand: rdma-core's wqe.h. The key has one
 * piece of memory. @return status */
ibv_wc_status
umr(signer &s, const mkey &key, const std::function<void(command&)> &change,
    unsigned bsf_units = 4, unsigned queue = 0)
{
    const unsigned umr_at = 16, key_at = 64, list_at = 128, bsf_at = 192;
    command wqe(0, bsf_at + 16 * bsf_units);

    wqe.set(24, 8, MLX5_OPCODE_UMR).set(32, 24, s.b.v->qp_num);
    wqe.set(58, 6, wqe.in.size() / 16);
    wqe.set(88, 8, MLX5_WQE_CTRL_CQ_UPDATE).set(96, 32, key.v->lkey);
    wqe.set(8 * umr_at, 8, 0x80);                        /* inline */
    wqe.set(8 * (umr_at + 4), 16, 4).set(8 * (umr_at + 6), 16, bsf_units);
    wqe.set(8 * (umr_at + 8), 64, MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN |
                                  MLX5_WQE_UMR_CTRL_MKEY_MASK_BSF_ENABLE |
                                  MLX5_WQE_UMR_CTRL_MKEY_MASK_SIG_ERR |
                                  MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE |
                                  0x3f << 16);           /* and all access */
    wqe.set(8 * (key_at + 2), 8, 0x7c);
    wqe.set(8 * (key_at + 4), 24, 0xffffff);
    wqe.set(8 * (key_at + 7), 8, key.v->lkey & 0xff);
    wqe.set(8 * (key_at + 12), 32, 1u << 30);            /* BSF enable */
    wqe.set(8 * (key_at + 24), 64, 4128);
    wqe.set(8 * list_at, 32, 4128);
    wqe.set(8 * (list_at + 4), 32, s.target.mr->lkey);
    wqe.set(8 * (list_at + 8), 64, s.target.addr());
    if (bsf_units == 4) {
        wqe.set(8 * bsf_at, 8, 2 << 6);                  /* with inline parts */
        wqe.set(8 * (bsf_at + 1), 8, all);
        wqe.set(8 * (bsf_at + 3), 8, 1);                 /* memory: 512 */
        wqe.set(8 * (bsf_at + 12), 8, 0x22);             /* CRC-32, repeated */
        wqe.set(8 * (bsf_at + 13), 24, queue);           /* PSV */
        change(wqe);
    }

    ibv_qp_ex *ex = ibv_qp_to_qp_ex(s.b.v);
    ibv_wr_start(ex);
    mlx5dv_wr_raw_wqe(mlx5dv_qp_ex_from_ibv_qp_ex(ex), wqe.in.data());
    REQUIRE_EQ(0, ibv_wr_complete(ex));
    return s.peer_cq.next().status;
}

/* Number of a new PSV */
uint32_t make_psv(signer &s, mlx5dv_devx_obj **obj_p, uint32_t pdn)
{
    command make(0x600, 16, pdn);
    bytes out(32);

    make.set(64, 4, 1);
    *obj_p = mlx5dv_devx_obj_create(s.c.ctx, make.in.data(), make.in.size(),
                                    out.data(), out.size());
    REQUIRE(*obj_p != nullptr);
    return get(out, 136, 24);
}

ibv_wc_status set_psv(signer &s, uint32_t number, uint64_t value,
                      unsigned units = 2)
{
    command wqe(0, 48);

    wqe.set(24, 8, MLX5_OPCODE_SET_PSV).set(32, 24, s.b.v->qp_num);
    wqe.set(58, 6, units).set(88, 8, MLX5_WQE_CTRL_CQ_UPDATE);
    wqe.set(128, 32, number).set(192, 64, value);

    ibv_qp_ex *ex = ibv_qp_to_qp_ex(s.b.v);
    ibv_wr_start(ex);
    mlx5dv_wr_raw_wqe(mlx5dv_qp_ex_from_ibv_qp_ex(ex), wqe.in.data());
    REQUIRE_EQ(0, ibv_wr_complete(ex));
    return s.peer_cq.next().status;
}

} // namespace

/* What the device does not have, or what is not sound, is refused */
TEST_F(test_device_signature, unknown_ones_are_refused)
{
    const unsigned bsf = 192;
    const struct {
        unsigned byte, width;
        uint64_t value;
    } bad[] = {
        {0, 8, 0},           /* basic */
        {0, 8, 1 << 6},      /* extended */
        {0, 8, 3 << 6},      /* with encryption */
        {0, 8, 2 << 6 | 1 << 4}, /* same, and there is none on the wire */
        {3, 8, 0},           /* sizes of blocks */
        {3, 8, 5},
        {3, 8, 6},
        {3, 8, 255},
        {12, 8, 0},          /* a PSV and no format */
        {12, 8, 0x20},       /* not repeated */
        {12, 8, 0x42},       /* CRC-32C */
        {12, 8, 0x52},       /* CRC-64 */
        {12, 8, 0xff},
        {24, 32, 0x42000001}, /* of transactions */
        {28, 32, 0x42000001},
        {8, 32, 0x22000001}, /* on the wire, without a size of blocks */
    };

    set_env("MLX5SIM_LOSS", "0");
    catch_errors();
    run_both([&] {
        signer s;
        sig_key key(s);
        mkey room(s.c); /* none for signatures */
        mlx5dv_devx_obj *psv;
        uint32_t number = make_psv(s, &psv, pd_number(s.c.pd));

        REQUIRE_EQ(IBV_WC_SUCCESS, umr(s, key, [](command&) {}, 4, number));
        REQUIRE_EQ(IBV_WC_SUCCESS, s.put(key, 0, 512));
        for (const auto &one : bad) {
            REQUIRE_EQ(IBV_WC_MW_BIND_ERR, umr(s, key, [&](command &wqe) {
                wqe.set(8 * (bsf + one.byte), one.width, one.value);
            }, 4, number));
            s.again();
        }
        REQUIRE_EQ(IBV_WC_MW_BIND_ERR, umr(s, room, [](command&) {}, 4,
                                           number));
        s.again();
        REQUIRE_EQ(IBV_WC_MW_BIND_ERR, umr(s, room, [](command&) {}, 0));
        s.again();
        for (unsigned units : {1, 2, 3, 5, 8}) {
            REQUIRE_EQ(IBV_WC_LOC_QP_OP_ERR,
                       umr(s, key, [](command&) {}, units));
            s.again();
        }

        /* the key is as it was */
        REQUIRE_EQ(IBV_WC_SUCCESS, s.put(key, 0, 512));
        REQUIRE_EQ(0, mlx5dv_devx_obj_destroy(psv));
    });
    take_violations();
}

TEST_F(test_device_signature, psvs_are_of_a_domain)
{
    set_env("MLX5SIM_LOSS", "0");
    catch_errors();
    run_both([] {
        signer s;
        sig_key key(s);
        ibv_pd *pd = ibv_alloc_pd(s.c.ctx);
        mlx5dv_devx_obj *mine, *other;
        uint32_t number = make_psv(s, &mine, pd_number(s.c.pd));
        uint32_t theirs = make_psv(s, &other, pd_number(pd));
        command make(0x600, 16, pd_number(pd));
        bytes out(32);

        /* the kernel lets pass one at a time; firmware knows its domains */
        for (unsigned count : {0, 2, 4}) {
            make.set(64, 4, count);
            errno = 0;
            REQUIRE(mlx5dv_devx_obj_create(s.c.ctx, make.in.data(), 16,
                                           out.data(), 32) == nullptr);
            REQUIRE_EQ(EINVAL, errno);
        }
        make.set(64, 4, 1).set(72, 24, 0xffffff);
        REQUIRE(mlx5dv_devx_obj_create(s.c.ctx, make.in.data(), 16, out.data(),
                                       32) == nullptr);
        REQUIRE_EQ(bad_res, out[0]);
        REQUIRE_EQ(EBUSY, ibv_dealloc_pd(pd));

        REQUIRE_EQ(IBV_WC_SUCCESS, set_psv(s, number, 1));
        for (uint32_t wrong : {theirs, 0u, 0xffffffu, number + 1000}) {
            REQUIRE_EQ(IBV_WC_LOC_PROT_ERR, set_psv(s, wrong, 1));
            s.again();
        }
        for (unsigned units : {1, 3}) {
            REQUIRE_EQ(IBV_WC_LOC_QP_OP_ERR, set_psv(s, number, 1, units));
            s.again();
        }

        /* who uses a key finds out */
        REQUIRE_EQ(IBV_WC_SUCCESS, umr(s, key, [](command&) {}, 4, theirs));
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, s.put(key, 0, 512));
        s.again();
        REQUIRE_EQ(IBV_WC_SUCCESS, umr(s, key, [](command&) {}, 4, number));
        REQUIRE_EQ(IBV_WC_SUCCESS, s.put(key, 0, 512));
        REQUIRE_EQ(0, mlx5dv_devx_obj_destroy(mine));
        REQUIRE_EQ(IBV_WC_REM_ACCESS_ERR, s.put(key, 0, 512));
        s.again();
        REQUIRE_EQ(0, mlx5dv_devx_obj_destroy(other));
        REQUIRE_EQ(0, ibv_dealloc_pd(pd));
    });
    take_violations();
}

/* Without "refresh", tags are those that SET_PSV has set */
TEST_F(test_device_signature, tags_may_be_those_of_a_psv)
{
    run_both([] {
        const unsigned bsf = 192, inl = bsf + 48;
        signer s;
        sig_key key(s);
        sig_domain d = t10;
        mlx5dv_devx_obj *psv;
        uint32_t number = make_psv(s, &psv, pd_number(s.c.pd));

        d.app  = 0x1234;
        d.ref  = 77;
        d.seed = false;
        const bytes data  = some(512);
        const bytes image = d.with(data);

        REQUIRE_EQ(IBV_WC_SUCCESS, umr(s, key, [&](command &wqe) {
            wqe.set(8 * (bsf + 12), 8, 0);
            wqe.set(8 * inl, 16, 0x8000);                /* valid */
            wqe.set(8 * (inl + 2), 16, 1).set(8 * (inl + 4), 32, 2);
            wqe.set(8 * (inl + 8), 8, 1);                /* CRC */
            wqe.set(8 * (inl + 9), 8, 0x80);             /* repeated */
            wqe.set(8 * (inl + 14), 16, 0xffff);
        }, 4, number));
        REQUIRE_EQ(IBV_WC_SUCCESS, set_psv(s, number, (0x1234ull << 32) | 77));
        memcpy(s.mem.data, data.data(), 512);
        REQUIRE_EQ(IBV_WC_SUCCESS, s.put(key, 0, 512));
        REQUIRE_EQ(0, memcmp(s.target.data, image.data(), image.size()));
        REQUIRE_EQ(0, mlx5dv_devx_obj_destroy(psv));
    });
}

/* Any BSF: what it does not allow stays as it is */
TEST_F(test_device_signature, fuzz_of_work_requests)
{
    const uint64_t random = seed::get();
    const unsigned cases  = seed::cases(1000);

    catch_errors();
    run(1, [=](rank&) {
        signer s;
        sig_key key(s);
        std::mt19937_64 rnd(random);
        mlx5dv_devx_obj *psv;
        uint32_t number = make_psv(s, &psv, pd_number(s.c.pd));
        unsigned good = 0, moved = 0;

        memset(s.target.data + 4128, 0x5a, 4096);
        for (unsigned i = 0; i < cases; ++i) {
            bool is_good = umr(s, key, [&](command &wqe) {
                if (rnd() % 2) {
                    wqe.set(8 * 192 + 96, 8, 0).set(8 * 240, 16, 0xc000);
                    wqe.set(8 * 248, 8, 1 + rnd() % 2).set(8 * 249, 8, 0x80);
                }
                for (unsigned n = rnd() % 4; n > 0; --n) {
                    unsigned width = 1 + rnd() % 16;

                    wqe.set(8 * 192 + rnd() % (8 * 64 - width), width, rnd());
                }
            }, 4, number) == IBV_WC_SUCCESS;

            good += is_good;
            for (auto opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
                if (is_good && (s.a.state() == IBV_QPS_RTS)) {
                    moved += s.access(opcode,
                                      s.mem.sge(0, 1 + rnd() % 5000),
                                      key.v->rkey, rnd() % 1000) ==
                             IBV_WC_SUCCESS;
                }
            }
            if ((s.a.state() != IBV_QPS_RTS) || (s.b.state() != IBV_QPS_RTS)) {
                s.again();
            }
        }
        REQUIRE(good > cases / 8);
        REQUIRE(moved > cases / 16);
        REQUIRE_EQ(4096, std::count(s.target.data + 4128,
                                    s.target.data + 4128 + 4096, 0x5a));
        REQUIRE_EQ(0, mlx5dv_devx_obj_destroy(psv));
    });
    take_violations();
}
