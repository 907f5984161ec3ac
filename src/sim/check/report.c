/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/check/report.h>
#include <sim/objs/raw.h>
#include <sim/objs/store.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* a broken program does so a million times a second */
#define MLX5SIM_REPORT_MAX 100

static int mlx5sim_report_mode;
static char mlx5sim_report_path[300];


void mlx5sim_report_init(int strict, const char *dir)
{
    mlx5sim_report_mode = strict;
    snprintf(mlx5sim_report_path, sizeof(mlx5sim_report_path), "%s/violations",
             dir);
}

int mlx5sim_report_enabled(void)
{
    return mlx5sim_report_mode != 0;
}

static void mlx5sim_report_write(int fd, const char *text, size_t length)
{
    ssize_t n = mlx5sim_raw_write(fd, text, length);

    (void)n;
}

static void mlx5sim_report(mlx5sim_chk_t chk, const char *what,
                           const char *detail, const char *dump)
{
    mlx5sim_proc_t *proc = mlx5sim_proc_self();
    char text[6144];
    int length, fd;

    if (mlx5sim_report_mode == 0) {
        return;
    }

    if ((mlx5sim_self_tag != 0) &&
        (atomic_fetch_add(&proc->c.violations, 1) >= MLX5SIM_REPORT_MAX)) {
        return;
    }

    length = snprintf(text, sizeof(text),
                      "mlx5sim: strict check '%s' failed on %s of pid %d: %s\n"
                      "mlx5sim:   %s\n%s", mlx5sim_chk_name(chk), what,
                      (int)getpid(), detail, mlx5sim_chk_hint(chk), dump);
    if (length > 0) {
        mlx5sim_report_write(STDERR_FILENO, text,
                             ((size_t)length < sizeof(text)) ?
                                 (size_t)length : sizeof(text) - 1);
    }

    fd = open(mlx5sim_report_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC,
              0600);
    if (fd >= 0) {
        length = snprintf(text, sizeof(text), "%s pid=%d %s: %s\n",
                          mlx5sim_chk_name(chk), (int)getpid(), what, detail);
        mlx5sim_report_write(fd, text, length);
        mlx5sim_raw_close(fd);
    }

    if (mlx5sim_report_mode > 1) {
        abort();
    }
}

void mlx5sim_report_qp(mlx5sim_chk_t chk, mlx5sim_qp_obj_t *qp, int wqe_index,
                       const char *fmt, ...)
{
    char what[64], detail[256], dump[4096] = "";
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(detail, sizeof(detail), fmt, ap);
    va_end(ap);

    snprintf(what, sizeof(what), "QP 0x%x (%s)", qp->qp.qpn,
             mlx5sim_qp_state_name(qp->qp.state));
    if ((wqe_index >= 0) &&
        (atomic_load(&qp->o.owner) == mlx5sim_self_tag)) {
        mlx5sim_wqe_dump(&qp->qp, (const void*)(uintptr_t)qp->sq, wqe_index,
                         dump, sizeof(dump));
    }

    mlx5sim_report(chk, what, detail, dump);
}

void mlx5sim_report_cq(mlx5sim_chk_t chk, mlx5sim_cq_t *cq, const char *fmt,
                       ...)
{
    char what[64], detail[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(detail, sizeof(detail), fmt, ap);
    va_end(ap);

    snprintf(what, sizeof(what), "CQ 0x%x",
             mlx5sim_obj_index(MLX5SIM_OBJ_CQ, cq));
    mlx5sim_report(chk, what, detail, "");
}

void mlx5sim_report_obj(mlx5sim_chk_t chk, mlx5sim_obj_t *obj, const char *kind,
                        uint32_t number, const char *fmt, ...)
{
    char what[64], detail[256];
    va_list ap;

    (void)obj;
    va_start(ap, fmt);
    vsnprintf(detail, sizeof(detail), fmt, ap);
    va_end(ap);

    snprintf(what, sizeof(what), "%s 0x%x", kind, number);
    mlx5sim_report(chk, what, detail, "");
}

void mlx5sim_report_dump(mlx5sim_chk_t chk, const char *kind, uint32_t number,
                         const char *dump, const char *fmt, ...)
{
    char what[64], detail[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(detail, sizeof(detail), fmt, ap);
    va_end(ap);

    snprintf(what, sizeof(what), "%s 0x%x", kind, number);
    mlx5sim_report(chk, what, detail, dump);
}
