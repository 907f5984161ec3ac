/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_TEST_DEVICE_LAYOUT_H_
#define MLX5SIM_TEST_DEVICE_LAYOUT_H_

/*
 * Keys that lead to memory in pieces, made by work requests of libmlx5.
 */

#include <device/device_devx.h>

#include <functional>
#include <vector>

namespace device {

const uint64_t layout_ops = MLX5DV_QP_EX_WITH_MR_INTERLEAVED |
                            MLX5DV_QP_EX_WITH_MR_LIST |
                            MLX5DV_QP_EX_WITH_MKEY_CONFIGURE |
                            MLX5DV_QP_EX_WITH_RAW_WQE;

/** A key of work requests. */
struct mkey {
    explicit mkey(context &c, unsigned entries = 8, unsigned flags = 0,
                  ibv_pd *pd = nullptr)
    {
        mlx5dv_mkey_init_attr attr = {};

        attr.pd           = (pd != nullptr) ? pd : c.pd;
        attr.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | flags;
        attr.max_entries  = entries;
        v                 = mlx5dv_create_mkey(&attr);
        REQUIRE(v != nullptr);
    }

    ~mkey()
    {
        if (v != nullptr) {
            REQUIRE_EQ(0, mlx5dv_destroy_mkey(v));
        }
    }

    mkey(const mkey&) = delete;

    ibv_sge sge(size_t offset, uint32_t length) const
    {
        return {offset, length, v->lkey};
    }

    mlx5dv_mkey *v;
};

/** Where the bytes of a layout are, one by one. */
typedef std::vector<uint8_t*> places;

inline void fill(const places &to, size_t offset, size_t length, uint64_t seed)
{
    std::vector<uint8_t> data(length);

    pattern::fill(data.data(), length, seed);
    for (size_t i = 0; i < length; ++i) {
        *to[offset + i] = data[i];
    }
}

inline bool
has(const places &in, size_t offset, const uint8_t *data, size_t length)
{
    for (size_t i = 0; i < length; ++i) {
        if (*in[offset + i] != data[i]) {
            return false;
        }
    }
    return true;
}

/** Two QPs. Memory that only this process may write has keys with layouts,
 *  which b makes: for itself, and for a as a peer. */
struct layouts : public loop {
    explicit layouts(unsigned access = IBV_ACCESS_LOCAL_WRITE,
                     qp_options options = {.inline_len = 512,
                                           .dv_ops     = layout_ops}) :
        loop(options), target(c, size, access)
    {
        pattern::fill(mem.data, mem.size, 1);
    }

    /** Give a key a layout by setters, of which @a set has the last.
     *  @return status, or what libmlx5 says */
    int configure(const mkey &key, unsigned setters,
                  const std::function<void(mlx5dv_qp_ex*)> &set)
    {
        ibv_qp_ex *ex              = ibv_qp_to_qp_ex(b.v);
        mlx5dv_qp_ex *dv           = mlx5dv_qp_ex_from_ibv_qp_ex(ex);
        mlx5dv_mkey_conf_attr attr = {};
        int ret;

        ibv_wr_start(ex);
        ex->wr_id    = 7;
        ex->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
        mlx5dv_wr_mkey_configure(dv, key.v, setters, &attr);
        set(dv);
        ret = ibv_wr_complete(ex);
        if (ret != 0) {
            return ret;
        }

        ibv_wc wc = peer_cq.next();
        REQUIRE_EQ(7u, wc.wr_id);
        if (wc.status == IBV_WC_SUCCESS) {
            REQUIRE_EQ((int)MLX5DV_WC_UMR, (int)wc.opcode);
        }
        return wc.status;
    }

    int list(const mkey &key, const std::vector<ibv_sge> &entries,
             unsigned access = all_access)
    {
        return configure(key, 2, [&](mlx5dv_qp_ex *dv) {
            mlx5dv_wr_set_mkey_access_flags(dv, access);
            mlx5dv_wr_set_mkey_layout_list(dv, entries.size(), entries.data());
        });
    }

    int strides(const mkey &key, unsigned turns,
                const std::vector<mlx5dv_mr_interleaved> &entries,
                unsigned access = all_access)
    {
        return configure(key, 2, [&](mlx5dv_qp_ex *dv) {
            mlx5dv_wr_set_mkey_access_flags(dv, access);
            mlx5dv_wr_set_mkey_layout_interleaved(dv, turns, entries.size(),
                                                  entries.data());
        });
    }

    mlx5dv_mr_interleaved stride(size_t offset, uint32_t length, uint32_t skip)
    {
        return {target.addr(offset), length, skip, target.mr->lkey};
    }

    /** Where these lead */
    static places of(const std::vector<ibv_sge> &entries)
    {
        places all;

        for (const auto &entry : entries) {
            for (uint32_t i = 0; i < entry.length; ++i) {
                all.push_back((uint8_t*)entry.addr + i);
            }
        }
        return all;
    }

    static places of(unsigned turns,
                     const std::vector<mlx5dv_mr_interleaved> &entries)
    {
        places all;

        for (size_t turn = 0; turn < turns; ++turn) {
            for (const auto &entry : entries) {
                for (uint32_t i = 0; i < entry.bytes_count; ++i) {
                    all.push_back((uint8_t*)entry.addr + i +
                                  turn * (entry.bytes_count +
                                          entry.bytes_skip));
                }
            }
        }
        return all;
    }

    /** a: to or from @a at of the peer's key. @return status */
    ibv_wc_status access(ibv_wr_opcode opcode, const ibv_sge &sge,
                         uint32_t rkey, uint64_t at)
    {
        send_wr wr(opcode, 1, {sge});
        address to = {};

        to.addr = at;
        to.rkey = rkey;
        if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
            wr.atomic(to, 0, 3);
        } else {
            wr.to(to);
        }
        a.send(wr);
        return scq.next().status;
    }

    ibv_wc_status put(const mkey &key, uint64_t at, uint32_t length = 64)
    {
        return access(IBV_WR_RDMA_WRITE, mem.sge(0, length), key.v->rkey, at);
    }

    ibv_wc_status get(const mkey &key, uint64_t at, uint32_t length = 64)
    {
        return access(IBV_WR_RDMA_READ, mem.sge(0, length), key.v->rkey, at);
    }

    /** b sends from, or receives into, this. @return of the one with it */
    ibv_wc_status send(const ibv_sge &sge)
    {
        send_wr wr(IBV_WR_SEND, 2, {sge});

        a.recv(5, mem.sge(mem.size / 2, mem.size / 2));
        b.send(wr);
        ibv_wc_status status = peer_cq.next().status;
        if (status == IBV_WC_SUCCESS) {
            rcq.good();
        }
        return status;
    }

    ibv_wc_status receive(const ibv_sge &sge)
    {
        send_wr wr(IBV_WR_SEND, 3, {mem.sge(0, sge.length)});

        b.recv(5, sge);
        a.send(wr);
        ibv_wc_status status = peer_cq.next().status;
        REQUIRE_EQ((status == IBV_WC_SUCCESS) ? IBV_WC_SUCCESS :
                                                IBV_WC_REM_OP_ERR,
                   scq.next().status);
        return status;
    }

    ibv_wc_status invalidate(const mkey &key)
    {
        send_wr wr(IBV_WR_LOCAL_INV, 9, {});

        wr.invalidate_rkey = key.v->rkey;
        b.send(wr);
        return peer_cq.next().status;
    }

    /** Connect both anew. */
    void again()
    {
        a.to_state(IBV_QPS_RESET);
        b.to_state(IBV_QPS_RESET);
        a.connect(to_b);
        b.connect(to_a);
    }

    static const size_t size = 1 << 20;

    memory target;
};

} // namespace device

#endif
