/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_RDMACM_EVENT_H_
#define MLX5SIM_RDMACM_EVENT_H_

#include <sim/objs/cm.h>

/*
 * Events of ids. A channel is a FIFO with an entry for each event that the
 * library has not read: what else belongs to the event is in the id. Under the
 * CM lock.
 */

/** An entry. */
typedef struct mlx5sim_cm_event {
    mlx5sim_cm_ref_t id;      /* of a request: what it made */
    uint32_t         event;   /* MLX5SIM_CM_EVENT_* */
    int32_t          status;  /* -errno, or a reason */
} mlx5sim_cm_event_t;

/**
 * Tell an id. One that was not accepted by its process is not told anything
 * but that it is there: ucma_event_handler() of ucma.c. Neither is one that its
 * process has left.
 *
 * @return 0, or -ENOMEM if the channel has no room; then a message was printed.
 */
int mlx5sim_cm_event_post(mlx5sim_cm_id_t *id, unsigned event, int status);

/** Tell an id again what a process was about to tell it that has died of it. */
void mlx5sim_cm_event_mend(mlx5sim_cm_id_t *id);

/** Read the first event of a channel of this process.
 *  @param fd  Its descriptor.
 *  @param [out] id_p  Whose event it is.
 *  @return 1, or 0 if there is none. */
int mlx5sim_cm_event_take(int fd, mlx5sim_cm_event_t *event_p,
                          mlx5sim_cm_id_t **id_p);

/**
 * Take events out of a channel of this process.
 *
 * @param id  Whose: its own, and requests that it is to accept.
 * @param to  Channel that gets them, NULL: nobody. Then ids of such requests
 *            are left to the caller:
 * @param [out] requests  Room for their ids, for as many as @a id has unread.
 * @return how many these are.
 */
unsigned mlx5sim_cm_event_remove(mlx5sim_cm_id_t *id, mlx5sim_chan_t *to,
                                 mlx5sim_cm_id_t **requests);

#endif
