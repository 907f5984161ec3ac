/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_AR_H
#define UCT_SEP_AR_H

#include <uct/ib/sep/port/sep_port.h>

BEGIN_C_DECLS

/**
 * @file sep_ar.h
 *
 * Adaptive routing of InfiniBand: a subnet manager enables it for some service
 * levels, and the firmware tells which (AR_ENABLE, SL).
 */

/**
 * Choose a service level.
 *
 * @param [in]  name      Port, for messages.
 * @param [in]  enable    UCS_YES or UCS_NO: fail unless there is one with or
 *                        without adaptive routing; UCS_TRY: prefer one with;
 *                        UCS_AUTO: don't care.
 * @param [in]  sl        Service level, 0 to 15, or UCS_ULUNITS_AUTO.
 * @param [in]  is_known  Whether it is known which have adaptive routing.
 * @param [in]  mask      Bit mask of those that have it.
 * @param [out] sl_p      Filled with the service level.
 *
 * @return UCS_OK, or UCS_ERR_UNSUPPORTED after a message.
 */
ucs_status_t uct_sep_ar_select_sl(const char *name,
                                  ucs_ternary_auto_value_t enable,
                                  unsigned long sl, int is_known,
                                  uint16_t mask, uint8_t *sl_p);


/**
 * Ask whether packets that go out through a port may overtake each other.
 *
 * @param dev   Device of the port.
 * @param port  Port, with its service level.
 *
 * @return Whether its service level is known to have adaptive routing. Never on
 *         Ethernet, where firmware does not tell.
 */
int uct_sep_ar_is_used(const uct_sep_device_t *dev,
                       const uct_sep_port_info_t *port);


/**
 * Set the service level of a port; called once the link layer is known. On
 * Ethernet it is the priority, and adaptive routing is not looked at.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM or UCS_ERR_UNSUPPORTED after a message.
 */
ucs_status_t uct_sep_ar_init_sl(const uct_sep_device_t *dev,
                                const uct_sep_port_config_t *config,
                                uct_sep_port_info_t *port);

END_C_DECLS

#endif
