/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/progress/sep_progress.inl>

/*
 * A polling loop for each mode of receiving. Names contain that of the mode:
 * uct_sep_progress_cqe32.
 */

#define UCT_SEP_PROGRESS_DEFINE(_name, _mode) \
    static UCS_F_NOINLINE unsigned \
    uct_sep_progress_##_name##_loop(uct_sep_iface_t *iface, \
                                    const struct mlx5_cqe64 *cqe, \
                                    unsigned rx_left, unsigned tx_left) \
    { \
        return uct_sep_progress_loop(iface, cqe, rx_left, tx_left, _mode); \
    } \
    \
    static UCS_F_NOINLINE unsigned \
    uct_sep_progress_##_name##_finish(uct_sep_iface_t *iface, \
                                      const struct mlx5_cqe64 *cqe, \
                                      ucs_queue_elem_t *elem) \
    { \
        return uct_sep_progress_finish(iface, cqe, elem, \
                                       uct_sep_progress_##_name##_loop); \
    } \
    \
    static UCS_F_NOINLINE unsigned \
    uct_sep_progress_##_name##_first_send(uct_sep_iface_t *iface, \
                                          const struct mlx5_cqe64 *cqe) \
    { \
        return uct_sep_progress_first_send(iface, cqe, \
                                           uct_sep_progress_##_name##_loop, \
                                           uct_sep_progress_##_name##_finish, \
                                           _mode); \
    } \
    \
    static UCS_F_NOINLINE unsigned \
    uct_sep_progress_##_name##_first_inline(uct_sep_iface_t *iface, \
                                            const struct mlx5_cqe64 *cqe) \
    { \
        return uct_sep_progress_first_inline(iface, cqe, \
                                             uct_sep_progress_##_name##_loop, \
                                             _mode); \
    } \
    \
    static UCS_F_NOINLINE unsigned \
    uct_sep_progress_##_name##_first_recv(uct_sep_iface_t *iface, \
                                          const struct mlx5_cqe64 *cqe) \
    { \
        return uct_sep_progress_first_recv(iface, cqe, \
                                           uct_sep_progress_##_name##_loop, \
                                           _mode); \
    } \
    \
    unsigned uct_sep_progress_##_name(uct_iface_h tl_iface) \
    { \
        return uct_sep_progress_poll(tl_iface, \
                                     uct_sep_progress_##_name##_first_send, \
                                     uct_sep_progress_##_name##_first_inline, \
                                     uct_sep_progress_##_name##_first_recv, \
                                     _mode); \
    }

UCT_SEP_RX_MODE_FOREACH(UCT_SEP_PROGRESS_DEFINE)

#define UCT_SEP_PROGRESS_ROW(_name, _mode) \
    [_mode] = { \
        .plain = uct_sep_progress_##_name, \
        .own   = uct_sep_progress_own_##_name, \
        .group = uct_sep_progress_group_##_name \
    },

const uct_sep_progress_funcs_t uct_sep_progress_funcs[UCT_SEP_RX_MODE_LAST] = {
    UCT_SEP_RX_MODE_FOREACH(UCT_SEP_PROGRESS_ROW)
};
