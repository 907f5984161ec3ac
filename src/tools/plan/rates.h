/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SEP_TOOLS_RATES_H
#define SEP_TOOLS_RATES_H

#include <model/adapter.h>

/*
 * What programs that predict rates have in common.
 */

/* Instructions of an 8-byte put and of its completion, by who is in the way
 * (docs/categories.md, docs/tuning.md; contrib/bench-insn.sh) */
#define SEP_RATES_INSN_PUT         66
#define SEP_RATES_INSN_PUT_UUAR    75  /* With the lock of a shared uUAR */
#define SEP_RATES_INSN_PUT_HUB     193
#define SEP_RATES_INSN_COMPLETION  75


/**
 * Read the parameters of an adapter.
 *
 * @param [in]  path       The file, NULL: ours.
 * @param [in]  name       The adapter.
 * @param [out] message    What is wrong, SEP_MODEL_MESSAGE_MAX bytes.
 *
 * @return 0, or -1.
 */
int sep_rates_read_adapter(const char *path, const char *name,
                           sep_model_adapter_t *adapter_p, char *message);

#endif
