/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/config/quirk.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* mlx5 PRM, syndromes of an error CQE: Remote_Aborted_Error */
#define MLX5SIM_QUIRK_ABORTED 0x22


/* A decimal or 0x number from min to max at *text_p, which moves behind it.
 * @return 0, or -1 */
static int mlx5sim_quirk_number(const char **text_p, unsigned long min,
                                unsigned long max, unsigned long *number_p)
{
    const char *text = *text_p;
    char *end;

    if (!isdigit((unsigned char)*text)) {
        return -1;
    }

    *number_p = strtoul(text, &end, !strncasecmp(text, "0x", 2) ? 16 : 10);
    *text_p   = end;
    return ((*number_p >= min) && (*number_p <= max)) ? 0 : -1;
}

int mlx5sim_quirk_parse_gids(const char *text, uint32_t *gids_p)
{
    unsigned long index;

    *gids_p = 0;
    if (*text == '\0') {
        return 0;
    }

    for (;;) {
        if (mlx5sim_quirk_number(&text, 0, 31, &index) != 0) {
            return -1;
        }

        *gids_p |= 1u << index;
        if (*text == '\0') {
            return 0;
        }
        if (*text++ != ',') {
            return -1;
        }
    }
}

int mlx5sim_quirk_parse_ports(const char *text, uint32_t *ports_p)
{
    static const char prefix[] = "mlx5_";
    unsigned long dev, port;

    *ports_p = 0;
    if (*text == '\0') {
        return 0;
    }

    for (;;) {
        if (strncmp(text, prefix, sizeof(prefix) - 1) != 0) {
            return -1;
        }

        text += sizeof(prefix) - 1;
        if ((mlx5sim_quirk_number(&text, 0, 15, &dev) != 0) ||
            (*text++ != ':') ||
            (mlx5sim_quirk_number(&text, 1, 2, &port) != 0)) {
            return -1;
        }

        *ports_p |= mlx5sim_quirk_port(dev, port);
        if (*text == '\0') {
            return 0;
        }
        if (*text++ != ',') {
            return -1;
        }
    }
}

int mlx5sim_quirk_parse_recv(const char *text, mlx5sim_quirk_recv_t *recv_p)
{
    unsigned long nth, syndrome, vendor;

    memset(recv_p, 0, sizeof(*recv_p));
    if (*text == '\0') {
        return 0;
    }

    if (mlx5sim_quirk_number(&text, 1, 0x7fffffff, &nth) != 0) {
        return -1;
    }

    if (*text == '+') {
        recv_p->onwards = 1;
        ++text;
    }

    if ((*text++ != ':') ||
        (mlx5sim_quirk_number(&text, 1, 255, &syndrome) != 0) ||
        (*text++ != ':') ||
        (mlx5sim_quirk_number(&text, 0, 255, &vendor) != 0) ||
        (*text != '\0')) {
        return -1;
    }

    recv_p->nth      = nth;
    recv_p->syndrome = syndrome;
    recv_p->vendor   = vendor;
    recv_p->is_abort = syndrome == MLX5SIM_QUIRK_ABORTED;
    return 0;
}
