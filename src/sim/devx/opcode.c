/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/devx/opcode.h>
#include <sim/devx/mailbox.h>

#include <ctype.h>

/* MLX5_CMD_OP_GENERAL_START and _END */
#define MLX5SIM_FW_GENERAL_START 0xb00
#define MLX5SIM_FW_GENERAL_END   0xd00

#define MLX5SIM_FW_ASKED(_opcode, _name, _method, _on, _layout, _giver) \
    {_opcode, _name, MLX5SIM_FW_##_method, MLX5SIM_FW_ON_##_on, 0, 0, _layout, \
     _giver}
#define MLX5SIM_FW_REFUSED(_opcode, _name, _method, _on) \
    MLX5SIM_FW_ASKED(_opcode, _name, _method, _on, NULL, NULL)
/* Commands on objects that nobody has */
#define MLX5SIM_FW_NO_OBJECT(_opcode, _name, _method, _layout) \
    MLX5SIM_FW_ASKED(_opcode, _name, _method, NOTHING, _layout, NULL)
#define MLX5SIM_FW_DONE(_name, _method, _on, _in, _out, _layout, _giver) \
    {MLX5SIM_FW_##_name, #_name, MLX5SIM_FW_##_method, MLX5SIM_FW_ON_##_on, \
     _in, _out, _layout, _giver}
#define MLX5SIM_FW_MODIFY_SIZE (MLX5SIM_FW_QPC + MLX5SIM_FW_QPC_SIZE)

static const mlx5sim_fw_opcode_t mlx5sim_fw_opcodes[] = {
    /* how long the reply must be depends on the group: caps.c */
    MLX5SIM_FW_DONE(QUERY_HCA_CAP, GENERAL, NOTHING, 16, 16,
                    "query_hca_cap_in, cmd_hca_cap, atomic_caps, odp_cap, "
                    "device_mem_cap", "libmlx5 verbs.c, UCX ib_mlx5dv_md.c"),
    MLX5SIM_FW_DONE(QUERY_HCA_VPORT_CONTEXT, GENERAL, NOTHING, 16, 118,
                    "query_hca_vport_context_in, hca_vport_context",
                    "UCX ib_mlx5_dv.c, tests/mlx5_base.py"),
    MLX5SIM_FW_DONE(QUERY_ROCE_ADDRESS, GENERAL, NOTHING, 16, 48,
                    "query_roce_address_in, roce_addr_layout",
                    "libmlx5 dr_devx.c"),
    MLX5SIM_FW_DONE(QUERY_LAG, GENERAL, NOTHING, 16, 16, "query_lag_in, lagc",
                    "libmlx5 mlx5.c, UCX ib_mlx5dv_md.c"),
    MLX5SIM_FW_DONE(NOP, GENERAL, NOTHING, 16, 16, "nop_in", NULL),
    MLX5SIM_FW_REFUSED(0x101, "QUERY_ADAPTER", GENERAL, NOTHING),
    MLX5SIM_FW_ASKED(0x10a, "QUERY_ISSI", GENERAL, NOTHING, NULL,
                     "libmlx5 mlx5_vfio.c"),
    MLX5SIM_FW_REFUSED(0x750, "QUERY_VPORT_STATE", GENERAL, NOTHING),
    MLX5SIM_FW_ASKED(0x752, "QUERY_ESW_VPORT_CONTEXT", GENERAL, NOTHING, NULL,
                     "libmlx5 dr_devx.c"),
    MLX5SIM_FW_ASKED(0x754, "QUERY_NIC_VPORT_CONTEXT", GENERAL, NOTHING, NULL,
                     "libmlx5 dr_devx.c"),
    MLX5SIM_FW_REFUSED(0x76f, "QUERY_VNIC_ENV", GENERAL, NOTHING),
    MLX5SIM_FW_REFUSED(0x770, "QUERY_VPORT_COUNTER", GENERAL, NOTHING),
    MLX5SIM_FW_ASKED(0x80a, "GET_DROPPED_PACKET_LOG", GENERAL, NOTHING,
                     "general_obj_in_cmd_hdr", NULL),
    MLX5SIM_FW_REFUSED(0x822, "QUERY_CONG_STATUS", GENERAL, NOTHING),
    MLX5SIM_FW_REFUSED(0x824, "QUERY_CONG_PARAMS", GENERAL, NOTHING),
    MLX5SIM_FW_REFUSED(0x826, "QUERY_CONG_STATISTICS", GENERAL, NOTHING),

    MLX5SIM_FW_DONE(ALLOC_PD, CREATE, PD, 16, 16, "alloc_pd_in",
                    "libmlx5 mlx5_vfio.c"),
    MLX5SIM_FW_DONE(CREATE_MKEY, CREATE, MKEY, MLX5SIM_FW_CREATE_SIZE, 16,
                    "create_mkey_in, mkc, klm",
                    "libmlx5 verbs.c, UCX ib_mlx5dv_md.c"),
    MLX5SIM_FW_DONE(CREATE_CQ, CREATE, CQ, MLX5SIM_FW_CREATE_SIZE, 16,
                    "create_cq_in, cqc",
                    "UCX ib_mlx5_dv.c, tests/mlx5_base.py"),
    MLX5SIM_FW_DONE(CREATE_RMP, CREATE, RMP, MLX5SIM_FW_CREATE_SIZE, 16,
                    "create_rmp_in, rmpc, wq", "UCX rc_mlx5_devx.c"),
    MLX5SIM_FW_DONE(CREATE_QP, CREATE, QP, MLX5SIM_FW_CREATE_SIZE, 16,
                    "create_qp_in, qpc, ads",
                    "UCX ib_mlx5_dv.c, tests/mlx5_base.py"),
    MLX5SIM_FW_DONE(CREATE_DCT, CREATE, DCT, MLX5SIM_FW_DCT_SIZE, 16,
                    "create_dct_in, dctc", "UCX dc_mlx5_devx.c"),
    MLX5SIM_FW_DONE(CREATE_PSV, CREATE, PSV, 16, 32, "create_psv_in",
                    "libmlx5 mlx5.c"),
    MLX5SIM_FW_REFUSED(0x700, "CREATE_SRQ", CREATE, NOTHING),
    MLX5SIM_FW_REFUSED(0x705, "CREATE_XRC_SRQ", CREATE, NOTHING),
    MLX5SIM_FW_ASKED(0x717, "CREATE_XRQ", CREATE, NOTHING, NULL,
                     "UCX rc_mlx5_devx.c"),
    MLX5SIM_FW_REFUSED(0x771, "ALLOC_Q_COUNTER", CREATE, NOTHING),
    MLX5SIM_FW_REFUSED(0x782, "CREATE_SCHEDULING_ELEMENT", CREATE, NOTHING),
    MLX5SIM_FW_REFUSED(0x806, "ATTACH_TO_MCG", CREATE, NOTHING),
    MLX5SIM_FW_REFUSED(0x80e, "ALLOC_XRCD", CREATE, NOTHING),
    MLX5SIM_FW_REFUSED(0x816, "ALLOC_TRANSPORT_DOMAIN", CREATE, NOTHING),
    MLX5SIM_FW_REFUSED(0x827, "ADD_VXLAN_UDP_DPORT", CREATE, NOTHING),
    MLX5SIM_FW_REFUSED(0x829, "SET_L2_TABLE_ENTRY", CREATE, NOTHING),
    MLX5SIM_FW_REFUSED(0x900, "CREATE_TIR", CREATE, NOTHING),
    MLX5SIM_FW_REFUSED(0x904, "CREATE_SQ", CREATE, NOTHING),
    MLX5SIM_FW_REFUSED(0x908, "CREATE_RQ", CREATE, NOTHING),
    MLX5SIM_FW_REFUSED(0x912, "CREATE_TIS", CREATE, NOTHING),
    MLX5SIM_FW_REFUSED(0x916, "CREATE_RQT", CREATE, NOTHING),
    MLX5SIM_FW_ASKED(0x930, "CREATE_FLOW_TABLE", CREATE, NOTHING, NULL,
                     "libmlx5 dr_devx.c"),
    MLX5SIM_FW_ASKED(0x933, "CREATE_FLOW_GROUP", CREATE, NOTHING, NULL,
                     "libmlx5 dr_devx.c"),
    MLX5SIM_FW_ASKED(0x936, "SET_FLOW_TABLE_ENTRY", CREATE, NOTHING,
                     "set_fte_in", "libmlx5 dr_devx.c"),
    MLX5SIM_FW_REFUSED(0x939, "ALLOC_FLOW_COUNTER", CREATE, NOTHING),
    MLX5SIM_FW_ASKED(0x93d, "ALLOC_PACKET_REFORMAT_CONTEXT", CREATE, NOTHING,
                     NULL, "libmlx5 dr_devx.c"),
    MLX5SIM_FW_REFUSED(0x940, "ALLOC_MODIFY_HEADER_CONTEXT", CREATE, NOTHING),
    /* how long depends on the type of the object: uverbs_devx_general.c */
    MLX5SIM_FW_DONE(CREATE_GENERAL_OBJECT, CREATE, GENERAL, 16, 16,
                    "general_obj_in_cmd_hdr, reserved_qpn, sched_elem",
                    "libmlx5 mlx5.c, UCX ib_mlx5dv_md.c"),

    MLX5SIM_FW_DONE(RST2INIT_QP, MODIFY, QP, MLX5SIM_FW_MODIFY_SIZE, 16,
                    "rst2init_qp_in, qpc",
                    "UCX ib_mlx5_dv.c, tests/mlx5_base.py"),
    MLX5SIM_FW_DONE(INIT2INIT_QP, MODIFY, QP, MLX5SIM_FW_MODIFY_SIZE, 16,
                    "init2init_qp_in, qpc", "libmlx5 mlx5.c"),
    MLX5SIM_FW_DONE(INIT2RTR_QP, MODIFY, QP, MLX5SIM_FW_MODIFY_SIZE, 16,
                    "init2rtr_qp_in, qpc, ads",
                    "UCX rc_mlx5_devx.c, tests/mlx5_base.py"),
    MLX5SIM_FW_DONE(RTR2RTS_QP, MODIFY, QP, MLX5SIM_FW_MODIFY_SIZE, 16,
                    "rtr2rts_qp_in, qpc",
                    "UCX rc_mlx5_devx.c, tests/mlx5_base.py"),
    MLX5SIM_FW_DONE(RTS2RTS_QP, MODIFY, QP, MLX5SIM_FW_MODIFY_SIZE, 16,
                    "rts2rts_qp_in, qpc, qpc_ext", "libmlx5 mlx5.c"),
    MLX5SIM_FW_DONE(2ERR_QP, MODIFY, QP, 16, 16, "qp_2err_in",
                    "UCX ib_mlx5_dv.c"),
    MLX5SIM_FW_DONE(2RST_QP, MODIFY, QP, 16, 16, "qp_2rst_in",
                    "UCX ib_mlx5_dv.c"),
    MLX5SIM_FW_DONE(DRAIN_DCT, MODIFY, DCT, 16, 16, "drain_dct_in",
                    "mlx5_ib qpc.c"),
    MLX5SIM_FW_REFUSED(0x403, "MODIFY_CQ", MODIFY, CQ),
    MLX5SIM_FW_REFUSED(0x506, "SQERR2RTS_QP", MODIFY, QP),
    MLX5SIM_FW_ASKED(0x714, "ARM_DCT_FOR_KEY_VIOLATION", MODIFY, DCT,
                     "arm_dct_in", NULL),
    MLX5SIM_FW_DONE(MODIFY_RMP, MODIFY, RMP, MLX5SIM_FW_CREATE_SIZE, 16,
                    "modify_rmp_in, rmpc, wq", "mlx5_ib srq_cmd.c"),
    MLX5SIM_FW_DONE(ARM_XRC_SRQ, MODIFY, XRC_SRQ, 16, 16, "arm_xrc_srq_in",
                    "mlx5_ib srq_cmd.c"),
    MLX5SIM_FW_NO_OBJECT(0x703, "ARM_RQ", MODIFY, NULL),
    MLX5SIM_FW_NO_OBJECT(0x71a, "ARM_XRQ", MODIFY, NULL),
    MLX5SIM_FW_NO_OBJECT(0x726, "SET_XRQ_DC_PARAMS_ENTRY", MODIFY,
                         "arm_xrq_in"),
    MLX5SIM_FW_NO_OBJECT(0x729, "RELEASE_XRQ_ERROR", MODIFY, "arm_xrq_in"),
    MLX5SIM_FW_NO_OBJECT(0x72a, "MODIFY_XRQ", MODIFY, "arm_xrq_in"),
    MLX5SIM_FW_NO_OBJECT(0x785, "MODIFY_SCHEDULING_ELEMENT", MODIFY, NULL),
    MLX5SIM_FW_NO_OBJECT(0x827, "ADD_VXLAN_UDP_DPORT", MODIFY, NULL),
    MLX5SIM_FW_NO_OBJECT(0x829, "SET_L2_TABLE_ENTRY", MODIFY, NULL),
    MLX5SIM_FW_NO_OBJECT(0x901, "MODIFY_TIR", MODIFY, NULL),
    MLX5SIM_FW_NO_OBJECT(0x905, "MODIFY_SQ", MODIFY, NULL),
    MLX5SIM_FW_NO_OBJECT(0x909, "MODIFY_RQ", MODIFY, NULL),
    MLX5SIM_FW_NO_OBJECT(0x913, "MODIFY_TIS", MODIFY, NULL),
    MLX5SIM_FW_NO_OBJECT(0x917, "MODIFY_RQT", MODIFY, NULL),
    MLX5SIM_FW_NO_OBJECT(0x936, "SET_FLOW_TABLE_ENTRY", MODIFY, "set_fte_in"),
    MLX5SIM_FW_NO_OBJECT(0x93c, "MODIFY_FLOW_TABLE", MODIFY, NULL),
    MLX5SIM_FW_DONE(MODIFY_GENERAL_OBJECT, MODIFY, GENERAL, 16, 16,
                    "general_obj_in_cmd_hdr, sched_elem", "libmlx5 mlx5.c"),

    MLX5SIM_FW_DONE(QUERY_MKEY, QUERY, MKEY, 16,
                    MLX5SIM_FW_MKC + MLX5SIM_FW_MKC_SIZE, "query_mkey_in, mkc",
                    "mlx5_core mr.c"),
    MLX5SIM_FW_DONE(QUERY_CQ, QUERY, CQ, 16,
                    MLX5SIM_FW_CQC + MLX5SIM_FW_CQC_SIZE, "query_cq_in, cqc",
                    "mlx5_core cq.c"),
    MLX5SIM_FW_DONE(QUERY_QP, QUERY, QP, 16, MLX5SIM_FW_MODIFY_SIZE,
                    "query_qp_in, qpc", "libmlx5 verbs.c, UCX ib_mlx5_dv.c"),
    MLX5SIM_FW_DONE(QUERY_DCT, QUERY, DCT, 16, MLX5SIM_FW_DCT_SIZE,
                    "query_dct_in, dctc", "libmlx5 verbs.c"),
    MLX5SIM_FW_DONE(QUERY_RMP, QUERY, RMP, 16,
                    MLX5SIM_FW_RMPC + MLX5SIM_FW_RMPC_SIZE,
                    "query_rmp_in, rmpc", "mlx5_ib srq_cmd.c"),
    MLX5SIM_FW_DONE(QUERY_XRC_SRQ, QUERY, XRC_SRQ, 16,
                    MLX5SIM_FW_XRC_SRQC + MLX5SIM_FW_XRC_SRQC_SIZE,
                    "query_xrc_srq_in, xrc_srqc", "mlx5_ib srq_cmd.c"),
    MLX5SIM_FW_NO_OBJECT(0x702, "QUERY_SRQ", QUERY, NULL),
    MLX5SIM_FW_NO_OBJECT(0x719, "QUERY_XRQ", QUERY, NULL),
    MLX5SIM_FW_NO_OBJECT(0x725, "QUERY_XRQ_DC_PARAMS_ENTRY", QUERY,
                         "query_xrq_in"),
    MLX5SIM_FW_NO_OBJECT(0x727, "QUERY_XRQ_ERROR_PARAMS", QUERY,
                         "query_xrq_in"),
    MLX5SIM_FW_NO_OBJECT(0x773, "QUERY_Q_COUNTER", QUERY, NULL),
    MLX5SIM_FW_NO_OBJECT(0x784, "QUERY_SCHEDULING_ELEMENT", QUERY, NULL),
    MLX5SIM_FW_NO_OBJECT(0x82a, "QUERY_L2_TABLE_ENTRY", QUERY, NULL),
    MLX5SIM_FW_NO_OBJECT(0x903, "QUERY_TIR", QUERY, NULL),
    MLX5SIM_FW_NO_OBJECT(0x907, "QUERY_SQ", QUERY, NULL),
    MLX5SIM_FW_NO_OBJECT(0x90b, "QUERY_RQ", QUERY, NULL),
    MLX5SIM_FW_NO_OBJECT(0x915, "QUERY_TIS", QUERY, NULL),
    MLX5SIM_FW_NO_OBJECT(0x919, "QUERY_RQT", QUERY, NULL),
    MLX5SIM_FW_NO_OBJECT(0x932, "QUERY_FLOW_TABLE", QUERY, NULL),
    MLX5SIM_FW_NO_OBJECT(0x935, "QUERY_FLOW_GROUP", QUERY, NULL),
    MLX5SIM_FW_NO_OBJECT(0x937, "QUERY_FLOW_TABLE_ENTRY", QUERY,
                         "query_fte_in"),
    MLX5SIM_FW_NO_OBJECT(0x93b, "QUERY_FLOW_COUNTER", QUERY, NULL),
    MLX5SIM_FW_NO_OBJECT(0x93f, "QUERY_PACKET_REFORMAT_CONTEXT", QUERY, NULL),
    MLX5SIM_FW_NO_OBJECT(0x942, "QUERY_MODIFY_HEADER_CONTEXT", QUERY,
                         "general_obj_in_cmd_hdr"),
    MLX5SIM_FW_DONE(QUERY_GENERAL_OBJECT, QUERY, GENERAL, 16, 16,
                    "general_obj_in_cmd_hdr, sched_elem", NULL)
};

static const mlx5sim_fw_opcode_t mlx5sim_fw_newer =
    MLX5SIM_FW_ASKED(MLX5SIM_FW_GENERAL_START, "general", GENERAL, NOTHING,
                     "allow_other_vhca_access_in and others",
                     "UCX ib_mlx5dv_md.c");


const mlx5sim_fw_opcode_t *mlx5sim_fw_opcode_find(mlx5sim_fw_method_t method,
                                                  uint16_t opcode)
{
    unsigned i;

    for (i = 0; i < sizeof(mlx5sim_fw_opcodes) / sizeof(mlx5sim_fw_opcodes[0]);
         ++i) {
        if ((mlx5sim_fw_opcodes[i].opcode == opcode) &&
            (mlx5sim_fw_opcodes[i].method == method)) {
            return &mlx5sim_fw_opcodes[i];
        }
    }

    return ((method == MLX5SIM_FW_GENERAL) &&
            (opcode >= MLX5SIM_FW_GENERAL_START) &&
            (opcode < MLX5SIM_FW_GENERAL_END)) ? &mlx5sim_fw_newer : NULL;
}

static const char *mlx5sim_fw_opcode_answer(const mlx5sim_fw_opcode_t *row)
{
    if (row->out_size != 0) {
        return "done";
    }

    return ((row->on == MLX5SIM_FW_ON_NOTHING) &&
            ((row->method == MLX5SIM_FW_MODIFY) ||
             (row->method == MLX5SIM_FW_QUERY))) ? "no object" : "status 2";
}

static void mlx5sim_fw_opcode_print(FILE *stream,
                                    const mlx5sim_fw_opcode_t *row)
{
    static const char *methods[] = {
        [MLX5SIM_FW_GENERAL] = "general", [MLX5SIM_FW_CREATE] = "create",
        [MLX5SIM_FW_MODIFY]  = "modify",  [MLX5SIM_FW_QUERY]  = "query"
    };
    const char *c;

    fprintf(stream, "| 0x%03x%s | `%s` | %s | %s | `", row->opcode,
            (row == &mlx5sim_fw_newer) ? " to 0xcff" : "", row->name,
            methods[row->method],
            mlx5sim_fw_opcode_answer(row));
    if (row->layout != NULL) {
        fputs(row->layout, stream);
    } else {
        for (c = row->name; *c != '\0'; ++c) {
            fputc(tolower(*c), stream);
        }
        fputs("_in", stream);
    }
    fprintf(stream, "` | %s |\n", (row->giver != NULL) ? row->giver : "");
}

void mlx5sim_fw_opcodes_print(FILE *stream)
{
    unsigned i;

    fprintf(stream, "| opcode | command | passes as | answer | layout | read "
                    "in |\n|---|---|---|---|---|---|\n");
    for (i = 0; i < sizeof(mlx5sim_fw_opcodes) / sizeof(mlx5sim_fw_opcodes[0]);
         ++i) {
        mlx5sim_fw_opcode_print(stream, &mlx5sim_fw_opcodes[i]);
    }
    mlx5sim_fw_opcode_print(stream, &mlx5sim_fw_newer);
}
