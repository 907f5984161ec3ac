/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/objs/procmaps.h>

#include <fcntl.h>
#include <string.h>
#include <unistd.h>


void mlx5sim_procmaps_read(int (*line_cb)(void *arg, const char *line),
                           void *arg)
{
    size_t used = 0;
    int go_on   = 1;
    char buf[8192];
    char *line, *end;
    ssize_t n;
    int fd;

    fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return;
    }

    while (go_on &&
           ((n = read(fd, buf + used, sizeof(buf) - 1 - used)) > 0)) {
        used     += n;
        buf[used] = '\0';
        line      = buf;
        while (go_on &&
               ((end = memchr(line, '\n', buf + used - line)) != NULL)) {
            *end  = '\0';
            go_on = line_cb(arg, line);
            line  = end + 1;
        }

        used -= line - buf;
        memmove(buf, line, used);
    }

    close(fd);
}
