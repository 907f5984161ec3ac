/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/info/sep_info_out.h>

#include <stdarg.h>
#include <unistd.h>


FILE *sep_info_out;


int sep_info_out_open(void)
{
    int fd;

    fflush(stdout);
    fd = dup(STDOUT_FILENO);
    if ((fd < 0) || (dup2(STDERR_FILENO, STDOUT_FILENO) < 0)) {
        perror("sep_info: standard output");
        return -1;
    }

    sep_info_out = fdopen(fd, "w");
    return (sep_info_out == NULL) ? -1 : 0;
}

int sep_info_out_close(void)
{
    if (fclose(sep_info_out) != 0) {
        perror("sep_info: standard output");
        return -1;
    }
    return 0;
}

void sep_info_print(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vfprintf(sep_info_out, format, ap);
    va_end(ap);
}
