/* SPDX-License-Identifier: BSD-3-Clause */

#include <device/device_devx.h>

namespace device {

namespace {

uint32_t query_eqn(ibv_context *ctx, uint32_t vector)
{
    uint32_t eqn;

    REQUIRE_EQ(0, mlx5dv_devx_query_eqn(ctx, vector, &eqn));
    return eqn;
}

} // namespace


unsigned refused(ibv_context *ctx, const command &c, size_t out_size,
                 int error)
{
    bytes out(out_size);

    errno = 0;
    REQUIRE(mlx5dv_devx_obj_create(ctx, c.in.data(), c.in.size(), out.data(),
                                   out.size()) == nullptr);
    REQUIRE_EQ(error, errno);
    if (error == EREMOTEIO) {
        REQUIRE(get(out, 32, 32) != 0); /* syndrome */
    }
    return out[0];
}

uint32_t pd_number(ibv_pd *pd)
{
    mlx5dv_pd dv   = {};
    mlx5dv_obj obj = {};

    obj.pd.in  = pd;
    obj.pd.out = &dv;
    REQUIRE_EQ(0, mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD));
    return dv.pdn;
}

command cq_command(const umem &mem, size_t record, const uar &u, uint32_t eqn,
                   unsigned log, bool is_collapsed)
{
    const bool is_place = is_collapsed || (log == 0);
    const unsigned cqc  = 128;
    command c(fw_create_cq, fw_queue_size);

    c.set(cqc + 32, 32, mem.v->umem_id).set(cqc + 99, 5, log);
    c.set(cqc + 11, 1, is_place).set(cqc + 14, 1, is_place);
    c.set(cqc + 104, 24, u.v->page_id).set(cqc + 184, 8, eqn);
    c.set(cqc + 448, 64, record).set(704, 32, mem.v->umem_id);
    return c;
}

command rmp_command(const umem &mem, size_t offset, size_t record, uint32_t pd)
{
    const unsigned rmpc = 256, wq = rmpc + 384;
    command c(fw_create_rmp, fw_queue_size);

    c.set(rmpc + 8, 4, 1).set(wq, 4, 1).set(wq + 72, 24, pd);
    c.set(wq + 128, 64, record).set(wq + 268, 4, 5);
    c.set(wq + 283, 5, ring_log).set(wq + 320, 32, mem.v->umem_id);
    c.set(wq + 352, 32, mem.v->umem_id).set(wq + 384, 64, offset);
    return c;
}

command qp_command(const umem &mem, size_t offset, size_t record, const uar &u,
                   uint32_t pd, uint32_t cqn, uint32_t rmp)
{
    command c(fw_create_qp, fw_queue_size);

    c.set(qpc_bit + 40, 24, pd).set(qpc_bit + 81, 4, ring_log);
    c.set(qpc_bit + 104, 24, u.v->page_id).set(qpc_bit + 136, 24, 0x123456);
    c.set(qpc_bit + 1000, 24, cqn).set(qpc_bit + 1256, 24, cqn);
    c.set(qpc_bit + 1280, 64, record);
    c.set(qpc_bit + 1381, 3, (rmp != 0) ? 1 : 3).set(qpc_bit + 1384, 24, rmp);
    c.set(qpc_bit + 1824, 32, mem.v->umem_id);
    c.set(2048, 64, offset).set(2112, 32, mem.v->umem_id);
    return c;
}

command dct_command(const context &c, uint32_t pd, uint32_t cqn, uint32_t rmp,
                    uint64_t key)
{
    command d(fw_create_dct, fw_dct_size);

    d.set(dctc_bit + 40, 24, 0x654321).set(dctc_bit + 72, 24, cqn);
    d.set(dctc_bit + 104, 4, 3).set(dctc_bit + 108, 3, 7);
    d.set(dctc_bit + 147, 5, 1).set(dctc_bit + 168, 24, rmp);
    d.set(dctc_bit + 200, 24, pd).set(dctc_bit + 256, 64, key);
    d.set(dctc_bit + 325, 3, IBV_MTU_1024).set(dctc_bit + 328, 8, 1);
    d.set(dctc_bit + 376, 8, c.is_roce ? 64 : 0);
    return d;
}

void spoil(command &c, std::mt19937_64 &random)
{
    for (unsigned n = random() % 4; n > 0; --n) {
        unsigned width = 1 + random() % 32;

        if (c.in.size() * 8 > 32 + width) {
            c.set(32 + random() % (c.in.size() * 8 - 32 - width), width,
                  random());
        }
    }
    if (random() % 8 == 0) {
        c.in.resize(random() % (c.in.size() + 64));
    }
}

command rst2init_command(uint32_t qpn)
{
    command c(fw_rst2init, fw_queue_size, qpn);

    c.set(qpc_bit + 488, 8, 1).set(qpc_bit + 1169, 1, 1);
    return c;
}

command init2rtr_command(const context &c, uint32_t qpn, uint32_t remote)
{
    command r(fw_init2rtr, fw_queue_size, qpn);

    r.set(128, 32, 0xe); /* RRE, RAE, RWE */
    r.set(qpc_bit + 64, 3, IBV_MTU_1024).set(qpc_bit + 67, 5, 30);
    r.set(qpc_bit + 168, 24, remote).set(qpc_bit + 240, 16, c.lid);
    if (c.is_roce) {
        memcpy(&r.in[qpc_bit / 8 + 40], c.gid.raw, 16);
    }
    r.set(qpc_bit + 1160, 3, 4).set(qpc_bit + 1164, 4, 3);
    r.set(qpc_bit + 1168, 3, 7).set(qpc_bit + 1187, 5, 1);
    return r;
}

command rtr2rts_command(uint32_t qpn)
{
    command c(fw_rtr2rts, fw_queue_size, qpn);

    c.set(qpc_bit + 256, 5, 18).set(qpc_bit + 904, 3, 4);
    c.set(qpc_bit + 909, 3, 7).set(qpc_bit + 912, 3, 7);
    return c;
}

devx_loop::devx_loop(uint32_t vector, unsigned cq_log, bool is_dmabuf,
                     bool is_collapsed) :
    mem(c, 1 << 16),
    queues(c.ctx, 16384, IBV_ACCESS_LOCAL_WRITE, is_dmabuf), page(c.ctx),
    pd(pd_number(c.pd)), eqn(query_eqn(c.ctx, vector)),
    cq(c.ctx, cq_command(queues, records, page, eqn, cq_log, is_collapsed)),
    rmp(c.ctx, rmp_command(queues, rmp_offset, records + 64, pd)),
    a(c.ctx, qp_command(queues, sq_offset, records + 128, page, pd, cq.number,
                        rmp.number)),
    b(c.ctx, qp_command(queues, sq_offset + 2048, records + 192, page, pd,
                        cq.number, rmp.number))
{
    for (unsigned i = 0; i < (1u << ring_log); ++i) {
        queues.data[i * 64 + 63] = (MLX5_CQE_INVALID << 4) | 1;
    }
}

void devx_loop::connect()
{
    unsigned status;

    for (object *q : {&a, &b}) {
        REQUIRE_EQ(0, q->modify(rst2init_command(q->number), &status));
    }
    REQUIRE_EQ(0, a.modify(init2rtr_command(c, a.number, b.number), &status));
    REQUIRE_EQ(0, b.modify(init2rtr_command(c, b.number, a.number), &status));
    for (object *q : {&a, &b}) {
        REQUIRE_EQ(0, q->modify(rtr2rts_command(q->number), &status));
    }
}

void devx_loop::post(const void *wqe)
{
    volatile uint32_t *record = (uint32_t*)(queues.data + records + 128);
    uint64_t first;

    memcpy(queues.data + sq_offset + (pi % (1u << ring_log)) * 64, wqe, 64);
    ++pi;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    record[MLX5_SND_DBR] = htobe32(pi);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    memcpy(&first, wqe, sizeof(first));
    *(volatile uint64_t*)page.v->reg_addr = first;
}

namespace {

struct one_block {
    mlx5_wqe_ctrl_seg ctrl;
    uint8_t           rest[48];
};

mlx5_wqe_data_seg data_seg(const ibv_sge &sge)
{
    mlx5_wqe_data_seg seg;

    seg.byte_count = htobe32(sge.length);
    seg.lkey       = htobe32(sge.lkey);
    seg.addr       = htobe64(sge.addr);
    return seg;
}

one_block block(uint32_t qpn, uint16_t pi, unsigned opcode, unsigned ds)
{
    one_block w = {};

    w.ctrl.opmod_idx_opcode = htobe32(((uint32_t)pi << 8) | opcode);
    w.ctrl.qpn_ds           = htobe32((qpn << 8) | ds);
    w.ctrl.fm_ce_se         = MLX5_WQE_CTRL_CQ_UPDATE;
    return w;
}

} // namespace

void devx_loop::write(const ibv_sge &from, const ibv_sge &to)
{
    one_block w              = block(a.number, pi, MLX5_OPCODE_RDMA_WRITE, 3);
    mlx5_wqe_data_seg data   = data_seg(from);
    mlx5_wqe_raddr_seg raddr = {};

    raddr.raddr = htobe64(to.addr);
    raddr.rkey  = htobe32(to.lkey);
    memcpy(w.rest, &raddr, sizeof(raddr));
    memcpy(w.rest + 16, &data, sizeof(data));
    post(&w);
}

void devx_loop::send(const ibv_sge &from)
{
    one_block w            = block(a.number, pi, MLX5_OPCODE_SEND, 2);
    mlx5_wqe_data_seg data = data_seg(from);

    memcpy(w.rest, &data, sizeof(data));
    post(&w);
}

void devx_loop::recv(const ibv_sge &sge)
{
    volatile uint32_t *record = (uint32_t*)(queues.data + records + 64);
    mlx5_wqe_data_seg data    = data_seg(sge);

    /* the link is not looked at: this one leads nowhere */
    memset(queues.data + rmp_offset + (posted % (1u << ring_log)) * 32, 0xff,
           16);
    memcpy(queues.data + rmp_offset + (posted % (1u << ring_log)) * 32 + 16,
           &data, sizeof(data));
    ++posted;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    record[MLX5_RCV_DBR] = htobe32(posted);
}

unsigned devx_loop::next()
{
    volatile uint32_t *record = (uint32_t*)(queues.data + records);
    volatile uint8_t *op_own  = queues.data + (ci % (1u << ring_log)) * 64 + 63;
    uint64_t start            = now_ms();
    unsigned opcode;

    while (((*op_own >> 4) == MLX5_CQE_INVALID) ||
           ((*op_own & 1) != ((ci >> ring_log) & 1))) {
        REQUIRE(now_ms() - start < patience_ms);
        patience::pause();
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    opcode = *op_own >> 4;
    ++ci;
    record[0] = htobe32(ci & 0xffffff);
    return opcode;
}

} // namespace device
