/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_CHAN_H_
#define MLX5SIM_CHAN_H_

#include <sim/objs/obj.h>

#include <stddef.h>

/*
 * Channels: events of completion queues, and asynchronous ones. A channel is a
 * FIFO that the application reads.
 */

/** Write an event into a channel.
 *  @return 0, or -1 if it is full or has been closed. */
int mlx5sim_chan_write(mlx5sim_chan_t *chan, const void *event, size_t size);

/** Brackets around writing and counting an event: bits of MLX5SIM_UNSURE_*. */
void mlx5sim_unsure_begin(uint32_t *unsure);
void mlx5sim_unsure_end(uint32_t *unsure);

/**
 * How many events of an object that is about to go the application has read:
 * libibverbs waits until that many are acknowledged. Events still in the
 * channel are removed.
 *
 * If the count may be off because somebody was killed, the number acknowledged
 * by now is the best guess.
 *
 * @param handle        User handle: the address of libibverbs' object.
 * @param unsure        Whether @a written may be wrong.
 * @param written       Events counted.
 * @param acknowledged  Offset of libibverbs' counter in its object.
 */
uint32_t mlx5sim_chan_reported(mlx5sim_chan_t *chan, uint64_t handle,
                               uint32_t unsure, uint32_t written,
                               size_t acknowledged);

/** @return Async events of @a obj that libibverbs has reported, see
 *          mlx5sim_chan_reported(). */
uint32_t mlx5sim_async_reported(mlx5sim_obj_t *obj, size_t acknowledged);

/** @return Whether an event of this type was raised on @a obj and the
 *          application has not read it. */
int mlx5sim_async_is_unread(const mlx5sim_obj_t *obj, unsigned event);

/** Raise an async event of a port on a context. */
void mlx5sim_async_port_event(mlx5sim_ctx_t *ctx, unsigned port,
                              unsigned event);

/** Raise an async event (enum ibv_event_type) on @a obj. That of an object that
 *  a firmware command has made is the cookie of who has subscribed to it
 *  (kernel, devx.c, deliver_event()). */
void mlx5sim_async_event(mlx5sim_obj_t *obj, unsigned event);

#endif
