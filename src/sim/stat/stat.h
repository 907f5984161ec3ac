/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_STAT_H_
#define MLX5SIM_STAT_H_

#include <sim/config/config.h>
#include <sim/objs/obj.h>

#include <stdint.h>
#include <stdio.h>

/* What mlx5sim-stat prints, and how. */

#define MLX5SIM_STAT_COUNTERS 13

/** What one process, or all of them, have and did. */
typedef struct mlx5sim_stat_row {
    const char *name;
    int        pid;       /**< 0: the sum of all */
    int        live;
    uint32_t   tag;       /**< of a live process */
    uint64_t   now[MLX5SIM_OBJ_LAST];          /**< objects it has */
    uint64_t   created[MLX5SIM_OBJ_LAST];      /**< objects it ever created */
    uint64_t   uars_now[MLX5SIM_UAR_LAST];     /**< of the UARs, each kind */
    uint64_t   uars_created[MLX5SIM_UAR_LAST];
    uint64_t   uuars_used;                     /**< with a QP on them, now */
    uint64_t   counters[MLX5SIM_STAT_COUNTERS];
} mlx5sim_stat_row_t;

typedef void (*mlx5sim_stat_row_func_t)(const mlx5sim_stat_row_t *row,
                                        void *arg);

/** Names of mlx5sim_stat_row_t.counters. */
extern const char *const
mlx5sim_stat_counter_names[MLX5SIM_STAT_COUNTERS];

/** Call @a func for each process in the mapped store.
 *  @param all    Also those that have ended, which come first.
 *  @param sum_p  What all of them have, and did. */
void mlx5sim_stat_for_each(int all, mlx5sim_stat_row_func_t func, void *arg,
                           mlx5sim_stat_row_t *sum_p);

/** uUARs of UAR pages, given their number by kind. */
uint64_t mlx5sim_stat_uuars(const uint64_t uars[MLX5SIM_UAR_LAST]);

/** BlueFlame registers of its UAR page that a QP uses, one bit each: the
 *  kernel's choice or, if the library chooses, those that were rung. */
uint32_t mlx5sim_stat_qp_registers(const mlx5sim_qp_obj_t *qp);

/** Names for people and programs. */
const char *mlx5sim_stat_qp_type(unsigned type);
const char *mlx5sim_stat_uuar_class(unsigned uuar_class);
const char *mlx5sim_stat_uar_kind(unsigned kind);

/** Print the processes of the mapped store and their sum.
 *  @param all     Also those that have ended.
 *  @param detail  Also the contexts and QPs of those that have not.
 *  @param before_p  Sum of an earlier table, replaced by that of this one, for
 *                   a row of what has been added since; NULL: without one. */
void mlx5sim_stat_table(FILE *stream, const mlx5sim_config_t *config, int all,
                        int detail, mlx5sim_stat_row_t *before_p);
/** Print what they have as sep_info --node reads it: a section for each. */
void mlx5sim_stat_node(FILE *stream);

void mlx5sim_stat_json(FILE *stream, const mlx5sim_config_t *config, int all,
                       int detail);

#endif
