/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/doorbell/patch_jump.h>
#include <sim/libc/real.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MLX5SIM_PATCH_INT3  0xcc
#define MLX5SIM_PATCH_JMP   0xe9
#define MLX5SIM_PATCH_PAGE  4096ul

/* Pages that are tried for a jump that leaves a choice */
#define MLX5SIM_PATCH_TRIES 128

/* What a store that serves all kinds of memory may cost */
#define MLX5SIM_PATCH_STRANGERS 1000

/* How far what is interpreted may move the program's stack pointer down */
#define MLX5SIM_PATCH_STACK    1024

/* Space that stays as it is: that, the red zone below it (psABI), and there the
 * address at which the thread goes on */
#define MLX5SIM_PATCH_RED_ZONE 128
#define MLX5SIM_PATCH_SPACE \
    (MLX5SIM_PATCH_STACK + MLX5SIM_PATCH_RED_ZONE + 16)

/* What mlx5sim_patch_entry() has on the stack, behind that space */
typedef struct {
    uint64_t gpr[16];
    uint64_t rflags;
    uint64_t site;
} mlx5sim_patch_frame_t;

/* What a jump leads to. */
typedef struct __attribute__((packed)) {
    uint8_t  lea[8];          /* lea -MLX5SIM_PATCH_SPACE(%rsp), %rsp */
    uint8_t  push;            /* push $site */
    uint32_t site;
    uint8_t  jmp[6];          /* jmp *entry(%rip) */
    uint64_t entry;
} mlx5sim_patch_room_t;

/* Behind the copy of the instruction */
typedef struct __attribute__((packed)) {
    uint8_t  jmp[6];          /* jmp *back(%rip) */
    uint64_t back;
} mlx5sim_patch_back_t;

static mlx5sim_patch_store_t mlx5sim_patch_store;

/* Stores that were replaced, by number */
static struct {
    uintptr_t   addr;
    uintptr_t   copy;
    unsigned    num;       /* bytes that were changed, and what they were: */
    uint8_t     original[MLX5SIM_INSN_JUMP];
    atomic_uint strangers; /* stores to other memory since the last to the
                              device */
} mlx5sim_patch_jumps[MLX5SIM_INSN_MAX_MOVED];

static atomic_flag mlx5sim_patch_flag = ATOMIC_FLAG_INIT;
static _Atomic uintptr_t mlx5sim_patch_busy; /* being replaced */
static int mlx5sim_patch_cancel; /* state of the thread that has the lock */

/* for mlx5sim_patch_entry() */
__attribute__((visibility("hidden"))) uint64_t mlx5sim_patch_mask;
void mlx5sim_patch_entry(void);
void mlx5sim_patch_enter(mlx5sim_patch_frame_t *frame, void *xsave);
static void mlx5sim_patch_jump_undo(unsigned number);


/*
 * Saves what the psABI lets a function change, and all else that the
 * interpreter reads and writes. XSAVE wants a header of zeros. The thread goes
 * on by a return, because that needs no register.
 */
asm(".text\n"
    ".hidden mlx5sim_patch_entry\n"
    ".globl mlx5sim_patch_entry\n"
    ".type mlx5sim_patch_entry, @function\n"
    "mlx5sim_patch_entry:\n"
    "    pushfq\n"
    "    push %r15\n"
    "    push %r14\n"
    "    push %r13\n"
    "    push %r12\n"
    "    push %r11\n"
    "    push %r10\n"
    "    push %r9\n"
    "    push %r8\n"
    "    push %rdi\n"
    "    push %rsi\n"
    "    push %rbp\n"
    "    push %rsp\n"
    "    push %rbx\n"
    "    push %rdx\n"
    "    push %rcx\n"
    "    push %rax\n"
    "    cld\n"
    "    mov %rsp, %rbx\n"
    "    sub $2816, %rsp\n" /* MLX5SIM_INSN_XSAVE_MAX */
    "    and $-64, %rsp\n"
    "    xor %eax, %eax\n"
    "    mov %rax, 512(%rsp)\n"
    "    mov %rax, 520(%rsp)\n"
    "    mov %rax, 528(%rsp)\n"
    "    mov %rax, 536(%rsp)\n"
    "    mov %rax, 544(%rsp)\n"
    "    mov %rax, 552(%rsp)\n"
    "    mov %rax, 560(%rsp)\n"
    "    mov %rax, 568(%rsp)\n"
    "    mov mlx5sim_patch_mask(%rip), %eax\n"
    "    mov 4 + mlx5sim_patch_mask(%rip), %edx\n"
    "    xsave64 (%rsp)\n"
    "    mov %rbx, %rdi\n"
    "    mov %rsp, %rsi\n"
    "    call mlx5sim_patch_enter\n"
    "    mov mlx5sim_patch_mask(%rip), %eax\n"
    "    mov 4 + mlx5sim_patch_mask(%rip), %edx\n"
    "    xrstor64 (%rsp)\n"
    "    mov %rbx, %rsp\n"
    "    pop %rax\n"
    "    pop %rcx\n"
    "    pop %rdx\n"
    "    pop %rbx\n"
    "    lea 8(%rsp), %rsp\n"
    "    pop %rbp\n"
    "    pop %rsi\n"
    "    pop %rdi\n"
    "    pop %r8\n"
    "    pop %r9\n"
    "    pop %r10\n"
    "    pop %r11\n"
    "    pop %r12\n"
    "    pop %r13\n"
    "    pop %r14\n"
    "    pop %r15\n"
    "    popfq\n"
    "    mov -104(%rsp), %rsp\n" /* gpr[4] */
    "    ret $128\n"             /* MLX5SIM_PATCH_RED_ZONE */
    ".size mlx5sim_patch_entry, . - mlx5sim_patch_entry\n");


__attribute__((visibility("hidden"), used)) void
mlx5sim_patch_enter(mlx5sim_patch_frame_t *frame, void *xsave)
{
    uintptr_t rsp          = (uintptr_t)(frame + 1) + MLX5SIM_PATCH_SPACE;
    uintptr_t copy         = mlx5sim_patch_jumps[frame->site].copy;
    atomic_uint *strangers = &mlx5sim_patch_jumps[frame->site].strangers;
    int saved_errno        = errno;
    mlx5sim_insn_cpu_t cpu = {};
    uintptr_t addr;
    unsigned num;

    memcpy(cpu.gpr, frame->gpr, sizeof(cpu.gpr));
    cpu.gpr[4]   = rsp;
    cpu.rip      = mlx5sim_patch_jumps[frame->site].addr;
    cpu.rflags   = frame->rflags;
    cpu.guard.lo = (uintptr_t)xsave - (1ul << 20);
    cpu.guard.hi = rsp - MLX5SIM_PATCH_RED_ZONE;
    mlx5sim_insn_xsave_find(xsave, mlx5sim_patch_mask, &cpu.vecs);
    addr = mlx5sim_insn_store_address((const void*)cpu.rip, cpu.gpr);
    if (mlx5sim_patch_store(&cpu, addr, rsp - MLX5SIM_PATCH_STACK)) {
        atomic_store_explicit(strangers, 0, memory_order_relaxed);
    } else {
        cpu.rip = copy;
        num     = atomic_fetch_add_explicit(strangers, 1, memory_order_relaxed);
        if ((num + 1) % MLX5SIM_PATCH_STRANGERS == 0) {
            mlx5sim_patch_jump_undo(frame->site);
        }
    }

    memcpy(frame->gpr, cpu.gpr, sizeof(cpu.gpr));
    frame->rflags  = cpu.rflags;
    frame->gpr[4] -= MLX5SIM_PATCH_RED_ZONE + sizeof(cpu.rip);
    *(uint64_t*)frame->gpr[4] = cpu.rip;
    errno = saved_errno;
}

/* A page or two for a jump at @a addr, of whose displacement the first @a free
 * bytes can be chosen. Those that follow are in the program. */
static mlx5sim_patch_room_t *
mlx5sim_patch_room(uintptr_t addr, unsigned free, unsigned *size_p)
{
    uint64_t span = 1ull << (8 * free);
    uint64_t step = span / MLX5SIM_PATCH_TRIES;
    uint32_t disp = 0;
    uintptr_t first, at, page;
    void *room;
    unsigned i;

    if (free < 4) {
        memcpy(&disp, (const void*)(addr + 1), sizeof(disp));
        disp &= ~(uint32_t)(span - 1);
        first = addr + MLX5SIM_INSN_JUMP + (int32_t)disp;
    } else {
        first = addr + MLX5SIM_INSN_JUMP - (span / 2);
    }

    step = (step + MLX5SIM_PATCH_PAGE - 1) & ~(MLX5SIM_PATCH_PAGE - 1);
    for (i = 0; i < MLX5SIM_PATCH_TRIES; ++i) {
        at   = first + (i * step);
        page = at & ~(MLX5SIM_PATCH_PAGE - 1);
        if (span > MLX5SIM_PATCH_PAGE) {
            page += MLX5SIM_PATCH_PAGE;
            at    = page;
        }
        if (at - first >= span) {
            break;
        }
        *size_p = 2 * MLX5SIM_PATCH_PAGE;
        room    = REAL(mmap)((void*)page, *size_p, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                             -1, 0);
        if (room == (void*)page) {
            return (mlx5sim_patch_room_t*)at;
        } else if (room != MAP_FAILED) {
            munmap(room, *size_p); /* kernels before 4.17 choose a place */
        }
    }
    return NULL;
}

int mlx5sim_patch_lock(uintptr_t addr)
{
    int state;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    if (atomic_flag_test_and_set(&mlx5sim_patch_flag)) {
        pthread_setcancelstate(state, NULL);
        return 0;
    }

    mlx5sim_patch_cancel = state;
    atomic_store(&mlx5sim_patch_busy, addr);
    return 1;
}

void mlx5sim_patch_unlock(void)
{
    int state = mlx5sim_patch_cancel;

    atomic_store(&mlx5sim_patch_busy, 0);
    atomic_flag_clear(&mlx5sim_patch_flag);
    pthread_setcancelstate(state, NULL);
}

int mlx5sim_patch_is_busy(uintptr_t addr)
{
    return atomic_load(&mlx5sim_patch_busy) == addr;
}

/* All threads that execute the old bytes have finished (SDM 3A, "Handling
 * Self- and Cross-Modifying Code") */
static int mlx5sim_patch_sync(void)
{
    return syscall(SYS_membarrier,
                   MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
}

/* As Linux does to its own code: a breakpoint, then all but the first byte,
 * then that (arch/x86/kernel/alternative.c, text_poke_bp()). The program's text
 * may be written through this file only.
 * @return 0, or -1: it is as it was */
static int
mlx5sim_patch_write(uintptr_t addr, const uint8_t *jump, unsigned num)
{
    static const uint8_t int3 = MLX5SIM_PATCH_INT3;
    uint8_t old[MLX5SIM_INSN_JUMP];
    int fd, ret;

    fd = REAL(openat)(AT_FDCWD, "/proc/thread-self/mem", O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }

    memcpy(old, (const void*)addr, num);
    ret = (pwrite(fd, &int3, 1, addr) == 1) ? 0 : -1;
    if (ret == 0) {
        if ((mlx5sim_patch_sync() != 0) ||
            (pwrite(fd, jump + 1, num - 1, addr + 1) != num - 1) ||
            (mlx5sim_patch_sync() != 0)) {
            ret  = -1;
            jump = old;
        }
        if (((ret != 0) &&
             (pwrite(fd, old + 1, num - 1, addr + 1) != num - 1)) ||
            (pwrite(fd, jump, 1, addr) != 1)) {
            fprintf(stderr, "mlx5sim: cannot write to the program's text at "
                    "%p: %m; set MLX5SIM_PATCH_AFTER=0\n", (void*)addr);
            abort();
        }
        mlx5sim_patch_sync();
    }
    REAL(close)(fd);
    return ret;
}

/* Somebody uses the store for other memory only: put it back. A handler must
 * not meet the breakpoint, and wait for the thread that it has interrupted. */
static void mlx5sim_patch_jump_undo(unsigned number)
{
    uintptr_t addr = mlx5sim_patch_jumps[number].addr;
    sigset_t all, saved;

    sigfillset(&all);
    REAL(pthread_sigmask)(SIG_SETMASK, &all, &saved);
    if (mlx5sim_patch_lock(addr)) {
        mlx5sim_patch_write(addr, mlx5sim_patch_jumps[number].original,
                            mlx5sim_patch_jumps[number].num);
        mlx5sim_patch_unlock();
    }
    REAL(pthread_sigmask)(SIG_SETMASK, &saved, NULL);
}

/* Whether the bytes of a jump there, or those behind it that it takes as a part
 * of its displacement, are ones that change with another store */
static int mlx5sim_patch_jump_is_near(uintptr_t addr)
{
    unsigned i;

    for (i = 0; i < MLX5SIM_INSN_MAX_MOVED; ++i) {
        if ((mlx5sim_patch_jumps[i].addr != 0) &&
            (addr < mlx5sim_patch_jumps[i].addr + MLX5SIM_INSN_JUMP) &&
            (mlx5sim_patch_jumps[i].addr < addr + MLX5SIM_INSN_JUMP)) {
            return 1;
        }
    }
    return 0;
}

int mlx5sim_patch_jump_is_copy(uintptr_t addr)
{
    unsigned i;

    for (i = 0; i < MLX5SIM_INSN_MAX_MOVED; ++i) {
        if (mlx5sim_patch_jumps[i].copy == addr) {
            return 1;
        }
    }
    return 0;
}

int mlx5sim_patch_jump_make(unsigned number, uintptr_t addr)
{
    unsigned length = mlx5sim_insn_movable_store((const void*)addr);
    unsigned num    = (length < MLX5SIM_INSN_JUMP) ? length : MLX5SIM_INSN_JUMP;
    mlx5sim_patch_back_t back = {.jmp  = {0xff, 0x25},
                                 .back = addr + length};
    static const uint8_t lea[] = {0x48, 0x8d, 0xa4, 0x24};
    uint8_t jump[MLX5SIM_INSN_JUMP];
    mlx5sim_patch_room_t *room;
    uintptr_t page;
    unsigned size;
    int32_t disp;

    if ((length < 2) || mlx5sim_patch_jump_is_near(addr)) {
        return -1;
    }

    room = mlx5sim_patch_room(addr, num - 1, &size);
    if (room == NULL) {
        return -1;
    }

    disp = -MLX5SIM_PATCH_SPACE;
    memcpy(room->lea, lea, sizeof(lea));
    memcpy(room->lea + sizeof(lea), &disp, sizeof(disp));
    memcpy(room->jmp, back.jmp, sizeof(room->jmp));
    room->push  = 0x68;
    room->site  = number;
    room->entry = (uintptr_t)mlx5sim_patch_entry;
    memcpy(mlx5sim_patch_jumps[number].original, (const void*)addr, num);
    mlx5sim_patch_jumps[number].addr = addr;
    mlx5sim_patch_jumps[number].copy = (uintptr_t)(room + 1);
    mlx5sim_patch_jumps[number].num  = num;
    memcpy(room + 1, (const void*)addr, length);
    memcpy((uint8_t*)(room + 1) + length, &back, sizeof(back));

    disp    = (uintptr_t)room - (addr + MLX5SIM_INSN_JUMP);
    jump[0] = MLX5SIM_PATCH_JMP;
    memcpy(jump + 1, &disp, sizeof(disp));

    page = (uintptr_t)room & ~(MLX5SIM_PATCH_PAGE - 1);
    if ((mprotect((void*)page, size, PROT_READ | PROT_EXEC) == 0) &&
        (mlx5sim_insn_set_moved((const void*)addr, length, jump) == 0) &&
        (mlx5sim_patch_write(addr, jump, num) == 0)) {
        return 0;
    }
    munmap((void*)page, size);
    mlx5sim_patch_jumps[number].addr = 0;
    mlx5sim_patch_jumps[number].copy = 0;
    return -1;
}

int mlx5sim_patch_jump_init(mlx5sim_patch_store_t store)
{
    mlx5sim_patch_mask  = mlx5sim_insn_xsave_mask();
    mlx5sim_patch_store = store;
    return (mlx5sim_patch_mask != 0) && !mlx5sim_insn_has_shadow_stack() &&
           (syscall(SYS_membarrier,
                    MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0,
                    0) == 0);
}
