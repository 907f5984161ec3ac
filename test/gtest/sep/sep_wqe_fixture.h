/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_WQE_FIXTURE_H
#define SEP_WQE_FIXTURE_H

#include <uct/ib/sep/ep/sep_ep.h>
#include <uct/ib/sep/ops/sep_ops_dv.h>

#include <vector>

/*
 * An endpoint whose send queue, doorbell record, UAR and completion queue are
 * plain memory: what the transport writes there is looked at byte by byte, and
 * the completions are written by the test.
 */
namespace sep_wqe_test {

enum {
    NUM_BB     = 16,
    NUM_CQE    = 32,
    QPN        = 0xabcdef,
    DESC_LKEY  = 0x11223344,
    MEM_LKEY   = 0x55667788,
    BF_OFFSET  = 0x800,
    BF_SIZE    = 0x100
};


class fixture {
public:
    explicit fixture(const uct_sep_ops_t &ops);
    ~fixture();

    uct_ep_h ep() { return &m_ep.super.super; }
    uct_sep_iface_t &iface() { return *m_iface; }
    uct_sep_txwq_t &txwq() { return m_txwq; }
    const uct_sep_ops_t &ops() { return m_ops; }
    uct_mem_h memh() { return &m_mem; }

    /* A completion for operations that may end with the fixture */
    uct_completion_t *comp();

    /* Bytes of a work request of num_bb BBs, put together where it wraps */
    std::vector<uint8_t> wqe(uint16_t pi, unsigned num_bb);

    /* What was written to a BlueFlame buffer, 0 or 1 */
    std::vector<uint8_t> bf(unsigned index, size_t length);

    uint32_t dbrec();

    /* Go on at this place of the queue, as if all before had completed */
    void seek(uint16_t pi);

    /* No work request asks for a completion on the queue's behalf */
    void no_moderation();

    /* Completion of the work request at an index, and polling for it */
    void complete(uint16_t pi);
    unsigned progress();

    fixture(const fixture&) = delete;

private:
    void init_mpool(ucs_mpool_t *mp, size_t size, const char *name);

    const uct_sep_ops_t &m_ops;
    uct_sep_iface_t     *m_iface;
    uct_sep_ep_t        m_ep;
    uct_sep_txwq_t      m_txwq;
    uct_sep_bf_t        m_bf;
    uct_sep_md_t        m_md;
    uct_sep_mem_t       m_mem;
    uct_completion_t    m_comp;
    uint8_t             *m_sq;
    uint8_t             *m_uar;
    __be32              m_dbrec[2];
    __be32              m_cq_dbrec[2];
    __be32              m_srq_dbrec;
    struct mlx5_cqe64   *m_cqes;
    uint32_t            m_cq_pi = 0;
};

} // namespace sep_wqe_test

#endif
