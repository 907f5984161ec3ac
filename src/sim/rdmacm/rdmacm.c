/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/rdmacm/rdmacm.h>
#include <sim/doorbell/trap.h>
#include <sim/objs/store.h>
#include <sim/rdmacm/cmd.h>
#include <sim/rdmacm/conn.h>
#include <sim/rdmacm/id.h>
#include <sim/rdmacm/watch.h>
#include <sim/uverbs/attach.h>
#include <sim/uverbs/fd.h>
#include <sim/uverbs/uverbs.h>
#include <sim/uverbs/uverbs_chan.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define MLX5SIM_CM_CMD(_name, _size, _out) \
    {mlx5sim_cm_cmd_##_name, _size, _out}
#define MLX5SIM_CM_CMD_OF(_name, _out) \
    MLX5SIM_CM_CMD(_name, sizeof(struct rdma_ucm_##_name), _out)

/* Commands, how long they and their answers are at least. Without a function:
 * the kernel does not have it either. */
static const struct {
    int    (*handle)(mlx5sim_cm_cmd_t *cmd);
    size_t in_size;
    size_t out_size;
} mlx5sim_cm_cmds[] = {
    [RDMA_USER_CM_CMD_CREATE_ID]     =
            MLX5SIM_CM_CMD_OF(create_id,
                              sizeof(struct rdma_ucm_create_id_resp)),
    [RDMA_USER_CM_CMD_DESTROY_ID]    =
            MLX5SIM_CM_CMD_OF(destroy_id,
                              sizeof(struct rdma_ucm_destroy_id_resp)),
    [RDMA_USER_CM_CMD_BIND_IP]       = MLX5SIM_CM_CMD_OF(bind_ip, 0),
    [RDMA_USER_CM_CMD_RESOLVE_IP]    = MLX5SIM_CM_CMD_OF(resolve_ip, 0),
    [RDMA_USER_CM_CMD_RESOLVE_ROUTE] = MLX5SIM_CM_CMD_OF(resolve_route, 0),
    [RDMA_USER_CM_CMD_QUERY_ROUTE]   =
            MLX5SIM_CM_CMD(query_route, sizeof(struct rdma_ucm_query),
                           offsetof(struct rdma_ucm_query_route_resp,
                                    ibdev_index)),
    /* without the ECE, which came later */
    [RDMA_USER_CM_CMD_CONNECT]       =
            MLX5SIM_CM_CMD(connect, offsetof(struct rdma_ucm_connect, ece), 0),
    [RDMA_USER_CM_CMD_LISTEN]        = MLX5SIM_CM_CMD_OF(listen, 0),
    [RDMA_USER_CM_CMD_ACCEPT]        =
            MLX5SIM_CM_CMD(accept, offsetof(struct rdma_ucm_accept, ece), 0),
    [RDMA_USER_CM_CMD_REJECT]        = MLX5SIM_CM_CMD_OF(reject, 0),
    [RDMA_USER_CM_CMD_DISCONNECT]    = MLX5SIM_CM_CMD_OF(disconnect, 0),
    [RDMA_USER_CM_CMD_INIT_QP_ATTR]  =
            MLX5SIM_CM_CMD_OF(init_qp_attr, sizeof(struct ib_uverbs_qp_attr)),
    [RDMA_USER_CM_CMD_GET_EVENT]     =
            MLX5SIM_CM_CMD_OF(get_event,
                              offsetof(struct rdma_ucm_event_resp, reserved)),
    [RDMA_USER_CM_CMD_SET_OPTION]    = MLX5SIM_CM_CMD_OF(set_option, 0),
    [RDMA_USER_CM_CMD_NOTIFY]        = MLX5SIM_CM_CMD_OF(notify, 0),
    [RDMA_USER_CM_CMD_JOIN_IP_MCAST] =
            MLX5SIM_CM_CMD(join, sizeof(struct rdma_ucm_join_ip_mcast),
                           sizeof(struct rdma_ucm_create_id_resp)),
    [RDMA_USER_CM_CMD_LEAVE_MCAST]   =
            MLX5SIM_CM_CMD(leave, sizeof(struct rdma_ucm_destroy_id),
                           sizeof(struct rdma_ucm_destroy_id_resp)),
    [RDMA_USER_CM_CMD_MIGRATE_ID]    =
            MLX5SIM_CM_CMD_OF(migrate_id, sizeof(struct rdma_ucm_migrate_resp)),
    [RDMA_USER_CM_CMD_QUERY]         = MLX5SIM_CM_CMD_OF(query, 0),
    [RDMA_USER_CM_CMD_BIND]          = MLX5SIM_CM_CMD_OF(bind, 0),
    [RDMA_USER_CM_CMD_RESOLVE_ADDR]  = MLX5SIM_CM_CMD_OF(resolve_addr, 0),
    [RDMA_USER_CM_CMD_JOIN_MCAST]    =
            MLX5SIM_CM_CMD(join, sizeof(struct rdma_ucm_join_mcast),
                           sizeof(struct rdma_ucm_create_id_resp))
};

#define MLX5SIM_CM_NUM_CMDS (sizeof(mlx5sim_cm_cmds) / \
                             sizeof(mlx5sim_cm_cmds[0]))


/* Channel behind a descriptor, of whatever process */
static mlx5sim_chan_t *mlx5sim_rdmacm_chan(int fd)
{
    uint32_t index = mlx5sim_fd_chan(fd);
    mlx5sim_chan_t *chan;

    if ((index == 0) || (mlx5sim_store == NULL)) {
        return NULL;
    }

    chan = mlx5sim_obj_at(MLX5SIM_OBJ_CHAN, index);
    return chan->is_cm ? chan : NULL;
}

int mlx5sim_rdmacm_is_fd(int fd)
{
    return mlx5sim_rdmacm_chan(fd) != NULL;
}

int mlx5sim_rdmacm_is_file(int fd, ino_t inode)
{
    const mlx5sim_chan_t *chan = mlx5sim_rdmacm_chan(fd);

    return (chan != NULL) && (inode == chan->inode);
}

int mlx5sim_rdmacm_is_same(int fd)
{
    struct stat st;

    return (fstat(fd, &st) == 0) && mlx5sim_rdmacm_is_file(fd, st.st_ino);
}

int mlx5sim_rdmacm_is_open(int fd)
{
    if (mlx5sim_rdmacm_is_same(fd)) {
        return 1;
    }

    mlx5sim_rdmacm_close(fd);
    mlx5sim_uverbs_close(fd);
    return 0;
}

int mlx5sim_rdmacm_open(int flags)
{
    mlx5sim_chan_t *chan;
    struct stat st;
    uint32_t index;
    int fd;

    if ((mlx5sim_attach() != 0) || (mlx5sim_cm_watch_start() != 0)) {
        return -1;
    }

    fd = mlx5sim_uverbs_chan_create(0, 0, &index);
    if (fd < 0) {
        errno = -fd;
        return -1;
    }

    chan        = mlx5sim_obj_at(MLX5SIM_OBJ_CHAN, index);
    chan->inode = (fstat(fd, &st) == 0) ? st.st_ino : 0;
    chan->is_cm = 1;
    (void)fcntl(fd, F_SETFD, (flags & O_CLOEXEC) ? FD_CLOEXEC : 0);
    (void)fcntl(fd, F_SETFL, flags & O_NONBLOCK);
    return fd;
}

/* A command changes ids under a lock: neither may a handler of a signal run
 * meanwhile nor may another thread cancel this one */
static void mlx5sim_rdmacm_enter(sigset_t *saved_p, int *cancel_p)
{
    mlx5sim_trap_defer(saved_p);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, cancel_p);
    mlx5sim_cm_lock();
}

static void mlx5sim_rdmacm_exit(const sigset_t *saved, int cancel)
{
    mlx5sim_cm_unlock();
    pthread_setcancelstate(cancel, NULL);
    mlx5sim_trap_allow(saved);
}

void mlx5sim_rdmacm_close(int fd)
{
    mlx5sim_chan_t *chan = mlx5sim_rdmacm_chan(fd);
    mlx5sim_cm_id_t *id;
    uint32_t index;
    sigset_t saved;
    int cancel;

    if ((chan == NULL) || mlx5sim_attach_is_other() ||
        (mlx5sim_self_tag == 0) ||
        (atomic_load(&chan->o.owner) != mlx5sim_self_tag)) {
        return; /* a forked child closes what it inherited */
    }

    mlx5sim_rdmacm_enter(&saved, &cancel);
    for (index = 0; (id = mlx5sim_cm_id_next(index, mlx5sim_self_tag)) != NULL;
         ++index) {
        index = mlx5sim_cm_id_ref(id).index - 1;
        if (id->chan == mlx5sim_obj_index(MLX5SIM_OBJ_CHAN, chan)) {
            mlx5sim_cm_leave(id);
        }
    }
    mlx5sim_rdmacm_exit(&saved, cancel);
}

/* What is to be read or written may be no memory at all */
int mlx5sim_cm_copy_in(void *to, uint64_t from, size_t size)
{
    struct iovec local  = {to, size};
    struct iovec remote = {(void*)(uintptr_t)from, size};

    return (process_vm_readv(gettid(), &local, 1, &remote, 1, 0) ==
            (ssize_t)size) ? 0 : -EFAULT;
}

int mlx5sim_cm_reply(const mlx5sim_cm_cmd_t *cmd, uint64_t response,
                     const void *answer, size_t size)
{
    size_t length       = (size < cmd->out_size) ? size : cmd->out_size;
    struct iovec local  = {(void*)answer, length};
    struct iovec remote = {(void*)(uintptr_t)response, length};

    return (process_vm_writev(gettid(), &local, 1, &remote, 1, 0) ==
            (ssize_t)length) ? 0 : -EFAULT;
}

mlx5sim_cm_id_t *mlx5sim_cm_cmd_id(const mlx5sim_cm_cmd_t *cmd, uint32_t index,
                                   int *ret_p)
{
    mlx5sim_cm_id_t *id = mlx5sim_obj_find(MLX5SIM_OBJ_CM_ID, index);

    if ((index == 0) || (id == NULL) ||
        (atomic_load(&id->o.owner) != mlx5sim_self_tag) || !id->o.ready) {
        *ret_p = -ENOENT;
        return NULL;
    }

    if (id->chan != mlx5sim_obj_index(MLX5SIM_OBJ_CHAN, cmd->chan)) {
        *ret_p = -EINVAL;
        return NULL;
    }

    *ret_p = 0;
    return id;
}

/* Read a command: ucma_write() */
static int mlx5sim_rdmacm_read_cmd(const void *buf, size_t size,
                                   mlx5sim_cm_cmd_t *cmd, uint32_t *number_p)
{
    struct rdma_ucm_cmd_hdr hdr;
    int ret;

    if (size < sizeof(hdr)) {
        return -EINVAL;
    }

    ret = mlx5sim_cm_copy_in(&hdr, (uintptr_t)buf, sizeof(hdr));
    if (ret != 0) {
        return ret;
    }

    if ((hdr.cmd >= MLX5SIM_CM_NUM_CMDS) || (hdr.in + sizeof(hdr) > size)) {
        return -EINVAL;
    }

    if (mlx5sim_cm_cmds[hdr.cmd].handle == NULL) {
        return -ENOSYS;
    }

    if (hdr.in < mlx5sim_cm_cmds[hdr.cmd].in_size) {
        return -EINVAL;
    }

    if (hdr.out < mlx5sim_cm_cmds[hdr.cmd].out_size) {
        return -ENOSPC;
    }

    memset(&cmd->in, 0, sizeof(cmd->in));
    cmd->out_size = hdr.out;
    *number_p     = hdr.cmd;
    return mlx5sim_cm_copy_in(&cmd->in, (uintptr_t)buf + sizeof(hdr),
                              (hdr.in < sizeof(cmd->in)) ? hdr.in :
                                                           sizeof(cmd->in));
}

/* Wait until there is an event: the kernel does so in ucma_get_event().
 * @return 0 or -errno */
static int mlx5sim_rdmacm_wait(int fd)
{
    struct pollfd pfd = {fd, POLLIN, 0};
    int flags         = fcntl(fd, F_GETFL);

    if ((flags >= 0) && (flags & O_NONBLOCK)) {
        return -EAGAIN;
    }

    if (poll(&pfd, 1, -1) < 0) {
        return -errno;
    }
    return (pfd.revents & POLLIN) ? 0 : -EBADF; /* closed meanwhile */
}

ssize_t mlx5sim_rdmacm_write(int fd, const void *buf, size_t size)
{
    mlx5sim_cm_cmd_t cmd = {.chan = mlx5sim_rdmacm_chan(fd), .fd = fd};
    uint32_t number      = 0;
    sigset_t saved;
    uint32_t gen;
    int ret, cancel;

    if ((cmd.chan == NULL) ||
        (atomic_load(&cmd.chan->o.owner) != mlx5sim_self_tag)) {
        errno = EIO; /* inherited through fork() */
        return -1;
    }

    gen = cmd.chan->o.gen;
    ret = mlx5sim_rdmacm_read_cmd(buf, size, &cmd, &number);
    while (ret == 0) {
        mlx5sim_rdmacm_enter(&saved, &cancel);
        ret = ((atomic_load(&cmd.chan->o.owner) == mlx5sim_self_tag) &&
               (cmd.chan->o.gen == gen)) ?
              mlx5sim_cm_cmds[number].handle(&cmd) : -EBADF;
        mlx5sim_rdmacm_exit(&saved, cancel);
        if ((number != RDMA_USER_CM_CMD_GET_EVENT) || (ret != -EAGAIN)) {
            break;
        }
        ret = mlx5sim_rdmacm_wait(fd);
    }

    if ((ret == -EBADF) && (number == RDMA_USER_CM_CMD_GET_EVENT)) {
        /* Another thread has closed it. Who is in the kernel then has the file,
         * and stays there: rping would end with an error otherwise. */
        pause();
        ret = -EINTR;
    }

    if (ret != 0) {
        errno = -ret;
        return -1;
    }
    return size;
}
