/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_SIGNATURE_EXEC_H_
#define MLX5SIM_SIGNATURE_EXEC_H_

#include <sim/objs/obj.h>

/*
 * Keys with signatures (engine/signature.h). Lengths and offsets of work
 * requests, and of peers, are those of the wire: Linux's iSER target added the
 * signatures to the length of an RDMA if the wire had them, and only then
 * (isert_reg_sig_mr(), in older versions). A message at an offset goes on in
 * the middle of a block; one that ends there has no signature of it.
 *
 * A block is checked with its last byte: what is in memory before it is sent,
 * what comes from the wire when all of it is in memory. The message arrives all
 * the same. One CQE tells of the first wrong signature, in the CQ of sends if
 * it is a work request that has used the key, or in that of receives. There is
 * no further one until a UMR asks for it (PRM: mkc.expected_sigerr_count).
 */

/** Whose use of a key it is, and who hears of wrong signatures. */
typedef struct mlx5sim_sig_user {
    mlx5sim_qp_obj_t *qp;
    mlx5sim_side_t   side;
} mlx5sim_sig_user_t;

/** Whether a list of a plan has a part with signatures. */
int mlx5sim_sig_is_in(const mlx5sim_seg_t *segs, unsigned num_segs);

/** Take signatures over from a UMR, with the lock of the key.
 *  @return 0 or a syndrome: nothing has changed. */
unsigned mlx5sim_sig_set(mlx5sim_mr_obj_t *mr, const mlx5sim_wqe_t *wqe);

/** Carry out SET_PSV. @return 0 or a syndrome. */
unsigned mlx5sim_psv_set(const mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe);

/** How many bytes a key with signatures has on the wire. */
uint64_t mlx5sim_sig_length(const mlx5sim_mr_obj_t *mr);

/**
 * Which bytes of the memory of a key are those of the wire.
 *
 * @param offset_p, length_p  From the first byte of the key. Of the wire, then
 *                            of its memory.
 * @return whether the key's PSVs are there.
 */
int mlx5sim_sig_find(const mlx5sim_mr_obj_t *mr, uint64_t *offset_p,
                     uint64_t *length_p);

/**
 * Read or write bytes of the wire in the memory of a process.
 *
 * @param user    NULL: signatures are not checked.
 * @param offset  Where in the list to begin.
 * @return 0 or -errno; -EFAULT: a key does not lead there any more, or memory
 *         is not mapped.
 */
int mlx5sim_sig_move(const mlx5sim_sig_user_t *user, const mlx5sim_proc_t *proc,
                     const mlx5sim_seg_t *segs, unsigned num_segs, int is_write,
                     uint64_t offset, uint64_t length, uint8_t *data);

#endif
