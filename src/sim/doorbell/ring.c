/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/doorbell/ring.h>
#include <sim/check/report.h>
#include <sim/engine/mlx5_def.h>
#include <sim/objs/pcie.h>
#include <sim/objs/store.h>
#include <sim/queue/cq.h>
#include <sim/sched/sq.h>
#include <sim/trace/trace.h>
#include <sim/uar/layout.h>
#include <sim/uar/window.h>

#include <endian.h>
#include <string.h>

/* 16-byte units of a block */
#define MLX5SIM_DS_PER_BB (MLX5SIM_WQEBB / MLX5SIM_WQE_UNIT)


/* The value is unknown (a vector store under valgrind): execute whatever is
 * posted through this page */
static void mlx5sim_doorbell_ring_all(uint32_t uar)
{
    uint32_t high = atomic_load(&mlx5sim_store->tables[MLX5SIM_OBJ_QP].high);
    mlx5sim_qp_obj_t *qp;
    uint32_t index;

    for (index = 0; index < high; ++index) {
        qp = mlx5sim_obj_at(MLX5SIM_OBJ_QP, index);
        if ((atomic_load(&qp->o.owner) == mlx5sim_self_tag) && qp->o.ready &&
            (qp->uar == uar) && (qp->qp.type != MLX5SIM_QPT_DCT)) {
            atomic_store(&qp->is_rung, 1);
            mlx5sim_sq_run(qp);
        }
    }
}

static void
mlx5sim_doorbell_check_qp(mlx5sim_qp_obj_t *qp, const mlx5sim_doorbell_t *db,
                          uint16_t index, uint32_t ds, uint32_t uar)
{
    uint16_t pi     = be32toh(((volatile uint32_t*)(uintptr_t)qp->db)[1]);
    uint16_t num_bb = (ds + MLX5SIM_DS_PER_BB - 1) / MLX5SIM_DS_PER_BB;
    const uint8_t *sq;
    uint32_t i, length, size;

    if ((qp->qp.state != MLX5SIM_QPS_RTS) &&
        (qp->qp.state != MLX5SIM_QPS_ERR) &&
        (qp->qp.state != MLX5SIM_QPS_SQD) &&
        (qp->qp.state != MLX5SIM_QPS_SQE)) {
        mlx5sim_report_qp(MLX5SIM_CHK_DB_STATE, qp, index, "WQE 0x%x", index);
    } else if ((ds == 0) && (db->length <= MLX5SIM_UAR_DOORBELL)) {
        /* What GPUs write (UCX's rc_gda, NVSHMEM) has no size and the next
         * WQE. They ring before they write the record, too, and once more
         * after it; by then others may have posted any number. */
        if ((int16_t)(index - pi) > (int)qp->qp.sq_wqe_cnt) {
            mlx5sim_report_qp(MLX5SIM_CHK_DB_VALUE, qp, index,
                              "next WQE 0x%x, doorbell record 0x%x", index,
                              pi);
        }
    } else if (pi == index) {
        mlx5sim_report_qp(MLX5SIM_CHK_DB_UNCOVERED, qp, index,
                          "WQE 0x%x, doorbell record 0x%x", index, pi);
    } else if ((uint16_t)(index + num_bb) != pi) {
        mlx5sim_report_qp(MLX5SIM_CHK_DB_VALUE, qp, index, "WQE 0x%x of %u "
                          "blocks, doorbell record 0x%x", index, num_bb, pi);
    }

    if ((qp->uar != 0) && (qp->uar != uar)) {
        mlx5sim_report_qp(MLX5SIM_CHK_UAR, qp, index, "rung through UAR %u, "
                          "created with UAR %u", uar, qp->uar);
    }

    if (db->length <= MLX5SIM_UAR_DOORBELL) {
        return;
    }

    /* BlueFlame carries the WQE itself: hardware executes these bytes */
    length = ds * MLX5SIM_WQE_UNIT;
    length = (length < db->length) ? length : db->length;
    size   = qp->qp.sq_wqe_cnt * MLX5SIM_WQEBB;
    sq     = (const uint8_t*)(uintptr_t)qp->sq;
    i      = index * MLX5SIM_WQEBB % size;
    if ((i + length <= size) && (memcmp(db->data, sq + i, length) == 0)) {
        return;
    }

    for (i = 0; i < length; ++i) {
        if (db->data[i] != sq[(index * MLX5SIM_WQEBB + i) % size]) {
            mlx5sim_report_qp(MLX5SIM_CHK_BF_MISMATCH, qp, index,
                              "byte %u is 0x%x, in the send queue 0x%x", i,
                              db->data[i],
                              sq[(index * MLX5SIM_WQEBB + i) % size]);
            return;
        }
    }
}

/* What a doorbell says: the first words of a work request */
typedef struct {
    uint16_t         index;
    uint32_t         ds;
    uint32_t         qpn;
    mlx5sim_qp_obj_t *qp;  /* NULL if there is no such QP */
} mlx5sim_doorbell_words_t;

static void mlx5sim_doorbell_read(const mlx5sim_doorbell_t *db,
                                  mlx5sim_doorbell_words_t *words_p)
{
    uint32_t idx_opcode, qpn_ds;
    mlx5sim_qp_obj_t *qp;

    memcpy(&idx_opcode, db->data, sizeof(idx_opcode));
    memcpy(&qpn_ds, db->data + 4, sizeof(qpn_ds));
    qpn_ds         = be32toh(qpn_ds);
    words_p->index = be32toh(idx_opcode) >> 8;
    words_p->ds    = qpn_ds & MLX5SIM_CTRL_DS_MASK;
    words_p->qpn   = qpn_ds >> 8;
    qp             = mlx5sim_qp_by_num(words_p->qpn);
    words_p->qp    = ((qp != NULL) &&
                      (atomic_load(&qp->o.owner) == mlx5sim_self_tag) &&
                      (qp->qp.type != MLX5SIM_QPT_DCT) &&
                      (qp->qp.xrc != MLX5SIM_XRC_TGT)) ? qp : NULL;
}

/* Whether it rings a send queue */
static int mlx5sim_doorbell_is_sq(const mlx5sim_doorbell_t *db)
{
    return (db->offset >= MLX5SIM_UAR_OFFSET_BF) &&
           MLX5SIM_UAR_IS_BUFFER(db->offset);
}

void mlx5sim_doorbell_check(mlx5sim_uar_t *uar, const mlx5sim_doorbell_t *db)
{
    uint32_t uar_index = mlx5sim_obj_index(MLX5SIM_OBJ_UAR, uar);
    mlx5sim_doorbell_words_t words;
    mlx5sim_uar_t *fresh;

    if (!mlx5sim_report_enabled() || !db->known ||
        !mlx5sim_doorbell_is_sq(db)) {
        return;
    }

    mlx5sim_doorbell_read(db, &words);
    if (words.qp == NULL) {
        mlx5sim_report_obj(MLX5SIM_CHK_DB_QPN, &uar->o, "UAR", uar_index,
                           "doorbell for QP 0x%x", words.qpn);
        return;
    }

    if ((words.qp->uar != 0) && (words.qp->uar != uar_index)) {
        fresh = mlx5sim_window_refresh(db->page);
        if (fresh != NULL) {
            uar_index = mlx5sim_obj_index(MLX5SIM_OBJ_UAR, fresh);
        }
    }

    mlx5sim_doorbell_check_qp(words.qp, db, words.index, words.ds, uar_index);
}

/* What the program has done since it last rang */
static void mlx5sim_doorbell_trace(mlx5sim_qp_obj_t *qp,
                                   const mlx5sim_doorbell_t *db,
                                   const mlx5sim_doorbell_words_t *words)
{
    uint16_t pi = be32toh(((volatile uint32_t*)(uintptr_t)qp->db)[1]);
    mlx5sim_wqe_t wqe;

    mlx5sim_cq_trace_polled(mlx5sim_obj_at(MLX5SIM_OBJ_CQ, qp->send_cq));
    if ((qp->recv_cq != 0) && (qp->recv_cq != qp->send_cq)) {
        mlx5sim_cq_trace_polled(mlx5sim_obj_at(MLX5SIM_OBJ_CQ, qp->recv_cq));
    }

    if ((uint16_t)(pi - qp->pi_traced) > qp->qp.sq_wqe_cnt) {
        qp->pi_traced = words->index; /* it was reset, or not told before */
    }
    while (qp->pi_traced != pi) {
        (void)mlx5sim_wqe_decode(&qp->qp, (const void*)(uintptr_t)qp->sq,
                                 qp->pi_traced, &wqe);
        mlx5sim_trace_post(qp, &wqe);
        qp->pi_traced += (wqe.num_bb <= (uint16_t)(pi - qp->pi_traced)) ?
                         wqe.num_bb : (uint16_t)(pi - qp->pi_traced);
    }
    mlx5sim_trace_doorbell(qp, words->index, db->length);
}

static void mlx5sim_doorbell_sq(mlx5sim_uar_t *uar,
                                const mlx5sim_doorbell_t *db)
{
    mlx5sim_proc_t *self = mlx5sim_proc_self();
    int is_bf            = db->length > MLX5SIM_UAR_DOORBELL;
    mlx5sim_doorbell_words_t words;

    atomic_fetch_add_explicit(is_bf ? &uar->blueflames : &uar->doorbells, 1,
                              memory_order_relaxed);
    atomic_fetch_add_explicit(is_bf ? &self->c.blueflames : &self->c.doorbells,
                              1, memory_order_relaxed);

    mlx5sim_doorbell_read(db, &words);
    if (words.qp == NULL) {
        return;
    }

    if (mlx5sim_trace_is_on()) {
        mlx5sim_doorbell_trace(words.qp, db, &words);
    }
    words.qp->uuars_rung |= 1u << ((db->offset - MLX5SIM_UAR_OFFSET_BF) /
                                   MLX5SIM_UAR_BF_REG);
    if (is_bf) {
        ++words.qp->blueflames;
        words.qp->bf_wqe = words.index + 1u;
    } else {
        ++words.qp->doorbells;
    }
    atomic_store(&words.qp->is_rung, 1);
    mlx5sim_sq_run(words.qp);
}

static void mlx5sim_doorbell_cq(mlx5sim_uar_t *uar,
                                const mlx5sim_doorbell_t *db)
{
    uint32_t uar_index = mlx5sim_obj_index(MLX5SIM_OBJ_UAR, uar);
    uint32_t sn_cmd_ci, cqn;
    mlx5sim_cq_t *cq;

    memcpy(&sn_cmd_ci, db->data, sizeof(sn_cmd_ci));
    memcpy(&cqn, db->data + 4, sizeof(cqn));
    cqn = be32toh(cqn);

    atomic_fetch_add_explicit(&mlx5sim_proc_self()->c.cq_arms, 1,
                              memory_order_relaxed);
    cq = mlx5sim_obj_find(MLX5SIM_OBJ_CQ, cqn);
    if ((cq == NULL) || (atomic_load(&cq->o.owner) != mlx5sim_self_tag) ||
        !cq->o.ready) {
        mlx5sim_report_obj(MLX5SIM_CHK_CQ_ARM, &uar->o, "UAR", uar_index,
                           "arm doorbell for CQ 0x%x", cqn);
        return;
    }

    mlx5sim_cq_arm(cq, be32toh(sn_cmd_ci));
}

void mlx5sim_doorbell_ring(mlx5sim_uar_t *uar, const mlx5sim_doorbell_t *db)
{
    uint32_t uar_index = mlx5sim_obj_index(MLX5SIM_OBJ_UAR, uar);

    mlx5sim_pcie_mmio(mlx5sim_proc_self(), db->length);
    if (!db->known) {
        mlx5sim_doorbell_ring_all(uar_index);
    } else if (db->offset == MLX5SIM_UAR_OFFSET_CQ_ARM) {
        mlx5sim_doorbell_cq(uar, db);
    } else if (mlx5sim_doorbell_is_sq(db)) {
        mlx5sim_doorbell_sq(uar, db);
    } else {
        mlx5sim_report_obj(MLX5SIM_CHK_DB_OFFSET, &uar->o, "UAR", uar_index,
                           "%u bytes stored at offset 0x%x", db->length,
                           db->offset);
    }
}
