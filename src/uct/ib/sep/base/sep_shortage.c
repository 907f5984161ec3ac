/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/sep/base/sep_shortage.h>

#include <ucs/sys/sys.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>


/* Whether the process could still map a page, as libmlx5 does for a UAR */
static int uct_sep_shortage_can_map(void)
{
    int saved = errno;
    void *page;

    page = mmap(NULL, ucs_get_page_size(), PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED) {
        munmap(page, ucs_get_page_size());
    }
    errno = saved;
    return page != MAP_FAILED;
}

uct_sep_shortage_t uct_sep_shortage_get(int error)
{
    if (!uct_sep_shortage_can_map()) {
        return UCT_SEP_SHORTAGE_MEMORY;
    }

    switch (error) {
    case ENOMEM:
    case EAGAIN:
        return UCT_SEP_SHORTAGE_DEVICE;
    default:
        return UCT_SEP_SHORTAGE_NONE;
    }
}

/* Others on the node may have what is missing here */
static const char *uct_sep_shortage_device(const char *device)
{
    static __thread char text[256];

    if (device[0] == '\0') {
        return device;
    }
    snprintf(text, sizeof(text), "%s. \"sep_info --node live\" shows who has "
             "what", device);
    return text;
}

const char *uct_sep_shortage_hint(int error, const char *device)
{
    switch (uct_sep_shortage_get(error)) {
    case UCT_SEP_SHORTAGE_MEMORY:
        return ". The process can map no more memory, see ulimit -v";
    case UCT_SEP_SHORTAGE_DEVICE:
        return uct_sep_shortage_device(device);
    default:
        return "";
    }
}
