/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* F_SETPIPE_SZ */
#endif

#include <sim/rdmacm/event.h>
#include <sim/objs/raw.h>
#include <sim/objs/store.h>
#include <sim/rdmacm/def.h>
#include <sim/rdmacm/id.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>


/* Opened each time, as queue/chan.c does it */
static int mlx5sim_cm_event_open(uint32_t chan_index, uint32_t gen)
{
    mlx5sim_chan_t *chan = mlx5sim_obj_at(MLX5SIM_OBJ_CHAN, chan_index);
    char path[320];
    int fd;

    mlx5sim_chan_path(chan, path, sizeof(path));
    /* not O_WRONLY: without a reader, writing would raise SIGPIPE */
    fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if ((fd >= 0) && (chan->o.gen != gen)) {
        mlx5sim_raw_close(fd); /* the slot is in use for another channel */
        errno = ENOENT;
        return -1;
    }
    return fd;
}

static void mlx5sim_cm_event_warn(const char *what)
{
    static _Atomic int warned;

    if (!atomic_exchange(&warned, 1)) {
        fprintf(stderr, "mlx5sim: a channel of the connection manager %s\n",
                what);
    }
}

/* A pipe has room for some thousand entries at first. It may grow: pipe(7),
 * /proc/sys/fs/pipe-max-size. */
static int mlx5sim_cm_event_write(int fd, const mlx5sim_cm_event_t *event)
{
    int size;

    while (mlx5sim_raw_write(fd, event, sizeof(*event)) != sizeof(*event)) {
        size = fcntl(fd, F_GETPIPE_SZ);
        if ((errno != EAGAIN) || (size <= 0) ||
            (fcntl(fd, F_SETPIPE_SZ, 2 * size) < 0)) {
            mlx5sim_cm_event_warn("has no room for more events: nobody reads "
                                  "them (rdma_get_cm_event), and pipes may not "
                                  "be larger (/proc/sys/fs/pipe-max-size)");
            return -ENOMEM;
        }
    }

    return 0;
}

/* Whose events count it: a request is one of who listens */
static mlx5sim_cm_id_t *mlx5sim_cm_event_owner(mlx5sim_cm_id_t *id,
                                               unsigned event)
{
    return (event == MLX5SIM_CM_EVENT_CONNECT_REQUEST) ?
           mlx5sim_cm_id_get(id->listener) : id;
}

int mlx5sim_cm_event_post(mlx5sim_cm_id_t *id, unsigned event, int status)
{
    mlx5sim_cm_event_t entry = {
        .id     = mlx5sim_cm_id_ref(id),
        .event  = event,
        .status = status
    };
    mlx5sim_cm_id_t *owner   = mlx5sim_cm_event_owner(id, event);
    int fd, ret;

    if ((owner == NULL) || ((owner == id) && (id->listener.index != 0)) ||
        (id->chan == 0)) {
        return 0;
    }

    /* the state is another one already: whose process is killed here would
     * leave the id waiting */
    id->told_event  = event;
    id->told_status = status;
    id->is_told     = 1;
    fd = mlx5sim_cm_event_open(id->chan, id->chan_gen);
    if (fd < 0) {
        id->is_told = 0;
    }
    if ((fd < 0) && ((errno == EMFILE) || (errno == ENFILE))) {
        mlx5sim_cm_event_warn("can't be opened: there are no more descriptors "
                              "(ulimit -n), and events are lost");
        return -ENOMEM;
    } else if (fd < 0) {
        return 0; /* nobody is there to read it */
    }

    /* whoever is killed here has counted too many, not too few */
    ++owner->unread;
    ret = mlx5sim_cm_event_write(fd, &entry);
    if (ret != 0) {
        --owner->unread;
    }
    id->is_told = 0;
    mlx5sim_raw_close(fd);
    return ret;
}

void mlx5sim_cm_event_mend(mlx5sim_cm_id_t *id)
{
    if (id->is_told) {
        (void)mlx5sim_cm_event_post(id, id->told_event, id->told_status);
    }
}

int mlx5sim_cm_event_take(int fd, mlx5sim_cm_event_t *event_p,
                          mlx5sim_cm_id_t **id_p)
{
    mlx5sim_cm_id_t *owner;
    int length;

    while ((ioctl(fd, FIONREAD, &length) == 0) &&
           (length >= (int)sizeof(*event_p)) &&
           (read(fd, event_p, sizeof(*event_p)) == sizeof(*event_p))) {
        *id_p = mlx5sim_cm_id_get(event_p->id);
        owner = (*id_p == NULL) ? NULL :
                mlx5sim_cm_event_owner(*id_p, event_p->event);
        /* One that mlx5sim-wire has taken over was destroyed here */
        if ((owner != NULL) &&
            (atomic_load(&owner->o.owner) == mlx5sim_self_tag)) {
            --owner->unread;
            ++owner->reported;
            return 1;
        }
    }

    return 0;
}

/* What to do with an entry: 1 if it is of @a id */
static int mlx5sim_cm_event_is_of(const mlx5sim_cm_event_t *entry,
                                  const mlx5sim_cm_id_t *id,
                                  mlx5sim_cm_id_t **source_p)
{
    *source_p = mlx5sim_cm_id_get(entry->id);
    return (*source_p != NULL) &&
           (mlx5sim_cm_event_owner(*source_p, entry->event) == id);
}

unsigned mlx5sim_cm_event_remove(mlx5sim_cm_id_t *id, mlx5sim_chan_t *to,
                                 mlx5sim_cm_id_t **requests)
{
    unsigned num_requests = 0;
    mlx5sim_cm_event_t *entries;
    mlx5sim_cm_id_t *source;
    int fd, to_fd, length, i, count;

    fd = (id->unread == 0) ? -1 : mlx5sim_cm_event_open(id->chan, id->chan_gen);
    if (fd < 0) {
        return 0;
    }

    if ((ioctl(fd, FIONREAD, &length) != 0) || (length <= 0)) {
        mlx5sim_raw_close(fd);
        return 0;
    }

    to_fd   = (to == NULL) ? -1 :
              mlx5sim_cm_event_open(mlx5sim_obj_index(MLX5SIM_OBJ_CHAN, to),
                                    to->o.gen);
    if ((to != NULL) && (to_fd < 0)) {
        mlx5sim_raw_close(fd);
        return 0; /* they stay where they are */
    }

    entries = malloc(length);
    count   = (entries == NULL) ? 0 : (int)(read(fd, entries, length) /
                                            (ssize_t)sizeof(*entries));
    for (i = 0; i < count; ++i) {
        if (!mlx5sim_cm_event_is_of(&entries[i], id, &source)) {
            (void)mlx5sim_cm_event_write(fd, &entries[i]);
            continue;
        }

        if (to_fd >= 0) {
            (void)mlx5sim_cm_event_write(to_fd, &entries[i]);
            continue;
        }

        --id->unread;
        if (source != id) {
            requests[num_requests++] = source;
        }
    }

    free(entries);
    if (to_fd >= 0) {
        mlx5sim_raw_close(to_fd);
    }
    mlx5sim_raw_close(fd);
    return num_requests;
}
