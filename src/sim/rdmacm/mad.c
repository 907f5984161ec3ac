/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/rdmacm/mad.h>

#include <stddef.h>
#include <string.h>

/* Header of management datagrams: IBTA 13.4.2, values of the connection
 * manager's class 16.7 */
enum {
    MLX5SIM_CM_MAD_BASE_VERSION  = 1,
    MLX5SIM_CM_MAD_CLASS         = 7,
    MLX5SIM_CM_MAD_CLASS_VERSION = 2,
    MLX5SIM_CM_MAD_METHOD_SEND   = 3,
    MLX5SIM_CM_MAD_HEADER        = 24 /* bytes */
};

/* Offsets in that header */
enum {
    MLX5SIM_CM_MAD_AT_STATUS = 4,
    MLX5SIM_CM_MAD_AT_TID    = 8,
    MLX5SIM_CM_MAD_AT_ATTR   = 16
};

/* Annex A11: version of the addresses, and that of IP in the upper half of a
 * byte */
#define MLX5SIM_CM_MAD_IP_VERSION 0

/* A field: where it is in the message and in mlx5sim_cm_mad_t */
typedef struct mlx5sim_cm_mad_field {
    uint8_t  offset; /* byte behind the header */
    uint8_t  size;   /* bytes; 0: the end */
    uint8_t  shift;  /* of the field in these bytes */
    uint8_t  bits;   /* 0: not a number, size bytes */
    uint8_t  width;  /* of the member, bytes */
    uint16_t at;
} mlx5sim_cm_mad_field_t;

#define MLX5SIM_CM_MAD_BITS(_offset, _size, _shift, _bits, _member) \
    {_offset, _size, _shift, _bits, \
     sizeof(((mlx5sim_cm_mad_t*)NULL)->_member), \
     offsetof(mlx5sim_cm_mad_t, _member)}
#define MLX5SIM_CM_MAD_NUMBER(_offset, _size, _member) \
    MLX5SIM_CM_MAD_BITS(_offset, _size, 0, 8 * (_size), _member)
#define MLX5SIM_CM_MAD_BYTES(_offset, _size, _member) \
    MLX5SIM_CM_MAD_BITS(_offset, _size, 0, 0, _member)

/* The communication ids, of all but REQ and SIDR */
#define MLX5SIM_CM_MAD_COMMS \
    MLX5SIM_CM_MAD_NUMBER(0, 4, local_comm), \
    MLX5SIM_CM_MAD_NUMBER(4, 4, remote_comm)

static const mlx5sim_cm_mad_field_t mlx5sim_cm_mad_req[] = {
    MLX5SIM_CM_MAD_NUMBER(0, 4, local_comm),
    MLX5SIM_CM_MAD_NUMBER(8, 8, service),
    MLX5SIM_CM_MAD_NUMBER(16, 8, guid),
    MLX5SIM_CM_MAD_NUMBER(28, 4, qkey),
    MLX5SIM_CM_MAD_BITS(32, 4, 8, 24, qpn),
    MLX5SIM_CM_MAD_NUMBER(35, 1, responder_resources),
    MLX5SIM_CM_MAD_NUMBER(39, 1, initiator_depth),
    MLX5SIM_CM_MAD_BITS(43, 1, 3, 5, response_timeout), /* of the receiver */
    MLX5SIM_CM_MAD_BITS(43, 1, 1, 2, transport),
    MLX5SIM_CM_MAD_BITS(43, 1, 0, 1, flow_control),
    MLX5SIM_CM_MAD_BITS(44, 4, 8, 24, psn),
    MLX5SIM_CM_MAD_BITS(47, 1, 3, 5, response_timeout), /* of the sender */
    MLX5SIM_CM_MAD_BITS(47, 1, 0, 3, retry_count),
    MLX5SIM_CM_MAD_NUMBER(48, 2, pkey),
    MLX5SIM_CM_MAD_BITS(50, 1, 4, 4, mtu),
    MLX5SIM_CM_MAD_BITS(50, 1, 0, 3, rnr_retry_count),
    MLX5SIM_CM_MAD_BITS(51, 1, 4, 4, max_retries),
    MLX5SIM_CM_MAD_BITS(51, 1, 3, 1, srq),
    MLX5SIM_CM_MAD_NUMBER(52, 2, slid),
    MLX5SIM_CM_MAD_NUMBER(54, 2, dlid),
    MLX5SIM_CM_MAD_BYTES(56, 16, sgid),
    MLX5SIM_CM_MAD_BYTES(72, 16, dgid),
    MLX5SIM_CM_MAD_BITS(91, 1, 0, 6, rate),
    MLX5SIM_CM_MAD_NUMBER(92, 1, tclass),
    MLX5SIM_CM_MAD_NUMBER(93, 1, hop_limit),
    MLX5SIM_CM_MAD_BITS(95, 1, 3, 5, ack_timeout),
    MLX5SIM_CM_MAD_BYTES(140, 92, data),
    {0}
};

static const mlx5sim_cm_mad_field_t mlx5sim_cm_mad_mra[] = {
    MLX5SIM_CM_MAD_COMMS,
    MLX5SIM_CM_MAD_BITS(8, 1, 6, 2, of),
    MLX5SIM_CM_MAD_BITS(9, 1, 3, 5, service_timeout),
    MLX5SIM_CM_MAD_BYTES(10, 222, data),
    {0}
};

static const mlx5sim_cm_mad_field_t mlx5sim_cm_mad_rej[] = {
    MLX5SIM_CM_MAD_COMMS,
    MLX5SIM_CM_MAD_BITS(8, 1, 6, 2, of),
    MLX5SIM_CM_MAD_BITS(9, 1, 1, 7, info_length),
    MLX5SIM_CM_MAD_NUMBER(10, 2, reason),
    MLX5SIM_CM_MAD_NUMBER(12, 8, guid), /* of 72 bytes of information */
    MLX5SIM_CM_MAD_BYTES(84, 148, data),
    {0}
};

static const mlx5sim_cm_mad_field_t mlx5sim_cm_mad_rep[] = {
    MLX5SIM_CM_MAD_COMMS,
    MLX5SIM_CM_MAD_NUMBER(8, 4, qkey),
    MLX5SIM_CM_MAD_BITS(12, 4, 8, 24, qpn),
    MLX5SIM_CM_MAD_BITS(20, 4, 8, 24, psn),
    MLX5SIM_CM_MAD_NUMBER(24, 1, responder_resources),
    MLX5SIM_CM_MAD_NUMBER(25, 1, initiator_depth),
    MLX5SIM_CM_MAD_BITS(26, 1, 3, 5, ack_delay),
    MLX5SIM_CM_MAD_BITS(26, 1, 0, 1, flow_control),
    MLX5SIM_CM_MAD_BITS(27, 1, 5, 3, rnr_retry_count),
    MLX5SIM_CM_MAD_BITS(27, 1, 4, 1, srq),
    MLX5SIM_CM_MAD_NUMBER(28, 8, guid),
    MLX5SIM_CM_MAD_BYTES(36, 196, data),
    {0}
};

/* RTU, DREP */
static const mlx5sim_cm_mad_field_t mlx5sim_cm_mad_short[] = {
    MLX5SIM_CM_MAD_COMMS,
    MLX5SIM_CM_MAD_BYTES(8, 224, data),
    {0}
};

static const mlx5sim_cm_mad_field_t mlx5sim_cm_mad_dreq[] = {
    MLX5SIM_CM_MAD_COMMS,
    MLX5SIM_CM_MAD_BITS(8, 4, 8, 24, qpn),
    MLX5SIM_CM_MAD_BYTES(12, 220, data),
    {0}
};

static const mlx5sim_cm_mad_field_t mlx5sim_cm_mad_sidr_req[] = {
    MLX5SIM_CM_MAD_NUMBER(0, 4, local_comm),
    MLX5SIM_CM_MAD_NUMBER(4, 2, pkey),
    MLX5SIM_CM_MAD_NUMBER(8, 8, service),
    MLX5SIM_CM_MAD_BYTES(16, 216, data),
    {0}
};

/* The request id is that of whom it answers */
static const mlx5sim_cm_mad_field_t mlx5sim_cm_mad_sidr_rep[] = {
    MLX5SIM_CM_MAD_NUMBER(0, 4, remote_comm),
    MLX5SIM_CM_MAD_BITS(4, 1, 0, 8, reason),
    MLX5SIM_CM_MAD_BITS(8, 4, 8, 24, qpn),
    MLX5SIM_CM_MAD_NUMBER(12, 8, service),
    MLX5SIM_CM_MAD_NUMBER(20, 4, qkey),
    MLX5SIM_CM_MAD_BYTES(96, 136, data),
    {0}
};

static const mlx5sim_cm_mad_field_t *const mlx5sim_cm_mad_fields[] = {
    [MLX5SIM_CM_MAD_REQ]      = mlx5sim_cm_mad_req,
    [MLX5SIM_CM_MAD_MRA]      = mlx5sim_cm_mad_mra,
    [MLX5SIM_CM_MAD_REJ]      = mlx5sim_cm_mad_rej,
    [MLX5SIM_CM_MAD_REP]      = mlx5sim_cm_mad_rep,
    [MLX5SIM_CM_MAD_RTU]      = mlx5sim_cm_mad_short,
    [MLX5SIM_CM_MAD_DREQ]     = mlx5sim_cm_mad_dreq,
    [MLX5SIM_CM_MAD_DREP]     = mlx5sim_cm_mad_short,
    [MLX5SIM_CM_MAD_SIDR_REQ] = mlx5sim_cm_mad_sidr_req,
    [MLX5SIM_CM_MAD_SIDR_REP] = mlx5sim_cm_mad_sidr_rep
};


static const mlx5sim_cm_mad_field_t *mlx5sim_cm_mad_fields_of(uint16_t attr)
{
    return (attr < sizeof(mlx5sim_cm_mad_fields) /
                   sizeof(mlx5sim_cm_mad_fields[0])) ?
           mlx5sim_cm_mad_fields[attr] : NULL;
}

static uint64_t mlx5sim_cm_mad_get(const uint8_t *bytes, unsigned size)
{
    uint64_t number = 0;
    unsigned i;

    for (i = 0; i < size; ++i) {
        number = (number << 8) | bytes[i];
    }
    return number;
}

static void mlx5sim_cm_mad_put(uint8_t *bytes, unsigned size, uint64_t number)
{
    while (size > 0) {
        bytes[--size] = number;
        number      >>= 8;
    }
}

static uint64_t mlx5sim_cm_mad_mask(const mlx5sim_cm_mad_field_t *field)
{
    return UINT64_MAX >> (64 - field->bits);
}

/* A number of mlx5sim_cm_mad_t */
static uint64_t mlx5sim_cm_mad_member(const mlx5sim_cm_mad_field_t *field,
                                      const void *at)
{
    switch (field->width) {
    case sizeof(uint8_t):
        return *(const uint8_t*)at;
    case sizeof(uint16_t):
        return *(const uint16_t*)at;
    case sizeof(uint32_t):
        return *(const uint32_t*)at;
    default:
        return *(const uint64_t*)at;
    }
}

static void mlx5sim_cm_mad_set_member(const mlx5sim_cm_mad_field_t *field,
                                      uint64_t number, void *at)
{
    switch (field->width) {
    case sizeof(uint8_t):
        *(uint8_t*)at = number;
        break;
    case sizeof(uint16_t):
        *(uint16_t*)at = number;
        break;
    case sizeof(uint32_t):
        *(uint32_t*)at = number;
        break;
    default:
        *(uint64_t*)at = number;
        break;
    }
}

void mlx5sim_cm_mad_encode(const mlx5sim_cm_mad_t *mad,
                           uint8_t out_p[MLX5SIM_CM_MAD_LENGTH])
{
    const mlx5sim_cm_mad_field_t *field = mlx5sim_cm_mad_fields_of(mad->attr);
    uint8_t *message                    = out_p + MLX5SIM_CM_MAD_HEADER;
    const uint8_t *from;
    uint64_t number;
    uint8_t *to;

    memset(out_p, 0, MLX5SIM_CM_MAD_LENGTH);
    out_p[0] = MLX5SIM_CM_MAD_BASE_VERSION;
    out_p[1] = MLX5SIM_CM_MAD_CLASS;
    out_p[2] = MLX5SIM_CM_MAD_CLASS_VERSION;
    out_p[3] = MLX5SIM_CM_MAD_METHOD_SEND;
    mlx5sim_cm_mad_put(out_p + MLX5SIM_CM_MAD_AT_TID, 8, mad->tid);
    mlx5sim_cm_mad_put(out_p + MLX5SIM_CM_MAD_AT_ATTR, 2, mad->attr);
    for (; field->size != 0; ++field) {
        from = (const uint8_t*)mad + field->at;
        to   = message + field->offset;
        if (field->bits == 0) {
            memcpy(to, from, field->size);
            continue;
        }

        /* beside others of the same bytes */
        number  = mlx5sim_cm_mad_member(field, from);
        number  = (number & mlx5sim_cm_mad_mask(field)) << field->shift;
        number |= mlx5sim_cm_mad_get(to, field->size);
        mlx5sim_cm_mad_put(to, field->size, number);
    }
}

int mlx5sim_cm_mad_decode(const void *bytes, unsigned length,
                          mlx5sim_cm_mad_t *mad_p)
{
    const uint8_t *header  = bytes;
    const uint8_t *message = header + MLX5SIM_CM_MAD_HEADER;
    const mlx5sim_cm_mad_field_t *field;
    uint64_t number;
    uint8_t *to;

    if ((length != MLX5SIM_CM_MAD_LENGTH) ||
        (header[0] != MLX5SIM_CM_MAD_BASE_VERSION) ||
        (header[1] != MLX5SIM_CM_MAD_CLASS) ||
        (header[2] != MLX5SIM_CM_MAD_CLASS_VERSION) ||
        (header[3] != MLX5SIM_CM_MAD_METHOD_SEND) ||
        (mlx5sim_cm_mad_get(header + MLX5SIM_CM_MAD_AT_STATUS, 2) != 0)) {
        return -1;
    }

    memset(mad_p, 0, sizeof(*mad_p));
    mad_p->tid  = mlx5sim_cm_mad_get(header + MLX5SIM_CM_MAD_AT_TID, 8);
    mad_p->attr = mlx5sim_cm_mad_get(header + MLX5SIM_CM_MAD_AT_ATTR, 2);
    field       = mlx5sim_cm_mad_fields_of(mad_p->attr);
    if (field == NULL) {
        return -1;
    }

    for (; field->size != 0; ++field) {
        to = (uint8_t*)mad_p + field->at;
        if (field->bits == 0) {
            memcpy(to, message + field->offset, field->size);
            continue;
        }

        number = mlx5sim_cm_mad_get(message + field->offset, field->size);
        number = (number >> field->shift) & mlx5sim_cm_mad_mask(field);
        mlx5sim_cm_mad_set_member(field, number, to);
    }

    return 0;
}

/* An address has 16 bytes, of which one of IPv4 has the last 4 */
static void mlx5sim_cm_mad_put_address(int is_ipv6, const uint8_t address[16],
                                       uint8_t *out_p)
{
    memset(out_p, 0, 16);
    memcpy(out_p + (is_ipv6 ? 0 : 12), address, is_ipv6 ? 16 : 4);
}

static void mlx5sim_cm_mad_get_address(int is_ipv6, const uint8_t *bytes,
                                       uint8_t address_p[16])
{
    memset(address_p, 0, 16);
    memcpy(address_p, bytes + (is_ipv6 ? 0 : 12), is_ipv6 ? 16 : 4);
}

void mlx5sim_cm_mad_put_ip(const mlx5sim_cm_mad_ip_t *ip,
                           uint8_t out_p[MLX5SIM_CM_MAD_IP_LENGTH])
{
    out_p[0] = MLX5SIM_CM_MAD_IP_VERSION;
    out_p[1] = (ip->is_ipv6 ? 6 : 4) << 4;
    mlx5sim_cm_mad_put(out_p + 2, 2, ip->port);
    mlx5sim_cm_mad_put_address(ip->is_ipv6, ip->src, out_p + 4);
    mlx5sim_cm_mad_put_address(ip->is_ipv6, ip->dst, out_p + 20);
}

int mlx5sim_cm_mad_get_ip(const uint8_t data[MLX5SIM_CM_MAD_IP_LENGTH],
                          mlx5sim_cm_mad_ip_t *ip_p)
{
    uint8_t version = data[1] >> 4;

    if ((data[0] != MLX5SIM_CM_MAD_IP_VERSION) ||
        ((version != 4) && (version != 6))) {
        return -1;
    }

    ip_p->is_ipv6 = version == 6;
    ip_p->port    = mlx5sim_cm_mad_get(data + 2, 2);
    mlx5sim_cm_mad_get_address(ip_p->is_ipv6, data + 4, ip_p->src);
    mlx5sim_cm_mad_get_address(ip_p->is_ipv6, data + 20, ip_p->dst);
    return 0;
}
