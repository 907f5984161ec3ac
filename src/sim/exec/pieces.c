/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/exec/pieces.h>
#include <sim/config/identity.h>
#include <sim/engine/opcode.h>
#include <sim/engine/packet.h>
#include <sim/exec/fabric.h>
#include <sim/exec/transfer.h>
#include <sim/instance/instance.h>
#include <sim/objs/store.h>

#include <errno.h>


/* Bytes of a packet that are in front of the first multiple of the size of a
 * piece, counted down from it */
static uint32_t mlx5sim_pieces_head(const mlx5sim_wqe_t *wqe,
                                    const mlx5sim_packet_t *packet)
{
    return (wqe->raddr + packet->offset) % MLX5SIM_PIECE_SIZE;
}

uint32_t mlx5sim_pieces_all(const mlx5sim_wqe_t *wqe,
                            const mlx5sim_packet_t *packet)
{
    uint32_t end = mlx5sim_pieces_head(wqe, packet) + packet->length;

    return (1u << ((end + MLX5SIM_PIECE_SIZE - 1) / MLX5SIM_PIECE_SIZE)) - 1;
}

/* Move the bytes of a packet that are in pieces @a first to @a last */
static int
mlx5sim_pieces_move_run(mlx5sim_run_t *run, mlx5sim_proc_t *proc,
                        const mlx5sim_wqe_t *wqe,
                        const mlx5sim_packet_t *packet, unsigned first,
                        unsigned last, const mlx5sim_plan_t *plan,
                        mlx5sim_side_t *side_p)
{
    uint32_t head       = mlx5sim_pieces_head(wqe, packet);
    uint32_t begin      = first * MLX5SIM_PIECE_SIZE;
    uint32_t end        = (last + 1) * MLX5SIM_PIECE_SIZE;
    mlx5sim_plan_t part = *plan;

    begin = (begin > head) ? (begin - head) : 0;
    end   = (end - head < packet->length) ? (end - head) : packet->length;
    mlx5sim_plan_cut(&part, packet->offset + begin, end - begin);
    return mlx5sim_transfer(run->req, run->resp, proc, wqe, &part, side_p);
}

int mlx5sim_pieces_move(mlx5sim_run_t *run, mlx5sim_proc_t *proc,
                        const mlx5sim_wqe_t *wqe,
                        const mlx5sim_packet_t *packet, uint32_t mask,
                        mlx5sim_plan_t *plan, mlx5sim_side_t *side_p)
{
    uint32_t all = mlx5sim_pieces_all(wqe, packet);
    unsigned first, last;
    int ret;

    mask &= all;
    if (mask == all) {
        mlx5sim_plan_cut(plan, packet->offset, packet->length);
        return mlx5sim_transfer(run->req, run->resp, proc, wqe, plan, side_p);
    }

    if (mask == 0) {
        return mlx5sim_responder_is_alive(run->resp, proc) ? 0 : -ESRCH;
    }

    for (first = 0; (mask >> first) != 0; first = last + 1) {
        if (!((mask >> first) & 1)) {
            last = first;
            continue;
        }

        for (last = first; (mask >> (last + 1)) & 1; ++last) {
        }

        ret = mlx5sim_pieces_move_run(run, proc, wqe, packet, first, last,
                                      plan, side_p);
        if (ret != 0) {
            return ret;
        }
    }

    return 0;
}

/* Whether what is written with the key of a request goes over PCIe with relaxed
 * ordering */
static int mlx5sim_pieces_are_relaxed(const mlx5sim_env_t *env,
                                      const mlx5sim_wqe_t *wqe)
{
    const mlx5sim_mr_t *mr;

    if (mlx5sim_instance_config()->pci_wr_ordering ==
        MLX5SIM_PCI_WR_ORDERING_FORCE_RELAX) {
        return 1;
    }

    mr = env->mr_find(env->arg, MLX5SIM_SIDE_RESPONDER, wqe->rkey);
    return (mr != NULL) && (mr->access & MLX5SIM_ACCESS_RELAXED);
}

static int mlx5sim_pieces_is_in_order(const mlx5sim_qp_obj_t *qp)
{
    return mlx5sim_sl_is_in_order(mlx5sim_instance_config(), qp->qp.sl);
}

int mlx5sim_packet_is_early(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe)
{
    mlx5sim_run_t run       = {.req = qp};
    const mlx5sim_env_t env = mlx5sim_responder_env(&run);
    int is_early;

    if (!mlx5sim_pieces_is_in_order(qp)) {
        return 1;
    }

    run.resp = mlx5sim_fabric_find(qp, wqe);
    if (run.resp == NULL) {
        return 0;
    }

    is_early = mlx5sim_pieces_are_relaxed(&env, wqe);
    mlx5sim_unlock(&run.resp->rq_lock);
    return is_early;
}

/* Bit number @a n of those that are set in @a mask */
static uint32_t mlx5sim_pieces_nth(uint32_t mask, unsigned n)
{
    for (; n > 0; --n) {
        mask &= mask - 1;
    }
    return mask & -mask;
}

/* With the responder's lock held.
 * @return pieces that have been moved */
static uint32_t
mlx5sim_packet_place_at(mlx5sim_run_t *run, mlx5sim_wqe_t *wqe,
                        const mlx5sim_packet_t *packet, uint32_t first_psn,
                        uint32_t sent, uint64_t dice)
{
    const mlx5sim_env_t env    = mlx5sim_responder_env(run);
    const mlx5sim_qp_obj_t *qp = run->req;
    const mlx5sim_qp_t resp    = mlx5sim_fabric_view(run->resp, wqe);
    uint32_t epsn              = resp.epsn;
    uint32_t missing           = mlx5sim_pieces_all(wqe, packet) &
                                 ~packet->placed;
    mlx5sim_proc_t *proc;
    mlx5sim_side_t side;
    mlx5sim_plan_t plan;

    /* It expects one of the packets that are on their way, and this is not one
     * that it has taken already */
    if (!mlx5sim_qp_answers(&resp, &qp->qp, wqe) ||
        (mlx5sim_psn_ahead(epsn, first_psn) > sent) ||
        mlx5sim_psn_before(packet->psn, epsn)) {
        return 0;
    }

    run->req->qp.psn = epsn;
    mlx5sim_plan_make(&qp->qp, wqe, &resp, &env, &plan);
    proc = mlx5sim_proc_by_tag(atomic_load(&run->resp->o.owner));
    if ((plan.verdict != MLX5SIM_VERDICT_DONE) || plan.req_error ||
        plan.resp_error || (plan.length == 0) || (proc == NULL) ||
        mlx5sim_sig_is_in(plan.dst, plan.num_dst)) {
        return 0; /* found out when it is its turn */
    }

    if (mlx5sim_pieces_are_relaxed(&env, wqe)) {
        missing = mlx5sim_pieces_nth(missing, dice %
                                              __builtin_popcount(missing));
    } else if (mlx5sim_pieces_is_in_order(qp)) {
        return 0;
    }

    return (mlx5sim_pieces_move(run, proc, wqe, packet, missing, &plan,
                                &side) == 0) ? missing : 0;
}

uint32_t mlx5sim_packet_place(mlx5sim_qp_obj_t *qp, mlx5sim_wqe_t *wqe,
                              const mlx5sim_packet_t *packet,
                              uint32_t first_psn, uint32_t sent, uint64_t dice)
{
    mlx5sim_run_t run = {.req = qp};
    uint32_t placed   = packet->placed;

    wqe->later = 0;
    if (((mlx5sim_pieces_all(wqe, packet) & ~placed) == 0) ||
        mlx5sim_fabric_is_down(qp, wqe)) {
        return placed;
    }

    run.resp = mlx5sim_fabric_find(qp, wqe);
    if (run.resp != NULL) {
        placed |= mlx5sim_packet_place_at(&run, wqe, packet, first_psn, sent,
                                          dice);
        mlx5sim_unlock(&run.resp->rq_lock);
    }

    return placed;
}
