/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Preload shim: makes an unmodified UCX load the transport.
 *
 * Before UCX 1.22 the list of modules is compiled into UCX, so the only way in
 * is before it looks at its transports: uct_query_components() is the first
 * function that an application (or libucp for it) calls. This one interposes
 * it. It needs nothing but the C library, so it can be preloaded into any
 * process, and costs nothing in those that do not use UCX.
 *
 * The path of the transport is taken from SEP_MODULE. Otherwise it is in a
 * directory for the version of UCX that is loaded, ucx-<major>.<minor> beside
 * this file, or, if nobody knows the version, beside this file; the module then
 * finds out whether it fits.
 */

#define SEP_PRELOAD_DEFAULT "libuct_sep.so"
#define SEP_PRELOAD_MODULE  "libuct_sep.so.0"
#define SEP_PRELOAD_SERIES  "ucx-"

/* UCS_ERR_UNSUPPORTED */
#define SEP_PRELOAD_ERR     (-22)

/* ucs_status_t is an enumeration of one byte, components are opaque here */
typedef signed char (*sep_preload_query_func_t)(void ***components_p,
                                                unsigned *num_components_p);

static pthread_once_t sep_preload_once = PTHREAD_ONCE_INIT;
static sep_preload_query_func_t sep_preload_real;


/* Length of this file's directory in its path, or 0 after a message. Links are
 * not followed: a build tree has links to all its modules in one directory. */
static int sep_preload_dir(const char **path_p)
{
    const char *slash;
    Dl_info info;

    if (!dladdr((const void*)sep_preload_dir, &info) ||
        ((slash = strrchr(info.dli_fname, '/')) == NULL)) {
        fprintf(stderr, "sep: could not find out where " SEP_PRELOAD_MODULE
                " is: set SEP_MODULE\n");
        return 0;
    }

    *path_p = info.dli_fname;
    return (int)(slash - info.dli_fname);
}

/* Version of UCX that is loaded: libucp knows it. Without libucp, none. */
static const char *sep_preload_ucx_version(void)
{
    const char *(*get_version)(void) = NULL;
    void *ucp;

    ucp = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
    if (ucp != NULL) {
        get_version = (const char *(*)(void))dlsym(ucp,
                                                   "ucp_get_version_string");
        dlclose(ucp);
    }
    return (get_version == NULL) ? NULL : get_version();
}

static void sep_preload_no_module(const char *version, const char *wanted,
                                  const char *dir, int dir_len)
{
    char path[PATH_MAX];
    struct dirent *entry;
    int count = 0;
    DIR *dp;

    fprintf(stderr, "sep: transport sep_mlx5 is not available: this is UCX %s, "
            "and there is no %s. Installed are modules for:", version, wanted);
    snprintf(path, sizeof(path), "%.*s", dir_len, dir);
    dp = opendir(path);
    if (dp != NULL) {
        while ((entry = readdir(dp)) != NULL) {
            if (!strncmp(entry->d_name, SEP_PRELOAD_SERIES,
                         strlen(SEP_PRELOAD_SERIES))) {
                fprintf(stderr, " UCX %s",
                        entry->d_name + strlen(SEP_PRELOAD_SERIES));
                ++count;
            }
        }
        closedir(dp);
    }
    fprintf(stderr, "%s\n", (count == 0) ? " none" : "");
}

static int sep_preload_find(char *path, size_t max)
{
    const char *env = getenv("SEP_MODULE");
    const char *version, *dir;
    unsigned major, minor;
    int ret, dir_len;

    if ((env != NULL) && (env[0] != '\0')) {
        ret = snprintf(path, max, "%s", env);
    } else {
        dir_len = sep_preload_dir(&dir);
        if (dir_len == 0) {
            return 0;
        }

        version = sep_preload_ucx_version();
        if ((version != NULL) &&
            (sscanf(version, "%u.%u", &major, &minor) == 2)) {
            ret = snprintf(path, max,
                           "%.*s/" SEP_PRELOAD_SERIES "%u.%u/"
                           SEP_PRELOAD_MODULE, dir_len, dir, major, minor);
            if ((ret > 0) && ((size_t)ret < max) && access(path, R_OK)) {
                sep_preload_no_module(version, path, dir, dir_len);
                return 0;
            }
        } else {
            ret = snprintf(path, max, "%.*s/" SEP_PRELOAD_DEFAULT, dir_len,
                           dir);
        }
    }

    if ((ret < 0) || ((size_t)ret >= max)) {
        fprintf(stderr, "sep: path of " SEP_PRELOAD_MODULE " is too long\n");
        return 0;
    }

    return 1;
}

static void sep_preload_init(void)
{
    const char *version;
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

    /* Before it is of use: what is said of an error does not outlive a call */
    version = sep_preload_ucx_version();

    /* Registers itself. UCT keeps what is registered for good. */
    if (dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) == NULL) {
        fprintf(stderr, "sep: transport sep_mlx5 is not available, this is UCX "
                "%s: %s\n", (version == NULL) ? "of unknown version" : version,
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
