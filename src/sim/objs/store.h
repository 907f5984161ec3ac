/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_STORE_H_
#define MLX5SIM_STORE_H_

#include <sim/objs/obj.h>
#include <sim/objs/port.h>

#include <stddef.h>

/*
 * The object store: one sparse file per instance, mapped by every process that
 * uses the device. It holds tables of objects (obj.h) and no pointers, as each
 * process maps it elsewhere.
 *
 * A slot belongs to the process whose tag is in its `owner` word, 0 means free.
 * Its pages are taken from the file system with the slots that are on them,
 * before anybody touches them.
 *
 * Taking a free slot is a compare-and-swap of that word, so a process that is
 * killed while it creates an object leaves nothing behind that
 * mlx5sim_proc_reap() cannot find.
 */

#define MLX5SIM_STORE_MAGIC    0x6d6c783573696d31ull
#define MLX5SIM_STORE_VERSION  37

/** Where a table lies in the store. */
typedef struct mlx5sim_table {
    uint64_t         offset;
    uint32_t         entry_size;
    uint32_t         capacity;
    _Atomic uint32_t cursor;   /* search for a free slot starts here */
    _Atomic uint32_t high;     /* slots at and above were never used */
    _Atomic uint32_t in_use;   /* or more, if somebody was killed at counting */
} mlx5sim_table_t;


typedef struct mlx5sim_store {
    uint64_t        magic;
    uint32_t        version;
    uint32_t        size_check;   /* sizeof(mlx5sim_qp_obj_t): same build */
    uint64_t        total_size;
    mlx5sim_table_t tables[MLX5SIM_OBJ_LAST];
    mlx5sim_lock_t  atomic_locks[MLX5SIM_ATOMIC_LOCKS];
    mlx5sim_lock_t  limit_lock;   /* of who takes what is limited in number */
    mlx5sim_lock_t  reap_lock;    /* of who frees what a process had */
    mlx5sim_lock_t  cm_lock;      /* of the connection manager's ids */
    uint32_t        cm_ports[MLX5SIM_MAX_CM_IDS]; /* port space and port that
                                     an id has, 0: none */
    uint32_t        cm_next_port; /* search for a free one starts here */
    _Atomic uint32_t ports_down[MLX5SIM_MAX_DEVICES]; /* bit of each port */
    /* active_speed and active_width << 8 of ports; 0: those of the model */
    _Atomic uint32_t speeds[MLX5SIM_MAX_DEVICES][MLX5SIM_MAX_PORTS];
    _Atomic uint32_t wire_tag;    /* process of mlx5sim-wire, 0: none yet */
    _Atomic uint32_t cm_is_told;  /* it is about to look at ids */
    mlx5sim_port_shard_t ports[MLX5SIM_MAX_DEVICES][MLX5SIM_MAX_PORTS]
                              [MLX5SIM_PORT_SHARDS];
    mlx5sim_proc_t  procs[MLX5SIM_MAX_PROCS];
    /* the last processes that are gone, for mlx5sim-stat */
    _Atomic uint64_t num_exited;
    mlx5sim_proc_t   exited[MLX5SIM_MAX_EXITED];
} mlx5sim_store_t;


/** The mapped store, NULL before mlx5sim_store_open(). */
extern mlx5sim_store_t *mlx5sim_store;

/** Tag of this process in the store, 0 when it has none (also in a forked
 *  child: objects belong to the parent). */
extern uint32_t mlx5sim_self_tag;


/** Name of a kind for people: "QP". */
const char *mlx5sim_obj_kind_name(mlx5sim_obj_kind_t kind);

/** Map (and create, if needed) the store of instance directory @a dir.
 *  @return 0, or -1 with errno set and the reason printed. */
int mlx5sim_store_open(const char *dir);

/** Entry @a index of a table; no check. Only for an index below
 *  mlx5sim_table_t.high: others may have no memory. */
void *mlx5sim_obj_at(mlx5sim_obj_kind_t kind, uint32_t index);

/** Entry @a index of a table, NULL if none so high was ever used. */
void *mlx5sim_obj_find(mlx5sim_obj_kind_t kind, uint32_t index);

/** Index of an entry. */
uint32_t mlx5sim_obj_index(mlx5sim_obj_kind_t kind, const void *obj);

/**
 * Take a free slot for this process; zeroed behind the head and the locks,
 * `ready` is 0.
 * @return The entry, or NULL with errno = ENOMEM when the table is full, or
 *         ENOSPC when the file system is (which is then printed).
 */
void *mlx5sim_obj_alloc(mlx5sim_obj_kind_t kind, uint32_t ctx);

/** Begin anew with the first slot, and with the numbers of those that are free:
 *  nobody may still hold any of these. */
void mlx5sim_obj_restart(mlx5sim_obj_kind_t kind);

/** Give the slot back. The caller made sure that nobody uses it. */
void mlx5sim_obj_free(mlx5sim_obj_kind_t kind, void *obj);

/** Entry @a index if it belongs to this process and context @a ctx and is
 *  ready, else NULL with errno = EINVAL (what the kernel says of a bad
 *  handle). */
void *mlx5sim_obj_mine(mlx5sim_obj_kind_t kind, uint32_t index, uint32_t ctx);

/** This process. */
mlx5sim_proc_t *mlx5sim_proc_self(void);

/** Process behind a tag, NULL if the tag is stale. */
mlx5sim_proc_t *mlx5sim_proc_by_tag(uint32_t tag);

/** Whether a QP can neither send nor receive because its device has failed, or
 *  its port is down. */
int mlx5sim_qp_is_cut_off(const mlx5sim_qp_obj_t *qp);

/** Whether a QP executes nothing because its device has failed. */
int mlx5sim_qp_is_dead(const mlx5sim_qp_obj_t *qp);

/** QP by number in any process, NULL if there is none. */
mlx5sim_qp_obj_t *mlx5sim_qp_by_num(uint32_t qpn);

uint32_t mlx5sim_qp_num(const mlx5sim_qp_obj_t *qp);

/** Path of the FIFO behind @a chan; unique per use of the slot. */
void mlx5sim_chan_path(const mlx5sim_chan_t *chan, char *buf, size_t size);

#endif
