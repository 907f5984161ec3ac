/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_PORT_H_
#define MLX5SIM_PORT_H_

#include <stdatomic.h>
#include <stdint.h>

/*
 * What went through a port, of all processes of the instance. It is in the
 * store, and stays there when a process ends. Counters only grow.
 */

#define MLX5SIM_MAX_PORTS   2   /* largest MLX5SIM_PORTS */
/* Processes that count at once do so in lines of the cache apart; 2^n */
#define MLX5SIM_PORT_SHARDS 16

/** What is counted. The names are those of sysfs. */
typedef enum {
    MLX5SIM_PORT_XMIT_PACKETS,
    MLX5SIM_PORT_XMIT_BYTES,      /* from LRH, or Ethernet's header, to ICRC */
    MLX5SIM_PORT_RCV_PACKETS,
    MLX5SIM_PORT_RCV_BYTES,
    MLX5SIM_PORT_RX_WRITES,       /* rx_write_requests */
    MLX5SIM_PORT_RX_READS,
    MLX5SIM_PORT_RX_ATOMICS,
    MLX5SIM_PORT_NO_RECEIVE,      /* out_of_buffer */
    MLX5SIM_PORT_GAPS,            /* out_of_sequence */
    MLX5SIM_PORT_DUPLICATES,      /* duplicate_request */
    MLX5SIM_PORT_GAPS_TOLD,       /* packet_seq_err */
    MLX5SIM_PORT_TIMEOUTS,        /* local_ack_timeout_err */
    MLX5SIM_PORT_REQ_ERRORS,      /* req_cqe_error */
    MLX5SIM_PORT_REQ_FLUSHED,     /* req_cqe_flush_error */
    MLX5SIM_PORT_COUNTERS
} mlx5sim_port_counter_t;

/** Of one port, by some of the processes. */
typedef struct mlx5sim_port_shard {
    _Alignas(64) _Atomic uint64_t counters[MLX5SIM_PORT_COUNTERS];
} mlx5sim_port_shard_t;

/** Add to a counter. Without a port, which is 0 then, nothing is counted. */
void mlx5sim_port_count(unsigned dev, unsigned port,
                        mlx5sim_port_counter_t counter, uint64_t value);

/** Packets that a port sends, with all their bytes. */
void mlx5sim_port_sent(unsigned dev, unsigned port, uint32_t packets,
                       uint64_t bytes);

/** Packets that a port receives. */
void mlx5sim_port_received(unsigned dev, unsigned port, uint32_t packets,
                           uint64_t bytes);

typedef int (*mlx5sim_port_set_t)(const char *dir, unsigned dev, unsigned port,
                                  const char *name, uint64_t value);

/**
 * Tell what has been counted for a port in the store of an instance. This
 * process need not use it: all is 0 if there is none, or one of another build.
 *
 * @param only  "counters" or "hw_counters", or a file in there.
 * @param set   Is called with the name of each file, and what it is to say.
 */
void mlx5sim_port_tell(const char *dir, unsigned dev, unsigned port,
                       const char *only, mlx5sim_port_set_t set);

#endif
