/* SPDX-License-Identifier: BSD-3-Clause */

#include "peer_stage.h"

#include <valgrind/callgrind.h>

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>


static FILE *peer_stage_open(const char *path)
{
    FILE *file = fopen(path, "r");

    if (file == NULL) {
        fprintf(stderr, "%s can't be read\n", path);
        exit(1);
    }
    return file;
}

static long peer_stage_anonymous(void)
{
    FILE *file = peer_stage_open("/proc/self/status");
    long value = 0;
    char line[128];

    while (fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "RssAnon: %ld kB", &value) == 1) {
            break;
        }
    }
    fclose(file);
    return value * 1024;
}

static long peer_stage_mapped(const struct mallinfo2 *info)
{
    FILE *file = peer_stage_open("/proc/self/statm");
    long pages = 0;

    if (fscanf(file, "%ld", &pages) != 1) {
        fprintf(stderr, "/proc/self/statm has no number\n");
        exit(1);
    }
    fclose(file);
    return (pages * sysconf(_SC_PAGESIZE)) - (long)info->arena -
           (long)info->hblkhd;
}

void peer_stage_init(void)
{
    mallopt(M_ARENA_MAX, 1);
}

void peer_stage_start(void)
{
    printf("pid %d\n", (int)getpid());
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
}

void peer_stage_report(const peer_stage_t *stage, const char *name,
                       unsigned endpoints)
{
    char file[64], line[1024];
    struct mallinfo2 info;
    int length;

    snprintf(file, sizeof(file), "%s.%u", name, endpoints);
    CALLGRIND_DUMP_STATS_AT(file);

    info = mallinfo2();
    printf("%s %u %ld %ld %ld\n", name, endpoints,
           (long)(info.uordblks + info.hblkhd), peer_stage_mapped(&info),
           peer_stage_anonymous());
    fflush(stdout);

    if (stage->command != NULL) {
        length = snprintf(line, sizeof(line), "%s > '%s.%s'", stage->command,
                          stage->prefix, file);
        if ((length >= (int)sizeof(line)) || (system(line) != 0)) {
            fprintf(stderr, "failed: %s\n", line);
            exit(1);
        }
    }

    /* What was done to report is not the next stage's */
    CALLGRIND_ZERO_STATS;
}
