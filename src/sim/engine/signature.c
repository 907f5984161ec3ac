/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/engine/signature.h>
#include <sim/engine/crc.h>
#include <sim/engine/mlx5_def.h>

#include <endian.h>
#include <string.h>

/* Parts of the number of a T10-DIF */
#define MLX5SIM_SIG_GUARD_SHIFT 48
#define MLX5SIM_SIG_APP_SHIFT   32
#define MLX5SIM_SIG_CRC32_SHIFT 32

/* T10 SBC-3: x^16 + x^15 + x^11 + x^9 + x^8 + x^7 + x^5 + x^4 + x^2 + x + 1 */
#define MLX5SIM_SIG_T10_POLY    0x8bb7u


/* Bytes of data in a block (libmlx5, bs_to_bs_selector()). 0: unknown */
static uint16_t mlx5sim_sig_block_size(unsigned selector)
{
    static const uint16_t sizes[] = {
        [MLX5SIM_BSF_BLOCK_512] = 512,   [MLX5SIM_BSF_BLOCK_520] = 520,
        [MLX5SIM_BSF_BLOCK_4096] = 4096, [MLX5SIM_BSF_BLOCK_4160] = 4160
    };

    return (selector < sizeof(sizes) / sizeof(sizes[0])) ? sizes[selector] : 0;
}

/* A domain: of a CRC the selector of its format says all; T10-DIF has a part
 * for that. @return 0 or -1 */
static int mlx5sim_sig_parse_domain(uint32_t bfs_psv, unsigned block,
                                    const mlx5sim_bsf_inl_t *inl,
                                    mlx5sim_sig_domain_t *domain_p)
{
    unsigned bfs    = bfs_psv >> MLX5SIM_BSF_BFS_SHIFT;
    uint16_t valid  = be16toh(inl->vld_refresh);

    memset(domain_p, 0, sizeof(*domain_p));
    if ((bfs == 0) && !(valid & MLX5SIM_BSF_INL_VALID)) {
        return (bfs_psv != 0) ? -1 : 0;
    }

    domain_p->psv   = bfs_psv & MLX5SIM_BSF_PSV_MASK;
    domain_p->block = mlx5sim_sig_block_size(block);
    if (domain_p->block == 0) {
        return -1;
    }

    if (bfs != 0) {
        domain_p->type     = MLX5SIM_SIG_CRC32;
        domain_p->has_seed = !(bfs & MLX5SIM_BFS_NO_SEED);
        return ((bfs & ~MLX5SIM_BFS_NO_SEED) ==
                (MLX5SIM_BFS_CRC32 | MLX5SIM_BFS_REPEAT)) ? 0 : -1;
    }

    domain_p->type       = MLX5SIM_SIG_T10DIF;
    domain_p->is_csum    = (inl->sig_type == MLX5SIM_BSF_T10DIF_CSUM);
    domain_p->has_seed   = !!(inl->rp_inv_seed & MLX5SIM_BSF_SEED);
    domain_p->is_refresh = !!(valid & MLX5SIM_BSF_REFRESH);
    domain_p->is_ref_inc = !!(inl->check & MLX5SIM_BSF_REF_INC);
    domain_p->escape     = inl->check & MLX5SIM_BSF_ESCAPE_MASK;
    domain_p->app_tag    = be16toh(inl->app_tag);
    domain_p->app_mask   = be16toh(inl->app_mask);
    domain_p->ref_tag    = be32toh(inl->ref_tag);
    return ((inl->rp_inv_seed & MLX5SIM_BSF_REPEAT) &&
            (domain_p->escape <= MLX5SIM_SIG_ESCAPE_APP_REF) &&
            (domain_p->is_csum ||
             (inl->sig_type == MLX5SIM_BSF_T10DIF_CRC))) ? 0 : -1;
}

int mlx5sim_sig_parse(const void *bsf, mlx5sim_sig_t *sig_p)
{
    const mlx5sim_bsf_t *in = bsf;
    int is_same             = !!(in->size_sbs & MLX5SIM_BSF_SAME);

    if (((in->size_sbs >> MLX5SIM_BSF_SIZE_SHIFT) != MLX5SIM_BSF_INLINE) ||
        (in->w_tfs_psv != 0) || (in->m_tfs_psv != 0) ||
        (mlx5sim_sig_parse_domain(be32toh(in->m_bfs_psv), in->mem, &in->m_inl,
                                  &sig_p->mem) != 0) ||
        (mlx5sim_sig_parse_domain(be32toh(in->w_bfs_psv),
                                  is_same ? in->mem : in->wire, &in->w_inl,
                                  &sig_p->wire) != 0) ||
        (is_same && (sig_p->mem.type != sig_p->wire.type))) {
        return -1;
    }

    sig_p->check_mask = in->check_byte_mask;
    sig_p->copy_mask  = is_same ? in->wire : 0;
    return 0;
}

unsigned mlx5sim_sig_size(const mlx5sim_sig_domain_t *domain)
{
    return (domain->type == MLX5SIM_SIG_T10DIF) ? 8 :
           (domain->type == MLX5SIM_SIG_CRC32)  ? 4 : 0;
}

uint64_t mlx5sim_sig_place(const mlx5sim_sig_domain_t *domain, uint64_t data)
{
    return (domain->type == MLX5SIM_SIG_NONE) ? data :
           data + (data / domain->block) * mlx5sim_sig_size(domain);
}

uint64_t mlx5sim_sig_data(const mlx5sim_sig_domain_t *domain, uint64_t length)
{
    uint64_t unit = domain->block + mlx5sim_sig_size(domain);
    uint64_t rest;

    if (domain->type == MLX5SIM_SIG_NONE) {
        return length;
    }

    rest = length % unit;
    return (length / unit) * domain->block +
           ((rest < domain->block) ? rest : domain->block);
}

uint64_t mlx5sim_sig_wire_length(const mlx5sim_sig_t *sig, uint64_t mem)
{
    return mlx5sim_sig_place(&sig->wire, mlx5sim_sig_data(&sig->mem, mem));
}

static uint16_t mlx5sim_sig_t10_crc(uint16_t crc, const uint8_t *data,
                                    unsigned length)
{
    unsigned i, bit;

    for (i = 0; i < length; ++i) {
        crc ^= data[i] << 8;
        for (bit = 0; bit < 8; ++bit) {
            crc = (crc << 1) ^ ((crc >> 15) * MLX5SIM_SIG_T10_POLY);
        }
    }

    return crc;
}

/* RFC 1071, of 16-bit words as they are on the wire */
static uint16_t mlx5sim_sig_csum(uint16_t seed, const uint8_t *data,
                                 unsigned length)
{
    uint32_t sum = seed;
    unsigned i;

    for (i = 0; i < length; i += 2) {
        sum += (data[i] << 8) | data[i + 1];
    }
    while (sum >> 16) {
        sum = (sum & 0xffff) + (sum >> 16);
    }

    return ~sum;
}

uint64_t mlx5sim_sig_make(const mlx5sim_sig_domain_t *domain, uint64_t number,
                          const uint8_t *data)
{
    uint16_t seed = domain->has_seed ? 0xffff : 0;
    uint32_t ref  = domain->ref_tag + domain->is_ref_inc * (uint32_t)number;
    uint64_t guard;

    /* that of FC-PH is Ethernet's; inverted at the end whatever it starts with
     * (SPDK, accel_mlx5_crc_task_complete()) */
    if (domain->type == MLX5SIM_SIG_CRC32) {
        return (uint64_t)(uint32_t)~mlx5sim_crc_add(
                       domain->has_seed ? UINT32_MAX : 0u, data, domain->block)
               << MLX5SIM_SIG_CRC32_SHIFT;
    }

    guard = domain->is_csum ? mlx5sim_sig_csum(seed, data, domain->block) :
                              mlx5sim_sig_t10_crc(seed, data, domain->block);
    return (guard << MLX5SIM_SIG_GUARD_SHIFT) |
           ((uint64_t)domain->app_tag << MLX5SIM_SIG_APP_SHIFT) | ref;
}

void mlx5sim_sig_encode(const mlx5sim_sig_domain_t *domain, uint64_t value,
                        uint8_t *out_p)
{
    uint64_t t10   = htobe64(value);
    uint32_t crc32 = htole32(value >> MLX5SIM_SIG_CRC32_SHIFT);

    memcpy(out_p,
           (domain->type == MLX5SIM_SIG_CRC32) ? (void*)&crc32 : (void*)&t10,
           mlx5sim_sig_size(domain));
}

uint64_t
mlx5sim_sig_decode(const mlx5sim_sig_domain_t *domain, const uint8_t *in)
{
    uint32_t crc32;
    uint64_t t10;

    if (domain->type == MLX5SIM_SIG_CRC32) {
        memcpy(&crc32, in, sizeof(crc32));
        return (uint64_t)le32toh(crc32) << MLX5SIM_SIG_CRC32_SHIFT;
    }

    memcpy(&t10, in, sizeof(t10));
    return be64toh(t10);
}

/* Bits of a number, of bytes in a mask: its highest bit is the highest byte */
static uint64_t mlx5sim_sig_bits(uint8_t mask)
{
    uint64_t bits = 0;
    unsigned i;

    for (i = 0; i < 8; ++i) {
        bits |= ((mask >> i) & 1) ? 0xffull << (8 * i) : 0;
    }
    return bits;
}

uint64_t mlx5sim_sig_merge(uint64_t value, uint64_t other, uint8_t mask)
{
    uint64_t bits = mlx5sim_sig_bits(mask);

    return (value & ~bits) | (other & bits);
}

unsigned mlx5sim_sig_check(const mlx5sim_sig_domain_t *domain, uint8_t mask,
                           uint64_t expected, uint64_t actual)
{
    uint64_t differ = (expected ^ actual) & mlx5sim_sig_bits(mask);
    uint16_t app    = expected >> MLX5SIM_SIG_APP_SHIFT;

    if (domain->type == MLX5SIM_SIG_CRC32) {
        return (differ != 0) ? MLX5SIM_SIGERR_GUARD : 0;
    }

    if ((domain->escape != MLX5SIM_SIG_ESCAPE_NEVER) && (app == UINT16_MAX) &&
        ((domain->escape == MLX5SIM_SIG_ESCAPE_APP) ||
         ((uint32_t)expected == UINT32_MAX))) {
        return 0;
    }

    if (differ >> MLX5SIM_SIG_GUARD_SHIFT) {
        return MLX5SIM_SIGERR_GUARD;
    }

    if ((differ >> MLX5SIM_SIG_APP_SHIFT) & domain->app_mask) {
        return MLX5SIM_SIGERR_APP;
    }

    return ((uint32_t)differ != 0) ? MLX5SIM_SIGERR_REF : 0;
}
