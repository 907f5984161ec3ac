/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/config/speed.h>

#include <stdio.h>
#include <string.h>

/* Names, and the rate of a lane in units of 100 Mb/s */
static const struct {
    const char *name;
    unsigned   lane;
    unsigned   rate;
} mlx5sim_speed_lanes[] = {
    {"SDR", 1, 25},   {"DDR", 2, 50},  {"QDR", 4, 100},  {"FDR10", 8, 100},
    {"FDR", 16, 140}, {"EDR", 32, 250}, {"HDR", 64, 500}, {"NDR", 128, 1000}
};

static const struct {
    unsigned lanes;
    unsigned width;
} mlx5sim_speed_widths[] = {{1, 1}, {2, 16}, {4, 2}, {8, 4}, {12, 8}};

#define MLX5SIM_SPEED_COUNT(_array) (sizeof(_array) / sizeof((_array)[0]))


static unsigned mlx5sim_speed_lane_index(const mlx5sim_speed_t *speed)
{
    unsigned i = 0;

    while ((i + 1 < MLX5SIM_SPEED_COUNT(mlx5sim_speed_lanes)) &&
           (mlx5sim_speed_lanes[i].lane != speed->lane)) {
        ++i;
    }
    return i;
}

static unsigned mlx5sim_speed_num_lanes(const mlx5sim_speed_t *speed)
{
    unsigned i = 0;

    while ((i + 1 < MLX5SIM_SPEED_COUNT(mlx5sim_speed_widths)) &&
           (mlx5sim_speed_widths[i].width != speed->width)) {
        ++i;
    }
    return mlx5sim_speed_widths[i].lanes;
}

int mlx5sim_speed_parse(const char *text, mlx5sim_speed_t *speed_p)
{
    char name[8] = "";
    int end      = -1;
    unsigned lanes, i;

    *speed_p = (mlx5sim_speed_t){0, 0};
    if ((sscanf(text, "%2ux%7[A-Z0-9]%n", &lanes, name, &end) < 2) ||
        (end < 0) || (text[end] != '\0')) {
        return -1;
    }

    for (i = 0; i < MLX5SIM_SPEED_COUNT(mlx5sim_speed_lanes); ++i) {
        if (!strcmp(mlx5sim_speed_lanes[i].name, name)) {
            speed_p->lane = mlx5sim_speed_lanes[i].lane;
        }
    }

    for (i = 0; i < MLX5SIM_SPEED_COUNT(mlx5sim_speed_widths); ++i) {
        if (mlx5sim_speed_widths[i].lanes == lanes) {
            speed_p->width = mlx5sim_speed_widths[i].width;
        }
    }

    return ((speed_p->lane != 0) && (speed_p->width != 0)) ? 0 : -1;
}

unsigned mlx5sim_speed_rate(const mlx5sim_speed_t *speed)
{
    return mlx5sim_speed_lanes[mlx5sim_speed_lane_index(speed)].rate *
           mlx5sim_speed_num_lanes(speed);
}

const char *mlx5sim_speed_str(const mlx5sim_speed_t *speed, char *buf)
{
    unsigned rate    = mlx5sim_speed_rate(speed);
    const char *name = mlx5sim_speed_lanes[mlx5sim_speed_lane_index(speed)]
                               .name;

    /* the kernel does not name the slowest */
    snprintf(buf, MLX5SIM_SPEED_STR_MAX, "%u%s Gb/sec (%uX%s%s)", rate / 10,
             (rate % 10) ? ".5" : "", mlx5sim_speed_num_lanes(speed),
             (speed->lane == 1) ? "" : " ", (speed->lane == 1) ? "" : name);
    return buf;
}
