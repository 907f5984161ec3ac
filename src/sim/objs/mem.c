/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/objs/mem.h>
#include <sim/objs/proc.h>
#include <sim/objs/shared.h>
#include <sim/objs/store.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* On the stack of a signal handler */
#define MLX5SIM_MEM_BOUNCE 1024

/* One side of a copy by way of /proc/PID/mem */
typedef struct {
    const mlx5sim_proc_t *proc;
    int                  is_own; /* this process */
    const struct iovec   *iov;
    size_t               offset;  /* in the first piece */
    int                  fd;
} mlx5sim_mem_side_t;


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

static void mlx5sim_mem_explain(const mlx5sim_mem_side_t *side)
{
    static _Atomic int explained;

    if (!atomic_exchange(&explained, 1)) {
        fprintf(stderr, "mlx5sim: memory of process %d at %p is gone: it was "
                "unmapped after it had been registered, or while a queue was "
                "in it, or the process has called exec. Hardware keeps the "
                "pages of a memory region, this device can't: what needs them "
                "ends with an error\n",
                (int)side->proc->pid,
                (char*)side->iov->iov_base + side->offset);
    }
}

static mlx5sim_mem_side_t
mlx5sim_mem_side(const mlx5sim_proc_t *proc, const struct iovec *iov)
{
    return (mlx5sim_mem_side_t){proc, 0, iov, 0, -1};
}

static mlx5sim_mem_side_t mlx5sim_mem_side_own(const struct iovec *iov)
{
    return (mlx5sim_mem_side_t){mlx5sim_proc_self(), 1, iov, 0, -1};
}

static int mlx5sim_mem_side_open(mlx5sim_mem_side_t *side, int flags)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/%d/mem",
             side->is_own ? (int)gettid() :
                            (int)mlx5sim_proc_thread(side->proc));
    side->fd = open(path, flags | O_CLOEXEC);
    return side->fd >= 0;
}

/* Where the side is; its pieces are longer than 0 altogether */
static off_t mlx5sim_mem_side_addr(mlx5sim_mem_side_t *side, size_t *room_p)
{
    while (side->offset == side->iov->iov_len) {
        ++side->iov;
        side->offset = 0;
    }

    *room_p = side->iov->iov_len - side->offset;
    return (uintptr_t)side->iov->iov_base + side->offset;
}

/* Whether the process that was opened is the one that is meant: its pid may be
 * another's by now. The descriptor keeps the memory of the one that was
 * opened, so this holds as long. */
static int mlx5sim_mem_side_is_meant(const mlx5sim_mem_side_t *side)
{
    return side->is_own || mlx5sim_proc_alive(side->proc);
}

/* Hardware does not see mprotect(): the pages of a memory region are pinned.
 * This way of access, which debuggers use, does not either. Slow. */
static int mlx5sim_mem_force(mlx5sim_mem_side_t *src, mlx5sim_mem_side_t *dst,
                             size_t length)
{
    int ret = -EFAULT;
    char bounce[MLX5SIM_MEM_BOUNCE];
    size_t done, room, part;
    off_t from, to;

    if (!mlx5sim_mem_side_open(src, O_RDONLY)) {
        return ret;
    }

    if (!mlx5sim_mem_side_open(dst, O_WRONLY)) {
        goto out_src;
    }

    if (!mlx5sim_mem_side_is_meant(src) || !mlx5sim_mem_side_is_meant(dst)) {
        ret = -ESRCH;
        goto out_dst;
    }

    for (done = 0; done < length; done += part) {
        part = (length - done < sizeof(bounce)) ? length - done :
                                                  sizeof(bounce);
        from = mlx5sim_mem_side_addr(src, &room);
        part = (room < part) ? room : part;
        to   = mlx5sim_mem_side_addr(dst, &room);
        part = (room < part) ? room : part;
        if ((pread(src->fd, bounce, part, from) != (ssize_t)part) &&
            !mlx5sim_shared_force(src->proc, from, bounce, part, 0)) {
            mlx5sim_mem_explain(src);
            goto out_dst;
        }

        if ((pwrite(dst->fd, bounce, part, to) != (ssize_t)part) &&
            !mlx5sim_shared_force(dst->proc, to, bounce, part, 1)) {
            mlx5sim_mem_explain(dst);
            goto out_dst;
        }

        src->offset += part;
        dst->offset += part;
    }
    ret = 0;

out_dst:
    close(dst->fd);
out_src:
    close(src->fd);
    return ret;
}

int mlx5sim_mem_probev(const mlx5sim_proc_t *proc, const struct iovec *local,
                       unsigned num_local, const struct iovec *remote,
                       unsigned num_remote, size_t length)
{
    if (mlx5sim_proc_is_gone(proc)) {
        return -ESRCH;
    }

    return mlx5sim_mem_result(proc,
                              process_vm_readv(mlx5sim_proc_thread(proc), local,
                                               num_local, remote, num_remote,
                                               0), length);
}

int mlx5sim_mem_probe_writev(const mlx5sim_proc_t *proc,
                             const struct iovec *local, unsigned num_local,
                             const struct iovec *remote, unsigned num_remote,
                             size_t length)
{
    if (mlx5sim_proc_is_gone(proc)) {
        return -ESRCH;
    }

    return mlx5sim_mem_result(proc,
                              process_vm_writev(mlx5sim_proc_thread(proc),
                                                local, num_local, remote,
                                                num_remote, 0), length);
}

int mlx5sim_mem_readv(const mlx5sim_proc_t *proc, const struct iovec *local,
                      unsigned num_local, const struct iovec *remote,
                      unsigned num_remote, size_t length)
{
    mlx5sim_mem_side_t src, dst;
    int ret;

    ret = mlx5sim_mem_probev(proc, local, num_local, remote, num_remote,
                             length);
    if (ret != -EFAULT) {
        return ret;
    }

    src = mlx5sim_mem_side(proc, remote);
    dst = mlx5sim_mem_side_own(local);
    return mlx5sim_mem_force(&src, &dst, length);
}

int mlx5sim_mem_writev(const mlx5sim_proc_t *proc, const struct iovec *local,
                       unsigned num_local, const struct iovec *remote,
                       unsigned num_remote, size_t length)
{
    mlx5sim_mem_side_t src, dst;
    int ret;

    ret = mlx5sim_mem_probe_writev(proc, local, num_local, remote, num_remote,
                                   length);
    if (ret != -EFAULT) {
        return ret;
    }

    src = mlx5sim_mem_side_own(local);
    dst = mlx5sim_mem_side(proc, remote);
    return mlx5sim_mem_force(&src, &dst, length);
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
