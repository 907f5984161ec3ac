/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/doorbell/patch_call.h>

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define MLX5SIM_PATCH_CALL     5 /* bytes of call rel32 */
#define MLX5SIM_PATCH_CALL_GOT 6 /* of call *disp32(%rip), jmp *disp32(%rip) */

static mlx5sim_patch_copy_t mlx5sim_patch_copy;


static void *mlx5sim_patch_memmove(void *dst, const void *src, size_t length)
{
    return mlx5sim_patch_copy((uintptr_t)dst, src, length) ?
           dst : memmove(dst, src, length);
}

/* Bytes of the program in front of @a end, and the displacement that they end
 * with. By a system call, as what the stack had may be no address of code.
 * @return Where the displacement leads, or 0 */
static uintptr_t
mlx5sim_patch_target(uintptr_t end, uint8_t code[MLX5SIM_PATCH_CALL_GOT])
{
    struct iovec to   = {.iov_base = code, .iov_len = MLX5SIM_PATCH_CALL_GOT};
    struct iovec from = {.iov_base = (void*)(end - MLX5SIM_PATCH_CALL_GOT),
                         .iov_len  = MLX5SIM_PATCH_CALL_GOT};
    int32_t disp;

    if (process_vm_readv(gettid(), &to, 1, &from, 1, 0) !=
        MLX5SIM_PATCH_CALL_GOT) {
        return 0;
    }

    memcpy(&disp, code + MLX5SIM_PATCH_CALL_GOT - sizeof(disp), sizeof(disp));
    return end + disp;
}

/* The entry of the global offset table behind a call, or 0. The stub that is
 * called for it may begin with endbr64 and bnd. */
static uintptr_t mlx5sim_patch_slot(uintptr_t back)
{
    uint8_t code[MLX5SIM_PATCH_CALL_GOT];
    uintptr_t target, slot;
    unsigned i;

    target = mlx5sim_patch_target(back, code);
    if ((target == 0) || ((code[0] == 0xff) && (code[1] == 0x15))) {
        return target;
    }

    if (code[MLX5SIM_PATCH_CALL_GOT - MLX5SIM_PATCH_CALL] != 0xe8) {
        return 0;
    }

    for (i = 0; i <= 5; ++i) {
        slot = mlx5sim_patch_target(target + i + MLX5SIM_PATCH_CALL_GOT, code);
        if ((slot != 0) && (code[0] == 0xff) && (code[1] == 0x25)) {
            return slot;
        }
    }
    return 0;
}

/* By a system call, which fails where a store would raise a signal. What is
 * there stays. */
static int mlx5sim_patch_is_writable(uintptr_t addr)
{
    struct iovec iov = {.iov_base = (void*)addr, .iov_len = sizeof(addr)};

    return process_vm_writev(gettid(), &iov, 1, &iov, 1, 0) == sizeof(addr);
}

/* Whether a word is the address of a function to be replaced */
static int mlx5sim_patch_is_memcpy(uintptr_t addr)
{
    uintptr_t word    = 0;
    struct iovec to   = {.iov_base = &word, .iov_len = sizeof(word)};
    struct iovec from = {.iov_base = (void*)addr, .iov_len = sizeof(word)};

    return (addr % sizeof(word) == 0) &&
           (process_vm_readv(gettid(), &to, 1, &from, 1, 0) == sizeof(word)) &&
           ((word == (uintptr_t)memcpy) || (word == (uintptr_t)memmove));
}

int mlx5sim_patch_call_make(uintptr_t back)
{
    uintptr_t slot   = mlx5sim_patch_slot(back);
    size_t page_size = sysconf(_SC_PAGESIZE);
    void *page       = (void*)(slot & ~(page_size - 1));
    int is_writable;

    if (!mlx5sim_patch_is_memcpy(slot)) {
        return -1;
    }

    /* it may be among what the loader protects when it has found all
     * functions */
    is_writable = mlx5sim_patch_is_writable(slot);
    if (!is_writable &&
        (mprotect(page, page_size, PROT_READ | PROT_WRITE) != 0)) {
        return -1;
    }

    atomic_store((_Atomic uintptr_t*)slot, (uintptr_t)mlx5sim_patch_memmove);
    if (!is_writable) {
        mprotect(page, page_size, PROT_READ);
    }
    return 0;
}

void mlx5sim_patch_call_init(mlx5sim_patch_copy_t copy)
{
    mlx5sim_patch_copy = copy;
}
