/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Which UCX a program would load, for sep-run.
 *
 * usage: sep_find_ucx [LIBUCS [LIBUCP]]
 *
 * Prints the version, "plugins" or "preload", and the path of libucs, or
 * nothing if there is no UCX. Without an argument it is the one that the
 * dynamic loader finds. LIBUCP is the libucp that goes with LIBUCS, if that is
 * known. UCX is loaded to ask for its version; it has no say in
 * anything else, so the program is not linked with it.
 */

#define SEP_FIND_UCX_UCS "libucs.so.0"
#define SEP_FIND_UCX_UCP "libucp.so.0"

extern char **environ;


/* What the user says of UCX is not for this program: neither warnings about it
 * nor what it has UCX do */
static void sep_find_ucx_clear_environment(void)
{
    char name[256];
    char **entry;
    size_t length;

    for (entry = environ; *entry != NULL;) {
        length = strcspn(*entry, "=");
        if (!strncmp(*entry, "UCX_", 4) && (length < sizeof(name))) {
            memcpy(name, *entry, length);
            name[length] = '\0';
            unsetenv(name); /* Moves those behind it */
        } else {
            ++entry;
        }
    }
    setenv("UCX_VFS_ENABLE", "n", 1);
    setenv("UCX_HANDLE_ERRORS", "none", 1);
}

/* Whether libucs looks for modules where the user says: it has the variable's
 * name then */
static int sep_find_ucx_has_plugins(const char *path)
{
    static const char name[] = "PLUGIN_PATH";
    int found                = 0;
    struct stat status;
    void *content;
    int fd;

    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }

    if ((fstat(fd, &status) == 0) && (status.st_size > 0)) {
        content = mmap(NULL, status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (content != MAP_FAILED) {
            /* With the terminating zero, and not the end of another name */
            found = memmem(content, status.st_size, name, sizeof(name)) != NULL;
            munmap(content, status.st_size);
        }
    }

    close(fd);
    return found;
}

/* Load libucp from a place relative to the directory of libucs. Returns NULL if
 * it is not there. */
static void *sep_find_ucx_open_ucp(const char *ucs, const char *place)
{
    const char *slash = strrchr(ucs, '/');
    char path[PATH_MAX];
    int length;

    if (slash == NULL) {
        return NULL;
    }

    length = snprintf(path, sizeof(path), "%.*s/%s" SEP_FIND_UCX_UCP,
                      (int)(slash - ucs), ucs, place);
    return (length < (int)sizeof(path)) ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) :
                                          NULL;
}

/* libucp knows the version. It comes with libucs: in the same directory if both
 * are installed, and beside it where UCX was built. What the loader finds by
 * itself may be of another UCX. */
static const char *sep_find_ucx_version(const char *ucs, const char *linked_ucp)
{
    const char *(*get_version)(void);
    void *ucp = NULL;

    if (linked_ucp != NULL) {
        ucp = dlopen(linked_ucp, RTLD_LAZY | RTLD_LOCAL);
    }

    if (ucp == NULL) {
        ucp = sep_find_ucx_open_ucp(ucs, "");
    }

    if (ucp == NULL) {
        ucp = sep_find_ucx_open_ucp(ucs, "../../ucp/.libs/");
    }

    if (ucp == NULL) {
        ucp = dlopen(SEP_FIND_UCX_UCP, RTLD_LAZY | RTLD_LOCAL);
    }

    if (ucp == NULL) {
        return NULL;
    }

    get_version = (const char *(*)(void))dlsym(ucp, "ucp_get_version_string");
    return (get_version == NULL) ? NULL : get_version();
}

/* Where to print the answer. What UCX itself writes to standard output, as it
 * does when it is loaded where there is no /proc, goes to standard error */
static int sep_find_ucx_output(void)
{
    int fd = dup(STDOUT_FILENO);

    if ((fd < 0) || (dup2(STDERR_FILENO, STDOUT_FILENO) < 0)) {
        perror("sep_find_ucx: standard output");
        exit(EXIT_FAILURE);
    }

    return fd;
}

int main(int argc, char **argv)
{
    int output           = sep_find_ucx_output();
    struct link_map *map = NULL;
    const char *version;
    void *ucs;

    sep_find_ucx_clear_environment();
    ucs = dlopen((argc > 1) ? argv[1] : SEP_FIND_UCX_UCS,
                 RTLD_LAZY | RTLD_LOCAL);
    if ((ucs == NULL) || (dlinfo(ucs, RTLD_DI_LINKMAP, &map) != 0)) {
        return 0;
    }

    version = sep_find_ucx_version(map->l_name, (argc > 2) ? argv[2] : NULL);
    dprintf(output, "%s %s %s\n", (version == NULL) ? "unknown" : version,
            sep_find_ucx_has_plugins(map->l_name) ? "plugins" : "preload",
            map->l_name);
    _exit(0); /* What UCX does when it is unloaded is of no interest */
}
