/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_IDENTITY_H_
#define MLX5SIM_IDENTITY_H_

#include <sim/config/config.h>
#include <sim/config/model.h>

#include <stdint.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Names, numbers and addresses of devices and ports. sysfs and the uverbs
 * commands (QUERY_DEVICE, QUERY_PORT, address resolution) must agree on them,
 * so both get them from here. Devices count from 0, ports from 1.
 */

#define MLX5SIM_DEVICES_MAX 16
#define MLX5SIM_PORTS_MAX   2

/** Character device numbers of uverbsN: Documentation/admin-guide/devices.txt,
 *  IB_UVERBS_MAJOR and IB_UVERBS_BASE_MINOR of the kernel. */
#define MLX5SIM_UVERBS_MAJOR      231
#define MLX5SIM_UVERBS_BASE_MINOR 192

/** That of rdma_cm: MISC_MAJOR, and one of the minors that the kernel gives out
 *  (MISC_DYNAMIC_MINOR). */
#define MLX5SIM_RDMA_CM_MAJOR 10
#define MLX5SIM_RDMA_CM_MINOR 59

/** RDMA_USER_CM_ABI_VERSION of rdma/rdma_user_cm.h. */
#define MLX5SIM_RDMA_CM_ABI_VERSION 4

/** IB_USER_VERBS_ABI_VERSION (kernel) and MLX5_UVERBS_MAX_ABI_VERSION
 *  (providers/mlx5/mlx5.h) that the tree announces. */
#define MLX5SIM_VERBS_ABI_VERSION  6
#define MLX5SIM_DEVICE_ABI_VERSION 1

/** Root of the PCI hierarchy our functions hang on. No real function is a
 *  direct child of a root bridge with a bus number other than the bridge's. */
#define MLX5SIM_PCI_ROOT "pci0000:00"

#define MLX5SIM_PCI_NAME_MAX 16
#define MLX5SIM_GUID_STR_MAX 20
#define MLX5SIM_GID_STR_MAX  40
#define MLX5SIM_GID_LEN      16

/** LID of the subnet manager that InfiniBand ports report. */
#define MLX5SIM_SM_LID 1

/** Default partition key, full member: the only entry of the table. */
#define MLX5SIM_PKEY 0xffff

/** PCI name of a device: mlx5_0 is "0000:3b:00.0", mlx5_1 "0000:3b:00.1",
 *  mlx5_2 "0000:3c:00.0" ... @a buf holds MLX5SIM_PCI_NAME_MAX bytes. */
const char *mlx5sim_pci_name(unsigned dev, char *buf);

/** The inverse. @return device number (maybe beyond what exists) or -1. */
int mlx5sim_pci_name_parse(const char *name, size_t length);

/** Device number of uverbs @a dev as in stat::st_rdev. */
dev_t mlx5sim_uverbs_rdev(unsigned dev);

/** Whether ports have network interfaces of the node, MLX5SIM_WIRE. */
int mlx5sim_config_has_wire(const mlx5sim_config_t *config);

/** Whether there is the dynamically connected transport: what its packets look
 *  like is not public, so that none can go to other nodes. */
int mlx5sim_config_has_dc(const mlx5sim_config_t *config);

/** Whether there are extended reliable connections: with a wire, a peer may be
 *  where they do not come to. */
int mlx5sim_config_has_xrc(const mlx5sim_config_t *config);

/** Network interface behind a port: its name, MTU and addresses.
 *  @return NULL without MLX5SIM_WIRE. */
const mlx5sim_netif_t *
mlx5sim_port_netif(const mlx5sim_config_t *config, unsigned dev, unsigned port);

/** Name of the network interface that a RoCE port says it belongs to. */
const char *mlx5sim_port_netdev(const mlx5sim_config_t *config, unsigned dev,
                                unsigned port);

/** Active MTU of a port, enum ibv_mtu. Kernel, mlx5_query_port_roce(): that of
 *  the network interface, by iboe_get_mtu(). */
unsigned mlx5sim_port_mtu(const mlx5sim_config_t *config, unsigned dev,
                          unsigned port);

/** GUID of a device, in host byte order. */
uint64_t mlx5sim_node_guid(const mlx5sim_config_t *config, unsigned dev);

/** GUID of a port, in host byte order. */
uint64_t mlx5sim_port_guid(const mlx5sim_config_t *config, unsigned dev,
                           unsigned port);

/** LID of a port, 0 on RoCE. With MLX5SIM_WIRE it is that of the network
 *  interface, mlx5sim_netif_lid(). */
uint16_t mlx5sim_port_lid(const mlx5sim_config_t *config, unsigned dev,
                          unsigned port);

/** Whether an InfiniBand port has a LID, with whatever path bits. */
int mlx5sim_port_has_lid(const mlx5sim_config_t *config, unsigned dev,
                         unsigned port, uint16_t lid);

/** Find the InfiniBand port of this instance that has a LID, as
 *  mlx5sim_gid_find() does. */
int mlx5sim_lid_find(const mlx5sim_config_t *config, uint16_t lid,
                     unsigned *dev_p, unsigned *port_p);

/** LID mask control: a port has 2^LMC LIDs, from mlx5sim_port_lid() on. */
unsigned mlx5sim_port_lmc(const mlx5sim_config_t *config);

/** LID of the subnet manager as seen by a port, 0 on RoCE. */
uint16_t mlx5sim_port_sm_lid(const mlx5sim_config_t *config);

/** Capability mask of a port: IB_PORT_* of kernel ib_verbs.h. */
uint32_t mlx5sim_port_cap_mask(const mlx5sim_config_t *config, unsigned dev,
                               unsigned port);

/** Number of entries of a port's GID table (all are in sysfs). It is 0 for
 *  ports in MLX5SIM_GIDLESS: kernel, mlx5_query_port_roce() sets gid_tbl_len
 *  only where RoCE is enabled and the port is no representor's. */
unsigned mlx5sim_gid_table_len(const mlx5sim_config_t *config, unsigned dev,
                               unsigned port);

/** Number of entries of a port's pkey table (all are in sysfs). */
unsigned mlx5sim_pkey_table_len(const mlx5sim_config_t *config);

/**
 * GID @a index of a port.
 *
 * InfiniBand: 0 is fe80:: with the port GUID. RoCE: 0 and 1 are the link-local
 * address (v1, v2), 2 and 3 the IPv4 address (v1, v2), as the kernel fills it.
 * With MLX5SIM_WIRE, those are the interface's, and 4 and 5 are the global IPv6
 * address; it has 2 and 3 where there is no IPv4 address.
 * Other entries are zero, and so are all of ports in MLX5SIM_EMPTY_GIDS:
 * kernel, show_port_gid() of drivers/infiniband/core/sysfs.c has zeros for
 * entries that no network interface has filled.
 *
 * @return 1 if the entry is in use, 0 if it is all zero.
 */
int mlx5sim_port_gid(const mlx5sim_config_t *config, unsigned dev,
                     unsigned port, unsigned index,
                     uint8_t gid[MLX5SIM_GID_LEN]);

/** Whether @a gid is in the GID table of a port. */
int mlx5sim_port_has_gid(const mlx5sim_config_t *config, unsigned dev,
                         unsigned port, const uint8_t gid[MLX5SIM_GID_LEN]);

/**
 * Find the port of this instance that has a GID.
 *
 * @param [out] dev_p   Its device.
 * @param [out] port_p  Its number, from 1.
 *
 * @return 1, or 0 if no port has it.
 */
int mlx5sim_gid_find(const mlx5sim_config_t *config,
                     const uint8_t gid[MLX5SIM_GID_LEN], unsigned *dev_p,
                     unsigned *port_p);

/** MAC address of the RoCE port that has @a gid: with MLX5SIM_WIRE, that of the
 *  interface if it is a port of this instance. Otherwise modified EUI-64 turned
 *  back, RFC 4291 appendix A; of an IPv4-mapped GID any unicast address. */
void mlx5sim_gid_mac(const mlx5sim_config_t *config,
                     const uint8_t gid[MLX5SIM_GID_LEN], uint8_t mac[6]);

/** Bonded ports behind each RoCE port, 0: no LAG. */
unsigned mlx5sim_lag_ports(const mlx5sim_config_t *config);

/** Whether RDMA writes of queue pairs on service level @a sl reach memory in
 *  order. PRM, QPC field data_in_order ("data is written in order"), and
 *  ooo_sl_mask of the HCA vport context. */
int mlx5sim_sl_is_in_order(const mlx5sim_config_t *config, unsigned sl);

/** Whether a GID of the table that is in use is of RoCE v2. */
int mlx5sim_gid_is_roce_v2(const mlx5sim_config_t *config, unsigned index);

/** sysfs name of the type of a GID that is in use: "IB/RoCE v1" or
 *  "RoCE v2". */
const char *mlx5sim_gid_type(const mlx5sim_config_t *config, unsigned index);

/** "xxxx:xxxx:xxxx:xxxx". @a buf holds MLX5SIM_GUID_STR_MAX bytes. */
const char *mlx5sim_guid_str(uint64_t guid, char *buf);

/** Eight groups as in sysfs. @a buf holds MLX5SIM_GID_STR_MAX bytes. */
const char *mlx5sim_gid_str(const uint8_t gid[MLX5SIM_GID_LEN], char *buf);

/** Firmware version numbers of the configuration. */
void mlx5sim_fw_version(const mlx5sim_config_t *config, uint16_t version[3]);

#endif
