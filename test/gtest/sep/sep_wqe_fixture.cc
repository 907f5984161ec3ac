/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/sep_wqe_fixture.h>

#include <uct/ib/sep/compat/sep_compat_iface.h>
#include <uct/ib/sep/queue/sep_cq.inl>
#include <uct/ib/sep/iface/sep_fc.h>
#include <uct/ib/sep/progress/sep_progress.h>

#include <ucs/arch/cpu.h>
#include <ucs/datastruct/queue.h>
#include <ucs/sys/math.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

namespace sep_wqe_test {

static void init_desc(ucs_mpool_t *mp, void *obj, void *chunk)
{
    uct_sep_desc_set_lkey((uct_sep_desc_t*)obj, DESC_LKEY);
}

static void *aligned(size_t alignment, size_t size)
{
    void *ptr = NULL;

    EXPECT_EQ(0, posix_memalign(&ptr, alignment, size));
    memset(ptr, 0xcc, size);
    return ptr;
}

fixture::fixture(const uct_sep_ops_t &ops) : m_ops(ops)
{
    uct_sep_txwq_mem_t mem;

    m_iface = (uct_sep_iface_t*)aligned(UCS_SYS_CACHE_LINE_SIZE,
                                        sizeof(*m_iface));
    memset((void*)m_iface, 0, sizeof(*m_iface));
    memset((void*)&m_ep, 0, sizeof(m_ep));
    memset((void*)&m_md, 0, sizeof(m_md));
    m_sq   = (uint8_t*)aligned(4096, NUM_BB * UCT_SEP_BB_SIZE);
    m_uar  = (uint8_t*)aligned(4096, 4096);
    m_cqes = (struct mlx5_cqe64*)aligned(4096, NUM_CQE * sizeof(*m_cqes));

    m_mem.lkey = MEM_LKEY;
    m_mem.rkey = 0;
    m_mem.mr   = NULL;

    uct_sep_bf_init(&m_bf, m_uar + BF_OFFSET, BF_SIZE);
    mem.sq         = m_sq;
    mem.bb_count   = NUM_BB;
    mem.dbrec      = &m_dbrec[MLX5_SND_DBR];
    mem.bf         = &m_bf;
    mem.qpn        = QPN;
    mem.moderation = 64;
    EXPECT_EQ(UCS_OK, uct_sep_txwq_init(&m_txwq, &mem));

    m_iface->super.md      = &m_md.super;
    m_iface->tx.ops        = &m_ops;
    m_iface->tx.cq_credits = NUM_CQE;
    m_iface->config.seg_size      = 8256;
    m_iface->config.max_get_zcopy = 1 << 30;
    m_iface->config.tx_max_inline = SIZE_MAX;
    m_iface->config.has_fence     = 1;
    m_iface->config.rx_max_poll   = 16;
    m_iface->config.tx_max_poll   = 16;
    m_md.dev.atomic32.op_flags    = UCS_MASK(UCT_ATOMIC_OP_LAST);
    m_md.dev.atomic32.fop_flags   = UCS_MASK(UCT_ATOMIC_OP_LAST);
    m_md.dev.atomic64             = {m_md.dev.atomic32.op_flags,
                                     m_md.dev.atomic32.fop_flags};
    init_mpool(&m_iface->tx.desc_mp, sizeof(uct_sep_desc_t) + 8256, "desc");
    init_mpool(&m_iface->tx.small_mp, sizeof(uct_sep_desc_t) + 8, "small");
    EXPECT_EQ(UCS_OK, uct_sep_op_mpool_init(&m_iface->tx.op_mp));
    m_iface->tx.scratch = (uct_sep_desc_t*)ucs_mpool_get(
            &m_iface->tx.small_mp);
    uct_sep_txwq_init_idle(&m_iface->tx.idle);
    ucs_list_head_init(&m_iface->tx.unrung);
    ucs_list_head_init(&m_iface->tx.fc_due);
    ucs_list_head_init(&m_iface->eager.due);
    m_iface->config.fc.window = 1 << 30;
    m_iface->config.fc.soft   = 1;
    m_iface->config.fc.hard   = 1;
    uct_sep_fc_start(m_iface, &m_txwq);
    ucs_list_head_init(&m_iface->conn.active);
    ucs_list_head_init(&m_iface->conn.retired);
    ucs_list_head_init(&m_iface->conn.sched);

    for (unsigned i = 0; i < NUM_CQE; ++i) {
        m_cqes[i].op_own = (MLX5_CQE_INVALID << 4) | 1;
    }
    m_cq_dbrec[0]      = 0;
    m_iface->cq.next   = m_cqes;
    m_iface->cq.start  = m_cqes;
    m_iface->cq.end    = m_cqes + NUM_CQE;
    m_iface->cq.dbrec  = m_cq_dbrec;
    m_iface->cq.stride = UCT_SEP_CQ_STRIDE_64;
    m_iface->srq.ops   = &uct_sep_srq_ops;
    m_iface->srq.dbrec = &m_srq_dbrec;
    EXPECT_EQ(UCS_OK, uct_sep_qp_table_init(&m_iface->qps));
    EXPECT_EQ(UCS_OK, uct_sep_qp_table_add(&m_iface->qps, QPN, &m_txwq));

    m_ep.super.super.iface = &m_iface->super.super;
    m_ep.txwq              = &m_txwq;
    ucs_queue_head_init(&m_ep.pending);
    ucs_list_head_init(&m_ep.sched);
}

fixture::~fixture()
{
    uct_sep_txwq_purge(m_iface, &m_txwq, UCS_ERR_CANCELED);
    uct_sep_qp_table_cleanup(&m_iface->qps);
    /* All operations have been given back */
    uct_sep_op_list_drain(&m_iface->tx.free_ops);
    uct_sep_op_list_drain(&m_iface->tx.free_small);
    uct_sep_op_list_drain(&m_iface->tx.free_descs);
    ucs_mpool_put(m_iface->tx.scratch);
    ucs_mpool_cleanup(&m_iface->tx.op_mp, 1);
    ucs_mpool_cleanup(&m_iface->tx.small_mp, 1);
    ucs_mpool_cleanup(&m_iface->tx.desc_mp, 1);
    free(m_cqes);
    free(m_uar);
    free(m_sq);
    free(m_iface);
}

void fixture::init_mpool(ucs_mpool_t *mp, size_t size, const char *name)
{
    static ucs_mpool_ops_t ops      = {ucs_mpool_chunk_malloc,
                                       ucs_mpool_chunk_free, init_desc, NULL,
                                       NULL};
    uct_iface_mpool_config_t config = uct_sep_compat_mpool_config(8);

    EXPECT_EQ(UCS_OK, uct_sep_compat_iface_mpool_init(mp, 0, size, 0, 64,
                                                      &config, 8, &ops, name));
}

std::vector<uint8_t> fixture::wqe(uint16_t pi, unsigned num_bb)
{
    std::vector<uint8_t> result;

    for (unsigned i = 0; i < num_bb; ++i) {
        uint8_t *bb = m_sq + ((pi + i) % NUM_BB) * UCT_SEP_BB_SIZE;
        result.insert(result.end(), bb, bb + UCT_SEP_BB_SIZE);
    }
    return result;
}

std::vector<uint8_t> fixture::bf(unsigned index, size_t length)
{
    uint8_t *reg = m_uar + BF_OFFSET + (index * BF_SIZE);

    return std::vector<uint8_t>(reg, reg + length);
}

uint32_t fixture::dbrec()
{
    return be32toh(m_dbrec[MLX5_SND_DBR]);
}

void fixture::seek(uint16_t pi)
{
    m_txwq.sw_pi = pi;
    m_txwq.hw_ci = pi;
}

void fixture::no_moderation()
{
    m_txwq.moderation = INT16_MAX;
    m_txwq.unsignaled = INT16_MAX;
}

uct_completion_t *fixture::comp()
{
    m_comp.func   = [](uct_completion_t*) {};
    m_comp.count  = 1;
    m_comp.status = UCS_OK;
    return &m_comp;
}

void fixture::complete(uint16_t pi)
{
    struct mlx5_cqe64 *cqe = &m_cqes[m_cq_pi % NUM_CQE];

    cqe->sop_drop_qpn = htobe32((MLX5_OPCODE_SEND << 24) | QPN);
    cqe->wqe_counter  = htobe16(pi);
    cqe->op_own       = (MLX5_CQE_REQ << 4) | ((m_cq_pi / NUM_CQE) & 1);
    ++m_cq_pi;
}

unsigned fixture::progress()
{
    unsigned count = uct_sep_progress_buf(&m_iface->super.super);

    EXPECT_LE(uct_sep_cq_ci(&m_iface->cq), m_cq_pi);
    EXPECT_EQ(ucs_align_down(uct_sep_cq_ci(&m_iface->cq), UCT_SEP_CQ_TURN),
              be32toh(m_cq_dbrec[0]));
    return count;
}

} // namespace sep_wqe_test
