/* SPDX-License-Identifier: BSD-3-Clause */

/**
 * @file insn.h
 *
 * Interpreter for the x86-64 instructions around a doorbell.
 *
 * UAR pages are mapped so that every access raises a signal in the accessing
 * thread. The signal handler passes the interrupted context to
 * @ref mlx5sim_insn_run, which works out what the interrupted instruction
 * stores, reports it, and carries on with the instructions that follow, so
 * that the rest of a 64-byte BlueFlame copy costs no further signals. It stops
 * *before* the first instruction it does not model exactly, and the processor
 * resumes there. Stopping early is always correct.
 *
 * No locks, no allocation, no system calls: everything here may be called from
 * a signal handler. Encodings and flag semantics follow the Intel 64 and IA-32
 * Architectures Software Developer's Manual (SDM), volumes 1 and 2; the layout
 * of the saved extended state follows SDM volume 1, chapter 13, and
 * asm/sigcontext.h.
 */

#ifndef MLX5SIM_INSN_H_
#define MLX5SIM_INSN_H_

#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Longest report a store callback can get, in bytes (one 512-bit store). */
#define MLX5SIM_INSN_MAX_STORE 64

/** Defaults taken when the limits of @ref mlx5sim_insn_run_t are 0. */
#define MLX5SIM_INSN_DEFAULT_MAX_INSNS 1024
#define MLX5SIM_INSN_DEFAULT_MAX_GAP   64


/** Values of @ref mlx5sim_insn_run_t.stop. */
enum {
    MLX5SIM_INSN_STOP_NOW  = 1, /**< After the current instruction */
    /** After the current instruction and any that follow it directly and do
     *  nothing but store into the window. Preferable once a WQE is complete:
     *  glibc's memcpy of 64 bytes stores all of them twice on AVX-512 machines,
     *  and a second signal costs more than a second report. */
    MLX5SIM_INSN_STOP_SOON = 2
};


/** Half-open range of addresses, [lo, hi). An empty range has lo == hi. */
typedef struct {
    uintptr_t lo; /**< First address inside */
    uintptr_t hi; /**< First address after */
} mlx5sim_insn_window_t;


/**
 * A store into the device window.
 *
 * @param arg    @ref mlx5sim_insn_run_t.arg
 * @param addr   First address stored to; [addr, addr + length) is in the
 *               window.
 * @param data   The bytes, in memory order, valid during the call only; NULL
 *               if they are not known (a vector register is the source and
 *               @ref mlx5sim_insn_run_t.vec_valid is 0).
 * @param length Bytes stored, 1 to @ref MLX5SIM_INSN_MAX_STORE. A string
 *               instruction is reported in pieces that do not cross a 64-byte
 *               boundary; every other store is one report, unless it sticks
 *               out of the window.
 *
 * The callback may set @ref mlx5sim_insn_run_t.stop.
 */
typedef void (*mlx5sim_insn_store_cb_t)(void *arg, uintptr_t addr,
                                        const void *data, unsigned length);


/**
 * A load from the device window.
 *
 * @param arg    @ref mlx5sim_insn_run_t.arg
 * @param addr   First address read.
 * @param data   What the program gets, in memory order: zeros, as from
 *               write-only device memory, unless the callback puts others
 *               there.
 * @param length Bytes read.
 */
typedef void (*mlx5sim_insn_load_cb_t)(void *arg, uintptr_t addr, void *data,
                                       unsigned length);


/** Outcome of a run. */
typedef enum {
    MLX5SIM_INSN_OK,     /**< At least the first instruction was executed */
    MLX5SIM_INSN_UNKNOWN /**< The first instruction is not understood: nothing
                              was changed and nothing was reported */
} mlx5sim_insn_status_t;


/** Why a run ended. */
typedef enum {
    MLX5SIM_INSN_END_UNKNOWN, /**< Next instruction is not modelled */
    MLX5SIM_INSN_END_STOP,    /**< The callback asked for it */
    MLX5SIM_INSN_END_GAP,     /**< Too many instructions without a store */
    MLX5SIM_INSN_END_LIMIT    /**< Too many instructions */
} mlx5sim_insn_end_t;


/** Parameters and results of one run. Zero-initialise, then fill in. */
typedef struct {
    /** Device addresses: accesses are reported and never performed. */
    mlx5sim_insn_window_t        window;
    /** Ranges which must not be touched while interpreting, because an access
     *  would raise a signal inside the signal handler: the other device
     *  windows of the process. The run ends before such an access. */
    const mlx5sim_insn_window_t *avoid;
    unsigned                     num_avoid;  /**< Entries of @a avoid */
    /** Whether vector registers in the context are real. Valgrind leaves
     *  garbage there; with 0, stores of vector registers into the window are
     *  reported without data and every other use of one ends the run, as does
     *  an instruction that moves the stack pointer, which valgrind tracks. The
     *  general registers are real under valgrind only with its options
     *  --px-default=allregs-at-mem-access and
     *  --px-file-backed=allregs-at-mem-access. */
    int                          vec_valid;
    /** End the run before an instruction for which
     *  @ref mlx5sim_insn_orders_stores is true. */
    int                          stop_at_order;
    /** End the run before an instruction that moves the stack pointer below
     *  this: what runs the interpreter has its own things there. 0: none. */
    uint64_t                     stack_min;
    unsigned                     max_insns;  /**< Limit, 0 for the default */
    unsigned                     max_gap;    /**< End the run after this many
                                                  instructions in a row without
                                                  an access to the window, 0
                                                  for the default */
    mlx5sim_insn_store_cb_t      store_cb;   /**< Must not be NULL */
    mlx5sim_insn_load_cb_t       load_cb;    /**< May be NULL */
    void                        *arg;        /**< For the callbacks */
    volatile int                 stop;       /**< MLX5SIM_INSN_STOP_xx, set by
                                                  a callback; 0 to go on */
    unsigned                     num_insns;  /**< Out: instructions done */
    unsigned                     num_stores; /**< Out: store reports */
    unsigned                     num_loads;  /**< Out: load reports */
    mlx5sim_insn_end_t           end;        /**< Out: why it ended */
} mlx5sim_insn_run_t;


/** State components of XSAVE that hold vector registers (SDM 1, 13.1). */
#define MLX5SIM_INSN_XSTATE_SSE    (1ul << 1) /**< xmm0-15 */
#define MLX5SIM_INSN_XSTATE_YMM    (1ul << 2) /**< ymm0-15, bits 255:128 */
#define MLX5SIM_INSN_XSTATE_OPMASK (1ul << 5) /**< k0-7 */
#define MLX5SIM_INSN_XSTATE_ZMM    (1ul << 6) /**< zmm0-15, bits 511:256 */
#define MLX5SIM_INSN_XSTATE_HI16   (1ul << 7) /**< zmm16-31 */


/**
 * Vector registers, as pointers into wherever they are saved. A component that
 * is not in @a avail has no register; one that is not in @a *in_use reads as
 * zero and its memory is garbage (XSAVE's initial configuration).
 */
typedef struct {
    uint64_t  avail;  /**< MLX5SIM_INSN_XSTATE_xx that exist */
    uint64_t *in_use; /**< Components not in initial state (XSTATE_BV) */
    uint8_t  *xmm;    /**< 16 x 16 bytes */
    uint8_t  *ymm_hi; /**< 16 x 16 bytes */
    uint64_t *opmask; /**< 8 masks */
    uint8_t  *zmm_hi; /**< 16 x 32 bytes */
    uint8_t  *hi16;   /**< 16 x 64 bytes */
} mlx5sim_insn_vecs_t;


/** Processor state; the interpreter proper knows nothing of ucontext_t. */
typedef struct {
    uint64_t              gpr[16]; /**< In encoding order: rax, rcx, rdx, rbx,
                                        rsp, rbp, rsi, rdi, r8 to r15 */
    uint64_t              rip;
    uint64_t              rflags;
    mlx5sim_insn_vecs_t   vecs;
    /** Memory the interpreter itself lives on (the signal frame and the stack
     *  below it): the run ends before a store there. */
    mlx5sim_insn_window_t guard;
} mlx5sim_insn_cpu_t;


/**
 * Interpret instructions on a processor state.
 *
 * @param cpu  State to advance. Memory other than the window is read and
 *             written directly: an access that would fault natively faults.
 * @param run  Parameters and results.
 *
 * @return MLX5SIM_INSN_UNKNOWN if the first instruction was not executed.
 */
mlx5sim_insn_status_t
mlx5sim_insn_cpu_run(mlx5sim_insn_cpu_t *cpu, mlx5sim_insn_run_t *run);


/**
 * Interpret instructions from an interrupted context. To be called by a signal
 * handler that has checked that the fault lies in @a run->window. The handler
 * should have all signals blocked: a read-modify-write instruction on ordinary
 * memory is not one step for a second handler.
 *
 * Stores that would hit the signal frame or the running handler's stack end the
 * run, so the handler needs no alternate stack.
 *
 * @param uc   Context from the kernel; advanced over what was executed.
 * @param run  Parameters and results.
 *
 * @return As @ref mlx5sim_insn_cpu_run.
 */
mlx5sim_insn_status_t
mlx5sim_insn_run(ucontext_t *uc, mlx5sim_insn_run_t *run);


/**
 * Decode the length of one instruction without executing it.
 *
 * @param code  Instruction bytes. No byte after the end of the instruction, nor
 *              after @a max, is read.
 * @param max   Bytes available at @a code.
 *
 * @return Length in bytes, or 0 if the instruction is not understood or does
 *         not end within @a max. An instruction with a length may still end a
 *         run because of its operands' values.
 */
unsigned mlx5sim_insn_length(const void *code, size_t max);


/**
 * Whether stores to write-combining memory in front of an instruction are
 * visible to a device before what follows it.
 *
 * These are the events on which both vendors' processors empty their
 * write-combining buffers: SFENCE, MFENCE, serializing instructions that
 * programs can execute, and locked operations (SDM 3A, 12.3 "Write Combining";
 * AMD 25112, appendix B, "Write-Combining Completion Events"). A store to
 * uncached memory is in Intel's list only. Interrupts empty them as well, and
 * so does the kernel where a system call makes something known to another
 * thread, by the locks it takes: all system calls count. PUSHF and POPF count
 * because a program is stepped with the trap flag.
 *
 * @param addr  The instruction; no byte after its end is read.
 */
int mlx5sim_insn_orders_stores(const void *addr);


/** Bytes of a jump to anywhere within 2 GB (SDM 2, JMP: E9 cd). Fewer of them
 *  are written where it replaces a shorter instruction: those that follow are
 *  the rest of its displacement. */
#define MLX5SIM_INSN_JUMP 5

/** Instructions that can be replaced by jumps. */
#define MLX5SIM_INSN_MAX_MOVED 64


/**
 * Whether an instruction does nothing but store a register, and does the same
 * at another address.
 *
 * @return Its length in bytes, or 0.
 */
unsigned mlx5sim_insn_movable_store(const void *code);


/**
 * Where an instruction stores to.
 *
 * @param addr  One for which @ref mlx5sim_insn_movable_store is not 0, or was
 *              before it was replaced.
 * @param gpr   As in @ref mlx5sim_insn_cpu_t.
 */
uintptr_t mlx5sim_insn_store_address(const void *addr, const uint64_t gpr[16]);


/**
 * A jump is about to replace an instruction: from then on the interpreter takes
 * the one for the other. Not for two threads at a time.
 *
 * @param length  Of the instruction.
 * @param jump    What will be there.
 *
 * @return 0, or -1 if there are @ref MLX5SIM_INSN_MAX_MOVED already.
 */
int mlx5sim_insn_set_moved(const void *addr, unsigned length,
                           const uint8_t jump[MLX5SIM_INSN_JUMP]);


/** Whether the thread has a shadow stack, so that it can't return to where it
 *  was not called from (SDM 1, 17.2). */
int mlx5sim_insn_has_shadow_stack(void);


/** Room for what @ref mlx5sim_insn_xsave_mask saves, in bytes, on all
 *  processors that are known; aligned to 64. */
#define MLX5SIM_INSN_XSAVE_MAX 2816

/**
 * Registers that XSAVE has to save for the interpreter, and for functions of C
 * not to matter.
 *
 * @return Components (SDM 1, 13.1), or 0 if the processor has not got XSAVE, or
 *         needs more room.
 */
uint64_t mlx5sim_insn_xsave_mask(void);


/** Vector registers in an area of XSAVE's standard format (SDM 1, 13.4).
 *  @param mask  That of @ref mlx5sim_insn_xsave_mask, by which it was saved. */
void mlx5sim_insn_xsave_find(void *area, uint64_t mask,
                             mlx5sim_insn_vecs_t *vecs_p);

#ifdef __cplusplus
}
#endif

#endif
