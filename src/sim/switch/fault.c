/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/switch/fault.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum {
    MLX5SIM_SWITCH_ETH        = 14,     /* bytes of header */
    MLX5SIM_SWITCH_IPV6       = 40,
    MLX5SIM_SWITCH_UDP        = 8,
    MLX5SIM_SWITCH_TYPE_IPV4  = 0x0800, /* IEEE 802 numbers */
    MLX5SIM_SWITCH_TYPE_IPV6  = 0x86dd,
    MLX5SIM_SWITCH_PROTO_UDP  = 17,
    MLX5SIM_SWITCH_ROCE       = 4791,   /* ports. RoCE v2: IBTA annex A17 */
    MLX5SIM_SWITCH_IB         = 14791   /* MLX5SIM_ROCE_IB_PORT */
};

/* What a hash decides */
typedef enum mlx5sim_switch_question {
    MLX5SIM_SWITCH_IS_LOST,
    MLX5SIM_SWITCH_IS_REORDERED,
    MLX5SIM_SWITCH_IS_DUPLICATE,
    MLX5SIM_SWITCH_IS_CORRUPT,
    MLX5SIM_SWITCH_HOW_MANY,
    MLX5SIM_SWITCH_WHICH_BIT,
    MLX5SIM_SWITCH_HOW_LONG,
    MLX5SIM_SWITCH_HOW_LONG_AGAIN
} mlx5sim_switch_question_t;

/* A rate, a time or the seed */
typedef struct mlx5sim_switch_field {
    const char *name;
    size_t     offset;
    enum {
        MLX5SIM_SWITCH_RATE,
        MLX5SIM_SWITCH_TIME,
        MLX5SIM_SWITCH_NUMBER
    }          kind;
} mlx5sim_switch_field_t;

static const mlx5sim_switch_field_t mlx5sim_switch_fields[] = {
    {"seed", offsetof(mlx5sim_switch_rates_t, seed), MLX5SIM_SWITCH_NUMBER},
    {"loss", offsetof(mlx5sim_switch_rates_t, loss), MLX5SIM_SWITCH_RATE},
    {"reorder", offsetof(mlx5sim_switch_rates_t, reorder),
     MLX5SIM_SWITCH_RATE},
    {"duplicate", offsetof(mlx5sim_switch_rates_t, duplicate),
     MLX5SIM_SWITCH_RATE},
    {"corrupt", offsetof(mlx5sim_switch_rates_t, corrupt),
     MLX5SIM_SWITCH_RATE},
    {"delay", offsetof(mlx5sim_switch_rates_t, delay), MLX5SIM_SWITCH_TIME},
    {"jitter", offsetof(mlx5sim_switch_rates_t, jitter), MLX5SIM_SWITCH_TIME}
};


static unsigned mlx5sim_switch_be16(const uint8_t *bytes)
{
    return (bytes[0] << 8) | bytes[1];
}

size_t mlx5sim_switch_find_bth(const uint8_t *frame, size_t length)
{
    const uint8_t *ip = frame + MLX5SIM_SWITCH_ETH;
    size_t udp;
    unsigned type, protocol, port;

    if (length < MLX5SIM_SWITCH_ETH + MLX5SIM_SWITCH_IPV6) {
        return 0;
    }

    type = mlx5sim_switch_be16(frame + MLX5SIM_SWITCH_ETH - 2);
    if (type == MLX5SIM_SWITCH_TYPE_IPV4) {
        if ((mlx5sim_switch_be16(ip + 6) & 0x1fff) != 0) {
            return 0; /* not the first fragment */
        }
        protocol = ip[9];
        udp      = MLX5SIM_SWITCH_ETH + ((ip[0] & 0xf) * 4);
    } else if (type == MLX5SIM_SWITCH_TYPE_IPV6) {
        protocol = ip[6];
        udp      = MLX5SIM_SWITCH_ETH + MLX5SIM_SWITCH_IPV6;
    } else {
        return 0;
    }

    if ((protocol != MLX5SIM_SWITCH_PROTO_UDP) ||
        (udp + MLX5SIM_SWITCH_UDP >= length)) {
        return 0;
    }

    port = mlx5sim_switch_be16(frame + udp + 2);
    return ((port == MLX5SIM_SWITCH_ROCE) || (port == MLX5SIM_SWITCH_IB)) ?
           udp + MLX5SIM_SWITCH_UDP : 0;
}

/* The last steps of SplitMix64 (Steele et al., OOPSLA 2014) */
static uint64_t mlx5sim_switch_mix(uint64_t value)
{
    value += 0x9e3779b97f4a7c15ul;
    value  = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ul;
    value  = (value ^ (value >> 27)) * 0x94d049bb133111ebul;
    return value ^ (value >> 31);
}

void mlx5sim_switch_decide(const mlx5sim_switch_rates_t *rates, unsigned from,
                           unsigned to, uint64_t number, size_t begin,
                           size_t length, mlx5sim_switch_fate_t *fate_p)
{
    uint64_t pair  = ((uint64_t)from << 32) | to;
    uint64_t frame = mlx5sim_switch_mix(
            mlx5sim_switch_mix(mlx5sim_switch_mix(rates->seed) ^ pair) ^
            number);

#define ASK(_question)     mlx5sim_switch_mix(frame ^ (_question))
#define HAPPENS(_question, _rate) \
    ((ASK(_question) % MLX5SIM_SWITCH_PER) < (_rate))

    fate_p->lost      = HAPPENS(MLX5SIM_SWITCH_IS_LOST, rates->loss);
    fate_p->duplicate = HAPPENS(MLX5SIM_SWITCH_IS_DUPLICATE, rates->duplicate);
    fate_p->overtaken = HAPPENS(MLX5SIM_SWITCH_IS_REORDERED, rates->reorder) ?
                        1 + (ASK(MLX5SIM_SWITCH_HOW_MANY) %
                             MLX5SIM_SWITCH_HOLD) : 0;
    fate_p->bit       = HAPPENS(MLX5SIM_SWITCH_IS_CORRUPT, rates->corrupt) ?
                        (begin * 8) + (ASK(MLX5SIM_SWITCH_WHICH_BIT) %
                                       ((length - begin) * 8)) :
                        MLX5SIM_SWITCH_NO_BIT;
    fate_p->delay[0]  = rates->delay + (ASK(MLX5SIM_SWITCH_HOW_LONG) %
                                        (rates->jitter + 1));
    fate_p->delay[1]  = rates->delay + (ASK(MLX5SIM_SWITCH_HOW_LONG_AGAIN) %
                                        (rates->jitter + 1));
#undef HAPPENS
#undef ASK
}

/* @return nanoseconds, or 0 if there is no such unit */
static uint64_t mlx5sim_switch_unit(const char *unit)
{
    static const struct {
        const char *name;
        uint64_t   ns;
    } units[] = {
        {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}
    };
    unsigned i;

    for (i = 0; i < sizeof(units) / sizeof(units[0]); ++i) {
        if (strcmp(unit, units[i].name) == 0) {
            return units[i].ns;
        }
    }

    return 0;
}

const char *mlx5sim_switch_set(mlx5sim_switch_rates_t *rates, const char *name,
                               const char *value)
{
    static const uint64_t longest        = 10000000000ul; /* ns */
    const mlx5sim_switch_field_t *fields = mlx5sim_switch_fields;
    uint64_t number, unit;
    unsigned i;
    char *end;

    for (i = 0; strcmp(fields[i].name, name) != 0;) {
        if (++i == sizeof(mlx5sim_switch_fields) / sizeof(fields[0])) {
            return "";
        }
    }

    number = strtoull(value, &end, 10);
    if (fields[i].kind == MLX5SIM_SWITCH_TIME) {
        unit = mlx5sim_switch_unit(end);
        if (!isdigit((unsigned char)value[0]) ||
            ((unit == 0) && (strcmp(value, "0") != 0)) ||
            ((unit != 0) && (number > longest / unit))) {
            return "it must be a time to 10s, as 200us or 1ms";
        }
        number *= unit;
    } else if (!isdigit((unsigned char)value[0]) || (*end != '\0')) {
        return "it must be a number";
    } else if ((fields[i].kind == MLX5SIM_SWITCH_RATE) &&
               (number > MLX5SIM_SWITCH_PER)) {
        return "it must be a number from 0 to 1000";
    }

    *(uint64_t*)((char*)rates + fields[i].offset) = number;
    return NULL;
}
