/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A blocked synchronous signal ends the process, so SIGBUS, which doorbells
 * raise, and SIGTRAP, which a doorbell may while it is being replaced, are
 * never blocked: they are removed from every signal mask that a program sets.
 * That includes the masks in effect while a program waits: only signal handlers
 * run then, and they may ring doorbells. The masks of handlers are in
 * sigaction.c.
 */

#include <sim/libc/real.h>
#include <sim/preload/export.h>

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>

typedef int (*mlx5sim_sigmask_func_t)(int, const sigset_t*, sigset_t*);

/* Declared only where checking is on */
int __ppoll_chk(struct pollfd *fds, nfds_t num, const struct timespec *timeout,
                const sigset_t *set, size_t size);


/* @return what to pass on in place of @a set: NULL or @a allowed_p */
static const sigset_t *
mlx5sim_sigmask_allowed(const sigset_t *set, sigset_t *allowed_p)
{
    if (set == NULL) {
        return NULL;
    }

    *allowed_p = *set;
    sigdelset(allowed_p, SIGBUS);
    sigdelset(allowed_p, SIGTRAP);
    return allowed_p;
}

static int mlx5sim_sigmask_change(mlx5sim_sigmask_func_t func, int how,
                                  const sigset_t *set, sigset_t *old)
{
    sigset_t allowed;

    return func(how, (how == SIG_UNBLOCK) ?
                     set : mlx5sim_sigmask_allowed(set, &allowed), old);
}

MLX5SIM_EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    return mlx5sim_sigmask_change(REAL(sigprocmask), how, set,
                                  old);
}

MLX5SIM_EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    return mlx5sim_sigmask_change(REAL(pthread_sigmask), how,
                                  set, old);
}

MLX5SIM_EXPORT int
pthread_attr_setsigmask_np(pthread_attr_t *attr, const sigset_t *set)
{
    sigset_t allowed;

    return REAL(pthread_attr_setsigmask_np)(
            attr, mlx5sim_sigmask_allowed(set, &allowed));
}

MLX5SIM_EXPORT int sigsuspend(const sigset_t *set)
{
    sigset_t allowed;

    return REAL(sigsuspend)(
            mlx5sim_sigmask_allowed(set, &allowed));
}

MLX5SIM_EXPORT int pselect(int num, fd_set *in, fd_set *out, fd_set *except,
                           const struct timespec *timeout, const sigset_t *set)
{
    sigset_t allowed;

    return REAL(pselect)(
            num, in, out, except, timeout,
            mlx5sim_sigmask_allowed(set, &allowed));
}

MLX5SIM_EXPORT int ppoll(struct pollfd *fds, nfds_t num,
                         const struct timespec *timeout, const sigset_t *set)
{
    sigset_t allowed;

    return REAL(ppoll)(fds, num, timeout,
                                       mlx5sim_sigmask_allowed(set, &allowed));
}

MLX5SIM_EXPORT int
__ppoll_chk(struct pollfd *fds, nfds_t num, const struct timespec *timeout,
            const sigset_t *set, size_t size)
{
    sigset_t allowed;

    return REAL(__ppoll_chk)(
            fds, num, timeout, mlx5sim_sigmask_allowed(set, &allowed), size);
}

MLX5SIM_EXPORT int epoll_pwait(int fd, struct epoll_event *events, int max,
                               int timeout, const sigset_t *set)
{
    sigset_t allowed;

    return REAL(epoll_pwait)(
            fd, events, max, timeout, mlx5sim_sigmask_allowed(set, &allowed));
}

MLX5SIM_EXPORT int
epoll_pwait2(int fd, struct epoll_event *events, int max,
             const struct timespec *timeout, const sigset_t *set)
{
    sigset_t allowed;

    return REAL(epoll_pwait2)(
            fd, events, max, timeout, mlx5sim_sigmask_allowed(set, &allowed));
}
