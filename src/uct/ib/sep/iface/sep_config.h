/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_CONFIG_H
#define UCT_SEP_CONFIG_H

#include <uct/ib/sep/iface/sep_iface.h>

BEGIN_C_DECLS

/**
 * @file sep_config.h
 *
 * Configuration of an interface: the table of settings, and which values are
 * refused.
 */

/** Ways to drive the device, see sep_api.h. */
enum {
    UCT_SEP_API_DV,    /**< Direct verbs */
    UCT_SEP_API_VERBS, /**< libibverbs */
    UCT_SEP_API_WR,    /**< libibverbs' extended interface */
    UCT_SEP_API_LAST
};


/** What a fence does. */
enum {
    UCT_SEP_FENCE_NONE, /**< Nothing */
    UCT_SEP_FENCE_WEAK, /**< Reads and atomics before it are done first */
    UCT_SEP_FENCE_AUTO, /**< The weakest one that orders all operations */
    UCT_SEP_FENCE_LAST
};


/** Configuration of an interface; meanings are in the table. */
typedef struct uct_sep_iface_config {
    uct_iface_config_t       super;
    size_t                   seg_size;
    int                      category;
    unsigned                 cq_sharing;
    int                      fence;         /**< UCT_SEP_FENCE_xx */
    int                      api;           /**< UCT_SEP_API_xx */
    uct_sep_port_config_t    port;
    unsigned                 path_mtu;      /**< 0 is "default" */
    unsigned long            max_rd_atomic;
    double                   timeout;
    unsigned                 retry_count;
    double                   rnr_timeout;
    unsigned                 rnr_retry_count;
    size_t                   max_get_zcopy;
    struct {
        unsigned             queue_len;
        size_t               min_inline;
        size_t               max_inline;
        size_t               inline_resp;
        unsigned             max_poll;
        unsigned             cq_moderation;
        unsigned             cq_len;
        char                 *throttle;
        unsigned             postlist;
        int                  post;
        uct_iface_mpool_config_t mp;
    } tx;
    struct {
        unsigned             queue_len;
        unsigned             queue_fill;
        size_t               inline_size;
        unsigned             max_poll;
        uct_iface_mpool_config_t mp;
    } rx;
    struct {
        int                  enable;
        unsigned             wnd_size;
        double               hard_thresh;
        double               soft_thresh;
    } fc;
    uct_sep_eager_config_t   eager;
    struct {
        double               timeout;
        unsigned             retry_count;
        unsigned             rx_queue_len;
        unsigned             max_pending;
        ucs_time_t           keepalive;
    } cm;
    unsigned long            max_qps;
    unsigned long            max_qps_node;
} uct_sep_iface_config_t;


/** Table of uct_sep_iface_config_t. */
extern ucs_config_field_t uct_sep_config_table[];


/**
 * Check the values of a configuration, each on its own.
 *
 * @param max_qp_wr   Limits of the device, as in ibv_device_attr.
 * @param max_srq_wr
 *
 * @return UCS_OK, or UCS_ERR_INVALID_PARAM after a message that names the
 *         variable and its range.
 */
ucs_status_t uct_sep_config_check(const uct_sep_iface_config_t *config,
                                  unsigned max_qp_wr,
                                  unsigned max_srq_wr);


/**
 * Check a configuration against the port and the device, and apply it.
 *
 * @return UCS_OK, or UCS_ERR_INVALID_PARAM after a message that names the
 *         variable and its range.
 */
ucs_status_t uct_sep_config_apply(uct_sep_iface_t *iface,
                                  const uct_sep_iface_config_t *config);


/** Choose where short messages and results arrive: whether sends complete in a
 *  queue of their own is known once the interface has its channel. */
void uct_sep_config_apply_inline(uct_sep_iface_t *iface,
                                 const uct_sep_iface_config_t *config);


/** Longest zero-copy operation of the port. */
size_t uct_sep_config_max_zcopy(const uct_sep_iface_t *iface);


/**
 * Longest active message for which there is @a room in a receive buffer. UCP
 * cuts what is longer into messages of just this length. MPICH's unpack fails
 * ("message truncated") if such a fragment ends inside an element of a derived
 * datatype, although the rest is in the next one.
 *
 * In front of each fragment is a header of its protocol (UCX 1.13.1):
 *
 *   16  ucp_request_data_hdr_t (rendezvous by active messages, get reply),
 *       ucp_eager_middle_hdr_t
 *   24  ucp_eager_first_hdr_t, ucp_am_mid_hdr_t and _ftr_t
 *   40  ucp_eager_sync_first_hdr_t
 *   32  ucp_am_hdr_t and ucp_am_first_ftr_t
 *    8  ucp_stream_am_hdr_t
 *
 * No length leaves a multiple of more than 8 bytes behind 16 and 24 alike. So
 * payloads behind the headers of 16 bytes, which are those of long messages,
 * are multiples of 64, the others of 8.
 *
 * @param [in] room  Bytes of a receive buffer that are left to the user's
 *                   message, at least 512.
 */
size_t uct_sep_config_max_am(size_t room);

END_C_DECLS

#endif
