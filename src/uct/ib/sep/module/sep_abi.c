/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <uct/ib/sep/module/sep_abi.h>

#include "sep_ucx_abi.h"
#include <uct/ib/sep/compat/sep_compat_async.h>
#include <uct/ib/sep/compat/sep_compat_symbols.h>

#include <ucs/datastruct/arbiter.h>
#include <ucs/debug/log.h>
#include <uct/base/uct_iface.h>
#include <uct/base/uct_worker.h>

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>


/* Bytes that ucs_arbiter_group_init() leaves alone keep this value. */
#define UCT_SEP_ABI_UNTOUCHED 0xa5


/* The classes are exported, but only some of their headers declare them. */
extern ucs_class_t UCS_CLASS_DECL_NAME(uct_iface_t);
extern ucs_class_t UCS_CLASS_DECL_NAME(uct_base_iface_t);
extern ucs_class_t UCS_CLASS_DECL_NAME(uct_ep_t);
extern ucs_class_t UCS_CLASS_DECL_NAME(uct_base_ep_t);
extern ucs_class_t UCS_CLASS_DECL_NAME(uct_worker_t);
extern ucs_class_t UCS_CLASS_DECL_NAME(uct_priv_worker_t);


#define UCT_SEP_ABI_CLASS(_type) \
    {#_type, sizeof(_type), &UCS_CLASS_DECL_NAME(_type)}

static const struct {
    const char        *name;
    size_t            size;    /* Here */
    const ucs_class_t *loaded;
} uct_sep_abi_classes[UCT_SEP_ABI_NUM_CLASSES] = {
    UCT_SEP_ABI_CLASS(uct_iface_t),
    UCT_SEP_ABI_CLASS(uct_base_iface_t),
    UCT_SEP_ABI_CLASS(uct_ep_t),
    UCT_SEP_ABI_CLASS(uct_base_ep_t),
    UCT_SEP_ABI_CLASS(uct_worker_t),
    UCT_SEP_ABI_CLASS(uct_priv_worker_t)
};

static uint32_t uct_sep_abi_built_symbols(void)
{
    uint32_t symbols = 0;
    unsigned i;

    for (i = 0; uct_sep_compat_symbols[i].name != NULL; ++i) {
        symbols |= (uint32_t)uct_sep_compat_symbols[i].is_there << i;
    }

    return symbols;
}

void uct_sep_abi_get_built(uct_sep_abi_t *abi_p)
{
    unsigned i;

    abi_p->version    = SEP_UCX_VERSION_STRING;
#ifdef ENABLE_STATS
    abi_p->stats      = 1;
#else
    abi_p->stats      = 0;
#endif
    abi_p->assertions = UCS_ENABLE_ASSERT;
    abi_p->symbols    = uct_sep_abi_built_symbols();
    for (i = 0; i < UCT_SEP_ABI_NUM_CLASSES; ++i) {
        abi_p->sizes[i] = uct_sep_abi_classes[i].size;
    }
}

/* A function of a library that is loaded already, even with RTLD_LOCAL, as Open
 * MPI's plugins load UCX. */
static void *uct_sep_abi_find(const char *library, const char *function)
{
    void *handle, *address;

    handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL) {
        return NULL;
    }

    address = dlsym(handle, function);
    dlclose(handle);
    return address;
}

static const char *uct_sep_abi_loaded_version(void)
{
    const char *(*get_version)(void);

    get_version = (const char *(*)(void))
            uct_sep_abi_find("libucp.so.0", "ucp_get_version_string");
    return (get_version == NULL) ? NULL : get_version();
}

/* With assertions the group has members after the tail pointer, and the first
 * of them is cleared. The buffer has room for either kind. */
static int uct_sep_abi_loaded_assertions(void)
{
    union {
        ucs_arbiter_group_t group;
        unsigned char       bytes[64];
    } probe;
    size_t offset;

    memset(probe.bytes, UCT_SEP_ABI_UNTOUCHED, sizeof(probe.bytes));
    ucs_arbiter_group_init(&probe.group);

    for (offset = sizeof(ucs_arbiter_elem_t*); offset < sizeof(probe.bytes);
         ++offset) {
        if (probe.bytes[offset] != UCT_SEP_ABI_UNTOUCHED) {
            return 1;
        }
    }

    return 0;
}

static uint32_t uct_sep_abi_loaded_symbols(void)
{
    uint32_t symbols = 0;
    unsigned i;

    for (i = 0; uct_sep_compat_symbols[i].name != NULL; ++i) {
        if (uct_sep_abi_find("libuct.so.0", uct_sep_compat_symbols[i].name) !=
            NULL) {
            symbols |= 1u << i;
        }
    }

    return symbols;
}

void uct_sep_abi_get_loaded(uct_sep_abi_t *abi_p)
{
    unsigned i;

    abi_p->version    = uct_sep_abi_loaded_version();
    abi_p->stats      = uct_sep_abi_find("libucs.so.0",
                                         "ucs_stats_node_alloc") != NULL;
    abi_p->assertions = uct_sep_abi_loaded_assertions();
    abi_p->symbols    = uct_sep_abi_loaded_symbols();
    for (i = 0; i < UCT_SEP_ABI_NUM_CLASSES; ++i) {
        abi_p->sizes[i] = uct_sep_abi_classes[i].loaded->size;
    }
}

static UCS_F_PRINTF(3, 4) void
uct_sep_abi_append(char *diff, size_t max, const char *format, ...)
{
    size_t  length = strlen(diff);
    va_list ap;

    if ((length > 0) && (length + 1 < max)) {
        length += snprintf(diff + length, max - length, ", ");
    }

    if (length < max) {
        va_start(ap, format);
        vsnprintf(diff + length, max - length, format, ap);
        va_end(ap);
    }
}

static void uct_sep_abi_compare_symbols(uint32_t built, uint32_t loaded,
                                        char *diff, size_t max)
{
    unsigned i;

    for (i = 0; uct_sep_compat_symbols[i].name != NULL; ++i) {
        if ((built ^ loaded) & (1u << i)) {
            uct_sep_abi_append(diff, max, "%s() %s here and %s in the loaded "
                               "UCX", uct_sep_compat_symbols[i].name,
                               (built & (1u << i)) ? "is" : "is not",
                               (loaded & (1u << i)) ? "is" : "is not");
        }
    }
}

/* "1.13.0" and "1.13.1": what comes before the second dot */
static int uct_sep_abi_is_same_series(const char *version, const char *other)
{
    size_t length = strcspn(version, ".");

    if (version[length] == '.') {
        length += 1 + strcspn(version + length + 1, ".");
    }

    return !strncmp(version, other, length) &&
           ((other[length] == '.') || (other[length] == '\0'));
}

ucs_status_t uct_sep_abi_compare(const uct_sep_abi_t *built,
                                 const uct_sep_abi_t *loaded, char *diff,
                                 size_t max)
{
    unsigned i;

    diff[0] = '\0';

    if ((loaded->version != NULL) &&
        !uct_sep_abi_is_same_series(built->version, loaded->version)) {
        uct_sep_abi_append(diff, max,
                           "release %s here and %s in the loaded UCX",
                           built->version, loaded->version);
    }

    if (!built->stats != !loaded->stats) {
        uct_sep_abi_append(diff, max,
                           "statistics %s here and %s in the loaded UCX",
                           built->stats ? "on" : "off",
                           loaded->stats ? "on" : "off");
    }

    uct_sep_abi_compare_symbols(built->symbols, loaded->symbols, diff, max);
    for (i = 0; i < UCT_SEP_ABI_NUM_CLASSES; ++i) {
        if (built->sizes[i] != loaded->sizes[i]) {
            uct_sep_abi_append(diff, max,
                               "sizeof(%s) is %zu here and %zu in the loaded "
                               "UCX", uct_sep_abi_classes[i].name,
                               built->sizes[i], loaded->sizes[i]);
        }
    }

    return (diff[0] == '\0') ? UCS_OK : UCS_ERR_UNSUPPORTED;
}

/* Path of the file that contains an address, for the message. */
static const char *uct_sep_abi_path_of(const void *address)
{
    Dl_info info;

    return dladdr(address, &info) ? info.dli_fname : "an unknown file";
}

ucs_status_t uct_sep_abi_check(void)
{
    uct_sep_abi_t built, loaded;
    char diff[1024];

    uct_sep_abi_get_built(&built);
    uct_sep_abi_get_loaded(&loaded);
    if (uct_sep_abi_compare(&built, &loaded, diff, sizeof(diff)) == UCS_OK) {
        uct_sep_compat_async_init(loaded.assertions);
        return UCS_OK;
    }

    /* Not ucs_error(): its macro reads the log settings, whose layout cannot be
     * relied upon here. */
    fprintf(stderr,
            "sep: error: %s was built for UCX %s (%s) and cannot be used by %s:"
            " %s. The transport is not registered. Build it with"
            " --with-ucx=PREFIX of the UCX that loads it.\n",
            uct_sep_abi_path_of(uct_sep_abi_check), SEP_UCX_VERSION_STRING,
            SEP_UCX_BUILD_CONFIG,
            uct_sep_abi_path_of(&UCS_CLASS_DECL_NAME(uct_iface_t)), diff);
    return UCS_ERR_UNSUPPORTED;
}
