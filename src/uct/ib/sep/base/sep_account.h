/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_ACCOUNT_H
#define UCT_SEP_ACCOUNT_H

#include <ucs/sys/compiler_def.h>
#include <infiniband/verbs.h>

BEGIN_C_DECLS

/**
 * @file sep_account.h
 *
 * What this process has taken from each device, counted where it is taken and
 * given back: set-up only, never the data path. Shown in UCX's virtual file
 * system, one file per item, in
 *
 *     /uct/component/sep/memory_domain/DEVICE/resources
 *
 * Accounts are per device, not per memory domain: all domains and further
 * contexts that this process has on a device share one.
 */

/** Items of an account. */
typedef enum {
    UCT_SEP_ACCOUNT_CONTEXT,   /**< Device contexts */
    UCT_SEP_ACCOUNT_TD,        /**< Thread domains */
    UCT_SEP_ACCOUNT_UAR,       /**< Distinct UAR pages that QPs ring on */
    UCT_SEP_ACCOUNT_UUAR,      /**< Distinct uUARs that QPs ring on */
    UCT_SEP_ACCOUNT_QP,        /**< It and the next three have bytes, below in
                                    the same order */
    UCT_SEP_ACCOUNT_CQ,
    UCT_SEP_ACCOUNT_SRQ,
    UCT_SEP_ACCOUNT_MR,
    UCT_SEP_ACCOUNT_QP_BYTES,  /**< Send and receive queues, bytes */
    UCT_SEP_ACCOUNT_CQ_BYTES,  /**< CQEs, bytes */
    UCT_SEP_ACCOUNT_SRQ_BYTES, /**< Work requests that can be posted, bytes;
                                    libmlx5 (srq.c) keeps as many again aside */
    UCT_SEP_ACCOUNT_MR_BYTES,  /**< Registered memory, the user's included, once
                                    however many regions (keys) it has */
    UCT_SEP_ACCOUNT_LAST
} uct_sep_account_item_t;


/** Names of the items, and of the files. */
extern const char *uct_sep_account_names[UCT_SEP_ACCOUNT_LAST];


/**
 * Count one object.
 *
 * @param [in] context  Device it is on.
 * @param [in] item     What it is: none of the items that count bytes.
 * @param [in] bytes    Of a memory region or a queue; 0 for others.
 */
void uct_sep_account_add(const struct ibv_context *context,
                         uct_sep_account_item_t item, size_t bytes);

/** The object is about to go, or is gone; arguments as when it was added. */
void uct_sep_account_remove(const struct ibv_context *context,
                            uct_sep_account_item_t item, size_t bytes);

/** Count a new QP, its queues, and the uUAR that libmlx5 has given it. */
void uct_sep_account_add_qp(struct ibv_qp *qp);

/** The QP is about to be destroyed. */
void uct_sep_account_remove_qp(struct ibv_qp *qp);

/** Count a new CQ. It must have CQEs of 64 bytes. */
void uct_sep_account_add_cq(const struct ibv_cq *cq);

/** The CQ is about to be destroyed. */
void uct_sep_account_remove_cq(const struct ibv_cq *cq);

/** Count a new SRQ. @return Its bytes, which uct_sep_account_remove() needs. */
size_t uct_sep_account_add_srq(struct ibv_srq *srq);


/**
 * How much of an item the process has on a device.
 *
 * @param [in] context  Any of the device's contexts.
 *
 * @return Value, 0 for a device never opened.
 */
unsigned long uct_sep_account_get(const struct ibv_context *context,
                                  uct_sep_account_item_t item);


/**
 * Show the account of a device as files of an object in UCX's virtual file
 * system.
 *
 * @param [in] obj      Object with a directory, e.g. the memory domain.
 * @param [in] context  A context of the device.
 */
void uct_sep_account_vfs_init(void *obj, const struct ibv_context *context);

END_C_DECLS

#endif
