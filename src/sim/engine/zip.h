/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_ZIP_H_
#define MLX5SIM_ZIP_H_

#include <stdint.h>

/*
 * CQE compression: completions that are alike become a block in the ring. It
 * takes as many slots as it has completions, of which few are written:
 *
 *   slot 0            the title: CQE of the first completion, with cqe_format 3
 *                     and the number of completions as its byte_cnt
 *   slot 1, 8, 16 ... arrays of up to 8 mini CQEs, from the first completion on
 *
 * The other slots keep what was there. Array slots have no owner bit: where it
 * would be is the last byte of a mini CQE, so software knows by the title alone
 * that the block is there, and sets the bits of the slots itself before it
 * comes round again. Sources: mlx5e_decompress_cqes_start(), _cont() and
 * mlx5e_cqes_update_owner() of the kernel's en_rx.c,
 * uct_ib_mlx5_iface_cqe_unzip() of UCX's ib_mlx5.c.
 */

enum {
    MLX5SIM_ZIP_MAX   = 32,  /* completions in a block: cqe_comp_caps.max_num */
    MLX5SIM_ZIP_ARRAY = 8,   /* mini CQEs in an array */
    MLX5SIM_ZIP_CQE   = 64,  /* bytes of a title, and of an array */
    MLX5SIM_ZIP_MINI  = 8    /* bytes of a mini CQE */
};

struct mlx5sim_cqe;

/** Block that is being gathered. */
typedef struct mlx5sim_zip {
    uint8_t title[MLX5SIM_ZIP_CQE];  /* the first completion, uncompressed */
    uint8_t mini[MLX5SIM_ZIP_MAX][MLX5SIM_ZIP_MINI];
    uint8_t has_index;               /* mini CQEs of receives have what their
                                        CQEs have as WQE counter */
} mlx5sim_zip_t;


/** Store a completion behind the others, if it can be compressed with them:
 *  it succeeded, has no data in it, and differs in nothing but what a mini CQE
 *  tells; receives follow each other in the queue, as their number is counted
 *  up from the title's, unless it has_index.
 *  @param count  Completions that @a zip has.
 *  @return whether it was stored. */
int mlx5sim_zip_put(mlx5sim_zip_t *zip, unsigned count,
                    const struct mlx5sim_cqe *cqe);

/** Bytes of a title for @a count completions; of one completion, its CQE.
 *  @param owner  Ownership bit of its slot. */
void mlx5sim_zip_title(const mlx5sim_zip_t *zip, unsigned count, unsigned owner,
                       uint8_t title_p[MLX5SIM_ZIP_CQE]);

/** Number of arrays of a block. */
unsigned mlx5sim_zip_arrays(unsigned count);

/** Where array @a number is.
 *  @param bytes_p  Its length.
 *  @return its slot, from the title's. */
unsigned mlx5sim_zip_array(unsigned count, unsigned number, unsigned *bytes_p);

/** Whether the block's completions ask for a solicited event. */
int mlx5sim_zip_is_solicited(const mlx5sim_zip_t *zip);

#endif
