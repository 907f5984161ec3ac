/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/engine/engine.h>

/** Name of a check in reports and settings, and what to look for when it
 *  fires. */
typedef struct {
    const char *name;
    const char *hint;
} mlx5sim_chk_text_t;


static const mlx5sim_chk_text_t mlx5sim_chk_texts[MLX5SIM_CHK_LAST] = {
    [MLX5SIM_CHK_OK]            = {
        "ok",
        "nothing is wrong"},
    [MLX5SIM_CHK_WQE_INDEX]     = {
        "wqe_index",
        "the control segment's index must be the 16-bit count of 64-byte "
        "blocks posted before; look for a producer index that counts WQEs, or "
        "a doorbell record ahead of what was written"},
    [MLX5SIM_CHK_WQE_QPN]       = {
        "wqe_qpn",
        "the control segment names another QP; look for a WQE copied from, or "
        "written to, the wrong send queue"},
    [MLX5SIM_CHK_WQE_DS]        = {
        "wqe_ds",
        "ds counts all 16-byte units of the WQE, the control segment included: "
        "it must cover the opcode's segments and fit the send queue"},
    [MLX5SIM_CHK_WQE_OPCODE]    = {
        "wqe_opcode",
        "the device does not know the opcode, or the QP's transport service "
        "does not have it (reads and atomics: RC and DC only)"},
    [MLX5SIM_CHK_WQE_OPMOD]     = {
        "wqe_opmod",
        "the opcode modifier is 0 but for masked atomics, where it is "
        "8 | (log2(operand bytes) - 2)"},
    [MLX5SIM_CHK_WQE_RESERVED]  = {
        "wqe_reserved",
        "bits 7:6 of ds, bits 4 and 0 of fm_ce_se and fence modes above 4 are "
        "reserved; look for a flag shifted to the wrong place"},
    [MLX5SIM_CHK_WQE_CE]        = {
        "wqe_ce",
        "the completion mode is 0 (CQE on error) or 2 (always); look for flags "
        "added together instead of or-ed"},
    [MLX5SIM_CHK_WQE_INLINE]    = {
        "wqe_inline",
        "the inline length goes beyond the end of the WQE; look at ds, and "
        "at the byte order of byte_count"},
    [MLX5SIM_CHK_WQE_SEGMENT]   = {
        "wqe_segment",
        "ds counts a data segment that was not written, ends a list (lkey "
        "0x100), or is inline where data is to be received"},
    [MLX5SIM_CHK_WQE_ATOMIC]    = {
        "wqe_atomic",
        "an atomic has operands of 4 or 8 bytes and data segments of exactly "
        "that size in all"},
    [MLX5SIM_CHK_WQE_AV]        = {
        "wqe_av",
        "bits 30:24 of dqp_dct are reserved (those of DC initiators: 30:28), "
        "and on Ethernet the 48-byte address vector (bit 31) is needed"},
    [MLX5SIM_CHK_WQE_UD_LENGTH] = {
        "wqe_ud_length",
        "a datagram must fit one packet: its payload is larger than the MTU"},
    [MLX5SIM_CHK_WQE_LENGTH]    = {
        "wqe_length",
        "a message is at most 2^31 bytes; note that a data segment with "
        "byte_count 0 means 2^31, leave empty segments out"},
    [MLX5SIM_CHK_RECV_WQE]      = {
        "recv_wqe",
        "a receive WQE is a list of data segments, none of them inline, ended "
        "by lkey 0x100 or by the stride"},
    [MLX5SIM_CHK_SQ_OVERRUN]    = {
        "sq_overrun",
        "more blocks are posted than the send queue has; wait for completions "
        "before reusing them"},
    [MLX5SIM_CHK_SQ_REUSED]     = {
        "sq_reused",
        "a block of the send queue belongs to the device until a completion "
        "tells that its WQE, or a later one, is finished"},
    [MLX5SIM_CHK_RQ_OVERRUN]    = {
        "rq_overrun",
        "more receives are posted than the receive queue has; repost only what "
        "has completed"},
    [MLX5SIM_CHK_SRQ_LIST]      = {
        "srq_list",
        "next_wqe_index of an SRQ WQE is outside the SRQ; the list is broken, "
        "or an entry was reposted before it completed"},
    [MLX5SIM_CHK_SRQ_LEAK]      = {
        "srq_leak",
        "IBTA 10.3.1: before a QP on an SRQ is destroyed or reset, bring it to "
        "the error state and wait for IBV_EVENT_QP_LAST_WQE_REACHED"
    },
    [MLX5SIM_CHK_CQ_OVERRUN]    = {
        "cq_overrun",
        "a completion found the CQ full; make the CQ as large as all work that "
        "can complete, and update its consumer index record"},
    [MLX5SIM_CHK_CQ_CI]         = {
        "cq_ci",
        "the consumer index record is ahead of what was completed; look for a "
        "poll that ignores the ownership bit"},
    [MLX5SIM_CHK_DB_UNCOVERED]  = {
        "db_uncovered",
        "the doorbell was rung but the doorbell record does not cover a new "
        "WQE; write the record first, then a store fence, then the doorbell"},
    [MLX5SIM_CHK_DB_QPN]        = {
        "db_qpn",
        "the doorbell's QP number belongs to no QP of this context"},
    [MLX5SIM_CHK_DB_VALUE]      = {
        "db_value",
        "the doorbell must carry the first 8 bytes of the last WQE posted"},
    [MLX5SIM_CHK_DB_STATE]      = {
        "db_state",
        "the QP cannot send in this state; modify it to RTS before posting"},
    [MLX5SIM_CHK_DB_OFFSET]     = {
        "db_offset",
        "the store is outside the doorbell registers of the UAR page; look at "
        "the register offset and its toggling by the BlueFlame size"},
    [MLX5SIM_CHK_BF_MISMATCH]   = {
        "bf_mismatch",
        "the bytes copied to BlueFlame are not those of the WQE in the send "
        "queue; look at the copy's source where the queue wraps"},
    [MLX5SIM_CHK_WC_RACE]       = {
        "wc_race",
        "what one thread stored may still be in its write-combining buffer, so "
        "the device may see the other thread's first; flush (a store fence "
        "behind the doorbell) before another thread may ring the same "
        "register"},
    [MLX5SIM_CHK_WC_ORDER]      = {
        "wc_order",
        "two stores to a register without a fence between them: they may be "
        "combined, or arrive in any order"},
    [MLX5SIM_CHK_BF_BUFFER]     = {
        "bf_buffer",
        "the two buffers of a BlueFlame register are to be used in turn; look "
        "at what toggles the offset"},
    [MLX5SIM_CHK_CQ_ARM]        = {
        "cq_arm",
        "the arm doorbell's CQ number, sequence number or consumer index "
        "differs from the arm record's"},
    [MLX5SIM_CHK_UAR]           = {
        "uar",
        "the QP was rung through a UAR page that it was not created with"},
    [MLX5SIM_CHK_QP_TRANSITION] = {
        "qp_transition",
        "the state machine does not lead from the QP's state to the one asked "
        "for (RESET, INIT, RTR, RTS in this order)"},
    [MLX5SIM_CHK_QP_ATTR]       = {
        "qp_attr",
        "the attribute mask lacks what the transition requires, or has what it "
        "does not allow"}
};


const char *mlx5sim_chk_name(mlx5sim_chk_t chk)
{
    return ((unsigned)chk < MLX5SIM_CHK_LAST) ? mlx5sim_chk_texts[chk].name :
                                                "unknown";
}


const char *mlx5sim_chk_hint(mlx5sim_chk_t chk)
{
    return ((unsigned)chk < MLX5SIM_CHK_LAST) ? mlx5sim_chk_texts[chk].hint :
                                                "unknown check";
}


int mlx5sim_chk_is_fatal(mlx5sim_chk_t chk)
{
    switch (chk) {
    case MLX5SIM_CHK_WQE_DS:
    case MLX5SIM_CHK_WQE_OPCODE:
    case MLX5SIM_CHK_WQE_OPMOD:
    case MLX5SIM_CHK_WQE_INLINE:
    case MLX5SIM_CHK_WQE_SEGMENT:
    case MLX5SIM_CHK_WQE_ATOMIC:
    case MLX5SIM_CHK_WQE_AV:
    case MLX5SIM_CHK_WQE_UD_LENGTH:
    case MLX5SIM_CHK_WQE_LENGTH:
    case MLX5SIM_CHK_RECV_WQE:
        return 1;
    default:
        return 0;
    }
}
