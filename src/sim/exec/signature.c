/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/exec/signature.h>
#include <sim/engine/mlx5_def.h>
#include <sim/exec/iov.h>
#include <sim/exec/layout.h>
#include <sim/exec/transfer.h>
#include <sim/exec/window.h>
#include <sim/objs/mem.h>
#include <sim/objs/store.h>
#include <sim/queue/cq.h>

#include <errno.h>
#include <string.h>

/* A key in use */
typedef struct {
    const mlx5sim_sig_user_t *user;
    const mlx5sim_proc_t     *proc;
    mlx5sim_mr_obj_t         *mr;
    uint32_t                 key;
    uint64_t                 iova;
    mlx5sim_sig_t            sig;
} mlx5sim_sig_key_t;


int mlx5sim_sig_is_in(const mlx5sim_seg_t *segs, unsigned num_segs)
{
    unsigned i;

    for (i = 0; i < num_segs; ++i) {
        if ((segs[i].inl == NULL) &&
            (segs[i].has_layout == MLX5SIM_LAYOUT_SIGNED)) {
            return 1;
        }
    }

    return 0;
}

unsigned mlx5sim_sig_set(mlx5sim_mr_obj_t *mr, const mlx5sim_wqe_t *wqe)
{
    mlx5sim_sig_t sig;

    if (wqe->umr.has_bsf &&
        ((mr->sig.room < MLX5SIM_BSF_SIZE / MLX5SIM_WQE_UNIT) ||
         (mlx5sim_sig_parse(wqe->umr.bsf, &sig) != 0))) {
        return MLX5SIM_SYNDROME_MW_BIND;
    }

    if ((wqe->umr.mask & MLX5SIM_UMR_MASK_BSF) && wqe->umr.is_signed &&
        !wqe->umr.has_bsf && !mr->sig.has_bsf) {
        return MLX5SIM_SYNDROME_MW_BIND; /* there are none to switch on */
    }

    if (wqe->umr.has_bsf) {
        mr->sig.sig     = sig;
        mr->sig.has_bsf = 1;
    }
    if (wqe->umr.mask & MLX5SIM_UMR_MASK_BSF) {
        mr->sig.is_on = wqe->umr.is_signed;
    }
    if (wqe->umr.mask & MLX5SIM_UMR_MASK_SIG_ERR) {
        mr->sig.has_error = 0;
    }
    return 0;
}

static mlx5sim_psv_t *
mlx5sim_psv_find(uint32_t index, uint32_t owner, uint32_t pdn)
{
    mlx5sim_psv_t *psv = mlx5sim_obj_find(MLX5SIM_OBJ_PSV, index);

    return ((psv != NULL) && (atomic_load(&psv->o.owner) == owner) &&
            psv->o.ready && (psv->pdn == pdn)) ? psv : NULL;
}

unsigned mlx5sim_psv_set(const mlx5sim_qp_obj_t *qp, const mlx5sim_wqe_t *wqe)
{
    mlx5sim_psv_t *psv = mlx5sim_psv_find(wqe->psv.index,
                                          atomic_load(&qp->o.owner),
                                          qp->qp.pdn);

    if (psv == NULL) {
        return MLX5SIM_SYNDROME_LOCAL_PROT;
    }

    atomic_store(&psv->value, wqe->psv.value);
    return 0;
}

uint64_t mlx5sim_sig_length(const mlx5sim_mr_obj_t *mr)
{
    return mlx5sim_sig_wire_length(&mr->sig.sig, mr->mr.length);
}

static int mlx5sim_sig_has_psv(const mlx5sim_mr_obj_t *mr,
                               const mlx5sim_sig_domain_t *domain)
{
    return (domain->type == MLX5SIM_SIG_NONE) ||
           (mlx5sim_psv_find(domain->psv, atomic_load(&mr->o.owner),
                             mr->mr.pdn) != NULL);
}

int mlx5sim_sig_find(const mlx5sim_mr_obj_t *mr, uint64_t *offset_p,
                     uint64_t *length_p)
{
    const mlx5sim_sig_t *sig = &mr->sig.sig;
    uint64_t begin, end;

    begin     = mlx5sim_sig_data(&sig->wire, *offset_p);
    end       = mlx5sim_sig_data(&sig->wire, *offset_p + *length_p);
    *offset_p = mlx5sim_sig_place(&sig->mem, begin);
    *length_p = mlx5sim_sig_place(&sig->mem, end) - *offset_p;
    return mlx5sim_sig_has_psv(mr, &sig->mem) &&
           mlx5sim_sig_has_psv(mr, &sig->wire);
}

/* The tags of a domain may be those that SET_PSV has set */
static void mlx5sim_sig_tags(const mlx5sim_mr_obj_t *mr,
                             mlx5sim_sig_domain_t *domain)
{
    const mlx5sim_psv_t *psv;
    uint64_t value;

    if ((domain->type != MLX5SIM_SIG_T10DIF) || domain->is_refresh) {
        return;
    }

    psv = mlx5sim_psv_find(domain->psv, atomic_load(&mr->o.owner), mr->mr.pdn);
    if (psv != NULL) {
        value           = atomic_load(&psv->value);
        domain->app_tag = value >> 32;
        domain->ref_tag = value;
    }
}

/* @return 0, or -EFAULT: the key has changed */
static int mlx5sim_sig_open(uint32_t key, mlx5sim_sig_key_t *key_p)
{
    mlx5sim_mr_obj_t *mr = mlx5sim_obj_find(MLX5SIM_OBJ_MR, key >> 8);
    mlx5sim_lock_t *lock;
    int is_on;

    if (mr == NULL) {
        return -EFAULT;
    }

    lock = mlx5sim_window_lock_of(mr);
    (void)mlx5sim_lock(lock);
    is_on       = mr->o.ready && (mr->mr.key == key) && mr->sig.is_on;
    key_p->sig  = mr->sig.sig;
    key_p->iova = mr->mr.iova;
    mlx5sim_unlock(lock);
    if (!is_on) {
        return -EFAULT;
    }

    key_p->mr  = mr;
    key_p->key = key;
    mlx5sim_sig_tags(mr, &key_p->sig.mem);
    mlx5sim_sig_tags(mr, &key_p->sig.wire);
    return 0;
}

/* Memory on demand is as the program has protected it; an adapter does not see
 * that of other memory */
static int mlx5sim_sig_copy(const mlx5sim_proc_t *proc,
                            const mlx5sim_seg_t *pieces, unsigned num_pieces,
                            int is_write, uint64_t length, uint8_t *data)
{
    struct iovec local = {data, length};
    struct iovec iov[MLX5SIM_IOV_MAX];
    unsigned num;
    int ret;

    num = mlx5sim_iov_fill(pieces, num_pieces, iov);
    ret = is_write ?
          mlx5sim_mem_probe_writev(proc, &local, 1, iov, num, length) :
          mlx5sim_mem_probev(proc, &local, 1, iov, num, length);
    if ((ret != -EFAULT) ||
        mlx5sim_transfer_has_on_demand(pieces, num_pieces)) {
        return ret;
    }

    return is_write ? mlx5sim_mem_writev(proc, &local, 1, iov, num, length) :
                      mlx5sim_mem_readv(proc, &local, 1, iov, num, length);
}

/* Read or write memory without a look at signatures. @return 0 or -errno */
static int mlx5sim_sig_access(const mlx5sim_proc_t *proc,
                              const mlx5sim_seg_t *seg, int is_write,
                              uint64_t offset, uint64_t length, uint8_t *data)
{
    mlx5sim_seg_t pieces[MLX5SIM_MAX_SGE];
    uint64_t part;
    unsigned num;
    int ret;

    for (; length > 0; offset += part, data += part, length -= part) {
        part = mlx5sim_layout_pieces(seg, 1, is_write, offset, length, pieces,
                                     &num);
        if (part == 0) {
            return -EFAULT;
        }

        ret = mlx5sim_sig_copy(proc, pieces, num, is_write, part, data);
        if (ret != 0) {
            return ret;
        }
    }

    return 0;
}

static int mlx5sim_sig_memory(const mlx5sim_sig_key_t *key, int is_write,
                              uint64_t offset, uint64_t length, uint8_t *data)
{
    const mlx5sim_seg_t seg = {.addr       = key->iova + offset,
                               .length     = length,
                               .lkey       = key->key,
                               .has_layout = MLX5SIM_LAYOUT_PLAIN};

    return mlx5sim_sig_access(key->proc, &seg, is_write, 0, length, data);
}

/* Bytes of data, between signatures that are in memory */
static int mlx5sim_sig_memory_data(const mlx5sim_sig_key_t *key, int is_write,
                                   uint64_t offset, uint64_t length,
                                   uint8_t *data)
{
    const mlx5sim_sig_domain_t *mem = &key->sig.mem;
    uint64_t part;
    int ret;

    for (; length > 0; offset += part, data += part, length -= part) {
        part = (mem->type == MLX5SIM_SIG_NONE) ? length :
               mem->block - (offset % mem->block);
        part = (part < length) ? part : length;
        ret  = mlx5sim_sig_memory(key, is_write, mlx5sim_sig_place(mem, offset),
                                  part, data);
        if (ret != 0) {
            return ret;
        }
    }

    return 0;
}

/* What the signature of a block is to be, by its data in memory */
static int mlx5sim_sig_actual(const mlx5sim_sig_key_t *key,
                              const mlx5sim_sig_domain_t *domain,
                              uint64_t number, uint64_t *value_p)
{
    uint8_t block[MLX5SIM_SIG_MAX_BLOCK];
    int ret;

    ret = mlx5sim_sig_memory_data(key, 0, number * domain->block, domain->block,
                                  block);
    if (ret == 0) {
        *value_p = mlx5sim_sig_make(domain, number, block);
    }
    return ret;
}

/* The signature in memory: behind the last byte of its block */
static int mlx5sim_sig_stored(const mlx5sim_sig_key_t *key, int is_write,
                              uint64_t number, uint64_t *value)
{
    const mlx5sim_sig_domain_t *mem = &key->sig.mem;
    unsigned size                   = mlx5sim_sig_size(mem);
    uint8_t bytes[MLX5SIM_SIG_MAX_SIZE];
    int ret;

    if (is_write) {
        mlx5sim_sig_encode(mem, *value, bytes);
    }

    ret = mlx5sim_sig_memory(key, is_write,
                             mlx5sim_sig_place(mem, (number + 1) * mem->block) -
                             size, size, bytes);
    if (!is_write && (ret == 0)) {
        *value = mlx5sim_sig_decode(mem, bytes);
    }
    return ret;
}

/* Compare, and tell of the first one that is wrong */
static void
mlx5sim_sig_compare(const mlx5sim_sig_key_t *key, int is_mem, uint64_t number,
                    uint64_t expected, uint64_t actual)
{
    const mlx5sim_sig_domain_t *domain = is_mem ? &key->sig.mem :
                                                  &key->sig.wire;
    mlx5sim_qp_obj_t *qp               = key->user->qp;
    mlx5sim_lock_t *lock               = mlx5sim_window_lock_of(key->mr);
    mlx5sim_cqe_t cqe                  = {.opcode = MLX5SIM_CQE_SIG_ERR,
                                          .solicited = 1,
                                          .qpn    = qp->qp.qpn};
    unsigned syndrome;
    int is_told;

    syndrome = mlx5sim_sig_check(domain, key->sig.check_mask, expected, actual);
    if (syndrome == 0) {
        return;
    }

    (void)mlx5sim_lock(lock);
    is_told                = key->mr->sig.has_error;
    key->mr->sig.has_error = 1;
    mlx5sim_unlock(lock);
    if (is_told) {
        return;
    }

    cqe.sig.syndrome = syndrome;
    cqe.sig.is_mem   = is_mem;
    cqe.sig.key      = key->key;
    cqe.sig.expected = expected;
    cqe.sig.actual   = actual;
    cqe.sig.offset   = number * (domain->block + mlx5sim_sig_size(domain));
    if (key->user->side == MLX5SIM_SIDE_RESPONDER) {
        (void)mlx5sim_cq_push(mlx5sim_obj_at(MLX5SIM_OBJ_CQ, qp->recv_cq), &cqe,
                              NULL);
        return;
    }

    (void)mlx5sim_cq_push(mlx5sim_obj_at(MLX5SIM_OBJ_CQ, qp->send_cq), &cqe,
                          NULL);
    qp->has_sigerr = qp->drain_sigerr;
}

/* What is done with the signature of a block in memory, all of whose data are
 * there: it is checked, or made */
static int mlx5sim_sig_block(const mlx5sim_sig_key_t *key, int is_write,
                             uint64_t number)
{
    uint64_t expected, actual;
    int ret;

    if (!is_write && (key->user == NULL)) {
        return 0;
    }

    ret = mlx5sim_sig_actual(key, &key->sig.mem, number, &actual);
    if (ret != 0) {
        return ret;
    }

    if (is_write) {
        return mlx5sim_sig_stored(key, 1, number, &actual);
    }

    ret = mlx5sim_sig_stored(key, 0, number, &expected);
    if (ret == 0) {
        mlx5sim_sig_compare(key, 1, number, expected, actual);
    }
    return ret;
}

/* Data, and signatures in memory of the blocks that end there. Those that are
 * copied from the wire have not come yet. */
static int mlx5sim_sig_move_data(const mlx5sim_sig_key_t *key, int is_write,
                                 uint64_t offset, uint64_t length,
                                 uint8_t *data)
{
    const mlx5sim_sig_domain_t *mem = &key->sig.mem;
    uint64_t number;
    int ret;

    ret = mlx5sim_sig_memory_data(key, is_write, offset, length, data);
    if ((ret != 0) || (mem->type == MLX5SIM_SIG_NONE) ||
        (is_write && (key->sig.copy_mask != 0))) {
        return ret;
    }

    for (number = offset / mem->block;
         (ret == 0) && ((number + 1) * mem->block <= offset + length);
         ++number) {
        ret = mlx5sim_sig_block(key, is_write, number);
    }

    return ret;
}

/* The signature of a block that is sent */
static int mlx5sim_sig_send(const mlx5sim_sig_key_t *key, uint64_t number,
                            uint8_t *bytes)
{
    uint64_t value, copy = 0;
    int ret;

    ret = mlx5sim_sig_actual(key, &key->sig.wire, number, &value);
    if ((ret == 0) && (key->sig.copy_mask != 0)) {
        ret = mlx5sim_sig_stored(key, 0, number, &copy);
    }
    if (ret != 0) {
        return ret;
    }

    value = mlx5sim_sig_merge(value, copy, key->sig.copy_mask);
    mlx5sim_sig_encode(&key->sig.wire, value, bytes);
    return 0;
}

/* A signature that has come */
static int mlx5sim_sig_receive(const mlx5sim_sig_key_t *key, uint64_t number,
                               const uint8_t *bytes)
{
    uint64_t expected = mlx5sim_sig_decode(&key->sig.wire, bytes);
    uint64_t actual;
    int ret;

    ret = mlx5sim_sig_actual(key, &key->sig.wire, number, &actual);
    if (ret != 0) {
        return ret;
    }

    if (key->user != NULL) {
        mlx5sim_sig_compare(key, 0, number, expected, actual);
    }
    if (key->sig.copy_mask == 0) {
        return 0;
    }

    ret = mlx5sim_sig_actual(key, &key->sig.mem, number, &actual);
    if (ret == 0) {
        actual = mlx5sim_sig_merge(actual, expected, key->sig.copy_mask);
        ret    = mlx5sim_sig_stored(key, 1, number, &actual);
    }
    return ret;
}

/* Keep bytes of a signature that come: they may be in two packets.
 * @return whether there are those in front of them, too */
static int mlx5sim_sig_hold(const mlx5sim_sig_key_t *key, uint64_t number,
                            unsigned first, unsigned count, const uint8_t *data,
                            uint8_t *bytes_p)
{
    uint64_t place       = (number * MLX5SIM_SIG_MAX_SIZE) + first;
    mlx5sim_lock_t *lock = mlx5sim_window_lock_of(key->mr);
    int is_next;

    (void)mlx5sim_lock(lock);
    is_next = (first == 0) || (key->mr->sig.held_end == place);
    memcpy(key->mr->sig.held + first, data, count);
    memcpy(bytes_p, key->mr->sig.held, MLX5SIM_SIG_MAX_SIZE);
    key->mr->sig.held_end = place + count;
    mlx5sim_unlock(lock);
    return is_next;
}

/* Bytes of a signature on the wire, from @a first on. Those in front that were
 * another message's, or never came, pass for right. */
static int mlx5sim_sig_move_wire(const mlx5sim_sig_key_t *key, int is_write,
                                 uint64_t number, unsigned first,
                                 unsigned count, uint8_t *data)
{
    uint8_t bytes[MLX5SIM_SIG_MAX_SIZE], right[MLX5SIM_SIG_MAX_SIZE];
    uint64_t actual;
    int ret;

    if (!is_write) {
        ret = mlx5sim_sig_send(key, number, bytes);
        memcpy(data, bytes + first, (ret == 0) ? count : 0);
        return ret;
    }

    if (!mlx5sim_sig_hold(key, number, first, count, data, bytes)) {
        ret = mlx5sim_sig_actual(key, &key->sig.wire, number, &actual);
        if (ret != 0) {
            return ret;
        }
        mlx5sim_sig_encode(&key->sig.wire, actual, right);
        memcpy(bytes, right, first);
    }

    return (first + count == mlx5sim_sig_size(&key->sig.wire)) ?
           mlx5sim_sig_receive(key, number, bytes) : 0;
}

/* Bytes of the wire, from an offset of the key on */
static int mlx5sim_sig_move_key(const mlx5sim_sig_key_t *key, int is_write,
                                uint64_t offset, uint64_t length, uint8_t *data)
{
    const mlx5sim_sig_domain_t *wire = &key->sig.wire;
    uint64_t unit                    = wire->block + mlx5sim_sig_size(wire);
    uint64_t number, rest, part;
    int ret;

    if (wire->type == MLX5SIM_SIG_NONE) {
        return mlx5sim_sig_move_data(key, is_write, offset, length, data);
    }

    for (; length > 0; offset += part, data += part, length -= part) {
        number = offset / unit;
        rest   = offset % unit;
        part   = (rest < wire->block) ? wire->block - rest : unit - rest;
        part   = (part < length) ? part : length;
        ret    = (rest < wire->block) ?
                 mlx5sim_sig_move_data(key, is_write,
                                       number * wire->block + rest, part,
                                       data) :
                 mlx5sim_sig_move_wire(key, is_write, number,
                                       rest - wire->block, part, data);
        if (ret != 0) {
            return ret;
        }
    }

    return 0;
}

static int
mlx5sim_sig_move_seg(const mlx5sim_sig_user_t *user, const mlx5sim_proc_t *proc,
                     const mlx5sim_seg_t *seg, int is_write, uint64_t offset,
                     uint64_t length, uint8_t *data)
{
    mlx5sim_sig_key_t key = {.user = user, .proc = proc};
    int ret;

    if (seg->inl != NULL) {
        memcpy(data, (const uint8_t*)seg->inl + offset, length);
        return 0;
    }

    if (seg->has_layout != MLX5SIM_LAYOUT_SIGNED) {
        return mlx5sim_sig_access(proc, seg, is_write, offset, length, data);
    }

    ret = mlx5sim_sig_open(seg->lkey, &key);
    return (ret != 0) ? ret :
           mlx5sim_sig_move_key(&key, is_write,
                                seg->addr - key.iova + offset, length, data);
}

int mlx5sim_sig_move(const mlx5sim_sig_user_t *user, const mlx5sim_proc_t *proc,
                     const mlx5sim_seg_t *segs, unsigned num_segs, int is_write,
                     uint64_t offset, uint64_t length, uint8_t *data)
{
    uint64_t part;
    unsigned i;
    int ret;

    for (i = 0; (i < num_segs) && (length > 0); ++i) {
        if (offset >= segs[i].length) {
            offset -= segs[i].length;
            continue;
        }

        part = segs[i].length - offset;
        part = (part < length) ? part : length;
        ret  = mlx5sim_sig_move_seg(user, proc, &segs[i], is_write, offset,
                                    part, data);
        if (ret != 0) {
            return ret;
        }

        data   += part;
        length -= part;
        offset  = 0;
    }

    return (length == 0) ? 0 : -EFAULT;
}
