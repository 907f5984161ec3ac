/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/objs/port.h>
#include <sim/objs/store.h>

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>


/* Files of sysfs, and the unit of their numbers (kernel:
 * Documentation/ABI/stable/sysfs-class-infiniband; port_*_data are words) */
static const struct {
    const char             *name;
    mlx5sim_port_counter_t counter;
    unsigned               unit;
} mlx5sim_port_files[] = {
    {"counters/port_xmit_packets",        MLX5SIM_PORT_XMIT_PACKETS, 1},
    {"counters/unicast_xmit_packets",     MLX5SIM_PORT_XMIT_PACKETS, 1},
    {"counters/port_xmit_data",           MLX5SIM_PORT_XMIT_BYTES, 4},
    {"counters/port_rcv_packets",         MLX5SIM_PORT_RCV_PACKETS, 1},
    {"counters/unicast_rcv_packets",      MLX5SIM_PORT_RCV_PACKETS, 1},
    {"counters/port_rcv_data",            MLX5SIM_PORT_RCV_BYTES, 4},
    {"hw_counters/rx_write_requests",     MLX5SIM_PORT_RX_WRITES, 1},
    {"hw_counters/rx_read_requests",      MLX5SIM_PORT_RX_READS, 1},
    {"hw_counters/rx_atomic_requests",    MLX5SIM_PORT_RX_ATOMICS, 1},
    {"hw_counters/out_of_buffer",         MLX5SIM_PORT_NO_RECEIVE, 1},
    {"hw_counters/out_of_sequence",       MLX5SIM_PORT_GAPS, 1},
    {"hw_counters/duplicate_request",     MLX5SIM_PORT_DUPLICATES, 1},
    {"hw_counters/packet_seq_err",        MLX5SIM_PORT_GAPS_TOLD, 1},
    {"hw_counters/local_ack_timeout_err", MLX5SIM_PORT_TIMEOUTS, 1},
    {"hw_counters/req_cqe_error",         MLX5SIM_PORT_REQ_ERRORS, 1},
    {"hw_counters/req_cqe_flush_error",   MLX5SIM_PORT_REQ_FLUSHED, 1}
};


/* @return NULL if there is no such port */
static mlx5sim_port_shard_t *
mlx5sim_port_shards(mlx5sim_store_t *store, unsigned dev, unsigned port)
{
    return ((dev < MLX5SIM_MAX_DEVICES) && (port >= 1) &&
            (port <= MLX5SIM_MAX_PORTS)) ? store->ports[dev][port - 1] : NULL;
}

static mlx5sim_port_shard_t *mlx5sim_port_own(unsigned dev, unsigned port)
{
    mlx5sim_port_shard_t *shards = mlx5sim_port_shards(mlx5sim_store, dev,
                                                       port);

    return (shards == NULL) ? NULL :
           &shards[mlx5sim_self_tag & (MLX5SIM_PORT_SHARDS - 1)];
}

static inline void mlx5sim_port_add(mlx5sim_port_shard_t *shard,
                                    mlx5sim_port_counter_t counter,
                                    uint64_t value)
{
    atomic_fetch_add_explicit(&shard->counters[counter], value,
                              memory_order_relaxed);
}

void mlx5sim_port_count(unsigned dev, unsigned port,
                        mlx5sim_port_counter_t counter, uint64_t value)
{
    mlx5sim_port_shard_t *shard = mlx5sim_port_own(dev, port);

    if (shard != NULL) {
        mlx5sim_port_add(shard, counter, value);
    }
}

/* Through it, in one of the directions */
static void mlx5sim_port_count_data(unsigned dev, unsigned port,
                                    mlx5sim_port_counter_t packet_counter,
                                    uint32_t packets,
                                    mlx5sim_port_counter_t byte_counter,
                                    uint64_t bytes)
{
    mlx5sim_port_shard_t *shard = mlx5sim_port_own(dev, port);

    if (shard != NULL) {
        mlx5sim_port_add(shard, packet_counter, packets);
        mlx5sim_port_add(shard, byte_counter, bytes);
    }
}

void mlx5sim_port_sent(unsigned dev, unsigned port, uint32_t packets,
                       uint64_t bytes)
{
    mlx5sim_port_count_data(dev, port, MLX5SIM_PORT_XMIT_PACKETS, packets,
                            MLX5SIM_PORT_XMIT_BYTES, bytes);
}

void mlx5sim_port_received(unsigned dev, unsigned port, uint32_t packets,
                           uint64_t bytes)
{
    mlx5sim_port_count_data(dev, port, MLX5SIM_PORT_RCV_PACKETS, packets,
                            MLX5SIM_PORT_RCV_BYTES, bytes);
}

static void mlx5sim_port_read(const char *dir, unsigned dev, unsigned port,
                              uint64_t counters_p[MLX5SIM_PORT_COUNTERS])
{
    const mlx5sim_port_shard_t *shards;
    mlx5sim_store_t *store;
    char path[PATH_MAX];
    struct stat st;
    unsigned i, k;
    int fd;

    memset(counters_p, 0, sizeof(*counters_p) * MLX5SIM_PORT_COUNTERS);
    snprintf(path, sizeof(path), "%s/store", dir);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return;
    }

    /* Not by mlx5sim_store_open(): who reads a file of sysfs need not use the
     * device, and becomes no process of it */
    store = ((fstat(fd, &st) == 0) && (st.st_size >= (off_t)sizeof(*store))) ?
            mmap(NULL, sizeof(*store), PROT_READ, MAP_SHARED, fd, 0) :
            MAP_FAILED;
    close(fd);
    if (store == MAP_FAILED) {
        return;
    }

    shards = mlx5sim_port_shards(store, dev, port);
    if ((shards != NULL) && (store->magic == MLX5SIM_STORE_MAGIC) &&
        (store->version == MLX5SIM_STORE_VERSION) &&
        (store->size_check == sizeof(mlx5sim_qp_obj_t))) {
        for (i = 0; i < MLX5SIM_PORT_SHARDS; ++i) {
            for (k = 0; k < MLX5SIM_PORT_COUNTERS; ++k) {
                counters_p[k] += atomic_load_explicit(&shards[i].counters[k],
                                                      memory_order_relaxed);
            }
        }
    }
    munmap(store, sizeof(*store));
}

void mlx5sim_port_tell(const char *dir, unsigned dev, unsigned port,
                       const char *only, mlx5sim_port_set_t set)
{
    uint64_t counters[MLX5SIM_PORT_COUNTERS];
    size_t length = strlen(only);
    int fd        = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *name;
    unsigned i;

    /* Another one must not write what is older, and follows */
    if (fd >= 0) {
        (void)flock(fd, LOCK_EX);
    }

    mlx5sim_port_read(dir, dev, port, counters);
    for (i = 0; i < sizeof(mlx5sim_port_files) / sizeof(mlx5sim_port_files[0]);
         ++i) {
        name = mlx5sim_port_files[i].name;
        if (!strncmp(name, only, length) &&
            ((name[length] == '\0') || (name[length] == '/'))) {
            (void)set(dir, dev, port, name,
                      counters[mlx5sim_port_files[i].counter] /
                      mlx5sim_port_files[i].unit);
        }
    }

    if (fd >= 0) {
        close(fd);
    }
}
