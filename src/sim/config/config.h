/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_CONFIG_H_
#define MLX5SIM_CONFIG_H_

#include <sim/config/netif.h>

#include <stddef.h>
#include <stdio.h>

/*
 * Every MLX5SIM_* variable is one row of the table in config.c: name, type,
 * default, allowed values and description. Parsing, validation, the config file
 * of an instance, help texts and docs all come from that table.
 *
 * To add a variable: a field in mlx5sim_config_t and a row in config.c.
 */

#define MLX5SIM_CONFIG_STRING_MAX 256

/** Maximum size of the error texts that the functions below produce. */
#define MLX5SIM_CONFIG_ERROR_MAX 512

/** Device memory [bytes], as much as a ConnectX-5 has, and the largest
 *  alignment that can be asked for, as a power of 2. */
#define MLX5SIM_DM_SIZE      (128u << 10)
#define MLX5SIM_DM_LOG_ALIGN 12

/** Streams of a DC initiator, 2^n: on how many it can be told to work at a time
 *  (UCX: "all 256 DCI channels"), and with how many in error it fails. What an
 *  adapter has is not public; some have a 0 in the second place. */
#define MLX5SIM_LOG_MAX_STREAMS 8
#define MLX5SIM_LOG_MAX_ERRORED 4

/** Numbers of queue pairs that are reserved at a time, 2^n. What an adapter
 *  says is not public. */
#define MLX5SIM_LOG_QPN_RESERVED 8

/** Rates for packet pacing: how many a device has, besides that of no limit,
 *  and in which range [kbit/s]. What an adapter says is not public. */
#define MLX5SIM_PP_RATES    127
#define MLX5SIM_PP_MIN_RATE 1
#define MLX5SIM_PP_MAX_RATE 100000000

/** Elements of the send scheduler: the largest share of one, and how many
 *  leaves a device has, 2^n. What an adapter says is not public. */
#define MLX5SIM_MAX_SCHED_SHARE      100
#define MLX5SIM_LOG_MAX_SCHED_LEAVES 10

/** Link layer of all ports: value of MLX5SIM_LINK. */
typedef enum {
    MLX5SIM_LINK_IB,
    MLX5SIM_LINK_ROCE
} mlx5sim_link_t;

/** Where contexts get UARs from: value of MLX5SIM_UAR_MODE. */
typedef enum {
    MLX5SIM_UAR_MODE_DYNAMIC, /**< pages from UAR objects, on demand */
    MLX5SIM_UAR_MODE_LEGACY   /**< static pages of the context */
} mlx5sim_uar_mode_t;

/** Atomics that reach memory as atomics on PCIe: value of
 *  MLX5SIM_PCI_ATOMICS. */
typedef enum {
    MLX5SIM_PCI_ATOMICS_NONE,
    MLX5SIM_PCI_ATOMICS_FADD8, /**< fetch-add of 8 bytes */
    MLX5SIM_PCI_ATOMICS_8,     /**< all of 8 bytes */
    MLX5SIM_PCI_ATOMICS_4_8    /**< all of 4 and 8 bytes */
} mlx5sim_pci_atomics_t;

/** What peers reach without a system call: value of MLX5SIM_SHARE. */
typedef enum {
    MLX5SIM_SHARE_NONE,
    MLX5SIM_SHARE_QUEUES,
    MLX5SIM_SHARE_MAPPINGS, /**< queues, and regions that are mappings */
    MLX5SIM_SHARE_MEMORY    /**< queues and memory regions */
} mlx5sim_share_t;

/** Which CQEs the devices compress: value of MLX5SIM_CQE_COMPRESSION. */
typedef enum {
    MLX5SIM_CQE_COMPRESSION_NONE,
    MLX5SIM_CQE_COMPRESSION_64,    /**< of 64 bytes */
    MLX5SIM_CQE_COMPRESSION_64_128 /**< of 64 and of 128 bytes */
} mlx5sim_cqe_compression_t;

/** Whether writes of a queue pair reach memory in order: value of
 *  MLX5SIM_DATA_IN_ORDER. */
typedef enum {
    MLX5SIM_DATA_IN_ORDER_YES,
    MLX5SIM_DATA_IN_ORDER_NO,
    MLX5SIM_DATA_IN_ORDER_UNKNOWN /**< they do, but nobody can tell */
} mlx5sim_data_in_order_t;

/** Which keys have relaxed ordering on PCIe: value of
 *  MLX5SIM_PCI_WR_ORDERING. */
typedef enum {
    MLX5SIM_PCI_WR_ORDERING_PER_MKEY,
    MLX5SIM_PCI_WR_ORDERING_FORCE_RELAX
} mlx5sim_pci_wr_ordering_t;

/** When work requests are executed: value of MLX5SIM_EXEC. */
typedef enum {
    MLX5SIM_EXEC_SYNC,     /**< by the doorbell that rings for them */
    MLX5SIM_EXEC_DEFERRED, /**< later, step by step */
    MLX5SIM_EXEC_STEPPED   /**< deferred, and the program makes the steps */
} mlx5sim_exec_t;

/** Verbosity: value of MLX5SIM_LOG. */
typedef enum {
    MLX5SIM_LOG_LEVEL_NONE,
    MLX5SIM_LOG_LEVEL_ERROR,
    MLX5SIM_LOG_LEVEL_WARN,
    MLX5SIM_LOG_LEVEL_INFO,
    MLX5SIM_LOG_LEVEL_DEBUG,
    MLX5SIM_LOG_LEVEL_TRACE
} mlx5sim_log_level_t;

/**
 * Values of all variables. Numbers, booleans and choices are `unsigned`,
 * strings are arrays.
 */
typedef struct mlx5sim_config {
    /* properties of the instance */
    unsigned devices;   /**< mlx5_0 .. mlx5_(devices-1) */
    unsigned ports;     /**< ports of each device */
    unsigned link;      /**< mlx5sim_link_t */
    unsigned model;     /**< index for mlx5sim_model_get() */
    unsigned lmc;       /**< each port has 2^lmc LIDs */
    unsigned lid_base;  /**< LID of the first port; the others follow */
    unsigned uar_mode;  /**< mlx5sim_uar_mode_t */
    unsigned max_pd;    /**< limits of each device, as in ibv_device_attr */
    unsigned max_mr;
    unsigned max_cq;
    unsigned max_srq;
    unsigned max_qp;
    unsigned uars;      /**< UAR pages of a device for applications */
    unsigned pci_atomics; /**< mlx5sim_pci_atomics_t */
    unsigned masked_atomics; /**< there are masked atomics */
    unsigned cqe_compression; /**< mlx5sim_cqe_compression_t */
    unsigned devx;            /**< contexts can have DEVX */
    unsigned odp;             /**< memory regions need not be pinned */
    unsigned dm;              /**< there is device memory */
    unsigned dc;              /**< there are DC initiators and targets */
    unsigned lag;             /**< RoCE: bonded ports, below 2: none */
    unsigned data_in_order;   /**< mlx5sim_data_in_order_t */
    unsigned ooo_sl_mask;     /**< InfiniBand: SLs with adaptive routing */
    unsigned pci_wr_ordering; /**< mlx5sim_pci_wr_ordering_t */
    unsigned bf;        /**< the kernel has write combining for BlueFlame */
    char     fw_version[MLX5SIM_CONFIG_STRING_MAX]; /**< "": the model's */
    char     netdev[MLX5SIM_CONFIG_STRING_MAX];     /**< behind RoCE GIDs */
    char     gidless[MLX5SIM_CONFIG_STRING_MAX];    /**< for
                                         mlx5sim_quirk_parse_ports() */
    char     empty_gids[MLX5SIM_CONFIG_STRING_MAX]; /**< likewise */
    char     wire[MLX5SIM_CONFIG_STRING_MAX]; /**< for mlx5sim_netif_find() */
    mlx5sim_netif_t netifs[MLX5SIM_NETIFS_MAX]; /**< behind the ports in order,
                                         found when the instance is created */

    /* properties of each process */
    unsigned strict;    /**< report what hardware would not accept */
    unsigned log;       /**< mlx5sim_log_level_t */
    char     fail[MLX5SIM_CONFIG_STRING_MAX]; /**< for mlx5sim_fault_parse() */
    unsigned cmd_delay; /**< longest time a command takes, in us */
    unsigned gone_after; /**< longest time until it is an error that a peer has
                              gone, in ms */
    unsigned cm_timeout; /**< rdma_cm: longest time until a peer answers, in
                              ms */
    unsigned wc;        /**< instructions for which a thread's stores may stay
                             in its write-combining buffers, 0: none do */
    unsigned patch_after; /**< doorbells of an instruction until it is replaced
                               by a jump, 0: it never is */
    unsigned share;     /**< mlx5sim_share_t */
    unsigned srq_prefetch; /**< receives a QP takes from its SRQ beforehand */
    char     bad_gids[MLX5SIM_CONFIG_STRING_MAX]; /**< for
                                         mlx5sim_quirk_parse_gids() */
    char     recv_error[MLX5SIM_CONFIG_STRING_MAX]; /**< for
                                         mlx5sim_quirk_parse_recv() */
    char     seed[MLX5SIM_CONFIG_STRING_MAX]; /**< for mlx5sim_seed_init() */
    unsigned exec;      /**< mlx5sim_exec_t */
    unsigned delay;     /**< deferred: rounds that a step may wait */
    unsigned loss;      /**< deferred: packets of 1000 that are lost */
    char     pcap[MLX5SIM_CONFIG_STRING_MAX]; /**< deferred: where packets are
                                         captured, with the pid behind it */
    char     trace[MLX5SIM_CONFIG_STRING_MAX]; /**< timeline of all processes */
} mlx5sim_config_t;

/** What a variable holds. */
typedef enum {
    MLX5SIM_CONFIG_BOOL,   /**< 0/1, n/y, no/yes, off/on, false/true */
    MLX5SIM_CONFIG_UINT,   /**< decimal or 0x number within min..max */
    MLX5SIM_CONFIG_CHOICE, /**< one of a list of words */
    MLX5SIM_CONFIG_STRING  /**< text that the row's check accepts */
} mlx5sim_config_type_t;

/** What a variable is a property of. */
typedef enum {
    /** Fixed when the instance is created, stored in its config file and the
     *  same for all its processes. */
    MLX5SIM_CONFIG_INSTANCE = 1,
    /** Read from the environment by each process. */
    MLX5SIM_CONFIG_PROCESS  = 2,
    /** Needed to find the instance at all: documented and checked here, read
     *  with getenv() where used. */
    MLX5SIM_CONFIG_LOCATION = 4
} mlx5sim_config_scope_t;

/**
 * One variable.
 */
typedef struct mlx5sim_config_row {
    const char             *name;        /**< with the MLX5SIM_ prefix */
    mlx5sim_config_type_t  type;
    mlx5sim_config_scope_t scope;
    size_t                 offset;       /**< in mlx5sim_config_t */
    const char             *def;         /**< default, as it would be typed */
    unsigned               min;          /**< of a UINT */
    unsigned               max;          /**< of a UINT */
    const char *const      *choices;     /**< of a CHOICE, NULL at the end */
    const char             *allowed;     /**< of a STRING, for error texts */
    int                    (*check)(const char *value); /**< of a STRING */
    const char             *description; /**< a sentence or two, one line */
} mlx5sim_config_row_t;

/** Layout of @ref mlx5sim_config_print. */
typedef enum {
    MLX5SIM_CONFIG_TEXT,    /**< for --help */
    MLX5SIM_CONFIG_MARKDOWN /**< table for the docs */
} mlx5sim_config_format_t;

/** The table. @param [out] count_p number of rows. */
const mlx5sim_config_row_t *mlx5sim_config_rows(size_t *count_p);

/** Set every field to its default. */
void mlx5sim_config_init(mlx5sim_config_t *config);

/**
 * Set the variable @a name (with prefix) from text.
 *
 * @param [out] error  On failure names variable, value and allowed values.
 *
 * @return 0, or -1 with errno EINVAL (bad value) or ENOENT (no such variable).
 */
int mlx5sim_config_set(mlx5sim_config_t *config, const char *name,
                       const char *value, char *error, size_t error_size);

/** Meaning of a BOOL in text form: 0, 1, or -1 if it is none. */
int mlx5sim_config_bool(const char *value);

/** Value of a row as text, in the form @ref mlx5sim_config_set accepts. */
void mlx5sim_config_get(const mlx5sim_config_t *config,
                        const mlx5sim_config_row_t *row, char *buf,
                        size_t size);

/**
 * Apply what is set in the environment. An unset or empty variable leaves the
 * field alone.
 *
 * @param scopes  Which rows to look at: OR of mlx5sim_config_scope_t.
 *
 * @return as @ref mlx5sim_config_set.
 */
int mlx5sim_config_read_env(mlx5sim_config_t *config, unsigned scopes,
                            char *error, size_t error_size);

/**
 * Find the network interfaces of MLX5SIM_WIRE, if there are to be any.
 *
 * @return 0, or -1 with errno and @a error, which says what to do.
 */
int mlx5sim_config_find_netifs(mlx5sim_config_t *config, char *error,
                               size_t error_size);

/**
 * Write the INSTANCE rows to a file, one NAME=value per line, and the network
 * interfaces that were found. The file appears complete or not at all.
 *
 * @param dir_fd  Directory of the file.
 * @param name    Its name there.
 *
 * @return 0, or -1 with errno and @a error.
 */
int mlx5sim_config_save(const mlx5sim_config_t *config, int dir_fd,
                        const char *name, char *error, size_t error_size);

/**
 * Read a file of @ref mlx5sim_config_save.
 *
 * @param dir_fd  Directory of the file.
 * @param dir     Path of the directory, for messages.
 * @param name    Name of the file there.
 *
 * @return 0, or -1 with errno (ENOENT: no file) and @a error.
 */
int mlx5sim_config_load(mlx5sim_config_t *config, int dir_fd, const char *dir,
                        const char *name, char *error, size_t error_size);

/** Describe all variables. */
void mlx5sim_config_print(FILE *stream, mlx5sim_config_format_t format);

/**
 * Find a variable of the environment that has our prefix but no row: a typo
 * that would be ignored silently.
 *
 * @param [out] closest_p  Most similar existing name, or NULL.
 *
 * @return the name in the environment up to '=', in static storage, or NULL.
 */
const char *mlx5sim_config_find_unknown(const char **closest_p);

#endif
