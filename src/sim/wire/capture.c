/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/wire/capture.h>

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define MLX5SIM_CAPTURE_MAGIC   0xa1b23c4d /* times are in ns */
#define MLX5SIM_CAPTURE_SNAPLEN 65535
#define MLX5SIM_CAPTURE_SECOND  1000000000ul


/** draft-ietf-opsawg-pcap, "File header"; numbers in the writer's order */
typedef struct mlx5sim_capture_file {
    uint32_t magic;
    uint16_t major;
    uint16_t minor;
    uint32_t reserved[2];
    uint32_t snaplen;
    uint32_t link;
} mlx5sim_capture_file_t;

_Static_assert(sizeof(mlx5sim_capture_file_t) == 24, "size of a file header");


/** The same, "Packet record" */
typedef struct mlx5sim_capture_record {
    uint32_t sec;
    uint32_t nsec;
    uint32_t length;   /* in the file */
    uint32_t original; /* on the wire */
} mlx5sim_capture_record_t;

_Static_assert(sizeof(mlx5sim_capture_record_t) == 16, "size of a record");


/** ERF record header (Endace, "ERF Types Reference Guide") */
typedef struct mlx5sim_capture_erf {
    uint64_t time;     /* little endian, 2^-32 seconds */
    uint8_t  type;
    uint8_t  flags;
    uint16_t length;   /* big endian, of the record with this header */
    uint16_t lost;
    uint16_t original; /* big endian, on the wire */
} mlx5sim_capture_erf_t;

_Static_assert(sizeof(mlx5sim_capture_erf_t) == 16, "size of an ERF header");

#define MLX5SIM_CAPTURE_ERF_INFINIBAND 21
#define MLX5SIM_CAPTURE_ERF_VARYING    4   /* records are as long as frames */


static struct {
    int   fd;
    int   is_erf;
    dev_t dev;  /* of the file */
    ino_t ino;
    off_t end;  /* of its last complete record */
} mlx5sim_capture = {.fd = -1};


int mlx5sim_capture_is_open(void)
{
    return mlx5sim_capture.fd >= 0;
}

void mlx5sim_capture_close(void)
{
    if (mlx5sim_capture_is_open()) {
        close(mlx5sim_capture.fd);
        mlx5sim_capture.fd = -1;
    }
}

/* A record is there as a whole or not at all, unless the process dies within
 * this call. @return 0, or -1 with errno */
static int mlx5sim_capture_append(const struct iovec *pieces, int count,
                                  size_t length)
{
    ssize_t written;

    do {
        written = pwritev(mlx5sim_capture.fd, pieces, count,
                          mlx5sim_capture.end);
    } while ((written < 0) && (errno == EINTR));

    if ((size_t)written == length) {
        mlx5sim_capture.end += length;
        return 0;
    }

    if (written >= 0) {
        (void)!ftruncate(mlx5sim_capture.fd, mlx5sim_capture.end);
        errno = ENOSPC;
    }
    return -1;
}

/* Programs close descriptors that they do not know, and get the number for a
 * file of their own */
static int mlx5sim_capture_is_ours(void)
{
    struct stat st;

    return (fstat(mlx5sim_capture.fd, &st) == 0) &&
           (st.st_dev == mlx5sim_capture.dev) &&
           (st.st_ino == mlx5sim_capture.ino);
}

int mlx5sim_capture_open(const char *path, uint32_t link, char *error,
                         size_t error_size)
{
    mlx5sim_capture_file_t header = {
        .magic   = MLX5SIM_CAPTURE_MAGIC,
        .major   = 2,
        .minor   = 4,
        .snaplen = MLX5SIM_CAPTURE_SNAPLEN,
        .link    = link
    };
    struct iovec piece = {&header, sizeof(header)};
    struct stat st;
    int saved_errno;

    /* O_EXCL does not follow a link either, but does not say that it is one */
    if ((lstat(path, &st) == 0) && S_ISLNK(st.st_mode)) {
        snprintf(error, error_size, "%s is a symbolic link, which is not "
                 "followed", path);
        errno = ELOOP;
        return -1;
    }

    mlx5sim_capture.end    = 0;
    mlx5sim_capture.is_erf = (link == MLX5SIM_CAPTURE_INFINIBAND);
    mlx5sim_capture.fd     = open(path, O_WRONLY | O_CREAT | O_EXCL |
                                  O_NOFOLLOW | O_CLOEXEC, 0600);
    if ((mlx5sim_capture.fd >= 0) &&
        (fstat(mlx5sim_capture.fd, &st) == 0)) {
        mlx5sim_capture.dev = st.st_dev;
        mlx5sim_capture.ino = st.st_ino;
        if (mlx5sim_capture_append(&piece, 1, sizeof(header)) == 0) {
            return 0;
        }
    }

    saved_errno = errno;
    snprintf(error, error_size, "cannot create %s: %m%s", path,
             (errno == EEXIST) ? "; it is not overwritten: remove it, or "
                                 "choose another name" : "");
    mlx5sim_capture_close();
    errno = saved_errno;
    return -1;
}

void mlx5sim_capture_write(const void *frame, unsigned length, uint64_t ns)
{
    uint64_t sec                    = ns / MLX5SIM_CAPTURE_SECOND;
    uint64_t nsec                   = ns % MLX5SIM_CAPTURE_SECOND;
    unsigned head                   = mlx5sim_capture.is_erf ?
                                      sizeof(mlx5sim_capture_erf_t) : 0;
    mlx5sim_capture_record_t record = {
        .sec      = sec,
        .nsec     = nsec,
        .length   = head + length,
        .original = head + length
    };
    mlx5sim_capture_erf_t erf       = {
        .time     = htole64((sec << 32) |
                            ((nsec << 32) / MLX5SIM_CAPTURE_SECOND)),
        .type     = MLX5SIM_CAPTURE_ERF_INFINIBAND,
        .flags    = MLX5SIM_CAPTURE_ERF_VARYING,
        .length   = htobe16(head + length),
        .original = htobe16(length)
    };
    struct iovec pieces[]           = {{&record, sizeof(record)},
                                       {&erf, head},
                                       {(void*)frame, length}};

    if (!mlx5sim_capture_is_open()) {
        return;
    }

    if (!mlx5sim_capture_is_ours()) {
        fprintf(stderr, "mlx5sim: the capture ends: the program has closed its "
                "file descriptor\n");
        mlx5sim_capture.fd = -1;
        return;
    }

    if (mlx5sim_capture_append(pieces, 3, sizeof(record) + head + length) !=
        0) {
        fprintf(stderr, "mlx5sim: the capture ends: cannot write to it: %m\n");
        mlx5sim_capture_close();
    }
}
