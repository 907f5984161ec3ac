/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/conn/sep_conn_msg.h>
#include <uct/ib/sep/conn/sep_crc.h>
#include <uct/ib/sep/port/sep_addr.h>

#include <endian.h>
#include <string.h>


static int uct_sep_conn_msg_has_qp(unsigned type)
{
    return (type == UCT_SEP_CONN_MSG_REQ) || (type == UCT_SEP_CONN_MSG_REP);
}

/* UD packets are guarded by the fabric's CRCs; this one is against packets that
 * merely look like ours. */
static uint32_t uct_sep_conn_packet_crc(const uct_sep_conn_packet_t *packet)
{
    uct_sep_conn_packet_t copy = *packet;

    copy.crc = 0;
    return uct_sep_crc32(UCT_SEP_CONN_MAGIC, &copy, sizeof(copy));
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
    }

    if (msg->type != UCT_SEP_CONN_MSG_REQ) {
        packet->dst_epoch = htobe32(msg->dst_epoch);
    }

    if (uct_sep_conn_msg_has_qp(msg->type)) {
        packet->qp.qpn                = htobe32(msg->qp.qpn);
        packet->qp.psn                = htobe32(msg->qp.psn);
        packet->qp.path_mtu           = msg->qp.path_mtu;
        packet->qp.max_rd_atomic      = msg->qp.max_rd_atomic;
        packet->qp.max_dest_rd_atomic = msg->qp.max_dest_rd_atomic;
        packet->qp.responder_qpn      = htobe32(msg->qp.responder_qpn);
    }

    packet->crc = htobe32(uct_sep_conn_packet_crc(packet));
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
        (is_req != (msg->dst_epoch == 0))) {
        return 0;
    }

    return (msg->dst_id != 0) &&
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
    if (length < offsetof(uct_sep_conn_packet_t, crc)) {
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

    if (packet.crc != htobe32(uct_sep_conn_packet_crc(&packet))) {
        return UCT_SEP_CONN_PARSE_CRC;
    }

    memset(&msg, 0, sizeof(msg));
    msg.type                  = (uct_sep_conn_msg_type_t)packet.type;
    msg.reason                = (uct_sep_conn_rej_t)packet.reason;
    msg.dst_id                = be64toh(packet.dst_id);
    msg.src                   = packet.src;
    msg.src_epoch             = be32toh(packet.src_epoch);
    msg.dst_epoch             = be32toh(packet.dst_epoch);
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
        [UCT_SEP_CONN_MSG_REQ] = "REQ",
        [UCT_SEP_CONN_MSG_REP] = "REP",
        [UCT_SEP_CONN_MSG_RTU] = "RTU",
        [UCT_SEP_CONN_MSG_REJ] = "REJ"
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
                                          "any more"
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
        [UCT_SEP_CONN_PARSE_CRC]     = "wrong checksum",
        [UCT_SEP_CONN_PARSE_FIELD]   = "field out of range"
    };

    return (result < UCT_SEP_CONN_PARSE_LAST) ? texts[result] : "unknown";
}
