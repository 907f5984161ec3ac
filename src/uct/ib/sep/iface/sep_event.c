/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/iface/sep_event.h>

#include <ucs/debug/log.h>
#include <ucs/time/time.h>
#include <errno.h>
#include <inttypes.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>


static ucs_status_t
uct_sep_event_add_fd(const char *name, int epoll_fd, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        ucs_error("%s: epoll_ctl(ADD, fd=%d) failed: %m", name, fd);
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}

ucs_status_t
uct_sep_event_open(const char *name, const int *fds, unsigned num_fds,
                   int *epoll_fd_p, int *event_fd_p)
{
    int epoll_fd, event_fd;
    unsigned i;

    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0) {
        ucs_error("%s: epoll_create1() failed: %m", name);
        goto err;
    }

    event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (event_fd < 0) {
        ucs_error("%s: eventfd() failed: %m", name);
        goto err_close_epoll;
    }

    if (uct_sep_event_add_fd(name, epoll_fd, event_fd) != UCS_OK) {
        goto err_close_event;
    }

    for (i = 0; i < num_fds; ++i) {
        if ((fds[i] >= 0) &&
            (uct_sep_event_add_fd(name, epoll_fd, fds[i]) != UCS_OK)) {
            goto err_close_event;
        }
    }

    *epoll_fd_p = epoll_fd;
    *event_fd_p = event_fd;
    return UCS_OK;

err_close_event:
    close(event_fd);
err_close_epoll:
    close(epoll_fd);
err:
    return UCS_ERR_IO_ERROR;
}

void uct_sep_event_write(const char *name, int event_fd)
{
    uint64_t value = 1;

    if ((write(event_fd, &value, sizeof(value)) < 0) &&
        (errno != EAGAIN)) { /* EAGAIN: signalled already */
        ucs_warn("%s: could not signal an event: %m", name);
    }
}

void uct_sep_event_read(const char *name, int event_fd)
{
    uint64_t value;

    if ((read(event_fd, &value, sizeof(value)) < 0) && (errno != EAGAIN)) {
        ucs_warn("%s: could not read an event: %m", name);
    }
}

static ucs_status_t uct_sep_event_create(uct_sep_iface_t *iface)
{
    const int fds[] = {
        iface->cq.channel->fd,
        (iface->own_cq.cq == NULL) ? -1 : iface->own_cq.channel->fd,
        !uct_sep_iface_shares_cq(iface) ? -1 :
                                          iface->cq_member.group->cq.channel->fd
    };
    ucs_status_t status;
    int event_fd;

    status = uct_sep_event_open(iface->port.name, fds,
                                ucs_static_array_size(fds),
                                &iface->event.epoll_fd, &event_fd);
    if (status != UCS_OK) {
        return status;
    }

    /* Read by the connection manager, and by who handles events of the
     * device */
    __atomic_store_n(&iface->event.event_fd, event_fd, __ATOMIC_RELEASE);
    return UCS_OK;
}

void uct_sep_event_init(uct_sep_iface_t *iface)
{
    iface->event.event_fd = -1;
    iface->event.epoll_fd = -1;
    iface->event.timer_fd = -1;
    iface->event.is_timed = 0;
}

void uct_sep_event_cleanup(uct_sep_iface_t *iface)
{
    if (iface->event.timer_fd >= 0) {
        close(iface->event.timer_fd);
    }
    if (iface->event.epoll_fd >= 0) {
        close(iface->event.event_fd);
        close(iface->event.epoll_fd);
    }
}

void uct_sep_event_signal(uct_sep_iface_t *iface)
{
    int event_fd = __atomic_load_n(&iface->event.event_fd, __ATOMIC_ACQUIRE);

    if (event_fd >= 0) {
        uct_sep_event_write(iface->port.name, event_fd);
    }
}

void uct_sep_event_drain(uct_sep_iface_t *iface)
{
    if (iface->event.event_fd >= 0) {
        uct_sep_event_read(iface->port.name, iface->event.event_fd);
    }
}

ucs_status_t uct_sep_event_fd_get(uct_iface_h tl_iface, int *fd_p)
{
    uct_sep_iface_t *iface = ucs_derived_of(tl_iface, uct_sep_iface_t);
    ucs_status_t status;

    if (iface->event.epoll_fd < 0) {
        status = uct_sep_event_create(iface);
        if (status != UCS_OK) {
            return status;
        }
    }

    *fd_p = iface->event.epoll_fd;
    return UCS_OK;
}

/* Few need a timer */
static ucs_status_t uct_sep_event_create_timer(uct_sep_iface_t *iface)
{
    ucs_status_t status;
    int epoll_fd;

    status = uct_sep_event_fd_get(&iface->super.super, &epoll_fd);
    if (status != UCS_OK) {
        return status;
    }

    iface->event.timer_fd = timerfd_create(CLOCK_MONOTONIC,
                                          TFD_CLOEXEC | TFD_NONBLOCK);
    if (iface->event.timer_fd < 0) {
        ucs_error("%s: timerfd_create() failed: %m", iface->port.name);
        return UCS_ERR_IO_ERROR;
    }

    status = uct_sep_event_add_fd(iface->port.name, epoll_fd,
                                  iface->event.timer_fd);
    if (status != UCS_OK) {
        close(iface->event.timer_fd);
        iface->event.timer_fd = -1;
    }
    return status;
}

ucs_status_t uct_sep_event_set_timer(uct_sep_iface_t *iface, uint64_t nsec)
{
    struct itimerspec spec = {};
    ucs_status_t status;

    if ((nsec == 0) && !iface->event.is_timed) {
        return UCS_OK;
    }

    if (iface->event.timer_fd < 0) {
        status = uct_sep_event_create_timer(iface);
        if (status != UCS_OK) {
            return status;
        }
    }

    spec.it_value.tv_sec  = nsec / UCS_NSEC_PER_SEC;
    spec.it_value.tv_nsec = nsec % UCS_NSEC_PER_SEC;

    /* This clears what has expired, too */
    if (timerfd_settime(iface->event.timer_fd, 0, &spec, NULL) != 0) {
        ucs_error("%s: timerfd_settime(%" PRIu64 " ns) failed: %m",
                  iface->port.name, nsec);
        return UCS_ERR_IO_ERROR;
    }

    iface->event.is_timed = (nsec != 0);
    return UCS_OK;
}
