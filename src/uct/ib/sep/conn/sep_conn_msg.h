/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_CONN_MSG_H
#define UCT_SEP_CONN_MSG_H

#include <uct/ib/sep/conn/sep_conn.h>

BEGIN_C_DECLS

/**
 * @file sep_conn_msg.h
 *
 * Packets of the connection exchange: from and to bytes.
 */

/** Why bytes are not a packet of ours. */
typedef enum {
    UCT_SEP_CONN_PARSE_OK,
    UCT_SEP_CONN_PARSE_LENGTH,  /**< Wrong number of bytes */
    UCT_SEP_CONN_PARSE_MAGIC,   /**< Foreign packet */
    UCT_SEP_CONN_PARSE_VERSION, /**< Peer speaks another version */
    UCT_SEP_CONN_PARSE_FIELD,   /**< A field is out of its range */
    UCT_SEP_CONN_PARSE_LAST
} uct_sep_conn_parse_t;


/**
 * Write a packet.
 *
 * @param [in]  msg     Contents. Fields that its type does not have are
 *                      ignored, and sent as zero.
 * @param [out] packet  Filled.
 */
void uct_sep_conn_msg_pack(const uct_sep_conn_msg_t *msg,
                           uct_sep_conn_packet_t *packet);


/**
 * Read a packet. Never trusts the bytes: what is accepted is a well formed
 * message with valid addresses, known type, epochs and QP as the type requires,
 * and zero in everything reserved.
 *
 * @param [in]  data    Payload behind the GRH, any alignment.
 * @param [in]  length  Number of bytes.
 * @param [out] msg_p   Filled if the result is UCT_SEP_CONN_PARSE_OK, otherwise
 *                      unchanged.
 *
 * @return What is wrong with it.
 */
uct_sep_conn_parse_t uct_sep_conn_msg_parse(const void *data, size_t length,
                                            uct_sep_conn_msg_t *msg_p);


/** @return Name of a packet type, for messages. */
const char *uct_sep_conn_msg_type_name(unsigned type);

/** @return Text of a rejection's reason. */
const char *uct_sep_conn_rej_str(unsigned reason);

/** @return Text of a parse result. */
const char *uct_sep_conn_parse_str(unsigned result);

END_C_DECLS

#endif
