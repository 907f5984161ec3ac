/* SPDX-License-Identifier: BSD-3-Clause */

/* movs and stos, with and without repetition */

#include <sim/insn/insn_int.h>

/* A WC buffer's size: a longer run of a string instruction reaches the device
 * in pieces of this many aligned bytes. */
#define INSN_PIECE 64

/* Elements done without leaving the instruction; the run then checks limits. */
#define INSN_MAX_ELEMENTS 256


/* How many elements can go to the window as one report: upwards, inside it, not
 * over a 64-byte boundary. */
static unsigned insn_piece(const insn_exec_t *x, unsigned size, uint64_t count)
{
    uint64_t rdi   = x->cpu->gpr[INSN_RDI];
    unsigned bytes = INSN_PIECE - (rdi % INSN_PIECE);

    if (count < (bytes / size)) {
        bytes = count * size;
    }
    bytes -= bytes % size;
    if ((bytes <= size) || (x->cpu->rflags & INSN_DF) ||
        !insn_in_window(x, rdi, bytes)) {
        return 1;
    }
    return bytes / size;
}


static insn_step_t insn_string(insn_exec_t *x, const insn_t *in, int is_movs)
{
    uint64_t *gpr   = x->cpu->gpr;
    unsigned size   = in->size;
    int repeat      = (in->pp >= INSN_PP_F3);
    int64_t sign    = (x->cpu->rflags & INSN_DF) ? -1 : 1;
    unsigned budget = INSN_MAX_ELEMENTS;
    uint64_t rcx    = gpr[INSN_RCX];
    unsigned n, i, done = 0;
    uint8_t buf[INSN_PIECE];
    insn_step_t step;

    if (in->addr32) {
        return INSN_STEP_REFUSED;
    }
    if (repeat && !x->run->vec_valid && (x->run->num_insns == 0)) {
        /* Interrupted under valgrind, which counts rcx down before it performs
         * the element's accesses (VEX, dis_REP_op) */
        ++gpr[INSN_RCX];
    }
    if (!is_movs) {
        for (i = 0; i < sizeof(buf); i += size) {
            memcpy(buf + i, &gpr[INSN_RAX], size);
        }
    }
    for (;;) {
        if (repeat && (gpr[INSN_RCX] == 0)) {
            return INSN_STEP_DONE;
        }
        n = repeat ? insn_piece(x, size, gpr[INSN_RCX]) : 1;
        if (is_movs) {
            step = insn_load(x, gpr[INSN_RSI], buf, n * size);
            if (step != INSN_STEP_DONE) {
                break;
            }
        }
        step = insn_store(x, gpr[INSN_RDI], buf, n * size);
        if (step != INSN_STEP_DONE) {
            break;
        }
        gpr[INSN_RDI] += sign * (int64_t)(n * size);
        if (is_movs) {
            gpr[INSN_RSI] += sign * (int64_t)(n * size);
        }
        if (!repeat) {
            return INSN_STEP_DONE;
        }
        gpr[INSN_RCX] -= n;
        done           = 1;
        if (gpr[INSN_RCX] == 0) {
            return INSN_STEP_DONE;
        }
        if (x->run->stop || (n >= budget)) {
            return INSN_STEP_PARTIAL;
        }
        budget -= n;
    }
    if (done) {
        return INSN_STEP_PARTIAL;
    }
    gpr[INSN_RCX] = rcx;
    return INSN_STEP_REFUSED;
}


/* A4, A5 */
insn_step_t insn_do_movs(insn_exec_t *x, const insn_t *in)
{
    return insn_string(x, in, 1);
}


/* AA, AB */
insn_step_t insn_do_stos(insn_exec_t *x, const insn_t *in)
{
    return insn_string(x, in, 0);
}
