/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_INFO_H
#define SEP_INFO_H

#include <tools/plan.h>

#include <stdio.h>
#include <uct/api/uct.h>
#include <uct/ib/sep/base/sep_account.h>
#include <uct/ib/sep/iface/sep_iface.h>

/**
 * @file sep_info.h
 *
 * Parts of sep_info: devices, plans, and what a process really takes. Nothing
 * in it knows what kind of device there is: it asks libibverbs and libmlx5,
 * looks at the memory map of the process, and reads what the transport counts.
 * The transport is linked into the program.
 */

/** Where the result goes: standard output, while messages of UCX, which would
 *  go there, go to standard error. */
extern FILE *sep_info_out;

/** Print there. */
void sep_info_print(const char *format, ...) UCS_F_PRINTF(1, 2);


/** Exit status. */
enum {
    SEP_INFO_OK,        /**< All went well */
    SEP_INFO_DIFFERENT, /**< What was taken differs from the plan */
    SEP_INFO_USAGE,     /**< Wrong arguments */
    SEP_INFO_FAILED     /**< No device, no transport, or no resources */
};


/** What the user asks for. */
typedef struct sep_info_options {
    const char          *dev_name;     /**< NULL: all, or the first one */
    int                 devices;       /**< Show devices */
    int                 plan;          /**< Show plans */
    int                 try;           /**< Open workers for real */
    int                 json;
    unsigned            workers;
    unsigned            peers;
    sep_plan_category_t category;      /**< SEP_PLAN_LAST: all */
    sep_plan_regime_t   regime;        /**< SEP_PLAN_REGIME_LAST: both */
    unsigned long       device_uars;
    unsigned long       kernel_uars;
    sep_plan_config_t   config;        /**< The transport's configuration */
} sep_info_options_t;


/** Device limits the tool shows. */
typedef struct sep_info_device {
    struct ibv_device_attr_ex attr;
    sep_plan_regime_t         regime;
    unsigned                  uars_at_open;   /**< Pages that opening it maps */
    unsigned                  max_dyn_uuars;  /**< Of a context; 0 unknown */
    unsigned                  bf_size;        /**< BlueFlame register, bytes; 0
                                                   if there is none */
    unsigned                  max_inline;     /**< Of an RC QP, bytes */
} sep_info_device_t;


/** What a process has taken. */
typedef struct sep_info_taken {
    unsigned long account[UCT_SEP_ACCOUNT_LAST]; /**< By the transport */
    unsigned long uars;                          /**< UAR pages mapped */
    unsigned long resident;                      /**< Bytes in memory */
} sep_info_taken_t;


/**
 * UAR pages this process has mapped: those of shared mappings that can be
 * written and not read, as libmlx5 maps them (verbs.c, mlx5_alloc_dyn_uar) and
 * hardly anything else.
 */
unsigned long sep_info_mapped_uars(void);


/**
 * Open a device and find out what it is.
 *
 * @return 0, or -1 after a message.
 */
int sep_info_device_query(struct ibv_device *device, sep_info_device_t *info_p);

/** Show all devices, or the one that is asked for. @return Exit status. */
int sep_info_show_devices(const sep_info_options_t *options);


/**
 * Take the configuration of the transport and of libmlx5 over into the options'
 * plan: UCX_SEP_*, MLX5_TOTAL_UUARS, MLX5_NUM_LOW_LAT_UUARS.
 *
 * @return 0, or -1 after a message.
 */
int sep_info_read_config(sep_info_options_t *options);

/** Show plans. @return Exit status. */
int sep_info_show_plans(const sep_info_options_t *options);


/** Open workers and compare. @return Exit status. */
int sep_info_try(const sep_info_options_t *options);


/*
 * JSON: values of the object or array that is open
 */

/** Begin an object ('{') or an array ('['); @a name is NULL in arrays. */
void sep_info_json_open(const char *name, char bracket);
void sep_info_json_close(void);
/** A child process has written a value. */
void sep_info_json_written(void);
void sep_info_json_string(const char *name, const char *value);
void sep_info_json_number(const char *name, unsigned long value);
void sep_info_json_bool(const char *name, int value);

#endif
