/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/engine/engine.h>
#include <sim/engine/mlx5_def.h>

#include <endian.h>
#include <string.h>


static int mlx5sim_cqe_is_error(const mlx5sim_cqe_t *cqe)
{
    return (cqe->opcode == MLX5SIM_CQE_REQ_ERR) ||
           (cqe->opcode == MLX5SIM_CQE_RESP_ERR);
}


/** With cqe_version 1 software finds the QP, and from it the SRQ, by its user
 *  index. With version 0 it looks at the SRQ number, 0 for none. */
static uint32_t mlx5sim_cqe_srqn_uidx(const mlx5sim_cqe_t *cqe)
{
    if (cqe->uidx != MLX5SIM_UIDX_NONE) {
        return cqe->uidx & MLX5SIM_QPN_MASK;
    }

    if ((cqe->opcode == MLX5SIM_CQE_REQ) ||
        (cqe->opcode == MLX5SIM_CQE_REQ_ERR)) {
        return 0;
    }

    return cqe->srqn & MLX5SIM_QPN_MASK;
}


/** Error CQEs have the syndrome where others have the end of the timestamp. */
static void mlx5sim_cqe_build_error(const mlx5sim_cqe_t *cqe, uint32_t op_qpn,
                                    uint8_t op_own, mlx5sim_err_cqe_t *out)
{
    memset(out, 0, sizeof(*out));
    out->srqn_uidx        = htobe32(mlx5sim_cqe_srqn_uidx(cqe));
    out->vendor_err_synd  = cqe->vendor_err;
    out->syndrome         = cqe->syndrome;
    out->s_wqe_opcode_qpn = htobe32(op_qpn);
    out->wqe_counter      = htobe16(cqe->wqe_counter);
    out->op_own           = op_own;
}


static void mlx5sim_cqe_build_sig_error(const mlx5sim_cqe_t *cqe,
                                        uint8_t op_own,
                                        mlx5sim_sig_err_cqe_t *out)
{
    memset(out, 0, sizeof(*out));
    out->expected_trans_sig = htobe32(cqe->sig.expected >> 32);
    out->actual_trans_sig   = htobe32(cqe->sig.actual >> 32);
    out->expected_reftag    = htobe32((uint32_t)cqe->sig.expected);
    out->actual_reftag      = htobe32((uint32_t)cqe->sig.actual);
    out->syndrome           = htobe16(cqe->sig.syndrome);
    out->domain             = cqe->sig.is_mem;
    out->mkey               = htobe32(cqe->sig.key);
    out->err_offset         = htobe64(cqe->sig.offset);
    out->qpn                = htobe32(cqe->qpn & MLX5SIM_QPN_MASK);
    out->op_own             = op_own;
}


static uint32_t mlx5sim_cqe_imm_inval_pkey(const mlx5sim_cqe_t *cqe)
{
    switch (cqe->opcode) {
    case MLX5SIM_CQE_RESP_SEND:
        return htobe32(cqe->pkey);
    case MLX5SIM_CQE_RESP_SEND_INV:
        return htobe32(cqe->imm);
    default:
        return cqe->imm;
    }
}


static void mlx5sim_cqe_build_success(const mlx5sim_cqe_t *cqe, uint32_t op_qpn,
                                      uint8_t op_own, mlx5sim_cqe64_t *out)
{
    memset(out, 0, sizeof(*out));
    out->ml_path        = cqe->path_bits;
    out->slid           = htobe16(cqe->slid);
    out->flags_rqpn     = htobe32(
            ((uint32_t)!!cqe->has_grh << MLX5SIM_CQE_GRH_SHIFT) |
            ((uint32_t)(cqe->sl & 0xf) << MLX5SIM_CQE_SL_SHIFT) |
            (cqe->src_qpn & MLX5SIM_QPN_MASK));
    out->srqn_uidx      = htobe32(mlx5sim_cqe_srqn_uidx(cqe));
    out->imm_inval_pkey = mlx5sim_cqe_imm_inval_pkey(cqe);
    out->byte_cnt       = htobe32(cqe->byte_cnt);
    out->timestamp      = htobe64(cqe->timestamp);
    out->sop_drop_qpn   = htobe32(op_qpn);
    out->wqe_counter    = htobe16(cqe->wqe_counter);
    out->op_own         = op_own;
}


unsigned mlx5sim_cqe_max_data(unsigned size)
{
    return (size > sizeof(mlx5sim_cqe64_t)) ? 64 : 32;
}


/** Data precedes the CQE's own fields: the first half of either size. */
static void mlx5sim_cqe_build_data(const mlx5sim_cqe_t *cqe, unsigned size,
                                   uint8_t *out)
{
    memcpy(out, cqe->data, cqe->scattered);
    out[size - 1] |= (mlx5sim_cqe_max_data(size) == 32) ?
                     MLX5SIM_CQE_SCATTER_32 : MLX5SIM_CQE_SCATTER_64;
}


void mlx5sim_cqe_build(const mlx5sim_cqe_t *cqe, unsigned size,
                       unsigned owner, void *out_p)
{
    uint8_t *out    = out_p;
    uint32_t op_qpn = ((uint32_t)cqe->wqe_opcode << 24) |
                      (cqe->qpn & MLX5SIM_QPN_MASK);
    uint8_t op_own  = (cqe->opcode << MLX5SIM_CQE_OPCODE_SHIFT) |
                      (owner & MLX5SIM_CQE_OWNER);

    if (size > sizeof(mlx5sim_cqe64_t)) {
        memset(out, 0, size - sizeof(mlx5sim_cqe64_t));
        out += size - sizeof(mlx5sim_cqe64_t);
    }

    if (cqe->opcode == MLX5SIM_CQE_SIG_ERR) {
        mlx5sim_cqe_build_sig_error(cqe, op_own, (mlx5sim_sig_err_cqe_t*)out);
        return;
    }

    if (mlx5sim_cqe_is_error(cqe)) {
        mlx5sim_cqe_build_error(cqe, op_qpn, op_own, (mlx5sim_err_cqe_t*)out);
        return;
    }

    if (cqe->solicited) {
        op_own |= MLX5SIM_CQE_SE;
    }
    mlx5sim_cqe_build_success(cqe, op_qpn, op_own, (mlx5sim_cqe64_t*)out);
    if (cqe->scattered > 0) {
        mlx5sim_cqe_build_data(cqe, size, out_p);
    }
}


void mlx5sim_cqe_flush(const mlx5sim_qp_t *qp, int is_recv,
                       uint16_t wqe_counter, uint8_t wqe_opcode,
                       mlx5sim_cqe_t *cqe_p)
{
    memset(cqe_p, 0, sizeof(*cqe_p));
    cqe_p->opcode      = is_recv ? MLX5SIM_CQE_RESP_ERR : MLX5SIM_CQE_REQ_ERR;
    cqe_p->syndrome    = MLX5SIM_SYNDROME_WR_FLUSH;
    cqe_p->vendor_err  = MLX5SIM_VENDOR_WR_FLUSH;
    cqe_p->wqe_opcode  = is_recv ? 0 : wqe_opcode;
    cqe_p->solicited   = 1;
    cqe_p->wqe_counter = wqe_counter;
    cqe_p->qpn         = qp->qpn;
    cqe_p->uidx        = qp->uidx;
    cqe_p->srqn        = is_recv ? qp->srqn : 0;
}


const char *mlx5sim_syndrome_name(unsigned syndrome)
{
    switch (syndrome) {
    case 0:
        return "success";
    case MLX5SIM_SYNDROME_LOCAL_LENGTH:
        return "local length error";
    case MLX5SIM_SYNDROME_LOCAL_QP_OP:
        return "local QP operation error";
    case MLX5SIM_SYNDROME_LOCAL_PROT:
        return "local protection error";
    case MLX5SIM_SYNDROME_WR_FLUSH:
        return "work request flushed";
    case MLX5SIM_SYNDROME_MW_BIND:
        return "memory window bind error";
    case MLX5SIM_SYNDROME_BAD_RESP:
        return "bad response error";
    case MLX5SIM_SYNDROME_LOCAL_ACCESS:
        return "local access error";
    case MLX5SIM_SYNDROME_REMOTE_INVAL_REQ:
        return "remote invalid request error";
    case MLX5SIM_SYNDROME_REMOTE_ACCESS:
        return "remote access error";
    case MLX5SIM_SYNDROME_REMOTE_OP:
        return "remote operation error";
    case MLX5SIM_SYNDROME_TRANSPORT_RETRY:
        return "transport retry counter exceeded";
    case MLX5SIM_SYNDROME_RNR_RETRY:
        return "RNR retry counter exceeded";
    case MLX5SIM_SYNDROME_REMOTE_ABORTED:
        return "remote aborted error";
    default:
        return "unknown syndrome";
    }
}
