/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/engine/engine.h>

#define MLX5SIM_NUM_STATES (MLX5SIM_QPS_ERR + 1)

/* IBV_QPT_XRC_SEND and _RECV */
#define MLX5SIM_QPT_XRC_INI 9
#define MLX5SIM_QPT_XRC_TGT 10

/** Attribute bits, numbered as enum ibv_qp_attr_mask (verbs.h). */
enum {
    ATTR_STATE              = 1 << 0,
    ATTR_CUR_STATE          = 1 << 1,
    ATTR_SQD_ASYNC_NOTIFY   = 1 << 2,
    ATTR_ACCESS_FLAGS       = 1 << 3,
    ATTR_PKEY_INDEX         = 1 << 4,
    ATTR_PORT               = 1 << 5,
    ATTR_QKEY               = 1 << 6,
    ATTR_AV                 = 1 << 7,
    ATTR_PATH_MTU           = 1 << 8,
    ATTR_TIMEOUT            = 1 << 9,
    ATTR_RETRY_CNT          = 1 << 10,
    ATTR_RNR_RETRY          = 1 << 11,
    ATTR_RQ_PSN             = 1 << 12,
    ATTR_MAX_QP_RD_ATOMIC   = 1 << 13,
    ATTR_ALT_PATH           = 1 << 14,
    ATTR_MIN_RNR_TIMER      = 1 << 15,
    ATTR_SQ_PSN             = 1 << 16,
    ATTR_MAX_DEST_RD_ATOMIC = 1 << 17,
    ATTR_PATH_MIG_STATE     = 1 << 18,
    ATTR_DEST_QPN           = 1 << 20
};


/** Attributes of one transition. */
typedef struct {
    uint32_t required;
    uint32_t optional;
} mlx5sim_transition_t;


/* States reachable from each state (IBTA volume 1, figure "QP state diagram";
 * as the kernel has it: RESET does not lead to ERR) */
static const uint8_t mlx5sim_next_states[MLX5SIM_NUM_STATES] = {
    [MLX5SIM_QPS_RESET] = (1 << MLX5SIM_QPS_RESET) | (1 << MLX5SIM_QPS_INIT),
    [MLX5SIM_QPS_INIT]  = (1 << MLX5SIM_QPS_RESET) | (1 << MLX5SIM_QPS_ERR) |
                          (1 << MLX5SIM_QPS_INIT)  | (1 << MLX5SIM_QPS_RTR),
    [MLX5SIM_QPS_RTR]   = (1 << MLX5SIM_QPS_RESET) | (1 << MLX5SIM_QPS_ERR) |
                          (1 << MLX5SIM_QPS_RTS),
    [MLX5SIM_QPS_RTS]   = (1 << MLX5SIM_QPS_RESET) | (1 << MLX5SIM_QPS_ERR) |
                          (1 << MLX5SIM_QPS_RTS)   | (1 << MLX5SIM_QPS_SQD),
    [MLX5SIM_QPS_SQD]   = (1 << MLX5SIM_QPS_RESET) | (1 << MLX5SIM_QPS_ERR) |
                          (1 << MLX5SIM_QPS_RTS)   | (1 << MLX5SIM_QPS_SQD),
    [MLX5SIM_QPS_SQE]   = (1 << MLX5SIM_QPS_RESET) | (1 << MLX5SIM_QPS_ERR) |
                          (1 << MLX5SIM_QPS_RTS),
    [MLX5SIM_QPS_ERR]   = (1 << MLX5SIM_QPS_RESET) | (1 << MLX5SIM_QPS_ERR)
};


#define TO(_cur, _next) (((_cur) * MLX5SIM_NUM_STATES) + (_next))


/* IBTA volume 1, table "QP state transition properties" */
static void mlx5sim_transition_get(unsigned type, mlx5sim_qp_state_t cur,
                                   mlx5sim_qp_state_t next,
                                   mlx5sim_transition_t *transition_p)
{
    /* XRC: each has its part of RC (kernel, qp_state_table) */
    int is_rc         = (type == MLX5SIM_QPT_RC) ||
                        (type == MLX5SIM_QPT_XRC_INI) ||
                        (type == MLX5SIM_QPT_XRC_TGT);
    int requests      = is_rc && (type != MLX5SIM_QPT_XRC_TGT);
    int responds      = is_rc && (type != MLX5SIM_QPT_XRC_INI);
    int is_ud         = (type == MLX5SIM_QPT_UD);
    uint32_t access   = is_ud ? ATTR_QKEY : ATTR_ACCESS_FLAGS;
    uint32_t migrate  = is_ud ? 0 : (ATTR_ALT_PATH | ATTR_PATH_MIG_STATE);
    uint32_t rnr      = responds ? ATTR_MIN_RNR_TIMER : 0;
    uint32_t required = 0;
    uint32_t optional = 0;

    switch (TO(cur, next)) {
    case TO(MLX5SIM_QPS_RESET, MLX5SIM_QPS_INIT):
        required = ATTR_PKEY_INDEX | ATTR_PORT | access;
        break;
    case TO(MLX5SIM_QPS_INIT, MLX5SIM_QPS_INIT):
        optional = ATTR_PKEY_INDEX | ATTR_PORT | access;
        break;
    case TO(MLX5SIM_QPS_INIT, MLX5SIM_QPS_RTR):
        optional = ATTR_PKEY_INDEX | access;
        if (!is_ud) {
            required  = ATTR_AV | ATTR_PATH_MTU | ATTR_DEST_QPN | ATTR_RQ_PSN;
            optional |= ATTR_ALT_PATH;
        }
        if (responds) {
            required |= ATTR_MAX_DEST_RD_ATOMIC | ATTR_MIN_RNR_TIMER;
        }
        break;
    case TO(MLX5SIM_QPS_RTR, MLX5SIM_QPS_RTS):
        required = ATTR_SQ_PSN;
        if (is_rc) {
            required |= ATTR_TIMEOUT;
        }
        if (requests) {
            required |= ATTR_RETRY_CNT | ATTR_RNR_RETRY | ATTR_MAX_QP_RD_ATOMIC;
        }
        optional = ATTR_CUR_STATE | access | migrate | rnr;
        break;
    case TO(MLX5SIM_QPS_RTS, MLX5SIM_QPS_RTS):
    case TO(MLX5SIM_QPS_SQD, MLX5SIM_QPS_RTS):
        optional = ATTR_CUR_STATE | access | migrate | rnr;
        break;
    case TO(MLX5SIM_QPS_RTS, MLX5SIM_QPS_SQD):
        optional = ATTR_SQD_ASYNC_NOTIFY;
        break;
    case TO(MLX5SIM_QPS_SQD, MLX5SIM_QPS_SQD):
        optional = ATTR_PKEY_INDEX | access | migrate | rnr;
        if (!is_ud) {
            optional |= ATTR_AV;
        }
        if (is_rc) {
            optional |= ATTR_PORT | ATTR_TIMEOUT;
        }
        if (requests) {
            optional |= ATTR_RETRY_CNT | ATTR_RNR_RETRY | ATTR_MAX_QP_RD_ATOMIC;
        }
        if (responds) {
            optional |= ATTR_MAX_DEST_RD_ATOMIC;
        }
        break;
    case TO(MLX5SIM_QPS_SQE, MLX5SIM_QPS_RTS):
        /* RC queue pairs never enter this state */
        optional = is_rc ? 0 : (ATTR_CUR_STATE | access);
        break;
    default:
        break;
    }

    transition_p->required = required;
    transition_p->optional = optional;
}


/* An initiator has what mlx5_ib (qp.c, modify_dci_qp_is_ok()) lets pass, which
 * is less than other types have. @return 0 if there is no such transition. */
static int mlx5sim_transition_get_dci(mlx5sim_qp_state_t cur,
                                      mlx5sim_qp_state_t next,
                                      mlx5sim_transition_t *transition_p)
{
    transition_p->required = 0;
    transition_p->optional = 0;
    if (next == MLX5SIM_QPS_RESET) {
        return 1;
    }

    if (next == MLX5SIM_QPS_ERR) {
        return cur != MLX5SIM_QPS_RESET;
    }

    switch (TO(cur, next)) {
    case TO(MLX5SIM_QPS_RESET, MLX5SIM_QPS_INIT):
        transition_p->required = ATTR_PKEY_INDEX | ATTR_PORT;
        return 1;
    case TO(MLX5SIM_QPS_INIT, MLX5SIM_QPS_INIT):
        transition_p->optional = ATTR_PKEY_INDEX | ATTR_PORT;
        return 1;
    case TO(MLX5SIM_QPS_INIT, MLX5SIM_QPS_RTR):
        transition_p->required = ATTR_PATH_MTU;
        transition_p->optional = ATTR_PKEY_INDEX | ATTR_AV;
        return 1;
    case TO(MLX5SIM_QPS_RTR, MLX5SIM_QPS_RTS):
        transition_p->required = ATTR_TIMEOUT | ATTR_RETRY_CNT |
                                 ATTR_RNR_RETRY | ATTR_MAX_QP_RD_ATOMIC |
                                 ATTR_SQ_PSN;
        transition_p->optional = ATTR_MIN_RNR_TIMER;
        return 1;
    case TO(MLX5SIM_QPS_RTS, MLX5SIM_QPS_RTS):
        transition_p->optional = ATTR_MIN_RNR_TIMER;
        return 1;
    default:
        return 0;
    }
}


/* A target goes to RTR, which makes it, and from there nowhere (mlx5_ib,
 * mlx5_ib_modify_dct()). @return as above */
static int mlx5sim_transition_get_dct(mlx5sim_qp_state_t cur,
                                      mlx5sim_qp_state_t next,
                                      mlx5sim_transition_t *transition_p)
{
    transition_p->optional = 0;
    switch (TO(cur, next)) {
    case TO(MLX5SIM_QPS_RESET, MLX5SIM_QPS_INIT):
        transition_p->required = ATTR_ACCESS_FLAGS | ATTR_PKEY_INDEX |
                                 ATTR_PORT;
        return 1;
    case TO(MLX5SIM_QPS_INIT, MLX5SIM_QPS_RTR):
        transition_p->required = ATTR_MIN_RNR_TIMER | ATTR_AV | ATTR_PATH_MTU;
        return 1;
    default:
        return 0;
    }
}


static mlx5sim_chk_t
mlx5sim_qp_modify_check_dc(unsigned type, mlx5sim_qp_state_t cur,
                           mlx5sim_qp_state_t next, uint32_t attr_mask)
{
    mlx5sim_transition_t transition;
    int is_known;

    if (!(attr_mask & ATTR_STATE)) {
        return MLX5SIM_CHK_QP_ATTR;
    }

    is_known = (type == MLX5SIM_QPT_DCI) ?
               mlx5sim_transition_get_dci(cur, next, &transition) :
               mlx5sim_transition_get_dct(cur, next, &transition);
    if (!is_known) {
        return MLX5SIM_CHK_QP_TRANSITION;
    }

    if (((attr_mask & transition.required) != transition.required) ||
        (attr_mask & ~(transition.required | transition.optional |
                       ATTR_STATE))) {
        return MLX5SIM_CHK_QP_ATTR;
    }

    return MLX5SIM_CHK_OK;
}


unsigned mlx5sim_qp_modify_type(const mlx5sim_qp_t *qp)
{
    switch (qp->xrc) {
    case MLX5SIM_XRC_INI:
        return MLX5SIM_QPT_XRC_INI;
    case MLX5SIM_XRC_TGT:
        return MLX5SIM_QPT_XRC_TGT;
    default:
        return qp->type;
    }
}


mlx5sim_chk_t mlx5sim_qp_modify_check(unsigned type, mlx5sim_qp_state_t cur,
                                      mlx5sim_qp_state_t next,
                                      uint32_t attr_mask)
{
    mlx5sim_transition_t transition;

    if ((type == MLX5SIM_QPT_DCI) || (type == MLX5SIM_QPT_DCT)) {
        return mlx5sim_qp_modify_check_dc(type, cur, next, attr_mask);
    }

    if (((type < MLX5SIM_QPT_RC) || (type > MLX5SIM_QPT_UD)) &&
        (type != MLX5SIM_QPT_XRC_INI) && (type != MLX5SIM_QPT_XRC_TGT)) {
        return MLX5SIM_CHK_QP_ATTR;
    }

    if (((unsigned)cur >= MLX5SIM_NUM_STATES) ||
        ((unsigned)next >= MLX5SIM_NUM_STATES) ||
        !(mlx5sim_next_states[cur] & (1u << next))) {
        return MLX5SIM_CHK_QP_TRANSITION;
    }

    mlx5sim_transition_get(type, cur, next, &transition);
    if ((attr_mask & transition.required) != transition.required) {
        return MLX5SIM_CHK_QP_ATTR;
    }

    if (attr_mask & ~(transition.required | transition.optional | ATTR_STATE)) {
        return MLX5SIM_CHK_QP_ATTR;
    }

    return MLX5SIM_CHK_OK;
}


const char *mlx5sim_qp_state_name(unsigned state)
{
    static const char *names[MLX5SIM_NUM_STATES] = {
        [MLX5SIM_QPS_RESET] = "RESET",
        [MLX5SIM_QPS_INIT]  = "INIT",
        [MLX5SIM_QPS_RTR]   = "RTR",
        [MLX5SIM_QPS_RTS]   = "RTS",
        [MLX5SIM_QPS_SQD]   = "SQD",
        [MLX5SIM_QPS_SQE]   = "SQE",
        [MLX5SIM_QPS_ERR]   = "ERR"
    };

    return (state < MLX5SIM_NUM_STATES) ? names[state] : "unknown";
}


uint64_t mlx5sim_rnr_timer_ns(unsigned min_rnr_timer)
{
    /* IBTA volume 1, table "Encoding for RNR NAK timer field", in units of
     * 10 microseconds */
    static const uint32_t timers[32] = {
        65536, 1,    2,    3,    4,    6,     8,     12,
        16,    24,   32,   48,   64,   96,    128,   192,
        256,   384,  512,  768,  1024, 1536,  2048,  3072,
        4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152
    };

    return timers[min_rnr_timer & 31] * (uint64_t)10000;
}


uint64_t mlx5sim_ack_timeout_ns(unsigned timeout)
{
    /* IBTA "Local ACK timeout": 4.096 us * 2^timeout, 0 waits for ever */
    return (timeout & 31) ? ((uint64_t)4096 << (timeout & 31)) : 0;
}
