/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_ADDR_RDMACM_H
#define UCT_SEP_ADDR_RDMACM_H

#include <uct/ib/sep/port/sep_addr.h>
#include <uct/api/uct_def.h>

/**
 * @file sep_addr_rdmacm.h
 *
 * Device addresses from UCX's connection manager "rdmacm". It knows where a
 * peer is, but not what the peer's transport says of that, and tells it in the
 * form of UCX's own transports for InfiniBand: uct_ib_address_pack() of
 * ib_iface.c as uct_rdmacm_cm_id_to_dev_addr() of rdmacm_cm.c calls it, the
 * same from UCX 1.13 to 1.22.
 */

BEGIN_C_DECLS

/**
 * Read a device address that UCP has handed over, whoever packed it.
 *
 * A connection manager's is hearsay (@ref uct_sep_device_addr_is_hearsay): it
 * says nothing about the partition, and on Ethernet nothing about the version
 * of RoCE, which is taken to be ours. On InfiniBand it has the LID of a path,
 * and the GID only if the path has a GRH. The peer's first message has its own.
 *
 * @param [in]  port      Local port: what an address means depends on its link
 *                        layer.
 * @param [in]  dev_addr  Any alignment. No more is read than its flags say
 *                        there is.
 * @param [out] addr_p    Filled, to be checked by
 *                        @ref uct_sep_device_addr_check.
 */
void uct_sep_device_addr_read(const uct_sep_port_t *port,
                              const uct_device_addr_t *dev_addr,
                              uct_sep_device_addr_t *addr_p);

END_C_DECLS

#endif
