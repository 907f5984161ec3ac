/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/device/sep_pci.h>

#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <ucs/sys/sys.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


/* Payload of a packet, as most machines limit it (PCIe Max_Payload_Size), and
 * the overhead around it in bytes: framing 2 (8b/10b) or 4 (128b/130b),
 * sequence number 2, header with an address of 64 bits 16, LCRC 4 */
#define UCT_SEP_PCI_PAYLOAD       256
#define UCT_SEP_PCI_OVERHEAD_8B   24
#define UCT_SEP_PCI_OVERHEAD_128B 26

/* Acknowledgement and flow control, of 8 bytes each, for 4 packets */
#define UCT_SEP_PCI_DLLP          ((8 + 8) / 4.0)

/* Memory of another node; rc_mlx5 uses the same where it does not know the
 * distance */
#define UCT_SEP_PCI_FAR_LATENCY   200e-9


double uct_sep_pci_link_bw(const char *speed, const char *width)
{
    unsigned lanes;
    double gts, bits;
    int overhead;

    /* No link has 0 lanes or is that fast; for what is not connected by PCIe,
     * sysfs has 63 lanes and "Unknown" */
    if ((sscanf(speed, "%lf GT/s", &gts) != 1) ||
        (sscanf(width, "%u", &lanes) != 1) || !(gts > 0) || (gts > 32) ||
        (lanes == 0) || (lanes > 32)) {
        return UCT_SEP_PCI_BW_UNLIMITED;
    }

    /* Encoding is 8b/10b up to generation 2, which has 5 GT/s */
    if (gts <= 5) {
        bits     = gts * 1e9 * 8 / 10;
        overhead = UCT_SEP_PCI_OVERHEAD_8B;
    } else {
        bits     = gts * 1e9 * 128 / 130;
        overhead = UCT_SEP_PCI_OVERHEAD_128B;
    }

    return (bits / 8) * lanes * UCT_SEP_PCI_PAYLOAD /
           (UCT_SEP_PCI_PAYLOAD + overhead + UCT_SEP_PCI_DLLP);
}

static int uct_sep_pci_read(const uct_sep_device_t *dev, const char *attr,
                            char *buf, size_t max)
{
    return ucs_read_file_str(buf, max, 1, "/sys/class/infiniband/%s/device/%s",
                             dev->name, attr) > 0;
}

double uct_sep_pci_bw(const uct_sep_device_t *dev)
{
    char speed[32], width[32];
    double bw = UCT_SEP_PCI_BW_UNLIMITED;

    if (uct_sep_pci_read(dev, "current_link_speed", speed, sizeof(speed)) &&
        uct_sep_pci_read(dev, "current_link_width", width, sizeof(width))) {
        bw = uct_sep_pci_link_bw(speed, width);
    }

    if (bw == UCT_SEP_PCI_BW_UNLIMITED) {
        ucs_debug("%s: the speed of its PCIe link is not known", dev->name);
    }
    return bw;
}

ucs_status_t uct_sep_pci_parse_cpus(const char *text, cpu_set_t *cpus_p)
{
    unsigned count = 1;
    const char *p  = text;
    unsigned long word;
    unsigned bit, cpu;
    char *end;

    for (p = text; *p != '\0'; ++p) {
        count += (*p == ',');
    }

    CPU_ZERO(cpus_p);
    p = text;
    while (count-- > 0) {
        word = strtoul(p, &end, 16);
        if ((end == p) || (end > p + 8) || ((count > 0) && (*end != ','))) {
            return UCS_ERR_INVALID_PARAM;
        }

        for (bit = 0; bit < 32; ++bit) {
            cpu = count * 32 + bit;
            if ((word & UCS_BIT(bit)) && (cpu < CPU_SETSIZE)) {
                CPU_SET(cpu, cpus_p);
            }
        }
        p = end + 1;
    }

    return UCS_OK;
}

void uct_sep_pci_local_cpus(const uct_sep_device_t *dev, cpu_set_t *cpus_p)
{
    char text[CPU_SETSIZE / 4 + CPU_SETSIZE / 32 + 2];

    if (!uct_sep_pci_read(dev, "local_cpus", text, sizeof(text)) ||
        (uct_sep_pci_parse_cpus(text, cpus_p) != UCS_OK) ||
        (CPU_COUNT(cpus_p) == 0)) {
        memset(cpus_p, 0xff, sizeof(*cpus_p));
    }
}

double uct_sep_pci_distance(const cpu_set_t *local, const cpu_set_t *affinity)
{
    cpu_set_t near;

    CPU_AND(&near, local, affinity);
    return CPU_EQUAL(&near, affinity) ? 0 : UCT_SEP_PCI_FAR_LATENCY;
}
