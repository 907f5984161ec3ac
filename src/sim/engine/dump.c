/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/engine/engine.h>
#include <sim/engine/mlx5_def.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/** Text under construction; its length may exceed the buffer, which is never
 *  overrun. */
typedef struct {
    char   *buf;
    size_t size;
    int    length;
} mlx5sim_text_t;


static void __attribute__((format(printf, 2, 3)))
mlx5sim_text_add(mlx5sim_text_t *text, const char *format, ...)
{
    size_t length = text->length;
    size_t used   = (length < text->size) ? length : text->size;
    va_list ap;
    int ret;

    va_start(ap, format);
    ret = vsnprintf((text->size > 0) ? text->buf + used : NULL,
                    text->size - used, format, ap);
    va_end(ap);
    if (ret > 0) {
        text->length += ret;
    }
}


static void mlx5sim_dump_atomic(const mlx5sim_wqe_t *wqe, mlx5sim_text_t *text)
{
    if (wqe->atomic.is_cas) {
        mlx5sim_text_add(text,
                         "  compare-and-swap %u bytes: compare 0x%" PRIx64
                         " mask 0x%" PRIx64 ", swap 0x%" PRIx64 " mask 0x%"
                         PRIx64 "\n", wqe->atomic_size, wqe->atomic.compare,
                         wqe->atomic.compare_mask, wqe->atomic.swap_add,
                         wqe->atomic.swap_mask);
    } else {
        mlx5sim_text_add(text,
                         "  fetch-and-add %u bytes: add 0x%" PRIx64
                         " boundary 0x%" PRIx64 "\n", wqe->atomic_size,
                         wqe->atomic.swap_add, wqe->atomic.compare_mask);
    }
}


static void mlx5sim_dump_av(const mlx5sim_wqe_t *wqe, mlx5sim_text_t *text)
{
    const uint8_t *gid = wqe->av.dgid;
    unsigned i;

    mlx5sim_text_add(text, "  to QP 0x%x qkey 0x%x dlid %u sl %u", wqe->av.dqpn,
                     wqe->av.qkey, wqe->av.dlid, wqe->av.sl);
    if (wqe->av.has_grh) {
        mlx5sim_text_add(text, " gid ");
        for (i = 0; i < sizeof(wqe->av.dgid); i += 2) {
            mlx5sim_text_add(text, "%s%02x%02x", (i == 0) ? "" : ":", gid[i],
                             gid[i + 1]);
        }
    }
    mlx5sim_text_add(text, "\n");
}


static void mlx5sim_dump_segs(const mlx5sim_wqe_t *wqe, mlx5sim_text_t *text)
{
    const mlx5sim_seg_t *seg;
    unsigned i;

    for (i = 0; i < wqe->num_segs; ++i) {
        seg = &wqe->segs[i];
        if (seg->inl != NULL) {
            mlx5sim_text_add(text, "  inline %u bytes\n", seg->length);
        } else {
            mlx5sim_text_add(text, "  data %u bytes at 0x%" PRIx64
                             " lkey 0x%x\n", seg->length, seg->addr,
                             seg->lkey);
        }
    }
}


/** The bytes in units of 16, as in the queue. */
static void mlx5sim_dump_hex(const mlx5sim_qp_t *qp, const uint8_t *sq,
                             uint16_t index, unsigned units,
                             mlx5sim_text_t *text)
{
    size_t size   = (size_t)qp->sq_wqe_cnt * MLX5SIM_WQEBB;
    size_t offset = (size_t)(index & (qp->sq_wqe_cnt - 1)) * MLX5SIM_WQEBB;
    unsigned i, unit;

    for (unit = 0; unit < units; ++unit) {
        mlx5sim_text_add(text, "  %05zx:", offset);
        for (i = 0; i < MLX5SIM_WQE_UNIT; ++i) {
            mlx5sim_text_add(text, "%s%02x", (i % 4) ? "" : " ",
                             sq[offset + i]);
        }
        mlx5sim_text_add(text, "\n");
        offset += MLX5SIM_WQE_UNIT;
        if (offset == size) {
            offset = 0;
        }
    }
}


int mlx5sim_wqe_dump(const mlx5sim_qp_t *qp, const void *sq, uint16_t index,
                     char *buf, size_t size)
{
    mlx5sim_text_t text = {.buf = buf, .size = size, .length = 0};
    mlx5sim_wqe_t wqe;
    mlx5sim_chk_t chk;
    unsigned units;

    if (qp->sq_wqe_cnt == 0) {
        mlx5sim_text_add(&text, "QP 0x%x has no send queue\n", qp->qpn);
        return text.length;
    }

    chk = mlx5sim_wqe_decode(qp, sq, index, &wqe);
    mlx5sim_text_add(&text,
                     "QP 0x%x wqe %u (block %u of %u): %s opmod %u ds %u%s%s%s "
                     "imm 0x%08x, %u bytes%s%s\n", qp->qpn, index,
                     index & (qp->sq_wqe_cnt - 1), qp->sq_wqe_cnt,
                     mlx5sim_opcode_name(wqe.opcode), wqe.opmod, wqe.ds,
                     wqe.signaled ? " signaled" : "",
                     wqe.solicited ? " solicited" : "",
                     wqe.fence ? " fence" : "", wqe.imm, wqe.length,
                     (chk == MLX5SIM_CHK_OK) ? "" : ", check failed: ",
                     (chk == MLX5SIM_CHK_OK) ? "" : mlx5sim_chk_name(chk));
    if (wqe.has_av) {
        mlx5sim_dump_av(&wqe, &text);
    }
    if (wqe.has_raddr) {
        mlx5sim_text_add(&text, "  remote 0x%" PRIx64 " rkey 0x%x\n", wqe.raddr,
                         wqe.rkey);
    }
    if (wqe.atomic_size != 0) {
        mlx5sim_dump_atomic(&wqe, &text);
    }
    mlx5sim_dump_segs(&wqe, &text);

    /* at least the first block; a ds beyond the queue is not believed */
    units = (wqe.ds < 4) ? 4 : wqe.ds;
    if (units > qp->sq_wqe_cnt * (MLX5SIM_WQEBB / MLX5SIM_WQE_UNIT)) {
        units = qp->sq_wqe_cnt * (MLX5SIM_WQEBB / MLX5SIM_WQE_UNIT);
    }
    mlx5sim_dump_hex(qp, sq, index, units, &text);
    return text.length;
}
