/* SPDX-License-Identifier: BSD-3-Clause */

#include "sim_uar.h"

#include <endian.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


#define SIM_UAR_FILE      "mlx5sim-ctx-"
#define SIM_UAR_MAX_PAGES 64
#define SIM_UAR_MAX_FILES 8
#define SIM_UAR_MAX_FDS   1024

/* Registers of a UAR page, mlx5 PRM "UAR page format" */
#define SIM_UAR_PAGE      4096
#define SIM_UAR_CQ_ARM    0x20
#define SIM_UAR_BF        0x800
#define SIM_UAR_BF_SIZE   0x100
#define SIM_UAR_NUM_BF    4


typedef struct {
    int   fd;
    off_t size;         /* up to the last page that is mapped */
    char  name[128];
} sim_uar_file_t;

static sim_uar_file_t sim_uar_files[SIM_UAR_MAX_FILES];
static unsigned sim_uar_num_files;
static volatile uint8_t *sim_uar_pages[SIM_UAR_MAX_PAGES];
static unsigned sim_uar_num_pages;


/* The descriptor of a memfd that is mapped: it is the open device. */
static int sim_uar_find_fd(const char *name)
{
    char path[64], target[128];
    ssize_t length;
    int fd;

    for (fd = 0; fd < SIM_UAR_MAX_FDS; ++fd) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        length = readlink(path, target, sizeof(target) - 1);
        if (length > 0) {
            target[length] = '\0';
            if (!strcmp(target, name)) {
                return fd;
            }
        }
    }

    return -1;
}

static sim_uar_file_t *sim_uar_get_file(const char *name)
{
    sim_uar_file_t *file;
    unsigned i;

    for (i = 0; i < sim_uar_num_files; ++i) {
        if (!strcmp(sim_uar_files[i].name, name)) {
            return &sim_uar_files[i];
        }
    }

    if (sim_uar_num_files == SIM_UAR_MAX_FILES) {
        return NULL;
    }

    file     = &sim_uar_files[sim_uar_num_files];
    file->fd = sim_uar_find_fd(name);
    if (file->fd < 0) {
        return NULL;
    }

    snprintf(file->name, sizeof(file->name), "%s", name);
    file->size = 0;
    ++sim_uar_num_files;
    return file;
}

static int sim_uar_add(uintptr_t start, uintptr_t end, off_t offset,
                       const char *name)
{
    sim_uar_file_t *file = sim_uar_get_file(name);
    uintptr_t page;

    if (file == NULL) {
        fprintf(stderr, "no descriptor of %s found\n", name);
        return -1;
    }

    if (offset + (off_t)(end - start) > file->size) {
        file->size = offset + (end - start);
    }

    for (page = start; page < end; page += SIM_UAR_PAGE) {
        if (sim_uar_num_pages == SIM_UAR_MAX_PAGES) {
            fprintf(stderr, "more than %d UAR pages are mapped\n",
                    SIM_UAR_MAX_PAGES);
            return -1;
        }

        sim_uar_pages[sim_uar_num_pages++] = (volatile uint8_t*)page;
    }

    return 0;
}

int sim_uar_find(void)
{
    int result = 0;
    char line[512], name[128];
    unsigned long start, end, offset;
    FILE *maps;
    char *found;

    sim_uar_num_files = 0;
    sim_uar_num_pages = 0;

    maps = fopen("/proc/self/maps", "r");
    if (maps == NULL) {
        return 0;
    }

    while ((result == 0) && (fgets(line, sizeof(line), maps) != NULL)) {
        found = strstr(line, "/memfd:" SIM_UAR_FILE);
        if ((found != NULL) &&
            (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3)) {
            snprintf(name, sizeof(name), "%s", found);
            name[strcspn(name, "\n")] = '\0';
            result = sim_uar_add(start, end, offset, name);
        }
    }

    fclose(maps);
    return (result == 0) ? (int)sim_uar_num_pages : -1;
}

static void sim_uar_resize(int is_long)
{
    unsigned i;

    for (i = 0; i < sim_uar_num_files; ++i) {
        if (ftruncate(sim_uar_files[i].fd,
                      is_long ? sim_uar_files[i].size : 0) != 0) {
            perror("ftruncate of a UAR file");
            abort();
        }
    }
}

void sim_uar_suspend(void)
{
    sim_uar_resize(1);
}

/* Of several doorbells for one queue the last says it all, and an earlier one
 * would contradict the doorbell record. Each is the first two words of a
 * mlx5_wqe_ctrl_seg: opmod_idx_opcode (index in bits 8-23), qpn_ds (QP number
 * from bit 8). */
static int sim_uar_is_superseded(uint64_t doorbell, uint64_t other)
{
    uint64_t mine   = be64toh(doorbell);
    uint64_t theirs = be64toh(other);

    return ((uint32_t)mine >> 8 == (uint32_t)theirs >> 8) &&
           ((int16_t)((theirs >> 40) - (mine >> 40)) > 0);
}

void sim_uar_resume(void)
{
    static uint64_t arms[SIM_UAR_MAX_PAGES];
    static uint64_t rings[SIM_UAR_MAX_PAGES][SIM_UAR_NUM_BF];
    unsigned page, i, j;

    for (page = 0; page < sim_uar_num_pages; ++page) {
        arms[page] = *(volatile uint64_t*)(sim_uar_pages[page] +
                                           SIM_UAR_CQ_ARM);
        for (i = 0; i < SIM_UAR_NUM_BF; ++i) {
            rings[page][i] = *(volatile uint64_t*)(sim_uar_pages[page] +
                                                   SIM_UAR_BF +
                                                   (i * SIM_UAR_BF_SIZE));
        }
    }

    sim_uar_resize(0);

    for (page = 0; page < sim_uar_num_pages; ++page) {
        for (i = 0; i < SIM_UAR_NUM_BF; ++i) {
            for (j = 0; j < SIM_UAR_NUM_BF; ++j) {
                if (sim_uar_is_superseded(rings[page][i], rings[page][j])) {
                    break;
                }
            }
            if ((rings[page][i] != 0) && (j == SIM_UAR_NUM_BF)) {
                *(volatile uint64_t*)(sim_uar_pages[page] + SIM_UAR_BF +
                                      (i * SIM_UAR_BF_SIZE)) = rings[page][i];
            }
        }

        if (arms[page] != 0) {
            *(volatile uint64_t*)(sim_uar_pages[page] + SIM_UAR_CQ_ARM) =
                    arms[page];
        }
    }
}
