/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_RDMACM_DEF_H_
#define MLX5SIM_RDMACM_DEF_H_

#include <stdint.h>

/*
 * Numbers of the connection manager that rdma/rdma_user_cm.h does not have.
 */

/** Events: enum rdma_cm_event_type of the kernel's include/rdma/rdma_cm.h. */
enum {
    MLX5SIM_CM_EVENT_ADDR_RESOLVED    = 0,
    MLX5SIM_CM_EVENT_ADDR_ERROR       = 1,
    MLX5SIM_CM_EVENT_ROUTE_RESOLVED   = 2,
    MLX5SIM_CM_EVENT_CONNECT_REQUEST  = 4,
    MLX5SIM_CM_EVENT_CONNECT_RESPONSE = 5,
    MLX5SIM_CM_EVENT_UNREACHABLE      = 7,
    MLX5SIM_CM_EVENT_REJECTED         = 8,
    MLX5SIM_CM_EVENT_ESTABLISHED      = 9,
    MLX5SIM_CM_EVENT_DISCONNECTED     = 10,
    MLX5SIM_CM_EVENT_TIMEWAIT_EXIT    = 15
};

/** Reasons of a rejection: enum ib_cm_rej_reason of include/rdma/ib_cm.h. */
enum {
    MLX5SIM_CM_REJ_TIMEOUT              = 4,
    MLX5SIM_CM_REJ_UNSUPPORTED          = 5,
    MLX5SIM_CM_REJ_INVALID_SERVICE_ID   = 8,
    MLX5SIM_CM_REJ_INVALID_TRANSPORT    = 9,
    MLX5SIM_CM_REJ_STALE_CONN           = 10,
    MLX5SIM_CM_REJ_INVALID_GID          = 12,
    MLX5SIM_CM_REJ_INVALID_MTU          = 26,
    MLX5SIM_CM_REJ_CONSUMER_DEFINED     = 28,
    MLX5SIM_CM_REJ_VENDOR_NOT_SUPPORTED = 35
};

/** Answers to who asks for a datagram QP: enum ib_cm_sidr_status. */
enum {
    MLX5SIM_CM_SIDR_SUCCESS     = 0,
    MLX5SIM_CM_SIDR_UNSUPPORTED = 1,
    MLX5SIM_CM_SIDR_REJECT      = 2
};

/** Private data that fits into each message: include/rdma/ib_cm.h. */
enum {
    MLX5SIM_CM_DATA_REQ      = 92,
    MLX5SIM_CM_DATA_REP      = 196,
    MLX5SIM_CM_DATA_REJ      = 148,
    MLX5SIM_CM_DATA_SIDR_REQ = 216,
    MLX5SIM_CM_DATA_SIDR_REP = 136,
    MLX5SIM_CM_DATA_HEADER   = 36 /* of REQ, SIDR_REQ: addresses, struct
                                     cma_hdr of cma.c; not with RDMA_PS_IB */
};

/** Requests that a listener may leave unread: ucma.c, max_backlog. */
#define MLX5SIM_CM_BACKLOG 1024

/** Q_Key of datagrams: include/rdma/rdma_cm.h, RDMA_UDP_QKEY. */
#define MLX5SIM_CM_QKEY 0x01234567

/** Local ACK timeout of a connection: cm.c, cm_ack_timeout(), of a packet
 *  lifetime of 16 (cma.c, CMA_IBOE_PACKET_LIFETIME) and the device's delay of
 *  16. */
#define MLX5SIM_CM_ACK_TIMEOUT     18
#define MLX5SIM_CM_PACKET_LIFETIME 16
#define MLX5SIM_CM_ACK_DELAY       16

/** How often a message to another node is sent again, and the exponent of the
 *  time within which an answer is expected (not by us: cm_timeout): cma.c,
 *  CMA_MAX_CM_RETRIES, CMA_CM_RESPONSE_TIMEOUT. And that of how long who is
 *  asked for a connection may take: CMA_CM_MRA_SETTING. */
#define MLX5SIM_CM_RETRIES          15
#define MLX5SIM_CM_RESPONSE_TIMEOUT 20
#define MLX5SIM_CM_SERVICE_TIMEOUT  24

/** A time of IBTA, whose unit is 4.096 us, in ns. */
#define MLX5SIM_CM_TIME_NS(_exponent) (4096ull << (_exponent))

/** How long messages of a connection may be under way: cm.c,
 *  cm_enter_timewait(), the local ACK timeout. */
#define MLX5SIM_CM_TIMEWAIT_NS MLX5SIM_CM_TIME_NS(MLX5SIM_CM_ACK_TIMEOUT)

/** Hop limit of RoCE v2: include/rdma/ib_addr.h, IPV6_DEFAULT_HOPLIMIT. */
#define MLX5SIM_CM_HOP_LIMIT 64

/** Address family of GIDs: include/rdma/ib.h. */
#ifndef AF_IB
#define AF_IB 27
#endif

/** Address of that family: struct sockaddr_ib of include/rdma/ib.h, numbers in
 *  network order. */
typedef struct mlx5sim_cm_sockaddr_ib {
    uint16_t family;
    uint16_t pkey;
    uint32_t flowinfo;
    uint8_t  gid[16];
    uint64_t sid;
    uint64_t sid_mask;
    uint64_t scope_id;
} mlx5sim_cm_sockaddr_ib_t;

#endif
