/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_CAPTURE_H_
#define MLX5SIM_CAPTURE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A file of frames, as Wireshark, tshark and tcpdump read it: pcap with times
 * in nanoseconds (draft-ietf-opsawg-pcap). One of this process, which one
 * thread at a time writes to.
 */

/** What the frames are: link types of pcap. */
enum {
    MLX5SIM_CAPTURE_ETHERNET   = 1,
    MLX5SIM_CAPTURE_INFINIBAND = 197 /* from LRH to VCRC, in records of Endace's
                                        format (ERF), as Wireshark 4.0 does not
                                        read link type 247, InfiniBand */
};

/**
 * Create the file and write its header.
 *
 * @param path         Where; it must not exist. A symbolic link is not
 *                     followed.
 * @param link         MLX5SIM_CAPTURE_*.
 * @param [out] error  Reason of a failure.
 *
 * @return 0, or -1 with errno.
 */
int mlx5sim_capture_open(const char *path, uint32_t link, char *error,
                         size_t error_size);

/** Whether there is such a file. */
int mlx5sim_capture_is_open(void);

/**
 * Append a frame. It is in the file when this returns, and stays there if the
 * process is killed. If it can't be written, that is said once on standard
 * error, and the capture ends with the frames before.
 *
 * @param ns  Time of the frame since the epoch.
 */
void mlx5sim_capture_write(const void *frame, unsigned length, uint64_t ns);

/** Close it. For a child of fork() as well, whose parent goes on with it. */
void mlx5sim_capture_close(void);

#ifdef __cplusplus
}
#endif

#endif
