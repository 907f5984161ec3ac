/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_TAP_H_
#define MLX5SIM_TAP_H_

#include <sim/exec/packet.h>

/*
 * MLX5SIM_PCAP: the packets of this process' queue pairs, as tcpdump would show
 * them on its host: all that it sends, those that get lost on the way among
 * them, and the answers that reach it. What its responders do is in the
 * captures of the processes that send to them.
 *
 * Payload is read from memory once more, after it was sent or before it
 * arrives: if others write to it in the meantime, the frame has other bytes.
 *
 * In deferred execution whoever runs pipes calls these, one thread at a time;
 * else mlx5sim_tap_message() does, for all that a message is on the wire.
 */

/** Whether packets are captured; see mlx5sim_tap_is_on(). */
extern int mlx5sim_tap_enabled;

/** Begin the capture, if it is asked for. @return 0, or -1 with errno after the
 *  reason was written to standard error. */
int mlx5sim_tap_open(void);

/** Forget the capture: it is that of the parent of this child. */
void mlx5sim_tap_forget(void);

/** Forget who has the lock that mlx5sim_tap_message() takes. */
void mlx5sim_tap_forget_lock(void);

static inline int mlx5sim_tap_is_on(void)
{
    return __builtin_expect(mlx5sim_tap_enabled, 0);
}

/** Write a packet of a connected QP that was sent, unless the port is down.
 *  @param wqe  As of mlx5sim_packet_land(). */
void mlx5sim_tap_request(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                         const mlx5sim_packet_t *packet);

/** The same for a datagram. */
void mlx5sim_tap_datagram(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                          uint32_t psn);

/**
 * Write the packets of a message that was executed at once, and what came back:
 * one answer for each message. Of one that was refused, or not answered, there
 * is the first packet, as if that had been the reason.
 *
 * @param psn        Of its first packet.
 * @param plan       What became of it.
 * @param rnr_timer  If there was no receive: how long to wait, ns.
 */
void mlx5sim_tap_message(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                         uint32_t psn, const mlx5sim_plan_t *plan,
                         uint64_t rnr_timer);

/** @return AETH's syndrome for the syndrome of a completion */
uint8_t mlx5sim_tap_nak(unsigned syndrome);

/** Write an acknowledgement that reaches @a qp. @param syndrome  AETH's. */
void mlx5sim_tap_ack(const mlx5sim_qp_obj_t *qp, uint32_t psn, uint8_t syndrome,
                     uint32_t msn);

/** The same for the answer to an atomic. @param old  Value before it. */
void mlx5sim_tap_atomic(const mlx5sim_qp_obj_t *qp, uint32_t psn, uint32_t msn,
                        uint64_t old);

/** The same for a packet of the answer to a read, whose data is read from the
 *  responder's memory.
 *  @param packet       Its psn, offset and length; is_first and is_last, of the
 *                      answer. The rest is not used.
 *  @param is_nak_next  As of mlx5sim_packet_answer_read(). */
void mlx5sim_tap_read(mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe,
                      const mlx5sim_packet_t *packet, uint32_t msn,
                      int is_nak_next);

#endif
