/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/objs/proc.h>
#include <sim/objs/store.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PR_SET_PTRACER
#define PR_SET_PTRACER 0x59616d61
#endif


uint64_t mlx5sim_proc_start_time(pid_t pid)
{
    unsigned long long start = 0;
    char path[32], buf[512], *p, state;
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }

    n = read(fd, buf, sizeof(buf) - 1);
    close(fd);
    if (n <= 0) {
        return 0;
    }

    /* the name in field 2 may hold spaces and parentheses */
    buf[n] = '\0';
    p      = strrchr(buf, ')');
    if ((p == NULL) ||
        (sscanf(p + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d"
                " %*d %*d %*d %*d %*d %llu", &state, &start) != 2) ||
        (state == 'Z') || (state == 'X')) {
        return 0;
    }

    return start;
}

/* Whether Yama lets only ancestors reach a process, unless that says otherwise
 * (Documentation/admin-guide/LSM/Yama.rst: 1, "restricted ptrace"). 0 needs no
 * exception, and 2 and 3 have none. */
static int mlx5sim_proc_is_restricted(void)
{
    char scope = '0';
    int fd;

    fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!read(fd, &scope, 1);
        close(fd);
    }

    return scope == '1';
}

int mlx5sim_proc_attach(void)
{
    uint64_t start_time = mlx5sim_proc_start_time(getpid());
    mlx5sim_proc_t *proc;
    unsigned slot;
    pid_t unused;

    if (mlx5sim_self_tag != 0) {
        return 0;
    }

    for (slot = 0; slot < MLX5SIM_MAX_PROCS; ++slot) {
        proc   = &mlx5sim_store->procs[slot];
        unused = 0;
        if (!atomic_compare_exchange_strong(&proc->pid, &unused, getpid())) {
            continue;
        }

        proc->gen        = (proc->gen + 1) & 0xffffff;
        proc->start_time = start_time;
        memset(proc->name, 0, sizeof(proc->name));
        strncpy(proc->name, program_invocation_short_name,
                sizeof(proc->name) - 1);
        memset((void*)&proc->c, 0, sizeof(proc->c));
        mlx5sim_lock_init(&proc->life);

        /* peers reach our memory with process_vm_readv/writev, which the Yama
         * security module would refuse between siblings; what else this allows
         * is in docs/software-device.md */
        if (mlx5sim_proc_is_restricted()) {
            (void)prctl(PR_SET_PTRACER, (unsigned long)-1, 0, 0, 0);
        }
        mlx5sim_self_tag = (proc->gen << 8) | (slot + 1);
        atomic_store(&proc->tag, mlx5sim_self_tag);
        return 0;
    }

    fprintf(stderr, "mlx5sim: %d processes use this instance already, that is "
            "its limit; set MLX5SIM_DIR to start another instance\n",
            MLX5SIM_MAX_PROCS);
    errno = EUSERS;
    return -1;
}

void mlx5sim_proc_forget(void)
{
    mlx5sim_self_tag = 0;
}

void mlx5sim_proc_live(mlx5sim_proc_t *proc)
{
    (void)mlx5sim_lock(&proc->life);
}

int mlx5sim_proc_exists(pid_t pid)
{
    return mlx5sim_proc_start_time(pid) != 0;
}

int mlx5sim_proc_alive(const mlx5sim_proc_t *proc)
{
    uint64_t start_time;
    pid_t tid;

    if (proc->pid == getpid()) {
        /* exec keeps pid and start time, but the old image is gone */
        return atomic_load(&proc->tag) == mlx5sim_self_tag;
    }

    start_time = mlx5sim_proc_start_time(proc->pid);
    if (start_time != 0) {
        return start_time == proc->start_time;
    }

    /* the first thread may have ended, and others go on */
    tid = mlx5sim_lock_owner(&proc->life);
    return (tid != 0) && (syscall(SYS_tgkill, proc->pid, tid, 0) == 0);
}

void mlx5sim_proc_kick(mlx5sim_proc_t *proc)
{
    atomic_fetch_add(&proc->kick, 1);
    syscall(SYS_futex, &proc->kick, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void mlx5sim_qp_kick(mlx5sim_qp_obj_t *qp)
{
    mlx5sim_proc_t *proc = mlx5sim_proc_by_tag(atomic_load(&qp->o.owner));

    if (proc != NULL) {
        atomic_store(&qp->kicked, 1);
        mlx5sim_proc_kick(proc);
    }
}
