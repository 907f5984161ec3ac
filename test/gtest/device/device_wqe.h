/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_TEST_DEVICE_WQE_H_
#define MLX5SIM_TEST_DEVICE_WQE_H_

/*
 * Work requests written by hand into the memory of a QP that mlx5dv_init_obj()
 * shows, as UCX does it; also wrong ones. A QP is either used through this or
 * through ibv_post_send(), never both.
 */

#include <device/device.h>

#include <cstring>

#include <endian.h>

namespace device {

/** Send side of a QP. */
class raw_sq {
public:
    explicit raw_sq(ibv_qp *v)
    {
        mlx5dv_obj obj = {};

        obj.qp.in  = v;
        obj.qp.out = &dv;
        REQUIRE_EQ(0, mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP));
        REQUIRE_EQ(64, dv.sq.stride);
        qpn = v->qp_num;
    }

    uint8_t *block(uint16_t index) const
    {
        return (uint8_t*)dv.sq.buf + (index & (dv.sq.wqe_cnt - 1)) * 64;
    }

    /** Write the doorbell record. */
    void record(uint16_t value)
    {
        __atomic_thread_fence(__ATOMIC_RELEASE);
        ((volatile uint32_t*)dv.dbrec)[MLX5_SND_DBR] = htobe32(value);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    }

    /** Ring with 8 bytes. */
    void doorbell(uint64_t value)
    {
        *(volatile uint64_t*)next_register() = value;
    }

    /** Ring with @a num_bb blocks, by 8-byte stores, and with nothing between
     *  them. */
    __attribute__((no_sanitize("address", "thread", "undefined"),
                   optimize("O2")))
    void blueflame(const void *bytes, unsigned num_bb)
    {
        volatile uint64_t *reg = (volatile uint64_t*)next_register();
        const uint8_t *from    = (const uint8_t*)bytes;
        uint64_t value;

        for (unsigned i = 0; i < num_bb * 8; ++i) {
            memcpy(&value, from + i * 8, 8);
            reg[i] = value;
        }
    }

    void *next_register()
    {
        uint8_t *reg = (uint8_t*)dv.bf.reg + toggle;

        toggle ^= dv.bf.size;
        return reg;
    }

    mlx5dv_qp dv;
    uint32_t  qpn;
    uint16_t  pi     = 0;
    unsigned  toggle = 0;
};


/** A send WQE; methods add segments. */
class raw_wqe {
public:
    raw_wqe(raw_sq &sq, unsigned opcode, unsigned opmod = 0) : m_sq(sq)
    {
        memset(bytes, 0, sizeof(bytes));
        ctrl()->opmod_idx_opcode = htobe32((opmod << 24) |
                                           ((uint32_t)sq.pi << 8) | opcode);
        ctrl()->fm_ce_se         = MLX5_WQE_CTRL_CQ_UPDATE;
        length                   = 16;
        set_ds();
    }

    mlx5_wqe_ctrl_seg *ctrl()
    {
        return (mlx5_wqe_ctrl_seg*)bytes;
    }

    raw_wqe &raw(const void *segment, size_t size)
    {
        memcpy(bytes + length, segment, size);
        length = (length + size + 15) & ~15ul;
        set_ds();
        return *this;
    }

    raw_wqe &raddr(uint64_t addr, uint32_t rkey)
    {
        mlx5_wqe_raddr_seg seg = {};

        seg.raddr = htobe64(addr);
        seg.rkey  = htobe32(rkey);
        return raw(&seg, sizeof(seg));
    }

    raw_wqe &data(const ibv_sge &sge)
    {
        mlx5_wqe_data_seg seg;

        seg.byte_count = htobe32(sge.length);
        seg.lkey       = htobe32(sge.lkey);
        seg.addr       = htobe64(sge.addr);
        return raw(&seg, sizeof(seg));
    }

    raw_wqe &inl(const void *data, uint32_t size)
    {
        uint8_t seg[1024];
        uint32_t count = htobe32(size | MLX5_INLINE_SEG);

        memcpy(seg, &count, 4);
        memcpy(seg + 4, data, size);
        return raw(seg, 4 + size);
    }

    raw_wqe &av(const address &peer, uint32_t qkey)
    {
        mlx5_wqe_av seg = {};

        seg.key.qkey.qkey = htobe32(qkey);
        seg.dqp_dct       = htobe32(peer.qpn | MLX5_EXTENDED_UD_AV);
        seg.rlid          = htobe16(peer.lid);
        return raw(&seg, sizeof(seg));
    }

    void set_ds()
    {
        ctrl()->qpn_ds = htobe32((m_sq.qpn << 8) | (length / 16));
    }

    unsigned num_bb() const
    {
        return (length + 63) / 64;
    }

    /** Copy into the queue, which may wrap; the record is not written. */
    void write()
    {
        for (unsigned i = 0; i < num_bb(); ++i) {
            memcpy(m_sq.block(m_sq.pi + i), bytes + i * 64, 64);
        }
        m_sq.pi += num_bb();
    }

    /** First 8 bytes. */
    uint64_t head() const
    {
        uint64_t value;

        memcpy(&value, bytes, 8);
        return value;
    }

    /** All of it, as it should be done. */
    void post(bool blueflame = false)
    {
        write();
        m_sq.record(m_sq.pi);
        if (blueflame) {
            m_sq.blueflame(bytes, num_bb());
        } else {
            m_sq.doorbell(head());
        }
    }

    alignas(64) uint8_t bytes[1024];
    size_t              length;

private:
    raw_sq &m_sq;
};

} // namespace device

#endif
