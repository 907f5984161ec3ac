/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/base/sep_account.h>
#include <uct/ib/sep/base/sep_lock.h>
#include <uct/ib/sep/compat/sep_compat_ucs.h>

#include <ucs/datastruct/khash.h>
#include <ucs/datastruct/list.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/string.h>
#include <ucs/sys/sys.h>
#include <ucs/vfs/base/vfs_cb.h>
#include <ucs/vfs/base/vfs_obj.h>
#include <infiniband/mlx5dv.h>


/* By address: users of a register or page */
KHASH_MAP_INIT_INT64(uct_sep_account_users, unsigned long)


/* What the process has of one device */
typedef struct {
    ucs_list_link_t                list;
    char                           dev_name[IBV_SYSFS_NAME_MAX];
    unsigned long                  values[UCT_SEP_ACCOUNT_LAST];
    khash_t(uct_sep_account_users) uuars;
    khash_t(uct_sep_account_users) uars;
} uct_sep_account_t;


const char *uct_sep_account_names[UCT_SEP_ACCOUNT_LAST] = {
    [UCT_SEP_ACCOUNT_CONTEXT]   = "contexts",
    [UCT_SEP_ACCOUNT_TD]        = "thread_domains",
    [UCT_SEP_ACCOUNT_UAR]       = "uars_in_use",
    [UCT_SEP_ACCOUNT_UUAR]      = "uuars_in_use",
    [UCT_SEP_ACCOUNT_QP]        = "qps",
    [UCT_SEP_ACCOUNT_CQ]        = "cqs",
    [UCT_SEP_ACCOUNT_SRQ]       = "srqs",
    [UCT_SEP_ACCOUNT_MR]        = "mrs",
    [UCT_SEP_ACCOUNT_QP_BYTES]  = "qp_bytes",
    [UCT_SEP_ACCOUNT_CQ_BYTES]  = "cq_bytes",
    [UCT_SEP_ACCOUNT_SRQ_BYTES] = "srq_bytes",
    [UCT_SEP_ACCOUNT_MR_BYTES]  = "mr_bytes"
};

/* Workers open and close in any thread. Accounts are few, and kept until the
 * process ends: a file that is being read must not lose what it shows. */
UCT_SEP_MUTEX_DEFINE(uct_sep_account_mutex)

static uct_sep_account_mutex_t uct_sep_account_lock =
        UCT_SEP_MUTEX_INITIALIZER;
static UCS_LIST_HEAD(uct_sep_accounts);


static UCT_SEP_REQUIRES(uct_sep_account_mutex) uct_sep_account_t *
uct_sep_account_find(const char *dev_name)
{
    uct_sep_account_t *account;

    ucs_list_for_each(account, &uct_sep_accounts, list) {
        if (strcmp(account->dev_name, dev_name) == 0) {
            return account;
        }
    }

    return NULL;
}

/* NULL if there is no memory: then nothing is counted, which is
 * better than to fail for it. */
static UCT_SEP_REQUIRES(uct_sep_account_mutex) uct_sep_account_t *
uct_sep_account_open(const struct ibv_context *context)
{
    const char *dev_name = ibv_get_device_name(context->device);
    uct_sep_account_t *account;

    account = uct_sep_account_find(dev_name);
    if (account != NULL) {
        return account;
    }

    account = ucs_calloc(1, sizeof(*account), "sep_account");
    if (account == NULL) {
        ucs_diag("%s: no memory to account for resources", dev_name);
        return NULL;
    }

    ucs_strncpy_zero(account->dev_name, dev_name, sizeof(account->dev_name));
    kh_init_inplace(uct_sep_account_users, &account->uuars);
    kh_init_inplace(uct_sep_account_users, &account->uars);
    ucs_list_add_tail(&uct_sep_accounts, &account->list);
    return account;
}

static void uct_sep_account_change(const struct ibv_context *context,
                                   uct_sep_account_item_t item, long count,
                                   long bytes)
{
    uct_sep_account_t *account;

    uct_sep_account_mutex_lock(&uct_sep_account_lock);
    account = uct_sep_account_open(context);
    if (account != NULL) {
        account->values[item] += count;
        if (item >= UCT_SEP_ACCOUNT_QP) {
            account->values[item - UCT_SEP_ACCOUNT_QP +
                            UCT_SEP_ACCOUNT_QP_BYTES] += bytes;
        }
    }
    uct_sep_account_mutex_unlock(&uct_sep_account_lock);
}

void uct_sep_account_add(const struct ibv_context *context,
                         uct_sep_account_item_t item, size_t bytes)
{
    uct_sep_account_change(context, item, 1, bytes);
}

void uct_sep_account_remove(const struct ibv_context *context,
                            uct_sep_account_item_t item, size_t bytes)
{
    uct_sep_account_change(context, item, -1, -(long)bytes);
}

/* One more user of an address, or one less. @return How many distinct addresses
 * have users. */
static UCT_SEP_REQUIRES(uct_sep_account_mutex) unsigned long
uct_sep_account_use(khash_t(uct_sep_account_users) *users, uintptr_t address,
                    long count)
{
    khiter_t iter;
    int ret;

    iter = kh_get(uct_sep_account_users, users, address);
    if ((iter == kh_end(users)) && (count > 0)) {
        iter = kh_put(uct_sep_account_users, users, address, &ret);
        if (ret != UCS_KH_PUT_FAILED) {
            kh_val(users, iter) = 0;
        } else {
            iter = kh_end(users);
        }
    }

    if (iter != kh_end(users)) {
        kh_val(users, iter) += count;
        if (kh_val(users, iter) == 0) {
            kh_del(uct_sep_account_users, users, iter);
        }
    }

    return kh_size(users);
}

static void uct_sep_account_change_qp(struct ibv_qp *qp, int count)
{
    struct mlx5dv_qp dv_qp = {};
    struct mlx5dv_obj dv   = {};
    uct_sep_account_t *account;
    uintptr_t reg;

    /* Only tells; the QP stays as it is */
    dv.qp.in  = qp;
    dv.qp.out = &dv_qp;
    if (mlx5dv_init_obj(&dv, MLX5DV_OBJ_QP) != 0) {
        memset(&dv_qp, 0, sizeof(dv_qp));
    }

    uct_sep_account_mutex_lock(&uct_sep_account_lock);
    account = uct_sep_account_open(qp->context);
    if (account == NULL) {
        goto out_unlock;
    }

    account->values[UCT_SEP_ACCOUNT_QP] += count;
    account->values[UCT_SEP_ACCOUNT_QP_BYTES] +=
            count * (((long)dv_qp.sq.wqe_cnt * dv_qp.sq.stride) +
                     ((long)dv_qp.rq.wqe_cnt * dv_qp.rq.stride));

    reg = (uintptr_t)dv_qp.bf.reg;
    account->values[UCT_SEP_ACCOUNT_UUAR] =
            uct_sep_account_use(&account->uuars, reg, count);
    account->values[UCT_SEP_ACCOUNT_UAR] =
            uct_sep_account_use(&account->uars,
                                ucs_align_down_pow2(reg, ucs_get_page_size()),
                                count);

out_unlock:
    uct_sep_account_mutex_unlock(&uct_sep_account_lock);
}

void uct_sep_account_add_qp(struct ibv_qp *qp)
{
    uct_sep_account_change_qp(qp, 1);
}

void uct_sep_account_remove_qp(struct ibv_qp *qp)
{
    uct_sep_account_change_qp(qp, -1);
}

/* mlx5dv_init_obj() would make libmlx5 leave the CQ alone; the CQ has the
 * length that ibv_create_cq() has rounded up, less the one that is never used
 * (libmlx5, verbs.c) */
static size_t uct_sep_account_cq_bytes(const struct ibv_cq *cq)
{
    return (cq->cqe + 1ul) * sizeof(struct mlx5_cqe64);
}

void uct_sep_account_add_cq(const struct ibv_cq *cq)
{
    uct_sep_account_add(cq->context, UCT_SEP_ACCOUNT_CQ,
                        uct_sep_account_cq_bytes(cq));
}

void uct_sep_account_remove_cq(const struct ibv_cq *cq)
{
    uct_sep_account_remove(cq->context, UCT_SEP_ACCOUNT_CQ,
                           uct_sep_account_cq_bytes(cq));
}

/* The "tail" of a new queue is its last work request */
size_t uct_sep_account_add_srq(struct ibv_srq *srq)
{
    struct mlx5dv_srq dv_srq = {};
    struct mlx5dv_obj dv     = {};
    size_t bytes             = 0;

    dv.srq.in  = srq;
    dv.srq.out = &dv_srq;
    if (mlx5dv_init_obj(&dv, MLX5DV_OBJ_SRQ) == 0) {
        bytes = (dv_srq.tail + 1ul) * dv_srq.stride;
    }

    uct_sep_account_add(srq->context, UCT_SEP_ACCOUNT_SRQ, bytes);
    return bytes;
}

unsigned long uct_sep_account_get(const struct ibv_context *context,
                                  uct_sep_account_item_t item)
{
    unsigned long value = 0;
    uct_sep_account_t *account;

    uct_sep_account_mutex_lock(&uct_sep_account_lock);
    account = uct_sep_account_find(ibv_get_device_name(context->device));
    if (account != NULL) {
        value = account->values[item];
    }
    uct_sep_account_mutex_unlock(&uct_sep_account_lock);
    return value;
}

void uct_sep_account_vfs_init(void *obj, const struct ibv_context *context)
{
    uct_sep_account_t *account;
    int item;

    uct_sep_account_mutex_lock(&uct_sep_account_lock);
    account = uct_sep_account_open(context);
    uct_sep_account_mutex_unlock(&uct_sep_account_lock);
    if (account == NULL) {
        return;
    }

    for (item = 0; item < UCT_SEP_ACCOUNT_LAST; ++item) {
        ucs_vfs_obj_add_ro_file(obj, ucs_vfs_show_primitive,
                                &account->values[item], UCS_VFS_TYPE_ULONG,
                                "resources/%s", uct_sep_account_names[item]);
    }
}
