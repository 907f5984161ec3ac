/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/objs/guard.h>

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* linux/userfaultfd.h since 5.11 */
#define MLX5SIM_UFFD_USER_MODE_ONLY 1


int mlx5sim_guard_begin(uint64_t addr, uint64_t length, int may_fault)
{
    struct uffdio_api api      = {.api = UFFD_API};
    struct uffdio_register reg = {{addr, length}, UFFDIO_REGISTER_MODE_MISSING,
                                  0};
    int flags                  = O_CLOEXEC | O_NONBLOCK;
    int guard;

    /* a filter may kill the process for a call that no library of an adapter
     * makes */
    if (!may_fault && (prctl(PR_GET_SECCOMP) != 0)) {
        return -1;
    }

    guard = syscall(SYS_userfaultfd, flags);
    if ((guard < 0) && may_fault) {
        guard = syscall(SYS_userfaultfd, flags | MLX5SIM_UFFD_USER_MODE_ONLY);
    }
    if (guard < 0) {
        return -1;
    }

    if ((syscall(SYS_ioctl, guard, UFFDIO_API, &api) != 0) ||
        (syscall(SYS_ioctl, guard, UFFDIO_REGISTER, &reg) != 0)) {
        mlx5sim_guard_end(guard, addr, length);
        return -1;
    }
    return guard;
}

/* To close it is not enough if a child has a copy of the descriptor */
void mlx5sim_guard_end(int guard, uint64_t addr, uint64_t length)
{
    struct uffdio_range range = {addr, length};

    (void)syscall(SYS_ioctl, guard, UFFDIO_UNREGISTER, &range);
    (void)syscall(SYS_ioctl, guard, UFFDIO_WAKE, &range);
    syscall(SYS_close, guard);
}
