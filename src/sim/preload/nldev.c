/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/preload/nldev.h>

#include <dirent.h>
#include <errno.h>
#include <net/if.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MLX5SIM_NLDEV_SYSFS    "/sys/class/infiniband"
#define MLX5SIM_NLDEV_NAME     64
#define MLX5SIM_NLDEV_DEVICES  16
#define MLX5SIM_NLDEV_ALL      UINT32_MAX

/* Answers as they grow */
typedef struct {
    uint8_t               *buf;
    size_t                length;
    size_t                begin;    /* of the message */
    const struct nlmsghdr *request;
    uint32_t              port;
    int                   is_full;
} mlx5sim_nldev_out_t;

/* A device, or one of its ports */
typedef struct {
    char     name[MLX5SIM_NLDEV_NAME];
    uint32_t index;
    uint32_t num_ports;
} mlx5sim_nldev_dev_t;

/* What a request asks for; MLX5SIM_NLDEV_ALL: it does not say */
typedef struct {
    uint32_t dev;
    uint32_t port;
    int      has_mode; /* counters of queue pairs, not of ports */
} mlx5sim_nldev_wish_t;


static void *mlx5sim_nldev_room(mlx5sim_nldev_out_t *out, size_t length)
{
    void *room = out->buf + out->length;

    if (out->length + NLMSG_ALIGN(length) > MLX5SIM_NLDEV_MAX) {
        out->is_full = 1;
        return NULL;
    }

    memset(room, 0, NLMSG_ALIGN(length));
    out->length += NLMSG_ALIGN(length);
    return room;
}

static void mlx5sim_nldev_begin(mlx5sim_nldev_out_t *out, uint16_t type)
{
    struct nlmsghdr *msg;

    out->begin = out->length;
    msg        = mlx5sim_nldev_room(out, NLMSG_HDRLEN);
    if (msg != NULL) {
        msg->nlmsg_type  = type;
        msg->nlmsg_flags = (out->request->nlmsg_flags & NLM_F_DUMP) ?
                           NLM_F_MULTI : 0;
        msg->nlmsg_seq   = out->request->nlmsg_seq;
        msg->nlmsg_pid   = out->port;
    }
}

static void mlx5sim_nldev_end(mlx5sim_nldev_out_t *out)
{
    struct nlmsghdr *msg = (void*)(out->buf + out->begin);

    if (!out->is_full) {
        msg->nlmsg_len = out->length - out->begin;
    }
}

static void mlx5sim_nldev_put(mlx5sim_nldev_out_t *out, uint16_t type,
                              const void *data, size_t length)
{
    struct nlattr *attr = mlx5sim_nldev_room(out, NLA_HDRLEN + length);

    if (attr != NULL) {
        attr->nla_type = type;
        attr->nla_len  = NLA_HDRLEN + length;
        memcpy((uint8_t*)attr + NLA_HDRLEN, data, length);
    }
}

static void mlx5sim_nldev_put_u8(mlx5sim_nldev_out_t *out, uint16_t type,
                                 uint8_t value)
{
    mlx5sim_nldev_put(out, type, &value, sizeof(value));
}

static void mlx5sim_nldev_put_u32(mlx5sim_nldev_out_t *out, uint16_t type,
                                  uint32_t value)
{
    mlx5sim_nldev_put(out, type, &value, sizeof(value));
}

static void mlx5sim_nldev_put_u64(mlx5sim_nldev_out_t *out, uint16_t type,
                                  uint64_t value)
{
    mlx5sim_nldev_put(out, type, &value, sizeof(value));
}

static void mlx5sim_nldev_put_string(mlx5sim_nldev_out_t *out, uint16_t type,
                                     const char *value)
{
    mlx5sim_nldev_put(out, type, value, strlen(value) + 1);
}

/* @return where it begins, for mlx5sim_nldev_close() */
static size_t mlx5sim_nldev_open(mlx5sim_nldev_out_t *out, uint16_t type)
{
    size_t begin = out->length;

    mlx5sim_nldev_put(out, type | NLA_F_NESTED, NULL, 0);
    return begin;
}

static void mlx5sim_nldev_close(mlx5sim_nldev_out_t *out, size_t begin)
{
    struct nlattr *attr = (void*)(out->buf + begin);

    if (!out->is_full) {
        attr->nla_len = out->length - begin;
    }
}

/* The first line of a file of a device. @return 0, or -1 */
static int mlx5sim_nldev_read(const mlx5sim_nldev_dev_t *dev, const char *file,
                              char *line, size_t size)
{
    char path[1024];
    FILE *stream;
    int ret = -1;

    snprintf(path, sizeof(path), MLX5SIM_NLDEV_SYSFS "/%s/%s", dev->name, file);
    stream = fopen(path, "re");
    if (stream == NULL) {
        return -1;
    }

    if (fgets(line, size, stream) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        ret                       = 0;
    }
    fclose(stream);
    return ret;
}

static uint64_t
mlx5sim_nldev_number(const mlx5sim_nldev_dev_t *dev, const char *file)
{
    char line[MLX5SIM_NLDEV_NAME];

    return (mlx5sim_nldev_read(dev, file, line, sizeof(line)) == 0) ?
           strtoull(line, NULL, 0) : 0;
}

static uint64_t mlx5sim_nldev_port_number(const mlx5sim_nldev_dev_t *dev,
                                          uint32_t port, const char *file)
{
    char path[512];

    snprintf(path, sizeof(path), "ports/%u/%s", port, file);
    return mlx5sim_nldev_number(dev, path);
}

/* The first half of a GID, or a GUID: groups of 16 bits */
static uint64_t
mlx5sim_nldev_guid(const mlx5sim_nldev_dev_t *dev, const char *file)
{
    char line[MLX5SIM_NLDEV_NAME];
    unsigned group[4] = {0};

    if (mlx5sim_nldev_read(dev, file, line, sizeof(line)) == 0) {
        (void)sscanf(line, "%x:%x:%x:%x", &group[0], &group[1], &group[2],
                     &group[3]);
    }
    return ((uint64_t)group[0] << 48) | ((uint64_t)group[1] << 32) |
           ((uint64_t)group[2] << 16) | group[3];
}

static int mlx5sim_nldev_is_roce(const mlx5sim_nldev_dev_t *dev, uint32_t port)
{
    char path[MLX5SIM_NLDEV_NAME], line[MLX5SIM_NLDEV_NAME];

    snprintf(path, sizeof(path), "ports/%u/link_layer", port);
    return (mlx5sim_nldev_read(dev, path, line, sizeof(line)) == 0) &&
           !strcmp(line, "Ethernet");
}

static int mlx5sim_nldev_sort(const void *a, const void *b)
{
    return strverscmp(((const mlx5sim_nldev_dev_t*)a)->name,
                      ((const mlx5sim_nldev_dev_t*)b)->name);
}

/* All devices, in an order. @return their number */
static unsigned mlx5sim_nldev_devices(mlx5sim_nldev_dev_t *devs)
{
    DIR *dir     = opendir(MLX5SIM_NLDEV_SYSFS);
    unsigned num = 0, i;
    char file[MLX5SIM_NLDEV_NAME], line[MLX5SIM_NLDEV_NAME];
    struct dirent *entry;

    if (dir == NULL) {
        return 0;
    }

    while ((num < MLX5SIM_NLDEV_DEVICES) && ((entry = readdir(dir)) != NULL)) {
        if (entry->d_name[0] != '.') {
            snprintf(devs[num].name, sizeof(devs[num].name), "%.*s",
                     MLX5SIM_NLDEV_NAME - 1, entry->d_name);
            ++num;
        }
    }
    closedir(dir);

    qsort(devs, num, sizeof(*devs), mlx5sim_nldev_sort);
    for (i = 0; i < num; ++i) {
        devs[i].index     = i;
        devs[i].num_ports = 0;
        do {
            snprintf(file, sizeof(file), "ports/%u/state",
                     devs[i].num_ports + 1);
        } while ((mlx5sim_nldev_read(&devs[i], file, line, sizeof(line)) ==
                  0) && ++devs[i].num_ports);
    }
    return num;
}

static void mlx5sim_nldev_handle(mlx5sim_nldev_out_t *out,
                                 const mlx5sim_nldev_dev_t *dev)
{
    mlx5sim_nldev_begin(out, out->request->nlmsg_type);
    mlx5sim_nldev_put_u32(out, RDMA_NLDEV_ATTR_DEV_INDEX, dev->index);
    mlx5sim_nldev_put_string(out, RDMA_NLDEV_ATTR_DEV_NAME, dev->name);
}

/* fill_dev_info() */
static void mlx5sim_nldev_dev(mlx5sim_nldev_out_t *out,
                              const mlx5sim_nldev_dev_t *dev, uint32_t port)
{
    char fw[MLX5SIM_NLDEV_NAME] = "";

    mlx5sim_nldev_handle(out, dev);
    mlx5sim_nldev_put_u32(out, RDMA_NLDEV_ATTR_PORT_INDEX, dev->num_ports);
    (void)mlx5sim_nldev_read(dev, "fw_ver", fw, sizeof(fw));
    mlx5sim_nldev_put_string(out, RDMA_NLDEV_ATTR_FW_VERSION, fw);
    mlx5sim_nldev_put_u64(out, RDMA_NLDEV_ATTR_NODE_GUID,
                          mlx5sim_nldev_guid(dev, "node_guid"));
    mlx5sim_nldev_put_u64(out, RDMA_NLDEV_ATTR_SYS_IMAGE_GUID,
                          mlx5sim_nldev_guid(dev, "sys_image_guid"));
    mlx5sim_nldev_put_u8(out, RDMA_NLDEV_ATTR_DEV_NODE_TYPE,
                         mlx5sim_nldev_number(dev, "node_type"));
    mlx5sim_nldev_put_string(out, RDMA_NLDEV_ATTR_DEV_PROTOCOL,
                             mlx5sim_nldev_is_roce(dev, 1) ? "roce" : "ib");
    mlx5sim_nldev_end(out);
}

/* fill_port_info() */
static void mlx5sim_nldev_port(mlx5sim_nldev_out_t *out,
                               const mlx5sim_nldev_dev_t *dev, uint32_t port)
{
    char path[MLX5SIM_NLDEV_NAME], netif[MLX5SIM_NLDEV_NAME];

    mlx5sim_nldev_handle(out, dev);
    mlx5sim_nldev_put_u32(out, RDMA_NLDEV_ATTR_PORT_INDEX, port);
    if (!mlx5sim_nldev_is_roce(dev, port)) {
        mlx5sim_nldev_put_u64(out, RDMA_NLDEV_ATTR_CAP_FLAGS,
                              mlx5sim_nldev_port_number(dev, port,
                                                        "cap_mask"));
        snprintf(path, sizeof(path), "ports/%u/gids/0", port);
        mlx5sim_nldev_put_u64(out, RDMA_NLDEV_ATTR_SUBNET_PREFIX,
                              mlx5sim_nldev_guid(dev, path));
        mlx5sim_nldev_put_u32(out, RDMA_NLDEV_ATTR_LID,
                              mlx5sim_nldev_port_number(dev, port, "lid"));
        mlx5sim_nldev_put_u32(out, RDMA_NLDEV_ATTR_SM_LID,
                              mlx5sim_nldev_port_number(dev, port, "sm_lid"));
        mlx5sim_nldev_put_u8(out, RDMA_NLDEV_ATTR_LMC,
                             mlx5sim_nldev_port_number(dev, port,
                                                       "lid_mask_count"));
    }
    mlx5sim_nldev_put_u8(out, RDMA_NLDEV_ATTR_PORT_STATE,
                         mlx5sim_nldev_port_number(dev, port, "state"));
    mlx5sim_nldev_put_u8(out, RDMA_NLDEV_ATTR_PORT_PHYS_STATE,
                         mlx5sim_nldev_port_number(dev, port, "phys_state"));
    snprintf(path, sizeof(path), "ports/%u/gid_attrs/ndevs/0", port);
    if ((mlx5sim_nldev_read(dev, path, netif, sizeof(netif)) == 0) &&
        (if_nametoindex(netif) != 0)) {
        mlx5sim_nldev_put_u32(out, RDMA_NLDEV_ATTR_NDEV_INDEX,
                              if_nametoindex(netif));
        mlx5sim_nldev_put_string(out, RDMA_NLDEV_ATTR_NDEV_NAME, netif);
    }
    mlx5sim_nldev_end(out);
}

/* stat_get_doit_default_counter() */
static void mlx5sim_nldev_counters(mlx5sim_nldev_out_t *out,
                                   const mlx5sim_nldev_dev_t *dev,
                                   uint32_t port)
{
    struct dirent *entry;
    size_t table, row;
    char path[256], file[MLX5SIM_NLDEV_NAME + sizeof(entry->d_name)];
    DIR *dir;

    mlx5sim_nldev_handle(out, dev);
    mlx5sim_nldev_put_u32(out, RDMA_NLDEV_ATTR_PORT_INDEX, port);
    table = mlx5sim_nldev_open(out, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
    snprintf(path, sizeof(path), MLX5SIM_NLDEV_SYSFS "/%s/ports/%u/hw_counters",
             dev->name, port);
    dir = opendir(path);
    while ((dir != NULL) && ((entry = readdir(dir)) != NULL)) {
        /* how often they are read is no counter */
        if ((entry->d_name[0] == '.') || !strcmp(entry->d_name, "lifespan")) {
            continue;
        }

        snprintf(file, sizeof(file), "hw_counters/%s", entry->d_name);
        row = mlx5sim_nldev_open(out, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY);
        mlx5sim_nldev_put_string(out,
                                 RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME,
                                 entry->d_name);
        mlx5sim_nldev_put_u64(out, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE,
                              mlx5sim_nldev_port_number(dev, port, file));
        mlx5sim_nldev_close(out, row);
    }
    if (dir != NULL) {
        closedir(dir);
    }
    mlx5sim_nldev_close(out, table);
    mlx5sim_nldev_end(out);
}

/* nldev_sys_get_doit(): namespaces share devices, and fork() copies pinned
 * pages */
static int mlx5sim_nldev_system(mlx5sim_nldev_out_t *out)
{
    mlx5sim_nldev_begin(out, out->request->nlmsg_type);
    mlx5sim_nldev_put_u8(out, RDMA_NLDEV_SYS_ATTR_NETNS_MODE, 1);
    mlx5sim_nldev_put_u8(out, RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK, 1);
    mlx5sim_nldev_end(out);
    return 0;
}

static void mlx5sim_nldev_wish(const struct nlmsghdr *request,
                               mlx5sim_nldev_wish_t *wish_p)
{
    size_t offset = NLMSG_HDRLEN;
    const struct nlattr *attr;
    uint32_t value;

    *wish_p = (mlx5sim_nldev_wish_t){MLX5SIM_NLDEV_ALL, MLX5SIM_NLDEV_ALL, 0};
    while (offset + NLA_HDRLEN <= request->nlmsg_len) {
        attr = (const void*)((const uint8_t*)request + offset);
        if ((attr->nla_len < NLA_HDRLEN) ||
            (offset + attr->nla_len > request->nlmsg_len)) {
            return;
        }

        if (attr->nla_len >= NLA_HDRLEN + sizeof(value)) {
            memcpy(&value, (const uint8_t*)attr + NLA_HDRLEN, sizeof(value));
            switch (attr->nla_type & NLA_TYPE_MASK) {
            case RDMA_NLDEV_ATTR_DEV_INDEX:
                wish_p->dev = value;
                break;
            case RDMA_NLDEV_ATTR_PORT_INDEX:
                wish_p->port = value;
                break;
            case RDMA_NLDEV_ATTR_STAT_MODE:
            case RDMA_NLDEV_ATTR_STAT_RES:
                wish_p->has_mode = 1;
                break;
            default:
                break;
            }
        }
        offset += NLA_ALIGN(attr->nla_len);
    }
}

typedef void (*mlx5sim_nldev_fill_t)(mlx5sim_nldev_out_t *out,
                                     const mlx5sim_nldev_dev_t *dev,
                                     uint32_t port);

/* @return 0, or -errno: no such device or port */
static int mlx5sim_nldev_tell(mlx5sim_nldev_out_t *out,
                              const mlx5sim_nldev_wish_t *wish,
                              mlx5sim_nldev_fill_t fill, int is_port)
{
    int is_dump = !!(out->request->nlmsg_flags & NLM_F_DUMP);
    mlx5sim_nldev_dev_t devs[MLX5SIM_NLDEV_DEVICES];
    unsigned num = mlx5sim_nldev_devices(devs);
    int is_found = 0;
    uint32_t port;
    unsigned i;

    if (!is_dump && ((wish->dev == MLX5SIM_NLDEV_ALL) ||
                     (is_port && (wish->port == MLX5SIM_NLDEV_ALL)))) {
        return -EINVAL;
    }

    for (i = 0; i < num; ++i) {
        if ((wish->dev != MLX5SIM_NLDEV_ALL) && (wish->dev != i)) {
            continue;
        }

        for (port = 1; port <= (is_port ? devs[i].num_ports : 1); ++port) {
            if (!is_port || is_dump || (wish->port == port)) {
                fill(out, &devs[i], port);
                is_found = 1;
            }
        }
    }
    return (is_found || is_dump) ? 0 : -EINVAL;
}

static int mlx5sim_nldev_execute(mlx5sim_nldev_out_t *out)
{
    const struct nlmsghdr *request = out->request;
    mlx5sim_nldev_wish_t wish;

    mlx5sim_nldev_wish(request, &wish);
    switch (request->nlmsg_type) {
    case RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET):
        return mlx5sim_nldev_tell(out, &wish, mlx5sim_nldev_dev, 0);
    case RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_PORT_GET):
        return mlx5sim_nldev_tell(out, &wish, mlx5sim_nldev_port, 1);
    case RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_STAT_GET):
        return wish.has_mode ? -EOPNOTSUPP :
               mlx5sim_nldev_tell(out, &wish, mlx5sim_nldev_counters, 1);
    case RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SYS_GET):
        return mlx5sim_nldev_system(out);
    default:
        return -EOPNOTSUPP;
    }
}

size_t mlx5sim_nldev_answer(const struct nlmsghdr *request, uint32_t port,
                            uint8_t *buf)
{
    mlx5sim_nldev_out_t out = {.buf = buf, .request = request, .port = port};
    struct nlmsgerr error   = {.msg = *request};
    void *room;

    error.error = mlx5sim_nldev_execute(&out);
    if (out.is_full) {
        error.error = -EMSGSIZE;
        out.length  = 0;
        out.is_full = 0;
    }
    if ((error.error == 0) && (request->nlmsg_flags & NLM_F_DUMP)) {
        mlx5sim_nldev_begin(&out, NLMSG_DONE);
        room = mlx5sim_nldev_room(&out, sizeof(int));
    } else if ((error.error != 0) || (request->nlmsg_flags & NLM_F_ACK)) {
        mlx5sim_nldev_begin(&out, NLMSG_ERROR);
        room = mlx5sim_nldev_room(&out, sizeof(error));
        if (room != NULL) {
            memcpy(room, &error, sizeof(error));
        }
    } else {
        return out.length;
    }

    mlx5sim_nldev_end(&out);
    return out.length;
}
