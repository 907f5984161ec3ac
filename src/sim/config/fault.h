/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_FAULT_H_
#define MLX5SIM_FAULT_H_

#include <stddef.h>

/*
 * Faults on request: MLX5SIM_FAIL is a list such as "qp:3,mr:10+:EAGAIN" that
 * says which uverbs commands of a process fail, and how.
 */

/** What can fail. */
typedef enum {
    MLX5SIM_FAULT_NONE,
    MLX5SIM_FAULT_CONTEXT,
    MLX5SIM_FAULT_UAR,
    MLX5SIM_FAULT_PD,
    MLX5SIM_FAULT_MR,
    MLX5SIM_FAULT_CHANNEL,
    MLX5SIM_FAULT_CQ,
    MLX5SIM_FAULT_SRQ,
    MLX5SIM_FAULT_QP,
    MLX5SIM_FAULT_AH,
    MLX5SIM_FAULT_MODIFY_SRQ,
    MLX5SIM_FAULT_MODIFY_QP,
    MLX5SIM_FAULT_MODIFY_QP_INIT,
    MLX5SIM_FAULT_MODIFY_QP_RTR,
    MLX5SIM_FAULT_MODIFY_QP_RTS,
    MLX5SIM_FAULT_QUERY_QP,
    MLX5SIM_FAULT_QUERY_DEVICE,
    MLX5SIM_FAULT_QUERY_PORT,
    MLX5SIM_FAULT_LAST
} mlx5sim_fault_object_t;

/** Maximum number of entries in a list. */
#define MLX5SIM_FAULT_MAX 16

/** One entry: OBJECT[:NTH[+][:ERRNO]]. */
typedef struct mlx5sim_fault_entry {
    mlx5sim_fault_object_t object;
    unsigned               nth;     /**< from 1 */
    int                    onwards; /**< "+": and all that follow */
    int                    error;   /**< an errno */
} mlx5sim_fault_entry_t;

/** A list. */
typedef struct mlx5sim_fault_list {
    unsigned              num;
    mlx5sim_fault_entry_t entries[MLX5SIM_FAULT_MAX];
} mlx5sim_fault_list_t;

/** Name of an object in the list: "qp". */
const char *mlx5sim_fault_name(mlx5sim_fault_object_t object);

/** Name of an errno that a list may hold: "ENOMEM"; NULL if there is none. */
const char *mlx5sim_fault_error_name(int error);

/** Parse a list; an empty one is valid. @return 0, or -1 if it is malformed. */
int mlx5sim_fault_parse(const char *text, mlx5sim_fault_list_t *list_p);

/** @return errno with which the @a count-th command on @a object is to fail, or
 *          0. */
int mlx5sim_fault_match(const mlx5sim_fault_list_t *list,
                        mlx5sim_fault_object_t object, unsigned count);

#endif
