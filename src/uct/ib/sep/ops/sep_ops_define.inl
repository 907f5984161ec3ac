/* SPDX-License-Identifier: BSD-3-Clause */

/**
 * @file sep_ops_define.inl
 *
 * A row of sep_ops.h becomes a table of operations. Its functions are those of
 * the template sep_ops.inl, compiled for the mode of the row; their names
 * contain the row's, for profiles and debuggers: uct_sep_ops_bf_ep_put_short.
 */

#include <uct/ib/sep/iface/sep_ops.h>

/* Two rows may agree in some function. If the compiler merged them, one of the
 * two would be a jump to the other, and appear under the other row's name. */
#if defined(__has_attribute)
#  if __has_attribute(no_icf)
#    define UCT_SEP_OPS_F_DISTINCT __attribute__((no_icf))
#  endif
#endif
#ifndef UCT_SEP_OPS_F_DISTINCT
#  define UCT_SEP_OPS_F_DISTINCT
#endif


/** A function of a row. */
#define UCT_SEP_OPS_FUNC(_ret, _name, _func, _params, ...) \
    static UCS_F_NOINLINE UCT_SEP_OPS_F_DISTINCT _ret \
    uct_sep_ops_##_name##_##_func _params \
    { \
        return uct_sep_ops_##_func(__VA_ARGS__); \
    }


/** Functions of a row that send small data. */
#define UCT_SEP_OPS_FUNCS_SHORT(_name, _mode) \
    UCT_SEP_OPS_FUNC(ucs_status_t, _name, put_short_any, \
                     (uct_ep_h ep, const void *buffer, unsigned length, \
                      uint64_t remote_addr, uct_rkey_t rkey), \
                     ep, buffer, length, remote_addr, rkey, _mode) \
    UCT_SEP_OPS_FUNC(ucs_status_t, _name, put_short_slow, \
                     (uct_ep_h ep, const void *buffer, unsigned length, \
                      uint64_t remote_addr, uct_rkey_t rkey), \
                     ep, buffer, length, remote_addr, rkey, \
                     uct_sep_ops_##_name##_put_short_any, _mode) \
    UCT_SEP_OPS_FUNC(ucs_status_t, _name, ep_put_short, \
                     (uct_ep_h ep, const void *buffer, unsigned length, \
                      uint64_t remote_addr, uct_rkey_t rkey), \
                     ep, buffer, length, remote_addr, rkey, \
                     uct_sep_ops_##_name##_put_short_slow, _mode) \
    UCT_SEP_OPS_FUNC(ucs_status_t, _name, am_short_ring, \
                     (uct_ep_h ep, uint8_t id, uint64_t header, \
                      const void *payload, unsigned length), \
                     ep, id, header, payload, length, _mode) \
    UCT_SEP_OPS_FUNC(ucs_status_t, _name, am_short_slow, \
                     (uct_ep_h ep, uint8_t id, uint64_t header, \
                      const void *payload, unsigned length), \
                     ep, id, header, payload, length, \
                     uct_sep_ops_##_name##_am_short_ring, _mode) \
    UCT_SEP_OPS_FUNC(ucs_status_t, _name, ep_am_short, \
                     (uct_ep_h ep, uint8_t id, uint64_t header, \
                      const void *payload, unsigned length), \
                     ep, id, header, payload, length, \
                     uct_sep_ops_##_name##_am_short_slow, _mode) \
    UCT_SEP_OPS_FUNC(ucs_status_t, _name, ep_am_short_eager, \
                     (uct_ep_h ep, uint8_t id, uint64_t header, \
                      const void *payload, unsigned length), \
                     ep, id, header, payload, length, \
                     uct_sep_ops_##_name##_ep_am_short, _mode) \
    UCT_SEP_OPS_FUNC(ucs_status_t, _name, ep_am_short_iov, \
                     (uct_ep_h ep, uint8_t id, const uct_iov_t *iov, \
                      size_t iovcnt), \
                     ep, id, iov, iovcnt, _mode)


/** Functions of a row that use registered memory: buffers of ours, or the
 *  user's own. */
#define UCT_SEP_OPS_FUNCS_COPY(_name, _mode) \
    UCT_SEP_OPS_FUNC(ssize_t, _name, put_bcopy_any, \
                     (uct_ep_h ep, uct_pack_callback_t pack_cb, void *arg, \
                      uint64_t remote_addr, uct_rkey_t rkey), \
                     ep, pack_cb, arg, remote_addr, rkey, _mode) \
    UCT_SEP_OPS_FUNC(ssize_t, _name, ep_put_bcopy, \
                     (uct_ep_h ep, uct_pack_callback_t pack_cb, void *arg, \
                      uint64_t remote_addr, uct_rkey_t rkey), \
                     ep, pack_cb, arg, remote_addr, rkey, \
                     uct_sep_ops_##_name##_put_bcopy_any, _mode) \
    UCT_SEP_OPS_FUNC(ucs_status_t, _name, ep_put_zcopy, \
                     (uct_ep_h ep, const uct_iov_t *iov, size_t iovcnt, \
                      uint64_t remote_addr, uct_rkey_t rkey, \
                      uct_completion_t *comp), \
                     ep, iov, iovcnt, remote_addr, rkey, comp, _mode) \
    UCT_SEP_OPS_FUNC(ucs_status_t, _name, get_bcopy_any, \
                     (uct_ep_h ep, uct_unpack_callback_t unpack_cb, void *arg, \
                      size_t length, uint64_t remote_addr, uct_rkey_t rkey, \
                      uct_completion_t *comp), \
                     ep, unpack_cb, arg, length, remote_addr, rkey, comp, \
                     _mode) \
    UCT_SEP_OPS_FUNC(ucs_status_t, _name, ep_get_bcopy, \
                     (uct_ep_h ep, uct_unpack_callback_t unpack_cb, void *arg, \
                      size_t length, uint64_t remote_addr, uct_rkey_t rkey, \
                      uct_completion_t *comp), \
                     ep, unpack_cb, arg, length, remote_addr, rkey, comp, \
                     uct_sep_ops_##_name##_get_bcopy_any, _mode) \
    UCT_SEP_OPS_FUNC(ucs_status_t, _name, ep_get_zcopy, \
                     (uct_ep_h ep, const uct_iov_t *iov, size_t iovcnt, \
                      uint64_t remote_addr, uct_rkey_t rkey, \
                      uct_completion_t *comp), \
                     ep, iov, iovcnt, remote_addr, rkey, comp, _mode) \
    UCT_SEP_OPS_FUNC(ssize_t, _name, am_bcopy_any, \
                     (uct_ep_h ep, uint8_t id, uct_pack_callback_t pack_cb, \
                      void *arg, unsigned flags), \
                     ep, id, pack_cb, arg, flags, _mode) \
    UCT_SEP_OPS_FUNC(ssize_t, _name, ep_am_bcopy, \
                     (uct_ep_h ep, uint8_t id, uct_pack_callback_t pack_cb, \
                      void *arg, unsigned flags), \
                     ep, id, pack_cb, arg, flags, \
                     uct_sep_ops_##_name##_am_bcopy_any, _mode) \
    UCT_SEP_OPS_FUNC(ssize_t, _name, am_bcopy_sent, \
                     (uct_ep_h ep, uct_sep_desc_t *desc, uint8_t id, \
                      size_t length), \
                     ep, desc, id, length, _mode) \
    UCT_SEP_OPS_FUNC(ssize_t, _name, ep_am_bcopy_eager, \
                     (uct_ep_h ep, uint8_t id, uct_pack_callback_t pack_cb, \
                      void *arg, unsigned flags), \
                     ep, id, pack_cb, arg, flags, \
                     uct_sep_ops_##_name##_ep_am_bcopy, \
                     uct_sep_ops_##_name##_am_bcopy_sent, _mode) \
    UCT_SEP_OPS_FUNC(ucs_status_t, _name, ep_am_zcopy, \
                     (uct_ep_h ep, uint8_t id, const void *header, \
                      unsigned header_length, const uct_iov_t *iov, \
                      size_t iovcnt, unsigned flags, uct_completion_t *comp), \
                     ep, id, header, header_length, iov, iovcnt, flags, comp, \
                     _mode)


/** Atomics of a row. */
#define UCT_SEP_OPS_FUNCS_ATOMIC(_name, _mode) \
    UCT_SEP_OPS_FUNC(ucs_status_t, _name, ep_atomic_cswap64, \
                     (uct_ep_h ep, uint64_t compare, uint64_t swap, \
                      uint64_t remote_addr, uct_rkey_t rkey, uint64_t *result, \
                      uct_completion_t *comp), \
                     ep, compare, swap, remote_addr, rkey, result, comp, \
                     _mode) \
    UCT_SEP_OPS_FUNC(ucs_status_t, _name, ep_atomic_cswap32, \
                     (uct_ep_h ep, uint32_t compare, uint32_t swap, \
                      uint64_t remote_addr, uct_rkey_t rkey, uint32_t *result, \
                      uct_completion_t *comp), \
                     ep, compare, swap, remote_addr, rkey, result, comp, \
                     _mode) \
    UCT_SEP_OPS_FUNC(ucs_status_t, _name, ep_atomic32_post, \
                     (uct_ep_h ep, unsigned opcode, uint32_t value, \
                      uint64_t remote_addr, uct_rkey_t rkey), \
                     ep, opcode, value, remote_addr, rkey, _mode) \
    UCT_SEP_OPS_FUNC(ucs_status_t, _name, ep_atomic64_post, \
                     (uct_ep_h ep, unsigned opcode, uint64_t value, \
                      uint64_t remote_addr, uct_rkey_t rkey), \
                     ep, opcode, value, remote_addr, rkey, _mode) \
    UCT_SEP_OPS_FUNC(ucs_status_t, _name, ep_atomic32_fetch, \
                     (uct_ep_h ep, unsigned opcode, uint32_t value, \
                      uint32_t *result, uint64_t remote_addr, uct_rkey_t rkey, \
                      uct_completion_t *comp), \
                     ep, opcode, value, result, remote_addr, rkey, comp, \
                     _mode) \
    UCT_SEP_OPS_FUNC(ucs_status_t, _name, atomic64_fetch_any, \
                     (uct_ep_h ep, unsigned opcode, uint64_t value, \
                      uint64_t *result, uint64_t remote_addr, uct_rkey_t rkey, \
                      uct_completion_t *comp), \
                     ep, opcode, value, result, remote_addr, rkey, comp, \
                     _mode) \
    UCT_SEP_OPS_FUNC(ucs_status_t, _name, ep_atomic64_fetch, \
                     (uct_ep_h ep, unsigned opcode, uint64_t value, \
                      uint64_t *result, uint64_t remote_addr, uct_rkey_t rkey, \
                      uct_completion_t *comp), \
                     ep, opcode, value, result, remote_addr, rkey, comp, \
                     uct_sep_ops_##_name##_atomic64_fetch_any, _mode)


/** Functions of a row that send no data, or only a header. */
#define UCT_SEP_OPS_FUNCS_EMPTY(_name, _mode) \
    UCT_SEP_OPS_FUNC(ucs_status_t, _name, ep_flush, \
                     (uct_ep_h ep, unsigned flags, uct_completion_t *comp), \
                     ep, flags, comp, _mode) \
    UCT_SEP_OPS_FUNC(void, _name, post_empty, \
                     (uct_sep_iface_t *iface, uct_sep_txwq_t *txwq, \
                      int remote, uint8_t fm), \
                     iface, txwq, remote, fm, _mode) \
    UCT_SEP_OPS_FUNC(void, _name, post_header, \
                     (uct_sep_iface_t *iface, uct_sep_txwq_t *txwq, \
                      uct_sep_wr_am_t am, const void *body, size_t length), \
                     iface, txwq, am, body, length, _mode) \
    UCT_SEP_OPS_FUNC(void, _name, post_write, \
                     (uct_sep_iface_t *iface, uct_sep_txwq_t *txwq, \
                      const void *buffer, size_t length, \
                      uint64_t remote_addr, uct_rkey_t rkey), \
                     iface, txwq, buffer, length, remote_addr, rkey, _mode)


/** A row: its functions, and the table of them. */
#define UCT_SEP_OPS_DEFINE(_name, _mode) \
    UCT_SEP_OPS_FUNCS_SHORT(_name, _mode) \
    UCT_SEP_OPS_FUNCS_COPY(_name, _mode) \
    UCT_SEP_OPS_FUNCS_ATOMIC(_name, _mode) \
    UCT_SEP_OPS_FUNCS_EMPTY(_name, _mode) \
    \
    const uct_sep_ops_t uct_sep_ops_##_name = { \
        .cap_flags         = UCT_IFACE_FLAG_PUT_SHORT | \
                             UCT_IFACE_FLAG_PUT_BCOPY | \
                             UCT_IFACE_FLAG_PUT_ZCOPY | \
                             UCT_IFACE_FLAG_GET_BCOPY | \
                             UCT_IFACE_FLAG_GET_ZCOPY | \
                             UCT_IFACE_FLAG_AM_SHORT | \
                             UCT_IFACE_FLAG_AM_BCOPY | \
                             UCT_IFACE_FLAG_AM_ZCOPY, \
        .put_max_inl       = UCT_SEP_WR_PUT_MAX_INL, \
        .am_max_inl        = UCT_SEP_WR_AM_MAX_INL, \
        .rma_max_iov       = UCT_SEP_WR_RMA_MAX_IOV, \
        .atomic32          = UCT_SEP_WR_ATOMIC32, \
        .atomic64          = UCT_SEP_WR_ATOMIC64, \
        UCT_SEP_OPS_FOREACH_EP(UCT_SEP_OPS_INIT, ops_##_name) \
        .ep_am_short_eager = uct_sep_ops_##_name##_ep_am_short_eager, \
        .ep_am_bcopy_eager = uct_sep_ops_##_name##_ep_am_bcopy_eager, \
        .post_empty        = uct_sep_ops_##_name##_post_empty, \
        .post_header       = uct_sep_ops_##_name##_post_header, \
        .post_write        = uct_sep_ops_##_name##_post_write \
    };
