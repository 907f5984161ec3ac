/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_TEST_APP_ALL_H
#define SEP_TEST_APP_ALL_H

#include "dgemm.h"
#include "stencil.h"

static const app_kernel_t *app_kernels[] = {&dgemm_kernel, &stencil_kernel,
                                            NULL};

#endif
