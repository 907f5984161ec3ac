/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <sim/instance/tree.h>
#include <sim/config/identity.h>
#include <sim/config/speed.h>
#include <sim/instance/place.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MLX5SIM_TREE_TMP_SUFFIX ".tmp."

/* A tree being written. The first error stops all further writing. */
typedef struct mlx5sim_tree {
    int                    dir_fd;
    int                    error;      /* errno, 0: none so far */
    char                   dir[PATH_MAX]; /* prefix of names, "" or "a/b/" */
    const mlx5sim_config_t *config;
} mlx5sim_tree_t;

/* Counters of a port, read by perfquery-like scripts, monitoring agents and
 * perftest (kernel: drivers/infiniband/core/sysfs.c). Those that nobody sets,
 * mlx5sim_tree_set_counter(), are of what does not happen here. */
static const char *const mlx5sim_port_counters[] = {
    "VL15_dropped", "excessive_buffer_overrun_errors", "link_downed",
    "link_error_recovery", "local_link_integrity_errors",
    "multicast_rcv_packets", "multicast_xmit_packets",
    "port_rcv_constraint_errors", "port_rcv_data", "port_rcv_errors",
    "port_rcv_packets", "port_rcv_remote_physical_errors",
    "port_rcv_switch_relay_errors", "port_xmit_constraint_errors",
    "port_xmit_data", "port_xmit_discards", "port_xmit_packets",
    "port_xmit_wait", "symbol_error", "unicast_rcv_packets",
    "unicast_xmit_packets"
};

/* kernel: drivers/infiniband/hw/mlx5/counters.c */
static const char *const mlx5sim_port_hw_counters[] = {
    "duplicate_request", "implied_nak_seq_err", "lifespan",
    "local_ack_timeout_err", "np_cnp_sent", "np_ecn_marked_roce_packets",
    "out_of_buffer", "out_of_sequence", "packet_seq_err", "req_cqe_error",
    "req_cqe_flush_error", "req_remote_access_errors",
    "req_remote_invalid_request", "resp_cqe_error", "resp_cqe_flush_error",
    "resp_local_length_error", "resp_remote_access_errors",
    "rnr_nak_retry_err", "roce_adp_retrans", "roce_adp_retrans_to",
    "roce_slow_restart", "roce_slow_restart_cnps", "roce_slow_restart_trans",
    "rp_cnp_handled", "rp_cnp_ignored", "rx_atomic_requests",
    "rx_icrc_encapsulated", "rx_read_requests", "rx_write_requests"
};

#define MLX5SIM_TREE_COUNT(_array) (sizeof(_array) / sizeof((_array)[0]))

static void mlx5sim_tree_fail(mlx5sim_tree_t *tree)
{
    if (tree->error == 0) {
        tree->error = (errno != 0) ? errno : EIO;
    }
}

/* Make the directories above the last component of path. */
static void mlx5sim_tree_parents(mlx5sim_tree_t *tree, char *path)
{
    char *slash;

    for (slash = strchr(path, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if ((mkdirat(tree->dir_fd, path, 0755) != 0) && (errno != EEXIST)) {
            mlx5sim_tree_fail(tree);
        }
        *slash = '/';
    }
}

/* Full name in the tree; makes the directories above it. */
static int mlx5sim_tree_name(mlx5sim_tree_t *tree, const char *name, char *path)
{
    if (tree->error != 0) {
        return -1;
    }

    if (snprintf(path, PATH_MAX, "%s%s", tree->dir, name) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        mlx5sim_tree_fail(tree);
        return -1;
    }

    mlx5sim_tree_parents(tree, path);
    return (tree->error == 0) ? 0 : -1;
}

/* Set the directory of the names that follow. */
static void __attribute__((format(printf, 2, 3)))
mlx5sim_tree_enter(mlx5sim_tree_t *tree, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vsnprintf(tree->dir, sizeof(tree->dir), format, ap);
    va_end(ap);
}

static void mlx5sim_tree_dir(mlx5sim_tree_t *tree, const char *name)
{
    char path[PATH_MAX];

    if ((mlx5sim_tree_name(tree, name, path) == 0) &&
        (mkdirat(tree->dir_fd, path, 0755) != 0) && (errno != EEXIST)) {
        mlx5sim_tree_fail(tree);
    }
}

/* Write a file with the mode and content given. */
static void __attribute__((format(printf, 4, 5)))
mlx5sim_tree_file(mlx5sim_tree_t *tree, mode_t mode, const char *name,
                  const char *format, ...)
{
    char path[PATH_MAX], content[1024];
    va_list ap;
    int length, fd;

    if (mlx5sim_tree_name(tree, name, path) != 0) {
        return;
    }

    va_start(ap, format);
    length = vsnprintf(content, sizeof(content), format, ap);
    va_end(ap);

    fd = openat(tree->dir_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                0600);
    if (fd < 0) {
        mlx5sim_tree_fail(tree);
        return;
    }

    errno = 0;
    if ((length >= (int)sizeof(content)) ||
        (write(fd, content, length) != length) || (fchmod(fd, mode) != 0)) {
        mlx5sim_tree_fail(tree);
    }
    close(fd);
}

/* The usual sysfs attribute: world readable, with a newline. */
#define mlx5sim_tree_attr(_tree, _name, _format, ...) \
    mlx5sim_tree_file(_tree, 0444, _name, _format "\n", ##__VA_ARGS__)

/* Symbolic link to target, which is a name from the top of the tree. */
static void __attribute__((format(printf, 3, 4)))
mlx5sim_tree_link(mlx5sim_tree_t *tree, const char *name,
                  const char *target_format, ...)
{
    char path[PATH_MAX], target[PATH_MAX];
    size_t length = 0;
    const char *p;
    va_list ap;

    if (mlx5sim_tree_name(tree, name, path) != 0) {
        return;
    }

    for (p = path; *p != '\0'; ++p) {
        if ((*p == '/') && (length + 4 < sizeof(target))) {
            memcpy(target + length, "../", 3);
            length += 3;
        }
    }

    va_start(ap, target_format);
    vsnprintf(target + length, sizeof(target) - length, target_format, ap);
    va_end(ap);

    if (symlinkat(target, tree->dir_fd, path) != 0) {
        mlx5sim_tree_fail(tree);
    }
}

/* An attribute that can be opened, but whose reads the kernel answers with
 * EINVAL. It does so for files of namespaces: this is a link to one. */
static void mlx5sim_tree_invalid(mlx5sim_tree_t *tree, const char *name)
{
    char path[PATH_MAX];

    if ((mlx5sim_tree_name(tree, name, path) == 0) &&
        (symlinkat("/proc/self/ns/mnt", tree->dir_fd, path) != 0)) {
        mlx5sim_tree_fail(tree);
    }
}

/* CPU mask as in local_cpus: words of 32 bits, highest first. */
static void mlx5sim_tree_cpus(mlx5sim_tree_t *tree)
{
    long cpus = sysconf(_SC_NPROCESSORS_CONF);
    char mask[512];
    size_t length = 0;
    long word, bits;

    if ((cpus < 1) || (cpus > 1024)) {
        cpus = 1;
    }

    for (word = (cpus - 1) / 32; word >= 0; --word) {
        bits    = cpus - word * 32;
        length += snprintf(mask + length, sizeof(mask) - length, "%08x%s",
                           (bits >= 32) ? ~0u : ((1u << bits) - 1),
                           (word > 0) ? "," : "");
    }

    mlx5sim_tree_attr(tree, "local_cpus", "%s", mask);
    mlx5sim_tree_attr(tree, "local_cpulist", (cpus > 1) ? "0-%ld" : "%ld",
                      cpus - 1);
}

static void mlx5sim_tree_pci_function(mlx5sim_tree_t *tree, unsigned dev)
{
    const mlx5sim_model_t *model = mlx5sim_model_get(tree->config->model);
    int is_roce                  = tree->config->link == MLX5SIM_LINK_ROCE;
    char pci[MLX5SIM_PCI_NAME_MAX];
    unsigned class_code;

    /* PCI class codes: 0x0207 InfiniBand controller, 0x0200 Ethernet */
    class_code = is_roce ? 0x020000 : 0x020700;

    mlx5sim_pci_name(dev, pci);
    mlx5sim_tree_enter(tree, "bus/pci/devices/");
    mlx5sim_tree_link(tree, pci, "devices/%s/%s", MLX5SIM_PCI_ROOT, pci);

    mlx5sim_tree_enter(tree, "devices/%s/%s/", MLX5SIM_PCI_ROOT, pci);
    mlx5sim_tree_attr(tree, "vendor", "0x%04x", MLX5SIM_PCI_VENDOR);
    mlx5sim_tree_attr(tree, "device", "0x%04x", model->pci_device);
    mlx5sim_tree_attr(tree, "subsystem_vendor", "0x%04x", MLX5SIM_PCI_VENDOR);
    mlx5sim_tree_attr(tree, "subsystem_device", "0x0007");
    mlx5sim_tree_attr(tree, "class", "0x%06x", class_code);
    mlx5sim_tree_attr(tree, "revision", "0x00");
    mlx5sim_tree_attr(tree, "modalias",
                      "pci:v%08Xd%08Xsv%08Xsd%08Xbc%02Xsc%02Xi%02X",
                      MLX5SIM_PCI_VENDOR, model->pci_device,
                      MLX5SIM_PCI_VENDOR, 7, class_code >> 16,
                      (class_code >> 8) & 0xff, class_code & 0xff);
    mlx5sim_tree_attr(tree, "uevent",
                      "DRIVER=mlx5_core\nPCI_CLASS=%X\nPCI_ID=%04X:%04X\n"
                      "PCI_SUBSYS_ID=%04X:0007\nPCI_SLOT_NAME=%s",
                      class_code, MLX5SIM_PCI_VENDOR, model->pci_device,
                      MLX5SIM_PCI_VENDOR, pci);
    mlx5sim_tree_attr(tree, "current_link_speed", "%s", model->pcie_speed);
    mlx5sim_tree_attr(tree, "max_link_speed", "%s", model->pcie_speed);
    mlx5sim_tree_attr(tree, "current_link_width", "16");
    mlx5sim_tree_attr(tree, "max_link_width", "16");
    mlx5sim_tree_attr(tree, "enable", "1");
    mlx5sim_tree_attr(tree, "irq", "0");
    mlx5sim_tree_attr(tree, "sriov_numvfs", "0");
    mlx5sim_tree_attr(tree, "sriov_totalvfs", "0");
    mlx5sim_tree_attr(tree, "numa_node", "%d",
                      (access("/sys/devices/system/node/node0", F_OK) == 0) ?
                      0 : -1);
    mlx5sim_tree_cpus(tree);
    mlx5sim_tree_link(tree, "driver", "bus/pci/drivers/mlx5_core");
    mlx5sim_tree_link(tree, "subsystem", "bus/pci");
}

static void mlx5sim_tree_gids(mlx5sim_tree_t *tree, unsigned dev,
                              unsigned port)
{
    uint8_t gid[MLX5SIM_GID_LEN];
    char gid_str[MLX5SIM_GID_STR_MAX], name[32];
    unsigned i;
    int in_use;

    /* the kernel makes them even if there is nothing in them */
    mlx5sim_tree_dir(tree, "gids");
    mlx5sim_tree_dir(tree, "gid_attrs/types");
    mlx5sim_tree_dir(tree, "gid_attrs/ndevs");
    for (i = 0; i < mlx5sim_gid_table_len(tree->config, dev, port); ++i) {
        in_use = mlx5sim_port_gid(tree->config, dev, port, i, gid);

        snprintf(name, sizeof(name), "gids/%u", i);
        mlx5sim_tree_attr(tree, name, "%s", mlx5sim_gid_str(gid, gid_str));

        /* kernel, _show_port_gid_attr() of sysfs.c: the entry is empty */
        snprintf(name, sizeof(name), "gid_attrs/types/%u", i);
        if (in_use) {
            mlx5sim_tree_attr(tree, name, "%s",
                              mlx5sim_gid_type(tree->config, i));
        } else {
            mlx5sim_tree_invalid(tree, name);
        }

        /* print_ndev(): it is, or has no network interface */
        snprintf(name, sizeof(name), "gid_attrs/ndevs/%u", i);
        if (in_use && (tree->config->link == MLX5SIM_LINK_ROCE)) {
            mlx5sim_tree_attr(tree, name, "%s",
                              mlx5sim_port_netdev(tree->config, dev, port));
        } else {
            mlx5sim_tree_invalid(tree, name);
        }
    }
}

static void mlx5sim_tree_port(mlx5sim_tree_t *tree, unsigned dev,
                              unsigned port)
{
    const mlx5sim_config_t *config = tree->config;
    const mlx5sim_model_t *model   = mlx5sim_model_get(config->model);
    char pci[MLX5SIM_PCI_NAME_MAX], name[64];
    unsigned i;

    mlx5sim_tree_enter(tree, "devices/%s/%s/infiniband/mlx5_%u/ports/%u/",
                       MLX5SIM_PCI_ROOT, mlx5sim_pci_name(dev, pci), dev, port);
    mlx5sim_tree_attr(tree, "state", "4: ACTIVE");
    mlx5sim_tree_attr(tree, "phys_state", "5: LinkUp");
    mlx5sim_tree_attr(tree, "link_layer", "%s",
                      (config->link == MLX5SIM_LINK_ROCE) ? "Ethernet" :
                                                            "InfiniBand");
    mlx5sim_tree_attr(tree, "rate", "%s", model->rate);
    mlx5sim_tree_attr(tree, "lid", "0x%x",
                      mlx5sim_port_lid(config, dev, port));
    mlx5sim_tree_attr(tree, "lid_mask_count", "%u", mlx5sim_port_lmc(config));
    mlx5sim_tree_attr(tree, "sm_lid", "0x%x", mlx5sim_port_sm_lid(config));
    mlx5sim_tree_attr(tree, "sm_sl", "0");
    mlx5sim_tree_attr(tree, "cap_mask", "0x%08x",
                      mlx5sim_port_cap_mask(config, dev, port));
    mlx5sim_tree_attr(tree, "has_smi", "%d",
                      config->link != MLX5SIM_LINK_ROCE);

    mlx5sim_tree_gids(tree, dev, port);
    for (i = 0; i < mlx5sim_pkey_table_len(config); ++i) {
        snprintf(name, sizeof(name), "pkeys/%u", i);
        mlx5sim_tree_attr(tree, name, "0x%04x", (i == 0) ? MLX5SIM_PKEY : 0);
    }

    for (i = 0; i < MLX5SIM_TREE_COUNT(mlx5sim_port_counters); ++i) {
        snprintf(name, sizeof(name), "counters/%s", mlx5sim_port_counters[i]);
        mlx5sim_tree_attr(tree, name, "0");
    }

    for (i = 0; i < MLX5SIM_TREE_COUNT(mlx5sim_port_hw_counters); ++i) {
        snprintf(name, sizeof(name), "hw_counters/%s",
                 mlx5sim_port_hw_counters[i]);
        /* lifespan is the refresh interval in ms, not a counter */
        mlx5sim_tree_attr(tree, name, "%d",
                          !strcmp(mlx5sim_port_hw_counters[i], "lifespan") ?
                          10 : 0);
    }
}

static void mlx5sim_tree_device(mlx5sim_tree_t *tree, unsigned dev)
{
    const mlx5sim_config_t *config = tree->config;
    const mlx5sim_model_t *model   = mlx5sim_model_get(config->model);
    char pci[MLX5SIM_PCI_NAME_MAX], guid[MLX5SIM_GUID_STR_MAX], name[64];
    uint16_t fw[3];
    unsigned port;

    mlx5sim_pci_name(dev, pci);
    mlx5sim_guid_str(mlx5sim_node_guid(config, dev), guid);
    mlx5sim_fw_version(config, fw);

    mlx5sim_tree_enter(tree, "class/infiniband/");
    snprintf(name, sizeof(name), "mlx5_%u", dev);
    mlx5sim_tree_link(tree, name, "devices/%s/%s/infiniband/mlx5_%u",
                      MLX5SIM_PCI_ROOT, pci, dev);

    mlx5sim_tree_enter(tree, "devices/%s/%s/infiniband/mlx5_%u/",
                       MLX5SIM_PCI_ROOT, pci, dev);
    mlx5sim_tree_attr(tree, "node_type", "1: CA");
    mlx5sim_tree_attr(tree, "node_guid", "%s", guid);
    mlx5sim_tree_attr(tree, "sys_image_guid", "%s", guid);
    mlx5sim_tree_attr(tree, "node_desc", "mlx5sim mlx5_%u", dev);
    mlx5sim_tree_attr(tree, "fw_ver", "%u.%u.%04u", fw[0], fw[1], fw[2]);
    mlx5sim_tree_attr(tree, "board_id", "%s", model->board_id);
    mlx5sim_tree_attr(tree, "hca_type", "%s", model->hca_type);
    mlx5sim_tree_attr(tree, "hw_rev", "0");
    mlx5sim_tree_attr(tree, "fw_pages", "0");
    mlx5sim_tree_attr(tree, "reg_pages", "0");
    mlx5sim_tree_attr(tree, "uevent", "NAME=mlx5_%u", dev);
    mlx5sim_tree_link(tree, "device", "devices/%s/%s", MLX5SIM_PCI_ROOT, pci);
    mlx5sim_tree_link(tree, "subsystem", "class/infiniband");

    for (port = 1; port <= config->ports; ++port) {
        mlx5sim_tree_port(tree, dev, port);
    }

    if (config->link == MLX5SIM_LINK_ROCE) {
        mlx5sim_tree_enter(tree, "devices/%s/%s/net/", MLX5SIM_PCI_ROOT, pci);
        for (port = 1; port <= config->ports; ++port) {
            mlx5sim_tree_dir(tree, mlx5sim_port_netdev(config, dev, port));
        }
    }
}

static void mlx5sim_tree_uverbs(mlx5sim_tree_t *tree, unsigned dev)
{
    char pci[MLX5SIM_PCI_NAME_MAX], name[32];

    mlx5sim_pci_name(dev, pci);
    mlx5sim_tree_enter(tree, "class/infiniband_verbs/");
    snprintf(name, sizeof(name), "uverbs%u", dev);
    mlx5sim_tree_link(tree, name, "devices/%s/%s/infiniband_verbs/uverbs%u",
                      MLX5SIM_PCI_ROOT, pci, dev);

    mlx5sim_tree_enter(tree, "devices/%s/%s/infiniband_verbs/uverbs%u/",
                       MLX5SIM_PCI_ROOT, pci, dev);
    mlx5sim_tree_attr(tree, "ibdev", "mlx5_%u", dev);
    mlx5sim_tree_attr(tree, "abi_version", "%d", MLX5SIM_DEVICE_ABI_VERSION);
    mlx5sim_tree_attr(tree, "dev", "%u:%u", MLX5SIM_UVERBS_MAJOR,
                      MLX5SIM_UVERBS_BASE_MINOR + dev);
    mlx5sim_tree_attr(tree, "uevent",
                      "MAJOR=%u\nMINOR=%u\nDEVNAME=infiniband/uverbs%u",
                      MLX5SIM_UVERBS_MAJOR, MLX5SIM_UVERBS_BASE_MINOR + dev,
                      dev);
    mlx5sim_tree_link(tree, "device", "devices/%s/%s", MLX5SIM_PCI_ROOT, pci);
    mlx5sim_tree_link(tree, "subsystem", "class/infiniband_verbs");
}

static void mlx5sim_tree_write_sysfs(mlx5sim_tree_t *tree)
{
    unsigned dev;

    mlx5sim_tree_enter(tree, "%s", "");
    mlx5sim_tree_dir(tree, "class/infiniband");
    mlx5sim_tree_dir(tree, "bus/pci/drivers/mlx5_core");
    mlx5sim_tree_attr(tree, "class/infiniband_verbs/abi_version", "%d",
                      MLX5SIM_VERBS_ABI_VERSION);
    /* management datagrams are not offered: a class without devices */
    mlx5sim_tree_attr(tree, "class/infiniband_mad/abi_version", "5");

    mlx5sim_tree_attr(tree, "class/misc/rdma_cm/abi_version", "%d",
                      MLX5SIM_RDMA_CM_ABI_VERSION);
    mlx5sim_tree_attr(tree, "class/misc/rdma_cm/dev", "%u:%u",
                      MLX5SIM_RDMA_CM_MAJOR, MLX5SIM_RDMA_CM_MINOR);
    mlx5sim_tree_attr(tree, "class/misc/rdma_cm/uevent",
                      "MAJOR=%u\nMINOR=%u\nDEVNAME=infiniband/rdma_cm",
                      MLX5SIM_RDMA_CM_MAJOR, MLX5SIM_RDMA_CM_MINOR);

    /* readdir() of tmpfs lists the newest first, and programs that are not told
     * otherwise use the first device: make that mlx5_0 */
    for (dev = tree->config->devices; dev-- > 0;) {
        mlx5sim_tree_pci_function(tree, dev);
        mlx5sim_tree_device(tree, dev);
        mlx5sim_tree_uverbs(tree, dev);
    }
}

static void mlx5sim_tree_write_dev(mlx5sim_tree_t *tree)
{
    char name[32];
    unsigned dev;

    mlx5sim_tree_enter(tree, "infiniband/");
    for (dev = 0; dev < tree->config->devices; ++dev) {
        snprintf(name, sizeof(name), "uverbs%u", dev);
        mlx5sim_tree_file(tree, 0666, name, "%s", "");
    }
    mlx5sim_tree_file(tree, 0666, "rdma_cm", "%s", "");
}

/* Build one tree and move it to its name in the directory top_fd. */
static int mlx5sim_tree_build(int top_fd, const char *name,
                              void (*write_tree)(mlx5sim_tree_t *tree),
                              const mlx5sim_config_t *config)
{
    mlx5sim_tree_t tree = {.dir_fd = -1, .config = config};
    char temporary[64];

    if (faccessat(top_fd, name, F_OK, 0) == 0) {
        return 0;
    }

    /* threads of one process never build the same tree twice: the address tells
     * them apart all the same */
    snprintf(temporary, sizeof(temporary), "%s" MLX5SIM_TREE_TMP_SUFFIX "%d.%p",
             name, (int)getpid(), (void*)&tree);
    if (mkdirat(top_fd, temporary, 0755) != 0) {
        return -1;
    }

    tree.dir_fd = openat(top_fd, temporary,
                         O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (tree.dir_fd < 0) {
        mlx5sim_tree_fail(&tree);
        goto out_remove;
    }

    write_tree(&tree);
    close(tree.dir_fd);

    /* if another process was faster, the name has the same tree */
    if ((tree.error == 0) &&
        (renameat(top_fd, temporary, top_fd, name) == 0)) {
        return 0;
    }

    if ((tree.error == 0) && (errno != EEXIST) && (errno != ENOTEMPTY)) {
        mlx5sim_tree_fail(&tree);
    }

out_remove:
    (void)mlx5sim_place_remove(top_fd, temporary);
    errno = tree.error;
    return (tree.error == 0) ? 0 : -1;
}

/* Replace a file at once: a reader sees the old or the new one */
static int mlx5sim_tree_replace(const char *path, const char *content)
{
    char temporary[PATH_MAX];
    int fd, ret;

    if (snprintf(temporary, sizeof(temporary), "%s.%d", path, (int)getpid()) >=
        (int)sizeof(temporary)) {
        errno = ENAMETOOLONG;
        return -1;
    }

    fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0444);
    if (fd < 0) {
        return -1;
    }

    ret = (write(fd, content, strlen(content)) == (ssize_t)strlen(content)) ?
          rename(temporary, path) : -1;
    close(fd);
    return ret;
}

/* Replace a file in the directory of a port. @return 0, or -1 with errno */
static int mlx5sim_tree_set_attr(const char *dir, unsigned dev, unsigned port,
                                 const char *name, const char *content)
{
    char pci[MLX5SIM_PCI_NAME_MAX], path[PATH_MAX - 32];

    snprintf(path, sizeof(path), "%s/sysfs/devices/%s/%s/infiniband/mlx5_%u/"
             "ports/%u/%s", dir, MLX5SIM_PCI_ROOT, mlx5sim_pci_name(dev, pci),
             dev, port, name);
    return mlx5sim_tree_replace(path, content);
}

int mlx5sim_tree_set_port(const char *dir, unsigned dev, unsigned port,
                          int is_up)
{
    static const struct {
        const char *name;
        const char *content[2]; /* down, up */
    } attrs[] = {
        {"state",      {"1: DOWN\n", "4: ACTIVE\n"}},
        {"phys_state", {"3: Disabled\n", "5: LinkUp\n"}}
    };
    unsigned i;

    for (i = 0; i < MLX5SIM_TREE_COUNT(attrs); ++i) {
        if (mlx5sim_tree_set_attr(dir, dev, port, attrs[i].name,
                                  attrs[i].content[!!is_up]) != 0) {
            return -1;
        }
    }
    return 0;
}

int mlx5sim_tree_set_rate(const char *dir, unsigned dev, unsigned port,
                          const char *rate)
{
    char content[MLX5SIM_SPEED_STR_MAX + 1];

    snprintf(content, sizeof(content), "%s\n", rate);
    return mlx5sim_tree_set_attr(dir, dev, port, "rate", content);
}

int mlx5sim_tree_set_counter(const char *dir, unsigned dev, unsigned port,
                             const char *name, uint64_t value)
{
    char pci[MLX5SIM_PCI_NAME_MAX], path[PATH_MAX], temporary[PATH_MAX];
    char content[32], old[sizeof(content)] = "";
    int fd, ret;

    /* In none of the tree's directories, which others list */
    snprintf(temporary, sizeof(temporary),
             "%s/sysfs" MLX5SIM_TREE_TMP_SUFFIX "%d.%p", dir, (int)getpid(),
             (void*)content);
    snprintf(path, sizeof(path), "%s/sysfs/devices/%s/%s/infiniband/mlx5_%u/"
             "ports/%u/%s", dir, MLX5SIM_PCI_ROOT, mlx5sim_pci_name(dev, pci),
             dev, port, name);
    snprintf(content, sizeof(content), "%lu\n", (unsigned long)value);

    /* Who copies files, as cp(1), does not want others behind the same names.
     * open() would have this one written. */
    fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ret = read(fd, old, sizeof(old) - 1);
        close(fd);
        if ((ret > 0) && !strcmp(old, content)) {
            return 0;
        }
    }

    fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
              0444);
    if (fd < 0) {
        return -1;
    }

    ret = (write(fd, content, strlen(content)) == (ssize_t)strlen(content)) ?
          rename(temporary, path) : -1;
    close(fd);
    if (ret != 0) {
        (void)unlink(temporary);
    }
    return ret;
}

int mlx5sim_tree_create(int dir_fd, const mlx5sim_config_t *config)
{
    int ret;

    ret = mlx5sim_tree_build(dir_fd, "sysfs", mlx5sim_tree_write_sysfs, config);
    return (ret != 0) ? ret :
           mlx5sim_tree_build(dir_fd, "dev", mlx5sim_tree_write_dev, config);
}

int mlx5sim_tree_has(const char *name)
{
    static const char *const names[] = {"sysfs", "dev"};
    const char *rest;
    unsigned i;

    for (i = 0; i < MLX5SIM_TREE_COUNT(names); ++i) {
        if (strncmp(name, names[i], strlen(names[i])) == 0) {
            rest = name + strlen(names[i]);
            if ((rest[0] == '\0') ||
                (strncmp(rest, MLX5SIM_TREE_TMP_SUFFIX,
                         strlen(MLX5SIM_TREE_TMP_SUFFIX)) == 0)) {
                return 1;
            }
        }
    }

    return 0;
}

void mlx5sim_tree_remove(int dir_fd)
{
    (void)mlx5sim_place_clear(dir_fd, mlx5sim_tree_has);
}
