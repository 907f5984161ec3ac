/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_CM_H_
#define MLX5SIM_CM_H_

#include <sim/objs/obj.h>

#include <netinet/in.h>
#include <sys/socket.h>

/*
 * Ids of the connection manager, rdma_cm. All of them, whoever owns them, are
 * read and changed under mlx5sim_store_t::cm_lock.
 */

/** Private data of a message: RDMA_MAX_PRIVATE_DATA of rdma/rdma_user_cm.h. */
#define MLX5SIM_CM_PRIVATE_DATA 256


/** State of an id: those of the kernel's drivers/infiniband/core/cma.c until
 *  there is a connection, then those of cm.c (enum ib_cm_state). */
typedef enum {
    MLX5SIM_CM_IDLE,
    MLX5SIM_CM_BOUND,      /* has an address */
    MLX5SIM_CM_ADDR,       /* and a device for the way to another one */
    MLX5SIM_CM_ROUTE,      /* and a path */
    MLX5SIM_CM_LISTEN,
    MLX5SIM_CM_REQ_SENT,   /* has asked for a connection */
    MLX5SIM_CM_REQ_RCVD,   /* is asked for one */
    MLX5SIM_CM_REP_SENT,   /* has accepted */
    MLX5SIM_CM_REP_RCVD,   /* was accepted */
    MLX5SIM_CM_ESTABLISHED,
    MLX5SIM_CM_DREQ_SENT,  /* has asked to end it */
    MLX5SIM_CM_DREQ_RCVD,  /* is asked to end it */
    MLX5SIM_CM_TIMEWAIT,   /* has ended; its messages may still be under way */
    MLX5SIM_CM_CLOSED      /* rejected, out of reach, or at its end */
} mlx5sim_cm_state_t;


/** Messages to a peer on another node. Of datagram ids, REQ is SIDR_REQ, and
 *  REP and REJ are SIDR_REP. */
typedef enum {
    MLX5SIM_CM_TELL_REQ  = 1 << 0,
    MLX5SIM_CM_TELL_REP  = 1 << 1,
    MLX5SIM_CM_TELL_RTU  = 1 << 2,
    MLX5SIM_CM_TELL_REJ  = 1 << 3,
    MLX5SIM_CM_TELL_DREQ = 1 << 4,
    MLX5SIM_CM_TELL_DREP = 1 << 5,
    MLX5SIM_CM_TELL_MRA  = 1 << 6  /* of a request */
} mlx5sim_cm_tell_t;


typedef union mlx5sim_cm_addr {
    struct sockaddr     sa;   /* AF_IB: any address, the rest is zero */
    struct sockaddr_in  in;
    struct sockaddr_in6 in6;
} mlx5sim_cm_addr_t;


/** What the two sides tell each other: struct rdma_ucm_conn_param without the
 *  bytes that only the library's message has. */
typedef struct mlx5sim_cm_param {
    uint32_t qp_num;
    uint32_t qkey;
    uint8_t  responder_resources;
    uint8_t  initiator_depth;
    uint8_t  flow_control;
    uint8_t  retry_count;
    uint8_t  rnr_retry_count;
    uint8_t  srq;
    uint8_t  length;          /* of the data */
    uint8_t  data[MLX5SIM_CM_PRIVATE_DATA];
} mlx5sim_cm_param_t;


/** Where an address is: a port of this instance. */
typedef struct mlx5sim_cm_place {
    uint8_t  dev;
    uint8_t  port;            /* from 1, 0: nowhere */
    uint8_t  gid_index;
    uint8_t  mtu;             /* enum ibv_mtu */
    uint16_t lid;
    uint8_t  gid[16];
} mlx5sim_cm_place_t;


/** Another id, perhaps of another process. */
typedef struct mlx5sim_cm_ref {
    uint32_t index;           /* 0: none */
    uint32_t gen;             /* mlx5sim_obj_t::gen that it must have */
} mlx5sim_cm_ref_t;


/** An id, struct rdma_cm_id. o.user_handle is what the library calls it. */
typedef struct mlx5sim_cm_id {
    mlx5sim_obj_t      o;
    uint32_t           chan;  /* where its events go: index */
    uint32_t           chan_gen; /* mlx5sim_obj_t::gen that it must have */
    uint32_t           state; /* mlx5sim_cm_state_t */
    uint16_t           ps;    /* enum rdma_ucm_port_space */
    uint8_t            qp_type;  /* enum ibv_qp_type */
    uint8_t            reuse_addr;
    uint8_t            af_only;
    uint8_t            has_af_only;
    uint8_t            tos;
    uint8_t            timeout; /* local ACK timeout of its QP */
    mlx5sim_cm_addr_t  src;
    mlx5sim_cm_addr_t  dst;
    mlx5sim_cm_place_t local;
    mlx5sim_cm_place_t remote;
    uint32_t           psn;   /* first that its QP expects */
    uint32_t           peer_psn; /* first that it sends, as the peer says */
    uint32_t           is_active; /* has asked for the connection */
    uint32_t           unread; /* its events in the channel */
    uint32_t           reported; /* those that the library has read */
    uint32_t           is_read; /* request: the library knows of it */
    uint32_t           is_told; /* somebody is about to write its event: */
    uint32_t           told_event; /* MLX5SIM_CM_EVENT_* */
    int32_t            told_status;
    uint32_t           room;  /* listens: requests that may be unread */
    uint32_t           waiting; /* listens: those that found no room */
    uint32_t           last_waiting; /* index of the last that got it */
    mlx5sim_cm_ref_t   listener; /* request: by whom it is to be accepted */
    mlx5sim_cm_ref_t   peer;  /* other side of the connection */
    uint64_t           deadline; /* until which the peer has to answer,
                                    CLOCK_MONOTONIC ns; 0: none */
    mlx5sim_cm_param_t mine;  /* the last that was sent */
    mlx5sim_cm_param_t theirs; /* the last that came */
    mlx5sim_cm_param_t refusal; /* data of a rejection that came: what came
                                   before may still be unread */
    /* Of one whose peer is on another node. If its process has destroyed it, or
     * has been killed, mlx5sim-wire owns it until the peer knows. */
    uint32_t           is_remote;
    uint32_t           comm;  /* communication id */
    uint32_t           peer_comm;
    uint32_t           to_send; /* messages that mlx5sim-wire is to send:
                                   mlx5sim_cm_tell_t */
    uint32_t           tries; /* how often the last was sent again */
    uint16_t           rej_reason; /* of a rejection */
    uint8_t            rej_of; /* MLX5SIM_CM_MAD_OF_* */
    uint64_t           tid;   /* transaction of the last request that came */
    uint64_t           interval; /* until a message is sent again, ns */
    uint64_t           due;   /* when something is to be done, on the clock of
                                 the deadline; 0: never */
} mlx5sim_cm_id_t;

#endif
