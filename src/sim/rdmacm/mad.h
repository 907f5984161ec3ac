/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_RDMACM_MAD_H_
#define MLX5SIM_RDMACM_MAD_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Messages of the connection manager as bytes: management datagrams (IBTA
 * volume 1, 13.4 and 16.7) with the messages of its chapter 12, and the
 * addresses in front of the private data of requests (annex A11). Offsets and
 * numbers are those of the kernel's include/rdma/ibta_vol1_c12.h, ib_cm.h and
 * ib_mad.h. Pure: no memory but that of the caller, no system call.
 */

/** Bytes of a datagram. */
#define MLX5SIM_CM_MAD_LENGTH 256

/** Queue pair that all of them go to, and its key: IBTA 10.2.5, "Q_Key". */
#define MLX5SIM_CM_MAD_QPN  1
#define MLX5SIM_CM_MAD_QKEY 0x80010000u

/** Largest private data, that of RTU and DREP. */
#define MLX5SIM_CM_MAD_DATA_MAX 224

/** Service ids of this connection manager: annex A11, 0x0000000001PPSSSS with
 *  the lower byte of the port space and the port. */
#define MLX5SIM_CM_MAD_SERVICE 0x0000000001000000ull

/** LID of who has none that the other side can use: IB_LID_PERMISSIVE. */
#define MLX5SIM_CM_MAD_NO_LID 0xffff

/** Attributes. Others, of alternate paths, are not known here. */
typedef enum {
    MLX5SIM_CM_MAD_REQ      = 0x10,
    MLX5SIM_CM_MAD_MRA      = 0x11,
    MLX5SIM_CM_MAD_REJ      = 0x12,
    MLX5SIM_CM_MAD_REP      = 0x13,
    MLX5SIM_CM_MAD_RTU      = 0x14,
    MLX5SIM_CM_MAD_DREQ     = 0x15,
    MLX5SIM_CM_MAD_DREP     = 0x16,
    MLX5SIM_CM_MAD_SIDR_REQ = 0x17,
    MLX5SIM_CM_MAD_SIDR_REP = 0x18
} mlx5sim_cm_mad_attr_t;


/** What MRA and REJ are about: IBTA tables 107 and 108. */
enum {
    MLX5SIM_CM_MAD_OF_REQ   = 0,
    MLX5SIM_CM_MAD_OF_REP   = 1,
    MLX5SIM_CM_MAD_OF_OTHER = 2
};


/** A message, numbers in host byte order. What its attribute does not have is 0
 *  after decoding, and not looked at by encoding. */
typedef struct mlx5sim_cm_mad {
    uint16_t attr;                /* mlx5sim_cm_mad_attr_t */
    uint64_t tid;
    uint32_t local_comm;          /* the sender's; SIDR: request id */
    uint32_t remote_comm;         /* the receiver's; not of REQ */
    uint64_t service;             /* REQ, SIDR */
    uint64_t guid;                /* of the sender's device: REQ, REP, REJ */
    uint32_t qkey;                /* REQ, REP, SIDR_REP */
    uint32_t qpn;                 /* the sender's; DREQ: the receiver's */
    uint32_t psn;                 /* first that the sender's QP expects */
    uint16_t pkey;                /* REQ, SIDR_REQ */
    uint8_t  responder_resources; /* REQ, REP */
    uint8_t  initiator_depth;
    uint8_t  flow_control;
    uint8_t  rnr_retry_count;
    uint8_t  srq;
    uint8_t  retry_count;         /* REQ */
    uint8_t  transport;           /* REQ: 0 is RC */
    uint8_t  response_timeout;    /* REQ: of both sides, as an exponent */
    uint8_t  max_retries;
    uint8_t  mtu;                 /* REQ: enum ibv_mtu */
    uint8_t  rate;                /* REQ: enum ibv_rate */
    uint8_t  tclass;
    uint8_t  hop_limit;
    uint8_t  ack_timeout;         /* REQ: of the QP, as an exponent */
    uint8_t  ack_delay;           /* REP */
    uint16_t slid;                /* REQ: of the path, the sender's; with RoCE
                                     MLX5SIM_CM_MAD_NO_LID */
    uint16_t dlid;
    uint8_t  sgid[16];
    uint8_t  dgid[16];            /* with InfiniBand 0: not known */
    uint8_t  of;                  /* MRA, REJ: MLX5SIM_CM_MAD_OF_* */
    uint8_t  service_timeout;     /* MRA: as an exponent */
    uint8_t  info_length;         /* REJ: bytes of what guid begins, or 0 */
    uint16_t reason;              /* REJ; SIDR_REP: status */
    uint8_t  data[MLX5SIM_CM_MAD_DATA_MAX]; /* private data */
} mlx5sim_cm_mad_t;


/** Addresses in front of the private data of a request: annex A11, "IP CM
 *  private data"; the kernel's struct cma_hdr. */
typedef struct mlx5sim_cm_mad_ip {
    uint8_t  is_ipv6;
    uint16_t port;                /* the sender's */
    uint8_t  src[16];             /* an IPv4 address is in the first 4 */
    uint8_t  dst[16];
} mlx5sim_cm_mad_ip_t;

/** Bytes of these addresses. */
#define MLX5SIM_CM_MAD_IP_LENGTH 36


/** Write a message. */
void mlx5sim_cm_mad_encode(const mlx5sim_cm_mad_t *mad,
                           uint8_t out_p[MLX5SIM_CM_MAD_LENGTH]);

/**
 * Read a message. The bytes may be anything, and none behind @a length is
 * looked at.
 *
 * @return 0, or -1: it has another length, it is of another class or version,
 *         it is no message that is sent (IBTA "Send()"), it has a status, or
 *         the attribute is not known. What is written is undefined then.
 */
int mlx5sim_cm_mad_decode(const void *bytes, unsigned length,
                          mlx5sim_cm_mad_t *mad_p);

/** Write addresses in front of private data. */
void mlx5sim_cm_mad_put_ip(const mlx5sim_cm_mad_ip_t *ip,
                           uint8_t out_p[MLX5SIM_CM_MAD_IP_LENGTH]);

/** Read them. @return 0, or -1 if they are of another version, or not of IPv4
 *  or IPv6. */
int mlx5sim_cm_mad_get_ip(const uint8_t data[MLX5SIM_CM_MAD_IP_LENGTH],
                          mlx5sim_cm_mad_ip_t *ip_p);

#ifdef __cplusplus
}
#endif

#endif
