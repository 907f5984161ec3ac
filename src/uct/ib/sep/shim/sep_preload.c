/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Preload shim: makes an unmodified UCX load the transport.
 *
 * The list of modules is compiled into UCX, so the only way in is before it
 * looks at its transports: uct_query_components() is the first function that an
 * application (or libucp for it) calls. This library interposes it. It needs
 * nothing but the C library, so it can be preloaded into any process, and costs
 * nothing in those that do not use UCX.
 *
 * The path of the transport is taken from SEP_MODULE, or it is next to this
 * file.
 */

#define SEP_PRELOAD_MODULE  "libuct_sep.so"

/* UCS_ERR_UNSUPPORTED */
#define SEP_PRELOAD_ERR     (-22)

/* ucs_status_t is an enumeration of one byte, components are opaque here */
typedef signed char (*sep_preload_query_func_t)(void ***components_p,
                                                unsigned *num_components_p);

static pthread_once_t sep_preload_once = PTHREAD_ONCE_INIT;
static sep_preload_query_func_t sep_preload_real;


static int sep_preload_find(char *path, size_t max)
{
    const char *env = getenv("SEP_MODULE");
    const char *slash;
    Dl_info info;
    int ret;

    if ((env != NULL) && (env[0] != '\0')) {
        ret = snprintf(path, max, "%s", env);
    } else {
        /* Don't follow links: a build tree has links to all its modules in one
         * directory */
        if (!dladdr((const void*)sep_preload_find, &info) ||
            ((slash = strrchr(info.dli_fname, '/')) == NULL)) {
            fprintf(stderr, "sep: could not find out where " SEP_PRELOAD_MODULE
                    " is: set SEP_MODULE\n");
            return 0;
        }

        ret = snprintf(path, max, "%.*s/" SEP_PRELOAD_MODULE,
                       (int)(slash - info.dli_fname), info.dli_fname);
    }

    if ((ret < 0) || ((size_t)ret >= max)) {
        fprintf(stderr, "sep: path of " SEP_PRELOAD_MODULE " is too long\n");
        return 0;
    }

    return 1;
}

static void sep_preload_init(void)
{
    char path[PATH_MAX];
    void *uct;

    /* It is loaded, or nobody would be calling; possibly where RTLD_NEXT does
     * not reach it, as in Open MPI's plugins */
    uct = dlopen("libuct.so.0", RTLD_LAZY | RTLD_NOLOAD);
    if (uct != NULL) {
        sep_preload_real = (sep_preload_query_func_t)
                           dlsym(uct, "uct_query_components");
    } else {
        sep_preload_real = (sep_preload_query_func_t)
                           dlsym(RTLD_NEXT, "uct_query_components");
    }

    if (sep_preload_real == NULL) {
        fprintf(stderr, "sep: uct_query_components() is not to be found in "
                "libuct.so.0: %s\n", dlerror());
        return;
    }

    if (!sep_preload_find(path, sizeof(path))) {
        return;
    }

    /* Registers itself. UCT keeps what is registered for good. */
    if (dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) == NULL) {
        fprintf(stderr, "sep: transport sep_mlx5 is not available: %s\n",
                dlerror());
    }
}

__attribute__((visibility("default")))
signed char
uct_query_components(void ***components_p, unsigned *num_components_p);

signed char
uct_query_components(void ***components_p, unsigned *num_components_p)
{
    pthread_once(&sep_preload_once, sep_preload_init);
    if (sep_preload_real == NULL) {
        return SEP_PRELOAD_ERR;
    }

    return sep_preload_real(components_p, num_components_p);
}
