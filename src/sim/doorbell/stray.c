/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/doorbell/stray.h>
#include <sim/objs/store.h>
#include <sim/uar/window.h>

#include <stdio.h>
#include <unistd.h>


void mlx5sim_stray_explain(uintptr_t addr)
{
    char text[320];
    int length;

    if (!mlx5sim_window_is_mapped(addr)) {
        return;
    }

    if (mlx5sim_self_tag == 0) {
        length = snprintf(text, sizeof(text), "mlx5sim: process %d rings a "
                          "doorbell (address %p) of a context that its parent "
                          "opened: contexts and what is made with them belong "
                          "to the process that opened them, so the child of "
                          "fork() has to open the device itself\n",
                          (int)getpid(), (void*)addr);
    } else {
        length = snprintf(text, sizeof(text), "mlx5sim: process %d rings a "
                          "doorbell (address %p) in a UAR page that was freed: "
                          "its context was closed, or its thread domain "
                          "destroyed\n", (int)getpid(), (void*)addr);
    }

    if (write(STDERR_FILENO, text, length) < 0) {
        /* there is nobody to tell */
    }
}
