/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/trace/trace.h>
#include <sim/engine/mlx5_def.h>
#include <sim/engine/opcode.h>
#include <sim/engine/packet.h>
#include <sim/instance/instance.h>
#include <sim/objs/clock.h>
#include <sim/objs/raw.h>
#include <sim/objs/store.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Rows that are no threads: beyond all thread ids, of which there are 2^22 at
 * most (PID_MAX_LIMIT) */
#define MLX5SIM_TRACE_QP   0x10000000u
#define MLX5SIM_TRACE_CQ   0x20000000u

/* An event is a line, and a line is one write */
#define MLX5SIM_TRACE_LINE 384

/* Rows that have been named, by the low bits of their numbers */
#define MLX5SIM_TRACE_NAMED 4096

/* The program's own descriptors are to have the numbers that they have without
 * us */
#define MLX5SIM_TRACE_MIN_FD 512

int mlx5sim_trace_fd = -1;

static _Atomic uint32_t mlx5sim_trace_named[2][MLX5SIM_TRACE_NAMED];


int mlx5sim_trace_open(void)
{
    const mlx5sim_config_t *config = mlx5sim_instance_config();
    int fd, high;

    /* Kept by a child after fork, as all of an instance write to one file */
    if ((config->trace[0] == '\0') || (mlx5sim_trace_fd >= 0)) {
        return 0;
    }

    fd = open(config->trace, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC,
              0666);
    if (fd >= 0) {
        (void)!write(fd, "[\n", 2);
    } else {
        fd = open(config->trace, O_WRONLY | O_APPEND | O_CLOEXEC);
    }
    if (fd < 0) {
        fprintf(stderr, "mlx5sim: MLX5SIM_TRACE=%s: %s\n", config->trace,
                strerror(errno));
        return -1;
    }

    /* a program that closes its descriptors by number keeps it so */
    high = fcntl(fd, F_DUPFD_CLOEXEC, MLX5SIM_TRACE_MIN_FD);
    if (high >= 0) {
        mlx5sim_raw_close(fd);
        fd = high;
    }
    mlx5sim_trace_fd = fd;
    return 0;
}

/* @param phase  "i" for an instant of a row, "X" for what has a duration */
static void __attribute__((format(printf, 6, 7)))
mlx5sim_trace_write(const char *phase, const char *name, pid_t pid,
                    uint32_t row, uint64_t begin, const char *args, ...)
{
    uint64_t now = mlx5sim_clock_now();
    uint64_t ns  = (begin != 0) ? begin : now;
    char line[MLX5SIM_TRACE_LINE];
    va_list ap;
    int length;

    length = snprintf(line, sizeof(line), "{\"ph\":\"%s\",\"s\":\"t\","
                      "\"name\":\"%s\",\"pid\":%d,\"tid\":%u,"
                      "\"ts\":%" PRIu64 ".%03u,\"dur\":%" PRIu64 ".%03u,"
                      "\"args\":{", phase, name, (int)pid, row, ns / 1000,
                      (unsigned)(ns % 1000), (now - ns) / 1000,
                      (unsigned)((now - ns) % 1000));
    va_start(ap, args);
    length += vsnprintf(line + length, sizeof(line) - length, args, ap);
    va_end(ap);
    length += snprintf(line + length, sizeof(line) - length, "}},\n");
    (void)mlx5sim_raw_write(mlx5sim_trace_fd, line, length);
}

/* @return the process that has an object, and its row, which has a name. 0:
 * there is none. */
static pid_t mlx5sim_trace_row(const mlx5sim_obj_t *obj, uint32_t base,
                               uint32_t num, uint32_t *row_p)
{
    const mlx5sim_proc_t *proc = mlx5sim_proc_by_tag(atomic_load(&obj->owner));
    int is_qp                  = base == MLX5SIM_TRACE_QP;
    uint32_t mark              = base | num;

    *row_p = mark;
    if (proc == NULL) {
        return 0;
    }

    if (atomic_exchange(&mlx5sim_trace_named[is_qp][num % MLX5SIM_TRACE_NAMED],
                        mark) != mark) {
        mlx5sim_trace_write("M", "thread_name", proc->pid, mark, 0,
                            "\"name\":\"%s 0x%x\"", is_qp ? "QP" : "CQ", num);
    }
    return proc->pid;
}

static pid_t mlx5sim_trace_qp_row(const mlx5sim_qp_obj_t *qp, uint32_t *row_p)
{
    return mlx5sim_trace_row(&qp->o, MLX5SIM_TRACE_QP, qp->qp.qpn, row_p);
}

static pid_t mlx5sim_trace_cq_row(const mlx5sim_cq_t *cq, uint32_t *row_p)
{
    return mlx5sim_trace_row(&cq->o, MLX5SIM_TRACE_CQ,
                             mlx5sim_obj_index(MLX5SIM_OBJ_CQ, cq), row_p);
}

void mlx5sim_trace_doorbell(const mlx5sim_qp_obj_t *qp, unsigned index,
                            unsigned length)
{
    mlx5sim_trace_write("i", (length > 8) ? "BlueFlame" : "doorbell", getpid(),
                        syscall(SYS_gettid), 0,
                        "\"qp\":\"0x%x\",\"wqe\":\"0x%x\",\"bytes\":%u",
                        qp->qp.qpn, index, length);
}

void mlx5sim_trace_post(const mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe)
{
    char name[64];

    snprintf(name, sizeof(name), "post %s", mlx5sim_opcode_name(wqe->opcode));
    mlx5sim_trace_write("i", name, getpid(), syscall(SYS_gettid), 0,
                        "\"qp\":\"0x%x\",\"wqe\":\"0x%x\",\"bytes\":%u",
                        qp->qp.qpn, wqe->index, wqe->length);
}

void mlx5sim_trace_wqe(const mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                       uint64_t begin)
{
    uint32_t row;
    pid_t pid = mlx5sim_trace_qp_row(qp, &row);

    mlx5sim_trace_write("X", mlx5sim_opcode_name(wqe->opcode), pid, row, begin,
                        "\"wqe\":\"0x%x\",\"bytes\":%u,\"signaled\":%u,"
                        "\"packets\":%u",
                        wqe->index, wqe->length, wqe->signaled,
                        mlx5sim_opcode_is_local(wqe->opcode) ?
                        0 : mlx5sim_packet_count(&qp->qp, wqe->length));
}

void mlx5sim_trace_packet(const mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                          uint32_t psn, int is_lost)
{
    uint32_t row;
    pid_t pid = mlx5sim_trace_qp_row(qp, &row);

    mlx5sim_trace_write("i", is_lost ? "packet lost" : "packet", pid, row, 0,
                        "\"of\":\"%s\",\"wqe\":\"0x%x\",\"psn\":%u",
                        mlx5sim_opcode_name(wqe->opcode), wqe->index, psn);
}

static const char *mlx5sim_trace_cqe_name(const mlx5sim_cqe_t *cqe)
{
    switch (cqe->opcode) {
    case MLX5SIM_CQE_REQ:
        return mlx5sim_opcode_name(cqe->wqe_opcode);
    case MLX5SIM_CQE_REQ_ERR:
    case MLX5SIM_CQE_RESP_ERR:
        return mlx5sim_syndrome_name(cqe->syndrome);
    case MLX5SIM_CQE_SIG_ERR:
        return "wrong signature";
    default:
        return "receive";
    }
}

void mlx5sim_trace_cqe(const mlx5sim_cq_t *cq, const mlx5sim_cqe_t *cqe)
{
    uint32_t row;
    pid_t pid = mlx5sim_trace_cq_row(cq, &row);

    mlx5sim_trace_write("i", mlx5sim_trace_cqe_name(cqe), pid, row, 0,
                        "\"qp\":\"0x%x\",\"wqe\":\"0x%x\",\"bytes\":%u",
                        cqe->qpn, cqe->wqe_counter, cqe->byte_cnt);
}

void mlx5sim_trace_poll(const mlx5sim_cq_t *cq, uint32_t count)
{
    uint32_t row;
    pid_t pid = mlx5sim_trace_cq_row(cq, &row);

    mlx5sim_trace_write("i", "polled", pid, row, 0, "\"count\":%u", count);
}

void mlx5sim_trace_arm(const mlx5sim_cq_t *cq)
{
    uint32_t row;
    pid_t pid = mlx5sim_trace_cq_row(cq, &row);

    mlx5sim_trace_write("i", "armed", pid, row, 0, "\"by\":%d",
                        (int)syscall(SYS_gettid));
}
