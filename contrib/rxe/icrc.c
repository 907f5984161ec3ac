/* SPDX-License-Identifier: BSD-3-Clause */

/* For frames.py: the device's ICRC of packets of RoCE v2 */

#include <sim/wire/roce.h>

#include <string.h>


/** @param packet  From the IPv4 or IPv6 header to the pad. */
uint32_t rxe_icrc(const uint8_t *packet, unsigned length);

uint32_t rxe_icrc(const uint8_t *packet, unsigned length)
{
    mlx5sim_roce_path_t path;

    memset(&path, 0, sizeof(path));
    path.has_grh      = 1;
    path.route.is_udp = 1;
    if ((packet[0] >> 4) == 4) {
        memset(path.route.sgid + 10, 0xff, 2);
        memset(path.route.dgid + 10, 0xff, 2);
    } else {
        path.route.sgid[0] = path.route.dgid[0] = 0xfe;
    }

    return mlx5sim_roce_icrc(&path, packet, length);
}
