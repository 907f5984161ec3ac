/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/switch/forward.h>
#include <sim/switch/heap.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MLX5SIM_SWITCH_BATCH   = 64,      /* frames of a port, before it is the next
                                         one's turn */
    MLX5SIM_SWITCH_ETH     = 14,
    MLX5SIM_SWITCH_MACS    = 1 << 14, /* places for addresses */
    MLX5SIM_SWITCH_TRIES   = 8,       /* places where one may be */
    /* a frame that nothing overtakes does not wait for ever */
    MLX5SIM_SWITCH_HOLD_NS = 2000000
};

/* Where an address is; 0 is none's */
typedef struct mlx5sim_switch_mac {
    uint64_t mac;
    unsigned port;
} mlx5sim_switch_mac_t;

/* Frames from one port to another */
typedef struct mlx5sim_switch_pair {
    uint64_t               number; /* of those that faults may happen to */
    mlx5sim_switch_frame_t *held;  /* those that others are to overtake */
} mlx5sim_switch_pair_t;

mlx5sim_switch_t mlx5sim_switch = {.rates.seed = 1};

static mlx5sim_switch_pair_t *mlx5sim_switch_pairs;
static mlx5sim_switch_mac_t mlx5sim_switch_macs[MLX5SIM_SWITCH_MACS];
static mlx5sim_switch_heap_t mlx5sim_switch_heap;


int mlx5sim_switch_start(void)
{
    size_t num = mlx5sim_switch.num_ports;

    mlx5sim_switch_pairs = calloc(num * num, sizeof(*mlx5sim_switch_pairs));
    return (mlx5sim_switch_pairs != NULL) ? 0 : -1;
}

static mlx5sim_switch_pair_t *mlx5sim_switch_pair(unsigned from, unsigned to)
{
    return &mlx5sim_switch_pairs[(from * (size_t)mlx5sim_switch.num_ports) +
                                 to];
}

/* @return the place of an address, or else one that it may take */
static mlx5sim_switch_mac_t *mlx5sim_switch_find_mac(const uint8_t *bytes)
{
    uint64_t mac = 0;
    mlx5sim_switch_mac_t *entry;
    size_t place;
    unsigned i;

    memcpy(&mac, bytes, 6);
    place = (mac * 0x9e3779b97f4a7c15ul) >> 50;
    for (i = 0; i < MLX5SIM_SWITCH_TRIES; ++i) {
        entry = &mlx5sim_switch_macs[(place + i) % MLX5SIM_SWITCH_MACS];
        if ((entry->mac == mac) || (entry->mac == 0)) {
            break;
        }
    }

    if (entry->mac != mac) {
        *entry = (mlx5sim_switch_mac_t){mac, MLX5SIM_SWITCH_PORTS};
    }
    return entry;
}

static void mlx5sim_switch_send(unsigned to, const uint8_t *data, size_t length)
{
    mlx5sim_switch_port_t *port = &mlx5sim_switch.ports[to];
    int is_sent                 = 0;

    if (port->is_down) {
        ++port->count[MLX5SIM_SWITCH_DOWN]; /* since the frame began to wait */
        return;
    }

    do {
        is_sent = write(port->fd, data, length) == (ssize_t)length;
    } while (!is_sent && (errno == EINTR));
    ++port->count[is_sent ? MLX5SIM_SWITCH_SENT : MLX5SIM_SWITCH_UNSENT];
}

/* A frame was sent, or waits for nothing but its delay: it has overtaken. */
static void mlx5sim_switch_overtake(mlx5sim_switch_pair_t *pair, uint64_t due)
{
    mlx5sim_switch_frame_t **frame_p = &pair->held;
    mlx5sim_switch_frame_t *frame;

    while ((frame = *frame_p) != NULL) {
        if (--frame->overtaken > 0) {
            frame_p = &frame->next;
            continue;
        }
        *frame_p = frame->next;
        if (due < frame->due) {
            mlx5sim_switch_heap_hasten(&mlx5sim_switch_heap, frame, due);
        }
    }
}

static void mlx5sim_switch_forget(mlx5sim_switch_frame_t *frame)
{
    mlx5sim_switch_frame_t **frame_p =
            &mlx5sim_switch_pair(frame->from, frame->to)->held;

    while (*frame_p != frame) {
        frame_p = &(*frame_p)->next;
    }
    *frame_p = frame->next;
}

static void mlx5sim_switch_wait(unsigned from, unsigned to, const uint8_t *data,
                                size_t length, uint32_t overtaken, uint64_t due)
{
    mlx5sim_switch_pair_t *pair   = mlx5sim_switch_pair(from, to);
    mlx5sim_switch_frame_t *frame = malloc(sizeof(*frame) + length);

    if (frame != NULL) {
        frame->from      = from;
        frame->to        = to;
        frame->due       = due;
        frame->overtaken = overtaken;
        frame->length    = length;
        memcpy(frame->data, data, length);
    }

    if ((frame == NULL) ||
        (mlx5sim_switch_heap_push(&mlx5sim_switch_heap, frame) != 0)) {
        ++mlx5sim_switch.ports[to].count[MLX5SIM_SWITCH_UNSENT];
        free(frame);
    } else if (overtaken > 0) {
        frame->next = pair->held;
        pair->held  = frame;
    }
}

/* Send a frame, now or later */
static void mlx5sim_switch_deliver(unsigned from, unsigned to, uint8_t *data,
                                   size_t length, uint64_t delay,
                                   uint32_t overtaken, uint64_t now)
{
    uint64_t *count = mlx5sim_switch.ports[to].count;

    count[MLX5SIM_SWITCH_DELAYED] += delay > 0;
    if (overtaken > 0) {
        ++count[MLX5SIM_SWITCH_REORDERED];
        mlx5sim_switch_wait(from, to, data, length, overtaken,
                            now + delay + MLX5SIM_SWITCH_HOLD_NS);
        return;
    }

    if (delay > 0) {
        mlx5sim_switch_wait(from, to, data, length, 0, now + delay);
    } else {
        mlx5sim_switch_send(to, data, length);
    }
    mlx5sim_switch_overtake(mlx5sim_switch_pair(from, to), now + delay);
}

/* Send a frame that faults happen to */
static void mlx5sim_switch_try(unsigned from, unsigned to, uint8_t *data,
                               size_t length, size_t begin, uint64_t now)
{
    uint64_t *count = mlx5sim_switch.ports[to].count;
    mlx5sim_switch_fate_t fate;

    mlx5sim_switch_decide(&mlx5sim_switch.rates, from, to,
                          mlx5sim_switch_pair(from, to)->number++, begin,
                          length, &fate);
    if (fate.lost) {
        ++count[MLX5SIM_SWITCH_LOST];
        return;
    }

    if (fate.duplicate) {
        ++count[MLX5SIM_SWITCH_DUPLICATED];
        mlx5sim_switch_deliver(from, to, data, length, fate.delay[1], 0, now);
    }

    if (fate.bit != MLX5SIM_SWITCH_NO_BIT) {
        ++count[MLX5SIM_SWITCH_CORRUPTED];
        data[fate.bit / 8] ^= 1 << (fate.bit % 8);
    }
    mlx5sim_switch_deliver(from, to, data, length, fate.delay[0],
                           fate.overtaken, now);
    if (fate.bit != MLX5SIM_SWITCH_NO_BIT) {
        data[fate.bit / 8] ^= 1 << (fate.bit % 8); /* others get it, too */
    }
}

static void mlx5sim_switch_forward(unsigned from, unsigned to, uint8_t *data,
                                   size_t length, size_t begin, uint64_t now)
{
    mlx5sim_switch_port_t *port = &mlx5sim_switch.ports[to];

    if (port->is_down) {
        ++port->count[MLX5SIM_SWITCH_DOWN];
    } else if (port->part != mlx5sim_switch.ports[from].part) {
        ++port->count[MLX5SIM_SWITCH_PARTITIONED];
    } else if (begin > 0) {
        mlx5sim_switch_try(from, to, data, length, begin, now);
    } else {
        mlx5sim_switch_send(to, data, length);
    }
}

static void mlx5sim_switch_take(unsigned from, uint8_t *data, size_t length,
                                uint64_t now)
{
    mlx5sim_switch_port_t *port = &mlx5sim_switch.ports[from];
    unsigned to                 = MLX5SIM_SWITCH_PORTS;
    size_t begin;

    ++port->count[MLX5SIM_SWITCH_RECEIVED];
    if (port->is_down) {
        ++port->count[MLX5SIM_SWITCH_DOWN];
        return;
    }

    begin = mlx5sim_switch_find_bth(data, length);
    if ((begin == 0) && mlx5sim_switch.is_all) {
        begin = MLX5SIM_SWITCH_ETH;
    }

    if (!(data[6] & 1)) {
        mlx5sim_switch_find_mac(data + 6)->port = from;
    }
    if (!(data[0] & 1)) {
        to = mlx5sim_switch_find_mac(data)->port;
    }

    if (to < mlx5sim_switch.num_ports) {
        if (to != from) {
            mlx5sim_switch_forward(from, to, data, length, begin, now);
        }
        return;
    }

    for (to = 0; to < mlx5sim_switch.num_ports; ++to) {
        if (to != from) {
            mlx5sim_switch_forward(from, to, data, length, begin, now);
        }
    }
}

void mlx5sim_switch_receive(unsigned port, uint64_t now)
{
    static uint8_t data[MLX5SIM_SWITCH_FRAME_MAX];
    ssize_t length;
    unsigned i;

    for (i = 0; i < MLX5SIM_SWITCH_BATCH; ++i) {
        length = read(mlx5sim_switch.ports[port].fd, data, sizeof(data));
        if (length <= MLX5SIM_SWITCH_ETH) {
            break;
        }
        mlx5sim_switch_take(port, data, length, now);
        /* Who has been overtaken leaves before the next one comes */
        mlx5sim_switch_progress(now);
    }
}

uint64_t mlx5sim_switch_progress(uint64_t now)
{
    mlx5sim_switch_frame_t *frame;

    while ((frame = mlx5sim_switch_heap_pop(&mlx5sim_switch_heap, now)) !=
           NULL) {
        if (frame->overtaken > 0) {
            mlx5sim_switch_forget(frame); /* it has waited long enough */
        }
        mlx5sim_switch_send(frame->to, frame->data, frame->length);
        free(frame);
    }

    return (mlx5sim_switch_heap.num > 0) ? mlx5sim_switch_heap.frames[0]->due :
                                           UINT64_MAX;
}

int mlx5sim_switch_port_is(const mlx5sim_switch_port_t *port, const char *name)
{
    size_t length = strlen(name);

    return (strncmp(port->name, name, length) == 0) &&
           ((port->name[length] == '\0') || (port->name[length] == ':'));
}

void mlx5sim_switch_print(FILE *out)
{
    static const char *names[MLX5SIM_SWITCH_COUNTS] = {
        "received", "sent", "unsent", "down", "partitioned", "lost",
        "reordered", "duplicated", "corrupted", "delayed"
    };
    const mlx5sim_switch_rates_t *rates = &mlx5sim_switch.rates;
    const mlx5sim_switch_port_t *port;
    unsigned i, j;

    fprintf(out, "{\"seed\": %lu, \"loss\": %lu, \"reorder\": %lu, "
            "\"duplicate\": %lu, \"corrupt\": %lu, \"delay_ns\": %lu, "
            "\"jitter_ns\": %lu, \"all\": %s, \"waiting\": %zu, \"ports\": {",
            rates->seed, rates->loss, rates->reorder, rates->duplicate,
            rates->corrupt, rates->delay, rates->jitter,
            mlx5sim_switch.is_all ? "true" : "false", mlx5sim_switch_heap.num);
    for (i = 0; i < mlx5sim_switch.num_ports; ++i) {
        port = &mlx5sim_switch.ports[i];
        fprintf(out, "%s\"%s\": {\"link\": \"%s\", \"part\": %u",
                (i > 0) ? ", " : "", port->name, port->is_down ? "down" : "up",
                port->part);
        for (j = 0; j < MLX5SIM_SWITCH_COUNTS; ++j) {
            fprintf(out, ", \"%s\": %lu", names[j], port->count[j]);
        }
        fputs("}", out);
    }
    fputs("}}\n", out);
}
