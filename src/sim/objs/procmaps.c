/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/objs/procmaps.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>


/* @return what the callback does */
static int
mlx5sim_procmaps_call(const char *text,
                      int (*line_cb)(void *arg,
                                     const mlx5sim_procmaps_line_t *line),
                      void *arg)
{
    mlx5sim_procmaps_line_t line = {.text = text};
    unsigned long lo, hi, offset, inode;
    unsigned dev_major, dev_minor;
    char perms[5];

    if (sscanf(text, "%lx-%lx %4s %lx %x:%x %lu", &lo, &hi, perms, &offset,
               &dev_major, &dev_minor, &inode) != 7) {
        return 1;
    }

    line.addr       = lo;
    line.length     = hi - lo;
    line.protection = ((perms[0] == 'r') ? PROT_READ : 0) |
                      ((perms[1] == 'w') ? PROT_WRITE : 0) |
                      ((perms[2] == 'x') ? PROT_EXEC : 0);
    line.is_private = perms[3] == 'p';
    line.offset     = offset;
    line.dev        = makedev(dev_major, dev_minor);
    line.inode      = inode;
    return line_cb(arg, &line);
}

int mlx5sim_procmaps_read(pid_t pid,
                          int (*line_cb)(void *arg,
                                         const mlx5sim_procmaps_line_t *line),
                          void *arg)
{
    char path[32];
    size_t used = 0;
    int go_on   = 1;
    char buf[8192];
    char *line, *end;
    ssize_t n = 0;
    int fd;

    /* that of the first thread is empty when it has ended, and the others go
     * on; another mount of /proc may have another process by that number */
    if (pid == getpid()) {
        snprintf(path, sizeof(path), "/proc/thread-self/maps");
    } else {
        snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }

    while (go_on &&
           ((n = read(fd, buf + used, sizeof(buf) - 1 - used)) > 0)) {
        used     += n;
        buf[used] = '\0';
        line      = buf;
        while (go_on &&
               ((end = memchr(line, '\n', buf + used - line)) != NULL)) {
            *end  = '\0';
            go_on = mlx5sim_procmaps_call(line, line_cb, arg);
            line  = end + 1;
        }

        used -= line - buf;
        memmove(buf, line, used);
    }

    close(fd);
    /* something is left where a line is too long, and is all of the buffer */
    return (go_on && ((n < 0) || (used > 0))) ? -1 : 0;
}
