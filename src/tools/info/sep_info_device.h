/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_INFO_DEVICE_H
#define SEP_INFO_DEVICE_H

#include <tools/info/sep_info_options.h>

#include <common/json.h>
#include <infiniband/verbs.h>

/*
 * Devices: regime of UAR pages, limits.
 */

/** Device limits the tool shows. */
typedef struct sep_info_device {
    struct ibv_device_attr_ex attr;
    sep_plan_regime_t         regime;
    unsigned                  uars_at_open;   /**< Pages mapped by opening it */
    unsigned                  max_dyn_uuars;  /**< Of a context; 0 unknown */
    unsigned                  bf_size;        /**< BlueFlame register, bytes; 0
                                                   if there is none */
    unsigned                  max_inline;     /**< Of an RC QP, bytes */
} sep_info_device_t;


/**
 * Open a device and find out what it is.
 *
 * @return 0, or -1 after a message.
 */
int sep_info_device_query(struct ibv_device *device, sep_info_device_t *info_p);

/**
 * Show all devices, or the requested one.
 *
 * @param json  Document to add to, NULL: print text.
 * @return Exit status.
 */
int sep_info_show_devices(const sep_info_options_t *options, json_object *json);

#endif
