/* SPDX-License-Identifier: BSD-3-Clause */

/* Moves under an opmask, as vectorised copies of odd lengths use them, and the
 * moves of opmasks themselves */

#include <sim/insn/insn_int.h>


/* Bytes that one bit of the mask stands for; 0 if the move takes no mask */
static unsigned insn_mask_element(const insn_t *in)
{
    switch (in->opcode) {
    case 0x10:
    case 0x11:
    case 0x28:
    case 0x29:
        return (in->pp >= INSN_PP_F3) ? 0 : in->w ? 8 : 4;
    case 0x6f:
    case 0x7f:
        return (in->pp == INSN_PP_F2) ? (in->w ? 2 : 1) : (in->w ? 8 : 4);
    default:
        return 0;
    }
}


/* Next run of set bits at or after *begin_p. False if there is none. */
static int insn_mask_run(uint64_t mask, unsigned *begin_p, unsigned *end_p)
{
    uint64_t rest;

    if (*begin_p >= 64) {
        return 0;
    }
    rest = mask >> *begin_p;
    if (rest == 0) {
        return 0;
    }
    *begin_p += __builtin_ctzl(rest);
    rest      = ~(mask >> *begin_p);
    *end_p    = (rest == 0) ? 64 : *begin_p + __builtin_ctzl(rest);
    return 1;
}


static insn_step_t insn_masked_store(insn_exec_t *x, const insn_t *in,
                                     uint64_t addr, uint64_t mask,
                                     unsigned element)
{
    insn_vec_t value;
    unsigned begin, end;
    insn_step_t step;

    /* All or nothing */
    for (begin = 0; insn_mask_run(mask, &begin, &end); begin = end) {
        if (!insn_store_allowed(x, addr + (begin * element),
                                (end - begin) * element)) {
            return INSN_STEP_REFUSED;
        }
    }
    insn_vec_read(x->cpu, in->reg, in->vl, &value);
    for (begin = 0; insn_mask_run(mask, &begin, &end); begin = end) {
        step = insn_store(x, addr + (begin * element),
                          value.b + (begin * element),
                          (end - begin) * element);
        if (step != INSN_STEP_DONE) {
            return step;
        }
    }
    return INSN_STEP_DONE;
}


/* Inactive elements of memory are not touched, as they may not exist */
static insn_step_t insn_masked_load(insn_exec_t *x, const insn_t *in,
                                    uint64_t addr, uint64_t mask,
                                    unsigned element, insn_vec_t *value)
{
    unsigned begin, end;
    insn_step_t step;

    for (begin = 0; insn_mask_run(mask, &begin, &end); begin = end) {
        step = insn_load(x, addr + (begin * element),
                         value->b + (begin * element),
                         (end - begin) * element);
        if (step != INSN_STEP_DONE) {
            return step;
        }
    }
    return INSN_STEP_DONE;
}


insn_step_t insn_vec_masked(insn_exec_t *x, const insn_t *in, unsigned align)
{
    const mlx5sim_insn_vecs_t *vecs = &x->cpu->vecs;
    unsigned element                = insn_mask_element(in);
    int is_store                    = (in->op->handler == insn_do_vstore);
    unsigned dest, source, i;
    uint64_t mask, addr;
    insn_vec_t value, old;
    insn_step_t step;

    if ((element == 0) || (in->mask == 0) || in->bcast || in->vvvv ||
        (in->zeroing && is_store && in->is_mem) || !insn_vec_usable(x, in) ||
        !(vecs->avail & MLX5SIM_INSN_XSTATE_OPMASK)) {
        return INSN_STEP_REFUSED;
    }
    mask  = (*vecs->in_use & MLX5SIM_INSN_XSTATE_OPMASK) ?
            vecs->opmask[in->mask] : 0;
    mask &= ~0ul >> (64 - (in->vl / element));

    dest   = is_store ? in->rm_vec : in->reg;
    source = is_store ? in->reg : in->rm_vec;
    if (in->is_mem) {
        addr = insn_ea(x, in);
        if ((mask != 0) && (addr % align)) {
            return INSN_STEP_REFUSED;
        }
        if (is_store) {
            return insn_masked_store(x, in, addr, mask, element);
        }
        step = insn_masked_load(x, in, addr, mask, element, &value);
        if (step != INSN_STEP_DONE) {
            return step;
        }
    } else {
        insn_vec_read(x->cpu, source, in->vl, &value);
    }

    insn_vec_read(x->cpu, dest, in->vl, &old);
    for (i = 0; i < (in->vl / element); ++i) {
        if ((mask >> i) & 1) {
            continue;
        }
        if (in->zeroing) {
            memset(value.b + (i * element), 0, element);
        } else {
            memcpy(value.b + (i * element), old.b + (i * element), element);
        }
    }
    insn_vec_write(x->cpu, dest, in->vl, &value, 1);
    return INSN_STEP_DONE;
}


/* VEX 0F 90 to 93: between opmasks, memory and general registers */
insn_step_t insn_do_kmov(insn_exec_t *x, const insn_t *in)
{
    mlx5sim_insn_vecs_t *vecs = &x->cpu->vecs;
    int gpr                   = (in->opcode >= 0x92);
    uint64_t value            = 0;
    unsigned size;
    insn_step_t step;

    /* none: W (k, m: Q with W1); 66: B (k, m: D with W1); F2: D, Q for r */
    switch (in->pp) {
    case INSN_PP_NONE:
        size = (in->w && !gpr) ? 8 : 2;
        break;
    case INSN_PP_66:
        size = (in->w && !gpr) ? 4 : 1;
        break;
    case INSN_PP_F2:
        size = !gpr ? 0 : in->w ? 8 : 4;
        break;
    default:
        size = 0;
        break;
    }
    if ((size == 0) || (gpr && in->w && (size != 8)) || (in->vl != 16) ||
        in->vvvv || !x->run->vec_valid ||
        !(vecs->avail & MLX5SIM_INSN_XSTATE_OPMASK) ||
        (in->is_mem && gpr) || (!in->is_mem && (in->opcode == 0x91)) ||
        ((in->opcode != 0x93) && (in->reg > 7)) ||
        (!in->is_mem && (in->opcode != 0x92) && (in->rm > 7))) {
        return INSN_STEP_REFUSED;
    }

    if (!(*vecs->in_use & MLX5SIM_INSN_XSTATE_OPMASK)) {
        memset(vecs->opmask, 0, 8 * sizeof(*vecs->opmask));
    }
    switch (in->opcode) {
    case 0x91:
        return insn_store(x, insn_ea(x, in), &vecs->opmask[in->reg], size);
    case 0x93:
        x->cpu->gpr[in->reg] = vecs->opmask[in->rm] & insn_mask(size);
        return INSN_STEP_DONE;
    case 0x92:
        value = x->cpu->gpr[in->rm];
        break;
    default:
        if (in->is_mem) {
            step = insn_load(x, insn_ea(x, in), &value, size);
            if (step != INSN_STEP_DONE) {
                return step;
            }
        } else {
            value = vecs->opmask[in->rm];
        }
        break;
    }
    *vecs->in_use        |= MLX5SIM_INSN_XSTATE_OPMASK;
    vecs->opmask[in->reg] = value & insn_mask(size);
    return INSN_STEP_DONE;
}
