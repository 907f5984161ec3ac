/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_SWITCH_FORWARD_H_
#define MLX5SIM_SWITCH_FORWARD_H_

#include <sim/switch/fault.h>

#include <stdio.h>

/*
 * Ports of the switch, and the way of a frame from one to another.
 */

enum {
    MLX5SIM_SWITCH_PORTS     = 2048,
    MLX5SIM_SWITCH_FRAME_MAX = 65535 + 14 + 4, /* bytes: Ethernet, VLAN */
    MLX5SIM_SWITCH_NAME_MAX  = 80
};

/* What is counted of each port */
typedef enum mlx5sim_switch_count {
    MLX5SIM_SWITCH_RECEIVED,   /* from the node */
    MLX5SIM_SWITCH_SENT,       /* to it */
    MLX5SIM_SWITCH_UNSENT,     /* it did not take them, or too many waited */
    MLX5SIM_SWITCH_DOWN,       /* to or from a link that is down */
    MLX5SIM_SWITCH_PARTITIONED, /* to another part */
    MLX5SIM_SWITCH_LOST,       /* this one and the next: to it, on request */
    MLX5SIM_SWITCH_REORDERED,
    MLX5SIM_SWITCH_DUPLICATED,
    MLX5SIM_SWITCH_CORRUPTED,
    MLX5SIM_SWITCH_DELAYED,
    MLX5SIM_SWITCH_COUNTS
} mlx5sim_switch_count_t;

typedef struct mlx5sim_switch_port {
    char     name[MLX5SIM_SWITCH_NAME_MAX]; /* NODE:INTERFACE */
    int      fd;
    int      is_down;
    unsigned part;              /* frames go from ports of a part to others of
                                   it only */
    uint64_t count[MLX5SIM_SWITCH_COUNTS];
} mlx5sim_switch_port_t;

typedef struct mlx5sim_switch {
    mlx5sim_switch_rates_t rates;
    int                    is_all; /* faults are of all frames */
    unsigned               num_ports;
    mlx5sim_switch_port_t  ports[MLX5SIM_SWITCH_PORTS];
} mlx5sim_switch_t;

/* There is one */
extern mlx5sim_switch_t mlx5sim_switch;

/** Begin, when all ports are known.
 *  @return 0, or -1 if there is no memory. */
int mlx5sim_switch_start(void);

/** Read what has come to a port, and forward it.
 *  @param now  CLOCK_MONOTONIC, ns. */
void mlx5sim_switch_receive(unsigned port, uint64_t now);

/** Send what has waited long enough.
 *  @return when the next one has, or UINT64_MAX. */
uint64_t mlx5sim_switch_progress(uint64_t now);

/** Whether a port is of NODE, or NODE:INTERFACE. */
int mlx5sim_switch_port_is(const mlx5sim_switch_port_t *port, const char *name);

/** Write the settings and what was counted, as a line of JSON. */
void mlx5sim_switch_print(FILE *out);

#endif
