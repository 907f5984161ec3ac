/* SPDX-License-Identifier: BSD-3-Clause */

#include <common/step.h>

#include <dlfcn.h>

int step::make()
{
    static auto func = (int (*)())dlsym(RTLD_DEFAULT, "mlx5sim_step");

    return (func == nullptr) ? -1 : func();
}

void step::restart(uint64_t seed)
{
    static auto func = (void (*)(uint64_t))dlsym(RTLD_DEFAULT,
                                                 "mlx5sim_restart");

    if (func != nullptr) {
        func(seed);
    }
}
