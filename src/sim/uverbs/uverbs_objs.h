/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_UVERBS_OBJS_H_
#define MLX5SIM_UVERBS_OBJS_H_

#include <sim/uverbs/cmd.h>

#include <rdma/ib_user_verbs.h>

/*
 * What verbs commands do with objects. Firmware commands come in by the same
 * doors: they fill in the commands' input. All return 0 or -errno.
 */

/** Create a queue pair from @a cmd's mlx5_ib_create_qp; the UHW reply is
 *  optional. */
int mlx5sim_qp_create(mlx5sim_cmd_t *cmd, uint64_t user_handle,
                      uint32_t pd_handle, uint32_t send_cq, uint32_t recv_cq,
                      uint32_t srq_handle,
                      const struct ib_uverbs_create_qp *caps,
                      struct ib_uverbs_create_qp_resp *reply_p);

/** Create a completion queue from @a cmd's mlx5_ib_create_cq. */
int mlx5sim_cq_create(mlx5sim_cmd_t *cmd, uint64_t user_handle, uint32_t num,
                      uint32_t comp_vector, int32_t channel_fd, uint32_t flags,
                      struct ib_uverbs_create_cq_resp *reply_p);

/** Create a shared receive queue from @a cmd's mlx5_ib_create_srq. */
int mlx5sim_srq_create(mlx5sim_cmd_t *cmd, uint64_t user_handle,
                       uint32_t pd_handle, uint32_t max_wr, uint32_t max_sge,
                       uint32_t limit,
                       struct ib_uverbs_create_srq_resp *reply_p);

/** Commands ALLOC_PD, MODIFY_QP, and those that destroy, whose input starts
 *  with the handle or has it there as its struct says. */
int mlx5sim_cmd_alloc_pd(mlx5sim_cmd_t *cmd);
int mlx5sim_cmd_dealloc_pd(mlx5sim_cmd_t *cmd);
int mlx5sim_cmd_dereg_mr(mlx5sim_cmd_t *cmd);
int mlx5sim_cmd_modify_qp(mlx5sim_cmd_t *cmd);
int mlx5sim_cmd_destroy_cq(mlx5sim_cmd_t *cmd);
int mlx5sim_cmd_destroy_srq(mlx5sim_cmd_t *cmd);
int mlx5sim_cmd_destroy_qp(mlx5sim_cmd_t *cmd);

/** Command REREG_MR. */
int mlx5sim_cmd_rereg_mr(mlx5sim_cmd_t *cmd);

/** Whether a memory region may have these access flags. */
int mlx5sim_mr_check_access(unsigned access);

/** Make a memory region as @a as says, but for the key; @a dm is the index of
 *  the device memory that it is of, 0: none. With @a is_dmabuf its memory is
 *  unmapped with it. */
int mlx5sim_mr_make(mlx5sim_ctx_t *ctx, const mlx5sim_mr_t *as, uint32_t dm,
                    int is_dmabuf, mlx5sim_mr_obj_t **mr_p);

/** Whether both addresses are at the same offset in their pages. */
int mlx5sim_mr_is_aligned(uint64_t start, uint64_t hca_va);

/** For up to how many pages, as a power of 2, the kernel takes a key for this
 *  memory. */
unsigned mlx5sim_mr_log_pages(uint64_t start, uint64_t length);

/** Pin memory as far as that can be told: it has to be there, and writable if
 *  @a access lets the device write. */
int mlx5sim_mr_pin(uint64_t start, uint64_t length, unsigned access);

/** Whether access flags let the device write. */
int mlx5sim_mr_is_writable(unsigned access);

/** Get hold of memory for a region: pin it, unless that is to be done on
 *  demand. */
int mlx5sim_mr_get(uint64_t start, uint64_t length, uint64_t hca_va,
                   unsigned access);

/** Free a list of keys, from index @a list of a KLM on; 0: there is none. */
void mlx5sim_klm_free(uint32_t list);

#endif
