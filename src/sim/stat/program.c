/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/stat/program.h>

#include <elf.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Interpreters of interpreters: the kernel follows as many */
#define MLX5SIM_PROGRAM_MAX_SCRIPTS 5


/* ld.so(8), secure-execution mode: only libraries in the directories of the
 * system are preloaded */
static const char *mlx5sim_program_privilege(int fd)
{
    char caps[sizeof(struct vfs_ns_cap_data)];
    struct stat st;

    if (fstat(fd, &st) != 0) {
        return NULL;
    }

    if ((st.st_mode & S_ISUID) && (st.st_uid != getuid())) {
        return "is setuid";
    }

    if ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
        (st.st_gid != getgid())) {
        return "is setgid";
    }

    /* root has them anyway */
    if ((getuid() != 0) &&
        (fgetxattr(fd, "security.capability", caps, sizeof(caps)) > 0)) {
        return "has file capabilities";
    }

    return NULL;
}

/* Whether an ELF file names a dynamic linker, -1: no telling */
static int mlx5sim_program_has_linker(int fd, const Elf64_Ehdr *header)
{
    Elf64_Phdr program;
    unsigned i;
    off_t offset;

    for (i = 0; i < header->e_phnum; ++i) {
        offset = header->e_phoff + ((off_t)i * header->e_phentsize);
        if (pread(fd, &program, sizeof(program), offset) != sizeof(program)) {
            return -1;
        }

        if (program.p_type == PT_INTERP) {
            return 1;
        }
    }

    return 0;
}

static const char *mlx5sim_program_elf(int fd, const Elf64_Ehdr *header)
{
    if (header->e_ident[EI_CLASS] != ELFCLASS64) {
        return "is no 64-bit program";
    }

    return (((header->e_type == ET_EXEC) || (header->e_type == ET_DYN)) &&
            (header->e_phentsize == sizeof(Elf64_Phdr)) &&
            (mlx5sim_program_has_linker(fd, header) == 0)) ?
           "is statically linked" : NULL;
}

/* The interpreter in the first line of a script. @return whether it is one */
static int mlx5sim_program_script(const char *head, char *path, size_t size)
{
    const char *start;
    size_t length;

    if ((head[0] != '#') || (head[1] != '!')) {
        return 0;
    }

    start  = head + 2 + strspn(head + 2, " \t");
    length = strcspn(start, " \t\n");
    if ((length == 0) || (length >= size)) {
        return 0;
    }

    memcpy(path, start, length);
    path[length] = '\0';
    return 1;
}

int mlx5sim_program_is_preloadable(const char *path, char *reason, size_t size)
{
    char name[PATH_MAX], head[257];
    const char *why = NULL;
    Elf64_Ehdr header;
    int is_script, fd;
    unsigned depth;
    ssize_t n;

    if (snprintf(name, sizeof(name), "%s", path) >= (int)sizeof(name)) {
        return 1;
    }

    for (depth = 0; depth <= MLX5SIM_PROGRAM_MAX_SCRIPTS; ++depth) {
        fd = open(name, O_RDONLY | O_CLOEXEC);
        if (fd < 0) {
            return 1;
        }

        n         = pread(fd, head, sizeof(head) - 1, 0);
        head[(n > 0) ? n : 0] = '\0';
        is_script = mlx5sim_program_script(head, name, sizeof(name));
        if (!is_script && (n >= (ssize_t)sizeof(header))) {
            memcpy(&header, head, sizeof(header));
            why = mlx5sim_program_privilege(fd);
            if ((why == NULL) &&
                (memcmp(header.e_ident, ELFMAG, SELFMAG) == 0)) {
                why = mlx5sim_program_elf(fd, &header);
            }
        }

        close(fd);
        if (!is_script) {
            break;
        }
    }

    if (why == NULL) {
        return 1;
    }

    /* a script is not the culprit, its interpreter is */
    if (depth > 0) {
        snprintf(reason, size, "is run by %.200s, which %s", name, why);
    } else {
        snprintf(reason, size, "%s", why);
    }
    return 0;
}
