/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_PCI_H
#define UCT_SEP_PCI_H

#include <uct/ib/sep/device/sep_device.h>
#include <sched.h>

BEGIN_C_DECLS

/**
 * @file sep_pci.h
 *
 * A device's place in the machine: the PCIe link it is attached by, and the
 * processors near it. All of this comes from sysfs.
 */

/** Bandwidth of a device whose link is not known. */
#define UCT_SEP_PCI_BW_UNLIMITED  1e300


/**
 * Payload that a PCIe link can carry.
 *
 * @param [in]  speed  As in sysfs: "8.0 GT/s PCIe".
 * @param [in]  width  Number of lanes, as text.
 *
 * @return Bytes per second, UCT_SEP_PCI_BW_UNLIMITED if the text is not
 *         understood.
 */
double uct_sep_pci_link_bw(const char *speed, const char *width);


/** @return Bytes per second of the PCIe link of a device,
 *          UCT_SEP_PCI_BW_UNLIMITED if it is not known. */
double uct_sep_pci_bw(const uct_sep_device_t *dev);


/**
 * Read a set of processors.
 *
 * @param [in]  text    As in sysfs: words of 8 hexadecimal digits, separated by
 *                      commas, the highest first.
 * @param [out] cpus_p  Filled with the set.
 *
 * @return UCS_OK, or UCS_ERR_INVALID_PARAM without a message.
 */
ucs_status_t uct_sep_pci_parse_cpus(const char *text, cpu_set_t *cpus_p);


/** Processors near a device; all of them if that is not known. */
void uct_sep_pci_local_cpus(const uct_sep_device_t *dev, cpu_set_t *cpus_p);


/**
 * Latency to add because a process may run on processors that are not near.
 *
 * @param [in]  local     Processors near the device.
 * @param [in]  affinity  Where the process may run.
 *
 * @return Seconds.
 */
double uct_sep_pci_distance(const cpu_set_t *local, const cpu_set_t *affinity);

END_C_DECLS

#endif
