/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCP_OPT_COMPAT_H_
#define UCP_OPT_COMPAT_H_

#include <uct/opt/opt_compat.h>

/*
 * What differs between the releases of UCX that the optimisations are for, in
 * libucp. These are macros, so that a file includes no more than it uses.
 */


/* Endpoints */

#if UCX_OPT_SINCE(18)

/** UCT endpoint of a lane. */
#  define ucp_opt_ep_lane(_ep, _lane)            ucp_ep_get_lane(_ep, _lane)

/** Configuration of endpoints with an index. */
#  define ucp_opt_ep_config(_worker, _index) \
    (&ucs_array_elem(&(_worker)->ep_config, _index))

/** Extension of an endpoint, the type of what is on the worker's list, and the
 *  endpoint of one. */
#  define ucp_opt_ep_ext(_ep)                    ((_ep)->ext)
#  define ucp_opt_ep_ext_t                       ucp_ep_ext_t
#  define ucp_opt_ep_from_ext(_ep_ext)           ((_ep_ext)->ep)

/** Lanes that can be looked up without the extension. */
#  define UCP_OPT_MAX_FAST_LANES                 UCP_MAX_FAST_PATH_LANES

#else

#  define ucp_opt_ep_lane(_ep, _lane)            ((_ep)->uct_eps[_lane])
#  define ucp_opt_ep_config(_worker, _index) \
    (&(_worker)->ep_config[_index])
#  define ucp_opt_ep_ext(_ep)                    ucp_ep_ext_control(_ep)
#  define ucp_opt_ep_ext_t                       ucp_ep_ext_gen_t
#  define ucp_opt_ep_from_ext(_ep_ext)           ucp_ep_from_ext_gen(_ep_ext)
#  define UCP_OPT_MAX_FAST_LANES                 UCP_MAX_LANES

#endif

/** Whether lanes of an endpoint may fail one by one: what has been sent on one
 *  is sent again on another, for which a whole request is needed. */
#if UCX_OPT_SINCE(22)
#  define ucp_opt_ep_config_has_failover(_config) \
    ((_config)->key.err_mode == UCP_ERR_HANDLING_MODE_FAILOVER)
#else
#  define ucp_opt_ep_config_has_failover(_config) 0
#endif


/* Flush */

/** Whether remote memory has to be read when the lanes are flushed. */
#if UCX_OPT_SINCE(22)
#  define ucp_opt_ep_has_mem_flush(_ep)    ((_ep)->ext->flush_sys_dev_map != 0)
#  define ucp_opt_ep_flush_mem_start(_req) ucp_ep_flush_mem_start(_req)
#else
#  define ucp_opt_ep_has_mem_flush(_ep)    0
#  define ucp_opt_ep_flush_mem_start(_req) UCS_OK
#endif

/** What the releases have of their own in a request to flush so many lanes. */
#if UCX_OPT_SINCE(22)
#  define ucp_opt_flush_set_lanes(_req, _num_lanes) \
    do { \
        (_req)->send.flush.uct_flags_orig = UCT_FLUSH_FLAG_LOCAL; \
        (_req)->send.flush.all_lanes      = UCS_MASK(_num_lanes); \
    } while (0)
#elif UCX_OPT_SINCE(18)
#  define ucp_opt_flush_set_lanes(_req, _num_lanes) \
    do { \
        (_req)->send.flush.num_lanes = (_num_lanes); \
    } while (0)
#else
#  define ucp_opt_flush_set_lanes(_req, _num_lanes) \
    do { \
        (_req)->send.flush.prog_id   = UCS_CALLBACKQ_ID_NULL; \
        (_req)->send.flush.num_lanes = (_num_lanes); \
    } while (0)
#endif

/** ucp_ep_flush_internal() with UCT_FLUSH_FLAG_LOCAL. */
#if UCX_OPT_SINCE(22)
#  define ucp_opt_ep_flush_internal(...) \
    ucp_ep_flush_internal(__VA_ARGS__, UCT_FLUSH_FLAG_LOCAL)
#else
#  define ucp_opt_ep_flush_internal(...) \
    ucp_ep_flush_internal(__VA_ARGS__)
#endif

/** A worker's flush goes on at the end of the list of endpoints. */
#if UCX_OPT_SINCE(18)
#  define ucp_opt_flush_worker_set_end(_req, _worker) \
    do { \
        (_req)->flush_worker.uct_flags   = UCT_FLUSH_FLAG_LOCAL; \
        (_req)->flush_worker.next_ep_ext = \
                ucs_container_of(&(_worker)->all_eps, ucp_ep_ext_t, ep_list); \
    } while (0)
#else
#  define ucp_opt_flush_worker_set_end(_req, _worker) \
    do { \
        (_req)->flush_worker.next_ep = \
                ucs_container_of(&(_worker)->all_eps, ucp_ep_ext_gen_t, \
                                 ep_list); \
    } while (0)
#endif


/* Remote keys */

/** Whether puts and gets have version 1 of the protocols, too. */
#define UCP_OPT_HAS_RMA_V1 (!UCX_OPT_SINCE(22))

/** Protocol of an atomic operation. */
#if UCX_OPT_SINCE(18)
#  define ucp_opt_amo_proto(_id, _bits) ucp_amo##_bits##_##_id##_proto
#else
#  define ucp_opt_amo_proto(_id, _bits) ucp_amo_proto_##_id##_bits
#endif

/** What a protocol is selected by if the reply goes into the same memory. */
#if UCX_OPT_SINCE(18)
#  define ucp_opt_select_param_init_reply(_param, _op_id, _dt_class, \
                                          _mem_info) \
    ucp_proto_select_param_init_reply(_param, _op_id, 0, 0, _dt_class, \
                                      _mem_info, 1, _mem_info)
#else
#  define ucp_opt_select_param_init_reply(_param, _op_id, _dt_class, \
                                          _mem_info) \
    ucp_proto_select_param_init(_param, _op_id, 0, 0, _dt_class, _mem_info, 1)
#endif

/** Whether a put on a lane has to be noted for a flush that reads memory. */
#if UCX_OPT_SINCE(22)
#  define ucp_opt_proto_has_mem_flush(_lpriv) \
    ((_lpriv)->flush_sys_dev_mask != 0)
#else
#  define ucp_opt_proto_has_mem_flush(_lpriv) 0
#endif

/** Whether somebody watches the progress of each request: the trace, or what
 *  counts how much endpoints are used. */
#if UCX_OPT_SINCE(18)
#  define ucp_opt_has_progress_wrapper(_context) \
    ((_context)->config.progress_wrapper_enabled)
#else
#  define ucp_opt_has_progress_wrapper(_context) 0
#endif

/** Whether a fence takes effect with the next operation of an endpoint. */
#if UCX_OPT_SINCE(22)
#  define ucp_opt_has_ep_fence(_context) \
    ((_context)->config.worker_fence_mode == UCP_FENCE_MODE_EP_BASED)
#else
#  define ucp_opt_has_ep_fence(_context) 0
#endif


/* Connecting */

/** What a worker waits for in a flush: one more or one less. */
#if UCX_OPT_SINCE(18)
#  define ucp_opt_flush_ops_count_add(_worker, _count) \
    ucp_worker_flush_ops_count_add(_worker, _count)
#else
#  define ucp_opt_flush_ops_count_add(_worker, _count) \
    do { \
        if ((_count) > 0) { \
            ucp_worker_flush_ops_count_inc(_worker); \
        } else { \
            ucp_worker_flush_ops_count_dec(_worker); \
        } \
    } while (0)
#endif

/** Flags of endpoints that handle failures. */
#if UCX_OPT_SINCE(22)
#  define UCP_OPT_EP_INIT_ERR_MODES UCP_EP_INIT_ERR_MODE_FAILOVER_MASK
#else
#  define UCP_OPT_EP_INIT_ERR_MODES UCP_EP_INIT_ERR_MODE_PEER_FAILURE
#endif

/** The whole endpoint has failed. */
#if UCX_OPT_SINCE(22)
#  define ucp_opt_ep_set_failed_schedule(_ep, _status) \
    ucp_ep_set_lanes_failed_schedule(_ep, 0, _status)
#else
#  define ucp_opt_ep_set_failed_schedule(_ep, _status) \
    ucp_ep_set_failed_schedule(_ep, UCP_NULL_LANE, _status)
#endif

/** Take from progress what is called once for an endpoint, where @a _pred says
 *  so. */
#if UCX_OPT_SINCE(18)
#  define ucp_opt_remove_oneshot(_ep, _pred, _arg) \
    ucs_callbackq_remove_oneshot(&(_ep)->worker->uct->progress_q, _ep, _pred, \
                                 _arg)
#else
#  define ucp_opt_remove_oneshot(_ep, _pred, _arg) \
    ucs_callbackq_remove_if(&(_ep)->worker->uct->progress_q, _pred, _arg)
#endif

/** What protocols have that cannot abort a request. */
#if UCX_OPT_SINCE(18)
#  define UCP_OPT_PROTO_ABORT_NOT_THERE ucp_proto_abort_fatal_not_implemented
#else
#  define UCP_OPT_PROTO_ABORT_NOT_THERE \
    ((ucp_request_abort_func_t)ucs_empty_function_do_assert_void)
#endif

/** Whether the interface of a lane is progressed as soon as the lane is
 *  connected, rather than when a protocol uses it. */
#if UCX_OPT_SINCE(22)
#  define ucp_opt_lane_is_progressed(_worker) \
    (!(_worker)->context->config.ext.proto_enable)
#elif UCX_OPT_SINCE(18)
#  define ucp_opt_lane_is_progressed(_worker) \
    (!(_worker)->context->config.ext.proto_enable || \
     ((_worker)->context->config.features & UCP_FEATURE_STREAM))
#else
#  define ucp_opt_lane_is_progressed(_worker) 1
#endif


/* Messages */

/** Attributes of messages that may be wrong, where parameters are checked: then
 *  they go the general way, which does so. */
#if !ENABLE_PARAMS_CHECK
#  define UCP_OPT_CHECKED_ATTRS 0
#elif UCX_OPT_SINCE(22)
#  define UCP_OPT_CHECKED_ATTRS \
    (UCP_OP_ATTR_FIELD_MEMORY_TYPE | UCP_OP_ATTR_FLAG_MULTI_SEND | \
     UCP_OP_ATTR_FIELD_REMOTE | UCP_OP_ATTR_FIELD_REMOTE_DATATYPE | \
     UCP_OP_ATTR_FIELD_REMOTE_COUNT)
#elif UCX_OPT_SINCE(18)
#  define UCP_OPT_CHECKED_ATTRS \
    (UCP_OP_ATTR_FIELD_MEMORY_TYPE | UCP_OP_ATTR_FLAG_MULTI_SEND)
#else
#  define UCP_OPT_CHECKED_ATTRS UCP_OP_ATTR_FIELD_MEMORY_TYPE
#endif

/** Start sending a request with a contiguous buffer by version 2 of the
 *  protocols. */
#if UCX_OPT_SINCE(22)
#  define ucp_opt_proto_send_contig(_ep, _req, _op_id, _buffer, _length, \
                                    _param, _header_length) \
    ucp_proto_request_send_op(_ep, &ucp_ep_config(_ep)->proto_select, \
                              UCP_WORKER_CFG_INDEX_NULL, _req, 0, _op_id, \
                              _buffer, _length, ucp_dt_make_contig(1), \
                              _length, _param, _header_length, 0)
#else
#  define ucp_opt_proto_send_contig(_ep, _req, _op_id, _buffer, _length, \
                                    _param, _header_length) \
    ucp_proto_request_send_op(_ep, &ucp_ep_config(_ep)->proto_select, \
                              UCP_WORKER_CFG_INDEX_NULL, _req, _op_id, \
                              _buffer, _length, ucp_dt_make_contig(1), \
                              _length, _param, _header_length, 0)
#endif

/** What a request has for version 2 of the protocols of the header of an active
 *  message. */
#if UCX_OPT_SINCE(18)
#  define ucp_opt_am_set_header(_req, _header, _length) \
    do { \
        (_req)->send.msg_proto.am.internal_flags  = 0; \
        (_req)->send.msg_proto.am.header.ptr      = (void*)(_header); \
        (_req)->send.msg_proto.am.header.reg_desc = NULL; \
        (_req)->send.msg_proto.am.header.length   = (_length); \
    } while (0)
#else
#  define ucp_opt_am_set_header(_req, _header, _length) \
    do { \
        (_req)->send.msg_proto.am.header        = (void*)(_header); \
        (_req)->send.msg_proto.am.header_length = (_length); \
    } while (0)
#endif

/** What a memory domain can do. */
#if UCX_OPT_SINCE(18)
#  define ucp_opt_md_flags(_md_attr) ((_md_attr)->flags)
#else
#  define ucp_opt_md_flags(_md_attr) ((_md_attr)->cap.flags)
#endif

/** Whether version 2 of the protocols sends messages by the user's
 *  registration, rather than register memory anew. */
#define UCP_OPT_MEMH_IS_SENT UCX_OPT_SINCE(18)

/** Whether registered memory is what ucp_opt_mem_info_set_host() says. */
#if UCX_OPT_SINCE(22)
#  define ucp_opt_memh_is_host(_memh) \
    (((_memh)->mem_type == UCS_MEMORY_TYPE_HOST) && \
     ((_memh)->sys_dev == UCS_SYS_DEVICE_ID_UNKNOWN) && \
     ((_memh)->mem_flags == UCS_MEM_FLAG_REGISTRABLE))
#elif UCX_OPT_SINCE(18)
#  define ucp_opt_memh_is_host(_memh) \
    (((_memh)->mem_type == UCS_MEMORY_TYPE_HOST) && \
     ((_memh)->sys_dev == UCS_SYS_DEVICE_ID_UNKNOWN))
#else
#  define ucp_opt_memh_is_host(_memh) \
    ((_memh)->mem_type == UCS_MEMORY_TYPE_HOST)
#endif

/** Whether registered memory is another node's. */
#if UCX_OPT_SINCE(18)
#  define ucp_opt_memh_is_imported(_memh) \
    ((_memh)->flags & UCP_MEMH_FLAG_IMPORTED)
#else
#  define ucp_opt_memh_is_imported(_memh) 0
#endif


/* Memory and receives */

#if UCX_OPT_SINCE(18)

/** Whether workers of a context can have registrations of their own: there is a
 *  cache, and it keeps as much as it likes. */
#  define ucp_opt_mem_is_possible(_context) \
    (((_context)->rcache != NULL) && \
     ((_context)->rcache->params.max_regions == UCS_MEMUNITS_INF) && \
     ((_context)->rcache->params.max_size == UCS_MEMUNITS_INF))

#else

/** UCP registers memory with those of the memory domains. */
#  define ucp_opt_mem_is_possible(_context) 0

#endif

/** Host memory, of which nothing else is known. */
#if UCX_OPT_SINCE(18)
#  define ucp_opt_mem_info_set_host(_mem_info) \
    ucp_memory_info_set_host(_mem_info)
#else
#  define ucp_opt_mem_info_set_host(_mem_info) \
    do { \
        (_mem_info)->type    = UCS_MEMORY_TYPE_HOST; \
        (_mem_info)->sys_dev = UCS_SYS_DEVICE_ID_UNKNOWN; \
    } while (0)
#endif

/** Copy what has been received. */
#if UCX_OPT_SINCE(18)
#  define ucp_opt_memcpy(_to, _from, _length) \
    ucs_memcpy_relaxed(_to, _from, _length, UCS_ARCH_MEMCPY_NT_NONE, _length)
#else
#  define ucp_opt_memcpy(_to, _from, _length) \
    ucs_memcpy_relaxed(_to, _from, _length)
#endif

#if UCX_OPT_SINCE(18)

/** Where a receive that has been posted puts the data. */
#  define ucp_opt_recv_is_contig(_req) \
    ((_req)->recv.dt_iter.dt_class == UCP_DATATYPE_CONTIG)
#  define ucp_opt_recv_mem_type(_req)    ((_req)->recv.dt_iter.mem_info.type)
#  define ucp_opt_recv_length(_req)      ((_req)->recv.dt_iter.length)
#  define ucp_opt_recv_buffer(_req) \
    ((_req)->recv.dt_iter.type.contig.buffer)

/** Let a receive put the data into a buffer of host memory. */
#  define ucp_opt_recv_set_contig(_req, _param, _buffer, _datatype, _length) \
    do { \
        (_req)->recv.op_attr                     = (_param)->op_attr_mask; \
        (_req)->recv.dt_iter.dt_class            = UCP_DATATYPE_CONTIG; \
        (_req)->recv.dt_iter.length              = (_length); \
        (_req)->recv.dt_iter.offset              = 0; \
        (_req)->recv.dt_iter.type.contig.buffer  = (_buffer); \
        (_req)->recv.dt_iter.type.contig.memh    = NULL; \
        ucp_opt_mem_info_set_host(&(_req)->recv.dt_iter.mem_info); \
    } while (0)

/** For builds that are debugged. */
#  define ucp_opt_recv_set_no_rndv_request(_req) \
    (_req)->recv.proto_rndv_request = NULL

#else

#  define ucp_opt_recv_is_contig(_req)   UCP_DT_IS_CONTIG((_req)->recv.datatype)
#  define ucp_opt_recv_mem_type(_req)    ((_req)->recv.mem_type)
#  define ucp_opt_recv_length(_req)      ((_req)->recv.length)
#  define ucp_opt_recv_buffer(_req)      ((_req)->recv.buffer)
#  define ucp_opt_recv_set_contig(_req, _param, _buffer, _datatype, _length) \
    do { \
        (_req)->recv.buffer                 = (_buffer); \
        (_req)->recv.datatype               = (_datatype); \
        (_req)->recv.length                 = (_length); \
        (_req)->recv.mem_type               = UCS_MEMORY_TYPE_HOST; \
        (_req)->recv.state.dt.contig.md_map = 0; \
    } while (0)
#  define ucp_opt_recv_set_no_rndv_request(_req) \
    do { \
    } while (0)

#endif

#endif
