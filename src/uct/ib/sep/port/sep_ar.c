/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/port/sep_ar.h>

#include <ucs/config/types.h>
#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>
#include <string.h>


#define UCT_SEP_NUM_SLS                     16

/* mlx5 PRM "HCA Capabilities" (general, current): byte offset of the bit that
 * says whether the port's context has the mask, the highest of its byte */
#define UCT_SEP_HCA_CAP_GENERAL_CUR         ((0 << 1) | 1)
#define UCT_SEP_GENERAL_CAPS_OOO_SL_MASK    39

/* Firmware command QUERY_HCA_VPORT_CONTEXT, mlx5 PRM: sizes of command and
 * reply, the field for the port (4 bits), and where the reply has ooo_sl_mask,
 * the service levels with adaptive routing, where packets overtake each
 * other */
#define UCT_SEP_CMD_OP_QUERY_HCA_VPORT      0x762
#define UCT_SEP_QUERY_HCA_VPORT_IN_LEN      16
#define UCT_SEP_QUERY_HCA_VPORT_IN_PORT     9
#define UCT_SEP_QUERY_HCA_VPORT_OUT_LEN     (16 + 512)
#define UCT_SEP_QUERY_HCA_VPORT_OOO_SL_MASK (16 + 82)


ucs_status_t uct_sep_ar_select_sl(const char *name,
                                  ucs_ternary_auto_value_t enable,
                                  unsigned long sl, int is_known,
                                  uint16_t mask, uint8_t *sl_p)
{
    uint16_t allowed = (sl == UCS_ULUNITS_AUTO) ? UCS_MASK(UCT_SEP_NUM_SLS) :
                       UCS_BIT(sl);
    uint16_t with    = is_known ? (allowed & mask) : 0;
    uint16_t without = is_known ? (allowed & ~mask) : 0;
    uint16_t wanted;

    switch (enable) {
    case UCS_YES:
        wanted = with;
        break;
    case UCS_NO:
        wanted = without;
        break;
    case UCS_TRY:
        wanted = (with != 0) ? with : allowed;
        break;
    default:
        wanted = allowed;
        break;
    }

    if (wanted != 0) {
        *sl_p = ucs_ffs64(wanted);
        ucs_debug("%s: service level %u", name, *sl_p);
        return UCS_OK;
    }

    if (!is_known) {
        ucs_error("%s: UCX_SEP_AR_ENABLE=%s, but the device does not tell "
                  "which service levels have adaptive routing: set "
                  "UCX_SEP_AR_ENABLE=auto, and UCX_SEP_SL to one of them", name,
                  (enable == UCS_YES) ? "y" : "n");
    } else {
        ucs_error("%s: UCX_SEP_AR_ENABLE=%s, but of the service levels that "
                  "UCX_SEP_SL allows (mask 0x%x) none is %s adaptive routing "
                  "(mask 0x%x): set UCX_SEP_AR_ENABLE=try", name,
                  (enable == UCS_YES) ? "y" : "n", allowed,
                  (enable == UCS_YES) ? "with" : "without", mask);
    }
    return UCS_ERR_UNSUPPORTED;
}

/* Service levels with adaptive routing. Returns 0 if the device can't tell. */
static int uct_sep_ar_query(const uct_sep_device_t *dev, unsigned port_num,
                            uint16_t *mask_p)
{
    uint8_t cmd[UCT_SEP_QUERY_HCA_VPORT_IN_LEN]    = {0};
    uint8_t reply[UCT_SEP_QUERY_HCA_VPORT_OUT_LEN] = {0};
    uint8_t caps[UCT_SEP_HCA_CAP_LEN];
    int ret;

    if ((uct_sep_device_query_caps(dev->context, UCT_SEP_HCA_CAP_GENERAL_CUR,
                                   caps) != UCS_OK) ||
        !(caps[UCT_SEP_GENERAL_CAPS_OOO_SL_MASK] & 0x80)) {
        return 0;
    }

    cmd[0]                               = UCT_SEP_CMD_OP_QUERY_HCA_VPORT >> 8;
    cmd[1]                               = UCT_SEP_CMD_OP_QUERY_HCA_VPORT &
                                           0xff;
    cmd[UCT_SEP_QUERY_HCA_VPORT_IN_PORT] = port_num;
    ret = mlx5dv_devx_general_cmd(dev->context, cmd, sizeof(cmd), reply,
                                  sizeof(reply));
    if (ret != 0) {
        ucs_diag("%s:%u: QUERY_HCA_VPORT_CONTEXT failed: %s", dev->name,
                 port_num, strerror(ret));
        return 0;
    }

    *mask_p = (reply[UCT_SEP_QUERY_HCA_VPORT_OOO_SL_MASK] << 8) |
              reply[UCT_SEP_QUERY_HCA_VPORT_OOO_SL_MASK + 1];
    return 1;
}

int uct_sep_ar_is_used(const uct_sep_device_t *dev,
                       const uct_sep_port_info_t *port)
{
    uint16_t mask;

    return !port->addr.is_roce &&
           uct_sep_ar_query(dev, port->addr.port_num, &mask) &&
           (mask & UCS_BIT(port->addr.sl));
}

ucs_status_t uct_sep_ar_init_sl(const uct_sep_device_t *dev,
                                const uct_sep_port_config_t *config,
                                uct_sep_port_info_t *port)
{
    ucs_ternary_auto_value_t enable = config->ar_enable;
    unsigned max_sl                 = port->addr.is_roce ? 7 : 15;
    uint16_t mask                   = 0;
    int is_known;

    if ((config->sl != UCS_ULUNITS_AUTO) && (config->sl > max_sl)) {
        ucs_error("%s: UCX_SEP_SL=%lu, should be between 0 and %u", port->name,
                  config->sl, max_sl);
        return UCS_ERR_INVALID_PARAM;
    }

    if (port->addr.is_roce) {
        enable = UCS_AUTO;
    }

    is_known = (enable != UCS_AUTO) &&
               uct_sep_ar_query(dev, port->addr.port_num, &mask);
    return uct_sep_ar_select_sl(port->name, enable, config->sl, is_known, mask,
                                &port->addr.sl);
}
