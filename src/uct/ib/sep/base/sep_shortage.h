/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef UCT_SEP_SHORTAGE_H
#define UCT_SEP_SHORTAGE_H

#include <ucs/sys/compiler_def.h>

BEGIN_C_DECLS

/**
 * @file sep_shortage.h
 *
 * What there is not enough of when the driver can't make something.
 */
typedef enum {
    UCT_SEP_SHORTAGE_NONE,   /**< It failed for another reason */
    UCT_SEP_SHORTAGE_MEMORY, /**< The process can map no more memory */
    UCT_SEP_SHORTAGE_DEVICE  /**< Objects of the device, such as UAR pages */
} uct_sep_shortage_t;


/**
 * Find out by the error of a command.
 *
 * The device's limits are EAGAIN and ENOMEM (kernel, mlx5_core, cmd.c: "no
 * resources" and "limits exceeded"). ENOSPC is none of them: the software
 * device says so when its file system is full. Behind "ulimit -v", mmap(2)
 * says ENOMEM as well, and for a UAR page libmlx5 makes EINVAL of that: it goes
 * on to destroy an object whose handle it has not read yet (verbs.c,
 * mlx5_alloc_dyn_uar). So whether it is memory is tried out.
 *
 * @param [in] error  Value of errno. errno itself stays as it is.
 */
uct_sep_shortage_t uct_sep_shortage_get(int error);


/**
 * What the user may do about it, for the end of a message.
 *
 * @param [in] error   Value of errno.
 * @param [in] device  What to say of the device's objects. If that is not
 *                     empty, the command that shows who has them is added.
 *
 * @return This, a sentence about memory, or an empty string; good until the
 *         thread asks again.
 */
const char *uct_sep_shortage_hint(int error, const char *device);

END_C_DECLS

#endif
