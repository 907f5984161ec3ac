/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uverbs/cmd.h>
#include <sim/instance/instance.h>
#include <sim/limit/limit.h>
#include <sim/objs/mem.h>
#include <sim/objs/shared.h>
#include <sim/objs/store.h>
#include <sim/sched/helper.h>
#include <sim/uverbs/refuse.h>
#include <sim/uverbs/uverbs_dmabuf.h>
#include <sim/uverbs/uverbs_objs.h>

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MLX5SIM_PAGE_SIZE 4096ul

/* Up to how many pages are populated, and looked at one by one: 16 and 256
 * MB */
#define MLX5SIM_MR_PIN_PAGES  4096
#define MLX5SIM_MR_READ_PAGES 65536

/* Kernel, mr_cache_ent_from_order(): keys are kept in stock for 4 pages and
 * more */
#define MLX5SIM_MR_MIN_LOG_PAGES 2

/* linux/mman.h since 5.14: MADV_POPULATE_READ and _WRITE */
#define MLX5SIM_MADV_POPULATE_READ  22
#define MLX5SIM_MADV_POPULATE_WRITE 23


int mlx5sim_cmd_alloc_pd(mlx5sim_cmd_t *cmd)
{
    struct ib_uverbs_alloc_pd_resp reply = {0};
    struct mlx5_ib_alloc_pd_resp ureply  = {0};
    mlx5sim_pd_t *pd;

    pd = mlx5sim_limit_alloc(cmd->ctx, MLX5SIM_OBJ_PD);
    if (pd == NULL) {
        return -errno;
    }

    pd->o.ready     = 1;
    reply.pd_handle = mlx5sim_obj_index(MLX5SIM_OBJ_PD, pd);
    ureply.pdn      = reply.pd_handle;
    mlx5sim_cmd_reply(cmd->out, cmd->out_size, &reply, sizeof(reply));
    mlx5sim_cmd_reply(cmd->uout, cmd->uout_size, &ureply, sizeof(ureply));
    return 0;
}

int mlx5sim_cmd_dealloc_pd(mlx5sim_cmd_t *cmd)
{
    const struct ib_uverbs_dealloc_pd *in = cmd->in;
    mlx5sim_pd_t *pd;

    pd = mlx5sim_cmd_obj(cmd, MLX5SIM_OBJ_PD, in->pd_handle);
    if (pd == NULL) {
        return -ENOENT;
    }

    if (atomic_load(&pd->refs) != 0) {
        return -EBUSY;
    }

    mlx5sim_obj_free(MLX5SIM_OBJ_PD, pd);
    return 0;
}

/* Read one byte of each page through the kernel. @return 0 or -EFAULT */
static int mlx5sim_mr_read(uint64_t first, uint64_t pages)
{
    const mlx5sim_proc_t *self = mlx5sim_proc_self();
    struct iovec local, remote[512];
    uint64_t done, i, n;
    char bytes[512];

    for (done = 0; done < pages; done += n) {
        n = (pages - done < 512) ? pages - done : 512;
        for (i = 0; i < n; ++i) {
            remote[i].iov_base = (void*)(uintptr_t)(first + (done + i) *
                                                    MLX5SIM_PAGE_SIZE);
            remote[i].iov_len  = 1;
        }

        local = (struct iovec){bytes, n};
        if (mlx5sim_mem_probev(self, &local, 1, remote, n, n) != 0) {
            return -EFAULT;
        }
    }

    return 0;
}

/* Bring pages in as the kernel does to pin them, ready to be written if the
 * device may write (ib_umem_get: FOLL_WRITE): memory that can't be is refused.
 * Kernels before 5.14 can't do that without a device; there, reading has to be
 * enough. Not through the C library: programs hook its madvise(). */
static int mlx5sim_mr_populate(uint64_t first, uint64_t pages, int is_writable)
{
    if (syscall(SYS_madvise, first, pages * MLX5SIM_PAGE_SIZE,
                is_writable ? MLX5SIM_MADV_POPULATE_WRITE :
                              MLX5SIM_MADV_POPULATE_READ) == 0) {
        return 0;
    }

    /* EINVAL: the kernel does not know it, or the memory is not of that kind */
    if ((errno == EINVAL) &&
        (syscall(SYS_madvise, first, 0, MLX5SIM_MADV_POPULATE_WRITE) != 0)) {
        return mlx5sim_mr_read(first, pages);
    }

    return -EFAULT;
}

/* ib_access_writable() */
int mlx5sim_mr_is_writable(unsigned access)
{
    return !!(access & (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                        IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND));
}

/* Pinning fails on memory that is not there, and so does registration. So does
 * that of no bytes at the start of a page: they take no page. Inside of a page
 * they take that one (kernel, ib_umem_get()). */
int mlx5sim_mr_pin(uint64_t start, uint64_t length, unsigned access)
{
    int is_writable = mlx5sim_mr_is_writable(access);
    uint64_t first  = start & ~(MLX5SIM_PAGE_SIZE - 1);
    uint64_t pages;

    if (start + length < start) {
        return -EINVAL;
    }

    pages = (start + length - first + MLX5SIM_PAGE_SIZE - 1) /
            MLX5SIM_PAGE_SIZE;
    if (pages == 0) {
        return -EINVAL;
    }

    if (pages <= MLX5SIM_MR_PIN_PAGES) {
        return mlx5sim_mr_populate(first, pages, is_writable);
    }

    /* The application did not ask for all of that to be populated: large
     * registrations are read, and of huge ones the ends are looked at */
    if ((mlx5sim_mr_populate(first, 1, is_writable) != 0) ||
        (mlx5sim_mr_populate(first + (pages - 1) * MLX5SIM_PAGE_SIZE, 1,
                             is_writable) != 0)) {
        return -EFAULT;
    }

    return (pages > MLX5SIM_MR_READ_PAGES) ? 0 : mlx5sim_mr_read(first, pages);
}

/* Relaxed ordering, huge pages and the like are hints; that windows may be
 * bound, no adapter is told (kernel, set_mkc_access_pd_addr_fields()) */
int mlx5sim_mr_check_access(unsigned access)
{
    if (access & IBV_ACCESS_ZERO_BASED) {
        return mlx5sim_refuse(MLX5SIM_MISSING_ZERO_BASED);
    }

    if ((access & IBV_ACCESS_ON_DEMAND) && !mlx5sim_instance_config()->odp) {
        return mlx5sim_refuse(MLX5SIM_MISSING_ODP);
    }

    /* ib_check_mr_access(): remote write and atomic imply local write */
    return ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
            !(access & IBV_ACCESS_LOCAL_WRITE)) ? -EINVAL : 0;
}

int mlx5sim_mr_is_aligned(uint64_t start, uint64_t hca_va)
{
    return !((start ^ hca_va) & (MLX5SIM_PAGE_SIZE - 1));
}

unsigned mlx5sim_mr_log_pages(uint64_t start, uint64_t length)
{
    uint64_t pages = ((start & (MLX5SIM_PAGE_SIZE - 1)) + length +
                      MLX5SIM_PAGE_SIZE - 1) / MLX5SIM_PAGE_SIZE;
    unsigned order = MLX5SIM_MR_MIN_LOG_PAGES;

    while ((1ull << order) < pages) {
        ++order;
    }
    return order;
}

/* Count regions of a domain and of device memory */
static void mlx5sim_mr_refs_add(const mlx5sim_mr_obj_t *mr, int diff)
{
    atomic_fetch_add(&((mlx5sim_pd_t*)mlx5sim_obj_at(MLX5SIM_OBJ_PD,
                                                     mr->pd))->refs, diff);
    if (mr->dm != 0) {
        atomic_fetch_add(&((mlx5sim_dm_t*)mlx5sim_obj_at(MLX5SIM_OBJ_DM,
                                                         mr->dm))->refs, diff);
    }
}

int mlx5sim_mr_make(mlx5sim_ctx_t *ctx, const mlx5sim_mr_t *as, uint32_t dm,
                    int is_dmabuf, mlx5sim_mr_obj_t **mr_p)
{
    mlx5sim_mr_obj_t *mr;

    mr = mlx5sim_limit_alloc(ctx, MLX5SIM_OBJ_MR);
    if (mr == NULL) {
        return -errno;
    }

    mr->mr        = *as;
    mr->mr.key    = (mlx5sim_obj_index(MLX5SIM_OBJ_MR, mr) << 8) |
                    (mr->o.gen & 0xff);
    mr->pd        = as->pdn;
    mr->dm        = dm;
    mr->is_dmabuf = is_dmabuf;
    mr->log_pages = mlx5sim_mr_log_pages(as->va, as->length);
    mlx5sim_mr_refs_add(mr, 1);
    atomic_thread_fence(memory_order_release);
    mr->o.ready   = 1;
    *mr_p         = mr;
    return 0;
}

static int mlx5sim_cmd_reg_mr(mlx5sim_cmd_t *cmd)
{
    const struct ib_uverbs_reg_mr *in  = cmd->in;
    struct ib_uverbs_reg_mr_resp reply = {0};
    const mlx5sim_mr_t as              = {.pdn    = in->pd_handle,
                                          .access = in->access_flags,
                                          .iova   = in->hca_va,
                                          .va     = in->start,
                                          .length = in->length};
    mlx5sim_shared_t shared            = {0};
    mlx5sim_mr_obj_t *mr;
    int ret;

    if (mlx5sim_cmd_obj(cmd, MLX5SIM_OBJ_PD, in->pd_handle) == NULL) {
        return -EINVAL;
    }

    ret = mlx5sim_mr_check_access(in->access_flags);
    if (ret != 0) {
        return ret;
    }

    if (!mlx5sim_mr_is_aligned(in->start, in->hca_va)) {
        return -EINVAL;
    }

    /* what is on demand may be unmapped, and what is pinned was touched */
    if (!(in->access_flags & IBV_ACCESS_ON_DEMAND) &&
        mlx5sim_mr_is_writable(in->access_flags)) {
        mlx5sim_shared_memory(in->start, in->length, &shared);
    }

    ret = mlx5sim_mr_get(in->start, in->length, in->hca_va, in->access_flags);
    if (ret != 0) {
        return ret;
    }

    ret = mlx5sim_mr_make(cmd->ctx, &as, 0, 0, &mr);
    if (ret != 0) {
        return ret;
    }

    mr->shared      = shared;
    reply.mr_handle = mlx5sim_obj_index(MLX5SIM_OBJ_MR, mr);
    reply.lkey      = mr->mr.key;
    reply.rkey      = mr->mr.key;
    mlx5sim_cmd_reply(cmd->out, cmd->out_size, &reply, sizeof(reply));
    return 0;
}

void mlx5sim_klm_free(uint32_t list)
{
    mlx5sim_klm_t *klm;

    while (list != 0) {
        klm  = mlx5sim_obj_at(MLX5SIM_OBJ_KLM, list);
        list = klm->next;
        mlx5sim_obj_free(MLX5SIM_OBJ_KLM, klm);
    }
}

int mlx5sim_cmd_dereg_mr(mlx5sim_cmd_t *cmd)
{
    const struct ib_uverbs_dereg_mr *in = cmd->in;
    mlx5sim_mr_obj_t *mr;
    uint32_t list;

    mr = mlx5sim_cmd_obj(cmd, MLX5SIM_OBJ_MR, in->mr_handle);
    if ((mr == NULL) || (mr->window.type != 0)) {
        return -ENOENT;
    }

    /* no new access from here on; then wait for those under way, as the
     * application may use the memory for something else */
    mr->o.ready = 0;
    atomic_thread_fence(memory_order_seq_cst);
    mlx5sim_helper_quiesce();

    mlx5sim_mr_refs_add(mr, -1);
    mlx5sim_dmabuf_release(MLX5SIM_OBJ_MR, &mr->o);
    list = mr->list;
    mlx5sim_obj_free(MLX5SIM_OBJ_MR, mr);
    mlx5sim_klm_free(list);
    return 0;
}

const mlx5sim_cmd_desc_t mlx5sim_cmds_mr[] = {
    {IB_USER_VERBS_CMD_ALLOC_PD, "ALLOC_PD", 8, 0,
     sizeof(struct ib_uverbs_alloc_pd_resp),
     sizeof(struct mlx5_ib_alloc_pd_resp), mlx5sim_cmd_alloc_pd,
     MLX5SIM_FAULT_PD},
    {IB_USER_VERBS_CMD_DEALLOC_PD, "DEALLOC_PD",
     sizeof(struct ib_uverbs_dealloc_pd), 0, 0, 0, mlx5sim_cmd_dealloc_pd,
     MLX5SIM_FAULT_NONE},
    {IB_USER_VERBS_CMD_REG_MR, "REG_MR", sizeof(struct ib_uverbs_reg_mr), 0,
     sizeof(struct ib_uverbs_reg_mr_resp), 0, mlx5sim_cmd_reg_mr,
     MLX5SIM_FAULT_MR},
    {IB_USER_VERBS_CMD_REREG_MR, "REREG_MR", sizeof(struct ib_uverbs_rereg_mr),
     0, sizeof(struct ib_uverbs_rereg_mr_resp), 0, mlx5sim_cmd_rereg_mr,
     MLX5SIM_FAULT_MR},
    {IB_USER_VERBS_CMD_DEREG_MR, "DEREG_MR", sizeof(struct ib_uverbs_dereg_mr),
     0, 0, 0, mlx5sim_cmd_dereg_mr,
     MLX5SIM_FAULT_NONE},
    {0, NULL, 0, 0, 0, 0, NULL, MLX5SIM_FAULT_NONE}
};
