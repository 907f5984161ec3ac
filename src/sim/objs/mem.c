/* SPDX-License-Identifier: BSD-3-Clause */

#include "sim/objs/mem.h"

#include <errno.h>
#include <stdio.h>


static int mlx5sim_mem_result(const mlx5sim_proc_t *proc, ssize_t n,
                              size_t length)
{
    static _Atomic int warned;

    if (n == (ssize_t)length) {
        return 0;
    } else if (n >= 0) {
        return -EFAULT;
    } else if (errno != EPERM) {
        return -errno;
    }

    if (!atomic_exchange(&warned, 1)) {
        fprintf(stderr, "mlx5sim: memory of process %d (%s) is out of reach: "
                "it runs as another user, or ptrace is restricted (see "
                "/proc/sys/kernel/yama/ptrace_scope)\n", (int)proc->pid,
                proc->name);
    }

    return -EPERM;
}

int mlx5sim_mem_readv(const mlx5sim_proc_t *proc, const struct iovec *local,
                      unsigned num_local, const struct iovec *remote,
                      unsigned num_remote, size_t length)
{
    return mlx5sim_mem_result(proc, process_vm_readv(proc->pid, local,
                                                     num_local, remote,
                                                     num_remote, 0), length);
}

int mlx5sim_mem_writev(const mlx5sim_proc_t *proc, const struct iovec *local,
                       unsigned num_local, const struct iovec *remote,
                       unsigned num_remote, size_t length)
{
    return mlx5sim_mem_result(proc, process_vm_writev(proc->pid, local,
                                                      num_local, remote,
                                                      num_remote, 0), length);
}

int mlx5sim_mem_read(const mlx5sim_proc_t *proc, uint64_t addr, void *buf,
                     size_t length)
{
    struct iovec local  = {buf, length};
    struct iovec remote = {(void*)(uintptr_t)addr, length};

    return mlx5sim_mem_readv(proc, &local, 1, &remote, 1, length);
}

int mlx5sim_mem_write(const mlx5sim_proc_t *proc, uint64_t addr,
                      const void *buf, size_t length)
{
    struct iovec local  = {(void*)buf, length};
    struct iovec remote = {(void*)(uintptr_t)addr, length};

    return mlx5sim_mem_writev(proc, &local, 1, &remote, 1, length);
}
