/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_REPORT_H_
#define MLX5SIM_REPORT_H_

#include <sim/objs/obj.h>

/*
 * Strict checks: loud reports of what software must never do. A report goes to
 * standard error, with a decoded WQE where there is one, and one line of it to
 * the instance's file `violations`, which makes mlx5sim-run fail.
 * MLX5SIM_STRICT says what happens: 0 nothing is reported, 1 report and go on
 * as hardware would, 2 report and abort.
 */

/** @param wqe_index  SQ position to dump, -1 for none. */
void mlx5sim_report_qp(mlx5sim_chk_t chk, mlx5sim_qp_obj_t *qp, int wqe_index,
                       const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

void mlx5sim_report_cq(mlx5sim_chk_t chk, mlx5sim_cq_t *cq, const char *fmt,
                       ...) __attribute__((format(printf, 3, 4)));

void mlx5sim_report_obj(mlx5sim_chk_t chk, mlx5sim_obj_t *obj, const char *kind,
                        uint32_t number, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/** @param dump  What to show below, lines of text. */
void mlx5sim_report_dump(mlx5sim_chk_t chk, const char *kind, uint32_t number,
                         const char *dump, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/** Choose the mode, and where the instance is. */
void mlx5sim_report_init(int strict, const char *dir);

/** Whether checks are on. */
int mlx5sim_report_enabled(void);

#endif
