/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/info/sep_info_device.h>
#include <tools/info/sep_info_out.h>
#include <tools/plan/uars.h>

#include <uct/ib/sep/iface/sep_iface.h>
#include <infiniband/mlx5dv.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>


/* An RC QP tells the size of the BlueFlame register, and the maximum of inline
 * data */
static void sep_info_query_qp(struct ibv_pd *pd, struct ibv_cq *cq,
                              sep_info_device_t *info)
{
    struct mlx5dv_qp dv_qp = {};
    struct mlx5dv_obj dv   = {};
    unsigned max_inline    = 1024;
    struct ibv_qp_init_attr attr;
    struct ibv_qp *qp;

    do {
        memset(&attr, 0, sizeof(attr));
        attr.qp_type             = IBV_QPT_RC;
        attr.send_cq             = cq;
        attr.recv_cq             = cq;
        attr.cap.max_send_wr     = 1;
        attr.cap.max_recv_wr     = 1;
        attr.cap.max_send_sge    = 1;
        attr.cap.max_recv_sge    = 1;
        attr.cap.max_inline_data = max_inline;
        qp                       = ibv_create_qp(pd, &attr);
        max_inline              -= 4;
    } while ((qp == NULL) && (max_inline > 0));

    if (qp == NULL) {
        return;
    }

    info->max_inline = attr.cap.max_inline_data;
    dv.qp.in         = qp;
    dv.qp.out        = &dv_qp;
    if (mlx5dv_init_obj(&dv, MLX5DV_OBJ_QP) == 0) {
        info->bf_size = 2 * dv_qp.bf.size; /* Two buffers used in turn */
    }
    ibv_destroy_qp(qp);
}

static void sep_info_query_limits(struct ibv_context *context,
                                  sep_info_device_t *info)
{
    struct mlx5dv_context dv = {.comp_mask = MLX5DV_CONTEXT_MASK_DYN_BFREGS};
    struct ibv_pd *pd;
    struct ibv_cq *cq;

    if ((mlx5dv_query_device(context, &dv) == 0) &&
        (dv.comp_mask & MLX5DV_CONTEXT_MASK_DYN_BFREGS)) {
        info->max_dyn_uuars = dv.max_dynamic_bfregs;
    }

    pd = ibv_alloc_pd(context);
    if (pd == NULL) {
        return;
    }

    cq = ibv_create_cq(context, 1, NULL, NULL, 0);
    if (cq != NULL) {
        sep_info_query_qp(pd, cq, info);
        ibv_destroy_cq(cq);
    }
    ibv_dealloc_pd(pd);
}

static struct ibv_context *
sep_info_device_open(struct ibv_device *device, sep_info_device_t *info)
{
    unsigned long uars = sep_uars_mapped();
    struct ibv_context *context;

    memset(info, 0, sizeof(*info));
    context = ibv_open_device(device);
    if (context == NULL) {
        fprintf(stderr, "sep_info: %s cannot be opened: %s\n",
                ibv_get_device_name(device), strerror(errno));
        return NULL;
    }

    info->uars_at_open = sep_uars_mapped() - uars;
    if (ibv_query_device_ex(context, NULL, &info->attr) != 0) {
        fprintf(stderr, "sep_info: %s does not tell its attributes\n",
                ibv_get_device_name(device));
        ibv_close_device(context);
        return NULL;
    }

    info->regime = sep_uars_find_regime(context);
    sep_info_query_limits(context, info);
    return context;
}

int sep_info_device_query(struct ibv_device *device, sep_info_device_t *info_p)
{
    struct ibv_context *context = sep_info_device_open(device, info_p);

    if (context == NULL) {
        return -1;
    }
    return ibv_close_device(context);
}

/* PCI device numbers, as in the list of vendor 15b3 of pci.ids */
static const char *sep_info_model(unsigned part_id)
{
    static const struct {
        unsigned   part_id;
        const char *name;
    } models[] = {
        {0x1011, "Connect-IB"},      {0x1012, "Connect-IB VF"},
        {0x1013, "ConnectX-4"},      {0x1014, "ConnectX-4 VF"},
        {0x1015, "ConnectX-4 Lx"},   {0x1016, "ConnectX-4 Lx VF"},
        {0x1017, "ConnectX-5"},      {0x1018, "ConnectX-5 VF"},
        {0x1019, "ConnectX-5 Ex"},   {0x101a, "ConnectX-5 Ex VF"},
        {0x101b, "ConnectX-6"},      {0x101c, "ConnectX-6 VF"},
        {0x101d, "ConnectX-6 Dx"},   {0x101e, "ConnectX VF"},
        {0x101f, "ConnectX-6 Lx"},   {0x1021, "ConnectX-7"},
        {0x1023, "ConnectX-8"},      {0xa2d2, "BlueField"},
        {0xa2d6, "BlueField-2"},     {0xa2dc, "BlueField-3"}
    };
    unsigned i;

    for (i = 0; i < (sizeof(models) / sizeof(models[0])); ++i) {
        if (models[i].part_id == part_id) {
            return models[i].name;
        }
    }
    return "mlx5";
}

static const char *sep_info_link(const struct ibv_port_attr *attr)
{
    return (attr->link_layer == IBV_LINK_LAYER_ETHERNET) ? "Ethernet" :
                                                           "InfiniBand";
}

static void sep_info_show_ports(struct ibv_context *context, unsigned count,
                                json_object *json)
{
    json_object *ports = (json != NULL) ? sep_json_add_array(json, "ports") :
                                          NULL;
    struct ibv_port_attr attr;
    json_object *item;
    char lid[16];
    unsigned port;

    for (port = 1; port <= count; ++port) {
        if (ibv_query_port(context, port, &attr) != 0) {
            continue;
        }

        if (ports != NULL) {
            item = sep_json_add_object(ports, NULL);
            sep_json_add_number(item, "port", port);
            sep_json_add_string(item, "link_layer", sep_info_link(&attr));
            sep_json_add_string(item, "state", ibv_port_state_str(attr.state));
            sep_json_add_number(item, "lid", attr.lid);
            sep_json_add_number(item, "mtu", 128ul << attr.active_mtu);
        } else {
            snprintf(lid, sizeof(lid), ", lid %u", attr.lid);
            sep_info_print("#      port %-14u %s, %s%s, MTU %lu\n", port,
                           sep_info_link(&attr),
                           ibv_port_state_str(attr.state),
                           (attr.lid == 0) ? "" : lid, /* None on Ethernet */
                           128ul << attr.active_mtu);
        }
    }
}

/* Operations of an atomic: bits of uct_atomic_op_t */
static void sep_info_atomic_str(uint64_t ops, char *buf, size_t max)
{
    static const char *names[] = {
        [UCT_ATOMIC_OP_ADD] = "add", [UCT_ATOMIC_OP_AND]   = "and",
        [UCT_ATOMIC_OP_OR]  = "or",  [UCT_ATOMIC_OP_XOR]   = "xor",
        [UCT_ATOMIC_OP_SWAP] = "swap", [UCT_ATOMIC_OP_CSWAP] = "cswap"
    };
    unsigned op;

    snprintf(buf, max, "%s", (ops == 0) ? "none" : "");
    for (op = 0; op < UCT_ATOMIC_OP_LAST; ++op) {
        if (ops & (1ul << op)) {
            snprintf(buf + strlen(buf), max - strlen(buf), "%s%s",
                     (buf[0] == '\0') ? "" : " ", names[op]);
        }
    }
}

/* What the transport knows about the device */
static void
sep_info_show_transport(struct ibv_device *device, json_object *json)
{
    char ops32[64], ops64[64];
    uct_sep_device_t dev;

    /* The transport's own function: it knows how to ask the firmware */
    if (uct_sep_device_open(&dev, device) != UCS_OK) {
        return;
    }

    sep_info_atomic_str(dev.atomic32.fop_flags, ops32, sizeof(ops32));
    sep_info_atomic_str(dev.atomic64.fop_flags, ops64, sizeof(ops64));
    uct_sep_device_close(&dev);

    if (json != NULL) {
        sep_json_add_number(json, "put_short", UCT_SEP_PUT_MAX_INL);
        sep_json_add_number(json, "am_short", UCT_SEP_AM_MAX_INL -
                                              sizeof(uct_sep_am_hdr_t));
        sep_json_add_string(json, "atomics32", ops32);
        sep_json_add_string(json, "atomics64", ops64);
    } else {
        sep_info_print("#      our inline data:    put %d, active message %zu "
                       "bytes\n", UCT_SEP_PUT_MAX_INL,
                       (size_t)UCT_SEP_AM_MAX_INL - sizeof(uct_sep_am_hdr_t));
        sep_info_print("#      atomics, 32 bits:   %s\n", ops32);
        sep_info_print("#      atomics, 64 bits:   %s\n", ops64);
    }
}

static void sep_info_show_device_text(const sep_info_options_t *options,
                                      const sep_info_device_t *info)
{
    const struct ibv_device_attr *attr = &info->attr.orig_attr;

    sep_info_print("#      model:              %s (part 0x%x)\n",
                   sep_info_model(attr->vendor_part_id), attr->vendor_part_id);
    sep_info_print("#      firmware:           %s\n", attr->fw_ver);
    sep_info_print("#      UAR pages:          %s: %u when a context is "
                   "opened, %s\n", sep_plan_regime_names[info->regime],
                   info->uars_at_open,
                   (info->regime == SEP_PLAN_LEGACY) ?
                   "QPs without a thread domain share them" :
                   (info->regime == SEP_PLAN_NC) ?
                   "on which all queue pairs ring" :
                   "the rest when queue pairs need them");
    sep_info_print("#      uUARs of a context: %u, of these %u of low latency "
                   "(MLX5_TOTAL_UUARS, MLX5_NUM_LOW_LAT_UUARS)\n",
                   options->config.total_uuars, options->config.low_lat_uuars);
    if (info->regime == SEP_PLAN_LEGACY) {
        sep_info_print("#      for thread domains: %u uUARs\n",
                       info->max_dyn_uuars);
    } else if (info->regime == SEP_PLAN_NC) {
        sep_info_print("#      for thread domains: none, as the kernel has "
                       "found no write combining\n");
    } else {
        sep_info_print("#      for thread domains: two uUARs on each UAR page "
                       "that the device has left\n");
    }
    sep_info_print("#      BlueFlame register: %u bytes\n", info->bf_size);
    sep_info_print("#      limits:             %d QPs of %d WRs, %d CQs of %d "
                   "CQEs, %d SRQs of %d WRs, %d MRs\n", attr->max_qp,
                   attr->max_qp_wr, attr->max_cq, attr->max_cqe, attr->max_srq,
                   attr->max_srq_wr, attr->max_mr);
    sep_info_print("#      inline data of QPs: %u bytes at most\n",
                   info->max_inline);
}

static void sep_info_show_device_json(const sep_info_options_t *options,
                                      const sep_info_device_t *info,
                                      json_object *json)
{
    const struct ibv_device_attr *attr = &info->attr.orig_attr;

    sep_json_add_string(json, "model", sep_info_model(attr->vendor_part_id));
    sep_json_add_number(json, "part", attr->vendor_part_id);
    sep_json_add_string(json, "firmware", attr->fw_ver);
    sep_json_add_string(json, "regime", sep_plan_regime_names[info->regime]);
    sep_json_add_number(json, "uars_at_open", info->uars_at_open);
    sep_json_add_number(json, "total_uuars", options->config.total_uuars);
    sep_json_add_number(json, "low_lat_uuars", options->config.low_lat_uuars);
    if (info->regime == SEP_PLAN_LEGACY) { /* There is no limit otherwise */
        sep_json_add_number(json, "max_dynamic_uuars", info->max_dyn_uuars);
    }
    sep_json_add_number(json, "bf_size", info->bf_size);
    sep_json_add_number(json, "max_qp", attr->max_qp);
    sep_json_add_number(json, "max_qp_wr", attr->max_qp_wr);
    sep_json_add_number(json, "max_cq", attr->max_cq);
    sep_json_add_number(json, "max_cqe", attr->max_cqe);
    sep_json_add_number(json, "max_srq", attr->max_srq);
    sep_json_add_number(json, "max_srq_wr", attr->max_srq_wr);
    sep_json_add_number(json, "max_mr", attr->max_mr);
    sep_json_add_number(json, "max_inline", info->max_inline);
}

static int sep_info_show_device(const sep_info_options_t *options,
                                struct ibv_device *device, json_object *list)
{
    json_object *json = NULL;
    sep_info_device_t info;
    struct ibv_context *context;

    context = sep_info_device_open(device, &info);
    if (context == NULL) {
        return SEP_INFO_FAILED;
    }

    if (list != NULL) {
        json = sep_json_add_object(list, NULL);
        sep_json_add_string(json, "device", ibv_get_device_name(device));
        sep_info_show_device_json(options, &info, json);
    } else {
        sep_info_print("#\n# Device: %s\n#\n", ibv_get_device_name(device));
        sep_info_show_device_text(options, &info);
    }

    sep_info_show_transport(device, json);
    sep_info_show_ports(context, info.attr.orig_attr.phys_port_cnt, json);
    ibv_close_device(context);
    return SEP_INFO_OK;
}

int sep_info_show_devices(const sep_info_options_t *options, json_object *json)
{
    json_object *devices = (json != NULL) ?
                           sep_json_add_array(json, "devices") : NULL;
    int status           = SEP_INFO_FAILED;
    struct ibv_device **list;
    int i, count, found;

    list = ibv_get_device_list(&count);
    if (list == NULL) {
        count = 0;
    }

    for (i = found = 0; i < count; ++i) {
        if (!mlx5dv_is_supported(list[i]) ||
            ((options->dev_name != NULL) &&
             (strcmp(options->dev_name, ibv_get_device_name(list[i])) != 0))) {
            continue;
        }
        ++found;
        status = sep_info_show_device(options, list[i], devices);
        if (status != SEP_INFO_OK) {
            break;
        }
    }

    if (found == 0) {
        fprintf(stderr, "sep_info: there is no mlx5 device%s%s (mlx5sim-run "
                "makes one in software)\n",
                (options->dev_name != NULL) ? " " : "",
                (options->dev_name != NULL) ? options->dev_name : "");
    }
    if (list != NULL) {
        ibv_free_device_list(list);
    }
    return status;
}
