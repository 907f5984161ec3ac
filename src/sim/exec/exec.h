/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_EXEC_H_
#define MLX5SIM_EXEC_H_

#include "sim/objs/store.h"

/*
 * The executor: carries out what the pure engine plans, under the locks of the
 * store, in the process that posted the work.
 *
 * A send queue is always run by the process that owns it, in the thread that
 * rang the doorbell. What cannot be finished at once (receiver not ready, peer
 * not connected yet, a flush that another process caused) is left to the helper
 * thread of the owner; a doorbell never waits.
 */

/** Take a QP's responder lock; repairs what a killed peer left behind. */
void mlx5sim_rq_lock(mlx5sim_qp_obj_t *qp);

/** Execute what is posted on @a qp, which belongs to this process. */
void mlx5sim_sq_run(mlx5sim_qp_obj_t *qp);

/** Move @a qp (of this process) to the error state and flush both queues.
 *  Takes sq_lock and rq_lock. */
void mlx5sim_qp_flush(mlx5sim_qp_obj_t *qp);

/** Make sure that nobody executes or delivers to @a qp (of this process) any
 *  more. */
void mlx5sim_qp_withdraw(mlx5sim_qp_obj_t *qp);

/** Ask the owner of @a qp to look at its send queue soon. */
void mlx5sim_qp_kick(mlx5sim_qp_obj_t *qp);


/** Put a completion into @a cq, which may belong to any process.
 *  @param claim  Receive WQE it completes, NULL for send completions.
 *  @return 0, or -1 if the CQ is full or its process is gone. */
int mlx5sim_cq_push(mlx5sim_cq_t *cq, const mlx5sim_cqe_t *cqe,
                    mlx5sim_claim_t *claim);

/** Go on in another ring. The CQEs that are not polled stay in the old one, with
 *  one behind them that says so (PRM: RESIZE_CQ), for the driver to copy them.
 *  @param buf       Address of the new ring in this process, the CQ's owner.
 *  @param num_cqes  Its length, 2^n.
 *  @param cqe_size  64 or 128.
 *  @return 0, -EINVAL if the new ring can't hold what is not polled, or if the
 *          old one is full. */
int mlx5sim_cq_resize(mlx5sim_cq_t *cq, uint64_t buf, uint32_t num_cqes,
                      uint32_t cqe_size);

/** Arm doorbell: @a sn_cmd_ci is the first word as stored, host order. */
void mlx5sim_cq_arm(mlx5sim_cq_t *cq, uint32_t sn_cmd_ci);



/** Take the lock of a CQ or an SRQ; repairs what a killed process left behind. */
void mlx5sim_cq_lock(mlx5sim_cq_t *cq);
void mlx5sim_srq_lock(mlx5sim_srq_t *srq);


/** Largest receive WQE: 512 bytes of an RQ, 16 + 31 * 16 of an SRQ, rounded. */
#define MLX5SIM_RECV_WQE_MAX 1024

/**
 * Read a doorbell record and a WQE of a queue, in one call if it belongs to
 * another process.
 * @param db_p  Host order.
 * @return 0 or -1.
 */
int mlx5sim_recv_read(const mlx5sim_proc_t *proc, int is_mine, uint64_t db,
                      uint64_t wqe, size_t stride, uint32_t *db_p, void *wqe_p);

/** Move the next WQE of @a srq to the claim of @a qp, whose responder lock is
 *  held. @return as mlx5sim_recv_claim(). */
int mlx5sim_srq_claim(mlx5sim_srq_t *srq, mlx5sim_qp_obj_t *qp, uint8_t *wqe,
                      uint32_t *index_p);

/** Move a claimed WQE back. */
void mlx5sim_srq_unclaim(mlx5sim_srq_t *srq, mlx5sim_qp_obj_t *qp);

/** Arm the limit event of an SRQ of this process; 0 disarms it. */
void mlx5sim_srq_set_limit(mlx5sim_srq_t *srq, uint16_t limit);

/**
 * Look at the next receive WQE of @a qp and claim it.
 * @return 1, 0 if none is posted, -1 if the queue is malformed, -2 if the
 *         process is gone.
 */
int mlx5sim_recv_claim(mlx5sim_qp_obj_t *qp, mlx5sim_recv_wqe_t *recv_p);

/** Give back a claimed WQE that was not used / finish a used one. */
void mlx5sim_recv_release(mlx5sim_qp_obj_t *qp);
void mlx5sim_recv_done(mlx5sim_qp_obj_t *qp);

/** Flush all posted receive WQEs of @a qp (no SRQ); rq_lock is held. */
void mlx5sim_rq_flush(mlx5sim_qp_obj_t *qp);


/** Write an event into a channel.
 *  @return 0, or -1 if it is full or has been closed. */
int mlx5sim_chan_write(mlx5sim_chan_t *chan, const void *event, size_t size);

/** Brackets around writing and counting an event: bits of MLX5SIM_UNSURE_*. */
void mlx5sim_unsure_begin(uint32_t *unsure);
void mlx5sim_unsure_end(uint32_t *unsure);

/**
 * How many events of an object that is about to go the application has read, as
 * libibverbs waits until so many are acknowledged. Events that are still in the
 * channel are removed.
 *
 * If the count may be off because somebody was killed, what the application has
 * acknowledged by now is the best guess.
 *
 * @param handle        User handle: the address of libibverbs' object.
 * @param unsure        Whether @a written may be wrong.
 * @param written       Events counted.
 * @param acknowledged  Offset of libibverbs' counter in its object.
 */
uint32_t mlx5sim_chan_reported(mlx5sim_chan_t *chan, uint64_t handle,
                               uint32_t unsure, uint32_t written,
                               size_t acknowledged);

/** The same for the async events of @a obj. */
uint32_t mlx5sim_async_reported(mlx5sim_obj_t *obj, size_t acknowledged);

/** Raise an async event (enum ibv_event_type) on @a obj. */
void mlx5sim_async_event(mlx5sim_obj_t *obj, unsigned event);


/** Start / stop the helper thread of this process. */
int mlx5sim_helper_start(void);
void mlx5sim_helper_forget(void);

/** Put @a qp of this process under the helper's care / take it away, before it
 *  is withdrawn. @return 0, or -1 without memory. */
int mlx5sim_helper_add_qp(mlx5sim_qp_obj_t *qp);
void mlx5sim_helper_remove_qp(mlx5sim_qp_obj_t *qp);

/** Wait until what others are doing to this process' QPs now is done. */
void mlx5sim_helper_quiesce(void);

/** Remember that @a qp wants a look at @a when (CLOCK_MONOTONIC ns). */
void mlx5sim_helper_park(mlx5sim_qp_obj_t *qp, uint64_t when);

/** Wake this process' helper thread. */
void mlx5sim_proc_kick(mlx5sim_proc_t *proc);

uint64_t mlx5sim_now_ns(void);

#endif
