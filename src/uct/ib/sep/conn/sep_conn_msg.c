/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/conn/sep_conn_msg.h>
#include <uct/ib/sep/port/sep_addr.h>

#include <endian.h>
#include <string.h>


static int uct_sep_conn_msg_has_qp(unsigned type)
{
    return (type == UCT_SEP_CONN_MSG_REQ) || (type == UCT_SEP_CONN_MSG_REP);
}

static int uct_sep_conn_msg_has_token(const uct_sep_conn_msg_t *msg)
{
    return (msg->type == UCT_SEP_CONN_MSG_DREQ) ||
           ((msg->type == UCT_SEP_CONN_MSG_REJ) &&
            (msg->reason == UCT_SEP_CONN_REJ_IN_USE));
}

void uct_sep_conn_msg_pack(const uct_sep_conn_msg_t *msg,
                           uct_sep_conn_packet_t *packet)
{
    memset(packet, 0, sizeof(*packet));

    packet->magic   = htobe32(UCT_SEP_CONN_MAGIC);
    packet->version = UCT_SEP_ADDR_VERSION;
    packet->type    = msg->type;
    packet->length  = htobe16(sizeof(*packet));
    packet->dst_id  = htobe64(msg->dst_id);
    packet->src     = msg->src;

    if (msg->type == UCT_SEP_CONN_MSG_REJ) {
        packet->reason    = msg->reason;
    } else {
        packet->src_epoch = htobe32(msg->src_epoch);
        packet->src_nonce = htobe64(msg->src_nonce);
    }

    if (uct_sep_conn_msg_has_token(msg)) {
        packet->token = msg->token;
    }

    if (msg->type != UCT_SEP_CONN_MSG_REQ) {
        packet->dst_epoch = htobe32(msg->dst_epoch);
    }
    packet->dst_nonce = htobe64(msg->dst_nonce);

    if (uct_sep_conn_msg_has_qp(msg->type)) {
        packet->qp.qpn                = htobe32(msg->qp.qpn);
        packet->qp.psn                = htobe32(msg->qp.psn);
        packet->qp.path_mtu           = msg->qp.path_mtu;
        packet->qp.max_rd_atomic      = msg->qp.max_rd_atomic;
        packet->qp.max_dest_rd_atomic = msg->qp.max_dest_rd_atomic;
        packet->qp.responder_qpn      = htobe32(msg->qp.responder_qpn);
    }
}

static int uct_sep_conn_msg_qpn_is_valid(uint32_t qpn)
{
    return (qpn >= 2) && (qpn < UCT_SEP_ADDR_MAX_24BIT);
}

static int uct_sep_conn_msg_qp_is_valid(const uct_sep_conn_qp_info_t *qp)
{
    return uct_sep_conn_msg_qpn_is_valid(qp->qpn) &&
           ((qp->responder_qpn == 0) ||
            (uct_sep_conn_msg_qpn_is_valid(qp->responder_qpn) &&
             (qp->responder_qpn != qp->qpn))) &&
           (qp->psn <= UCT_SEP_ADDR_MAX_24BIT) &&
           (qp->path_mtu >= IBV_MTU_256) && (qp->path_mtu <= IBV_MTU_4096);
}

static int uct_sep_conn_msg_is_valid(const uct_sep_conn_msg_t *msg)
{
    int is_req = (msg->type == UCT_SEP_CONN_MSG_REQ);
    int is_rej = (msg->type == UCT_SEP_CONN_MSG_REJ);

    if ((msg->type < UCT_SEP_CONN_MSG_REQ) ||
        (msg->type >= UCT_SEP_CONN_MSG_LAST) ||
        (msg->reason >= UCT_SEP_CONN_REJ_LAST)) {
        return 0;
    }

    if ((is_rej != (msg->reason != UCT_SEP_CONN_REJ_NONE)) ||
        (is_rej != (msg->src_epoch == 0)) ||
        (is_rej != (msg->src_nonce == 0))) {
        return 0;
    }

    /* A DREP is about a QP, whether or not it was ever connected */
    if ((msg->type == UCT_SEP_CONN_MSG_DREP) ?
        ((msg->dst_epoch == 0) != (msg->dst_nonce == 0)) :
        ((is_req != (msg->dst_epoch == 0)) ||
         (!is_req && (msg->dst_nonce == 0)))) {
        return 0;
    }

    return (msg->dst_id != 0) && (msg->dst_id <= UCT_SEP_ADDR_MAX_ID) &&
           !uct_sep_device_addr_is_hearsay(&msg->src.dev) &&
           (uct_sep_device_addr_check(&msg->src.dev) == UCS_OK) &&
           (uct_sep_iface_addr_check(&msg->src.iface) == UCS_OK) &&
           (!uct_sep_conn_msg_has_qp(msg->type) ||
            uct_sep_conn_msg_qp_is_valid(&msg->qp));
}

uct_sep_conn_parse_t uct_sep_conn_msg_parse(const void *data, size_t length,
                                            uct_sep_conn_msg_t *msg_p)
{
    uct_sep_conn_packet_t packet, canonical;
    uct_sep_conn_msg_t msg;

    /* Magic and version first: a later version may have another length */
    if (length < offsetof(uct_sep_conn_packet_t, reason)) {
        return UCT_SEP_CONN_PARSE_LENGTH;
    }

    memset(&packet, 0, sizeof(packet));
    memcpy(&packet, data, (length < sizeof(packet)) ? length : sizeof(packet));
    if (packet.magic != htobe32(UCT_SEP_CONN_MAGIC)) {
        return UCT_SEP_CONN_PARSE_MAGIC;
    }

    if (packet.version != UCT_SEP_ADDR_VERSION) {
        return UCT_SEP_CONN_PARSE_VERSION;
    }

    if ((length != sizeof(packet)) ||
        (packet.length != htobe16(sizeof(packet)))) {
        return UCT_SEP_CONN_PARSE_LENGTH;
    }

    memset(&msg, 0, sizeof(msg));
    msg.type                  = (uct_sep_conn_msg_type_t)packet.type;
    msg.reason                = (uct_sep_conn_rej_t)packet.reason;
    msg.token                 = packet.token;
    msg.dst_id                = be64toh(packet.dst_id);
    msg.src                   = packet.src;
    msg.src_epoch             = be32toh(packet.src_epoch);
    msg.dst_epoch             = be32toh(packet.dst_epoch);
    msg.src_nonce             = be64toh(packet.src_nonce);
    msg.dst_nonce             = be64toh(packet.dst_nonce);
    msg.qp.qpn                = be32toh(packet.qp.qpn);
    msg.qp.psn                = be32toh(packet.qp.psn);
    msg.qp.path_mtu           = packet.qp.path_mtu;
    msg.qp.max_rd_atomic      = packet.qp.max_rd_atomic;
    msg.qp.max_dest_rd_atomic = packet.qp.max_dest_rd_atomic;
    msg.qp.responder_qpn      = be32toh(packet.qp.responder_qpn);

    if (!uct_sep_conn_msg_is_valid(&msg)) {
        return UCT_SEP_CONN_PARSE_FIELD;
    }

    /* Whatever is reserved, or not part of this type, has to be zero: nothing
     * may be left that is not understood. */
    uct_sep_conn_msg_pack(&msg, &canonical);
    if (memcmp(&canonical, &packet, sizeof(packet)) != 0) {
        return UCT_SEP_CONN_PARSE_FIELD;
    }

    *msg_p = msg;
    return UCT_SEP_CONN_PARSE_OK;
}

const char *uct_sep_conn_msg_type_name(unsigned type)
{
    static const char *names[] = {
        [UCT_SEP_CONN_MSG_REQ]  = "REQ",
        [UCT_SEP_CONN_MSG_REP]  = "REP",
        [UCT_SEP_CONN_MSG_RTU]  = "RTU",
        [UCT_SEP_CONN_MSG_REJ]  = "REJ",
        [UCT_SEP_CONN_MSG_DREQ] = "DREQ",
        [UCT_SEP_CONN_MSG_DREP] = "DREP"
    };

    return ((type >= UCT_SEP_CONN_MSG_REQ) && (type < UCT_SEP_CONN_MSG_LAST)) ?
           names[type] : "unknown";
}

const char *uct_sep_conn_rej_str(unsigned reason)
{
    static const char *texts[] = {
        [UCT_SEP_CONN_REJ_NONE]         = "no reason",
        [UCT_SEP_CONN_REJ_NO_RESOURCES] = "peer could not make a queue pair",
        [UCT_SEP_CONN_REJ_STALE_EPOCH]  = "peer has given up this attempt",
        [UCT_SEP_CONN_REJ_STALE_IFACE]  = "peer interface does not exist "
                                          "any more",
        [UCT_SEP_CONN_REJ_IN_USE]       = "peer uses the connection",
        [UCT_SEP_CONN_REJ_BUSY]         = "too many connect to the peer at a "
                                          "time"
    };

    return (reason < UCT_SEP_CONN_REJ_LAST) ? texts[reason] : "unknown";
}

const char *uct_sep_conn_parse_str(unsigned result)
{
    static const char *texts[] = {
        [UCT_SEP_CONN_PARSE_OK]      = "valid",
        [UCT_SEP_CONN_PARSE_LENGTH]  = "wrong length",
        [UCT_SEP_CONN_PARSE_MAGIC]   = "not a connection packet",
        [UCT_SEP_CONN_PARSE_VERSION] = "other protocol version",
        [UCT_SEP_CONN_PARSE_FIELD]   = "field out of range"
    };

    return (result < UCT_SEP_CONN_PARSE_LAST) ? texts[result] : "unknown";
}
