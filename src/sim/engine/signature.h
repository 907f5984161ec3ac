/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_SIGNATURE_H_
#define MLX5SIM_SIGNATURE_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Signatures of blocks (PRM, "Signature Handover"; mlx5dv_wr_set_mkey_sig_block
 * (3)). Behind each block of data, in memory or on the wire or on both, there
 * may be a signature: T10-DIF, or a CRC. A key says on which side there is
 * which. Bytes that come from the one side are checked, taken off, made or
 * copied for the other. Pure.
 *
 * A signature is told as one number, as by SET_PSV and by CQEs: that of T10-DIF
 * has the guard in its upper 16 bits, then the application tag, then the
 * reference tag. A CRC-32 is its upper half.
 */

#define MLX5SIM_SIG_MAX_BLOCK 4160 /* bytes of data */
#define MLX5SIM_SIG_MAX_SIZE  8    /* bytes of a signature */

/** The sizes of a BSF and of a list of these (libmlx5, struct mlx5_bsf). */
#define MLX5SIM_BSF_SIZE      64

typedef enum {
    MLX5SIM_SIG_NONE,
    MLX5SIM_SIG_T10DIF,
    MLX5SIM_SIG_CRC32
} mlx5sim_sig_type_t;

/** When nothing of a T10-DIF is checked. */
typedef enum {
    MLX5SIM_SIG_ESCAPE_NEVER,
    MLX5SIM_SIG_ESCAPE_APP,     /* the application tag is all ones */
    MLX5SIM_SIG_ESCAPE_APP_REF  /* and the reference tag is, too */
} mlx5sim_sig_escape_t;

/** What there is in memory, or on the wire. */
typedef struct mlx5sim_sig_domain {
    uint8_t  type;       /* mlx5sim_sig_type_t */
    uint8_t  is_csum;    /* the guard is an IP checksum */
    uint8_t  has_seed;   /* it starts with all ones */
    uint8_t  is_ref_inc; /* the reference tag grows by one each block */
    uint8_t  escape;     /* mlx5sim_sig_escape_t */
    uint8_t  is_refresh; /* tags are these, and not those of the PSV */
    uint16_t block;      /* bytes of data */
    uint16_t app_tag;
    uint16_t app_mask;   /* bits of it that count */
    uint32_t ref_tag;    /* of the first block */
    uint32_t psv;        /* index */
} mlx5sim_sig_domain_t;

/** What a BSF says of a key. */
typedef struct mlx5sim_sig {
    mlx5sim_sig_domain_t mem;
    mlx5sim_sig_domain_t wire;
    uint8_t              check_mask; /* bytes of the number that are checked */
    uint8_t              copy_mask;  /* bytes that are copied; 0 if the domains
                                        differ in type or block size */
} mlx5sim_sig_t;

/** A wrong signature, as a CQE tells it [mlx5_sig_err_cqe]. */
typedef struct mlx5sim_sig_error {
    uint16_t syndrome;           /* MLX5SIM_SIGERR_* of mlx5_def.h */
    uint8_t  is_mem;
    uint32_t key;
    uint64_t expected;           /* that of the message */
    uint64_t actual;             /* what it should be */
    uint64_t offset;             /* of the block, in bytes */
} mlx5sim_sig_error_t;

/** Read the BSF of a UMR.
 *  @return 0, or -1: it asks for what there is not, such as signatures of
 *          transactions or CRCs other than CRC-32. */
int mlx5sim_sig_parse(const void *bsf, mlx5sim_sig_t *sig_p);

/** Bytes of a signature, 0: there is none. */
unsigned mlx5sim_sig_size(const mlx5sim_sig_domain_t *domain);

/** Where a byte of the data is, counted with signatures. */
uint64_t
mlx5sim_sig_place(const mlx5sim_sig_domain_t *domain, uint64_t data);

/** How many bytes of data there are in the first ones of a domain. */
uint64_t mlx5sim_sig_data(const mlx5sim_sig_domain_t *domain, uint64_t length);

/** How many bytes memory of a length is on the wire. */
uint64_t mlx5sim_sig_wire_length(const mlx5sim_sig_t *sig, uint64_t mem);

/** The signature of a block.
 *  @param number  Of the block, from 0. */
uint64_t mlx5sim_sig_make(const mlx5sim_sig_domain_t *domain, uint64_t number,
                          const uint8_t *data);

/** A signature as bytes, and back. Data words of T10 are big endian, a CRC is
 *  little endian, as of iSCSI (RFC 7143). */
void mlx5sim_sig_encode(const mlx5sim_sig_domain_t *domain, uint64_t value,
                        uint8_t *out_p);
uint64_t
mlx5sim_sig_decode(const mlx5sim_sig_domain_t *domain, const uint8_t *in);

/** A number that has bytes of another one where a mask says so. */
uint64_t mlx5sim_sig_merge(uint64_t value, uint64_t other, uint8_t mask);

/** Compare a signature with what it should be.
 *  @return 0, or the syndrome of what is wrong first: guard, application tag,
 *          reference tag (mlx5dv_mkey_check(3)). */
unsigned mlx5sim_sig_check(const mlx5sim_sig_domain_t *domain, uint8_t mask,
                           uint64_t expected, uint64_t actual);

#ifdef __cplusplus
}
#endif

#endif
