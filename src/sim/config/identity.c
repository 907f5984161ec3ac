/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/config/identity.h>
#include <sim/config/quirk.h>

#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#define MLX5SIM_PCI_BUS_BASE 0x3b

/* 24:8a:07 is an OUI of Mellanox; "03 00" in the middle is how its GUIDs are
 * made of MAC addresses */
#define MLX5SIM_GUID_BASE 0x248a070300a50000ull
#define MLX5SIM_GUID_FILL 0x0300

/* Of the link-local address: RFC 4291, appendix A */
#define MLX5SIM_EUI64_FILL 0xfffe

/* InfiniBand: what ConnectX-5 reports, without the subnet manager bit.
 * RoCE: IB_PORT_CM_SUP. */
#define MLX5SIM_CAP_MASK_IB   0x2651e848
#define MLX5SIM_CAP_MASK_ROCE 0x00010000

/* real RoCE tables have 256 entries; all but the first four would be empty and
 * only cost time here */
#define MLX5SIM_GID_TABLE_LEN_IB    8
#define MLX5SIM_GID_TABLE_LEN_ROCE  16
#define MLX5SIM_PKEY_TABLE_LEN_IB   128
#define MLX5SIM_PKEY_TABLE_LEN_ROCE 1

/* enum ibv_mtu: 4096, 1024 */
#define MLX5SIM_MTU_IB   5
#define MLX5SIM_MTU_ROCE 3

_Static_assert(MLX5SIM_NETIFS_MAX == MLX5SIM_DEVICES_MAX * MLX5SIM_PORTS_MAX,
               "ports without a network interface");

const char *mlx5sim_pci_name(unsigned dev, char *buf)
{
    snprintf(buf, MLX5SIM_PCI_NAME_MAX, "0000:%02x:00.%u",
             (MLX5SIM_PCI_BUS_BASE + dev / 2) & 0xff, dev % 2);
    return buf;
}

int mlx5sim_pci_name_parse(const char *name, size_t length)
{
    char buf[MLX5SIM_PCI_NAME_MAX];
    unsigned dev;

    for (dev = 0; dev < MLX5SIM_DEVICES_MAX; ++dev) {
        mlx5sim_pci_name(dev, buf);
        if ((length == strlen(buf)) && !memcmp(name, buf, length)) {
            return dev;
        }
    }

    return -1;
}

dev_t mlx5sim_uverbs_rdev(unsigned dev)
{
    return makedev(MLX5SIM_UVERBS_MAJOR, MLX5SIM_UVERBS_BASE_MINOR + dev);
}

int mlx5sim_config_has_wire(const mlx5sim_config_t *config)
{
    return config->netifs[0].name[0] != '\0';
}

int mlx5sim_config_has_dc(const mlx5sim_config_t *config)
{
    return config->dc && !mlx5sim_config_has_wire(config);
}

int mlx5sim_config_has_xrc(const mlx5sim_config_t *config)
{
    return !mlx5sim_config_has_wire(config);
}

const mlx5sim_netif_t *
mlx5sim_port_netif(const mlx5sim_config_t *config, unsigned dev, unsigned port)
{
    return mlx5sim_config_has_wire(config) ?
           &config->netifs[dev * config->ports + port - 1] : NULL;
}

const char *mlx5sim_port_netdev(const mlx5sim_config_t *config, unsigned dev,
                                unsigned port)
{
    const mlx5sim_netif_t *netif = mlx5sim_port_netif(config, dev, port);

    return (netif != NULL) ? netif->name : config->netdev;
}

unsigned mlx5sim_port_mtu(const mlx5sim_config_t *config, unsigned dev,
                          unsigned port)
{
    const mlx5sim_netif_t *netif = mlx5sim_port_netif(config, dev, port);

    if (config->link != MLX5SIM_LINK_ROCE) {
        return (netif != NULL) ?
               mlx5sim_netif_ib_mtu(netif->mtu - MLX5SIM_NETIF_TUNNEL) :
               MLX5SIM_MTU_IB;
    }

    return (netif != NULL) ? mlx5sim_netif_ib_mtu(netif->mtu) :
                             MLX5SIM_MTU_ROCE;
}

/* A MAC address with something between its halves */
static uint64_t mlx5sim_mac_fill(const uint8_t mac[6], unsigned fill)
{
    uint64_t number = 0;
    unsigned i;

    for (i = 0; i < 6; ++i) {
        number = (number << 8) | mac[i];
        if (i == 2) {
            number = (number << 16) | fill;
        }
    }

    return number;
}

uint64_t mlx5sim_node_guid(const mlx5sim_config_t *config, unsigned dev)
{
    const mlx5sim_netif_t *netif = mlx5sim_port_netif(config, dev, 1);

    return (netif != NULL) ? mlx5sim_mac_fill(netif->mac, MLX5SIM_GUID_FILL) :
                             MLX5SIM_GUID_BASE + dev * 0x10;
}

uint64_t mlx5sim_port_guid(const mlx5sim_config_t *config, unsigned dev,
                           unsigned port)
{
    const mlx5sim_netif_t *netif = mlx5sim_port_netif(config, dev, port);

    return (netif != NULL) ? mlx5sim_mac_fill(netif->mac, MLX5SIM_GUID_FILL) :
                             mlx5sim_node_guid(config, dev) + port - 1;
}

uint16_t mlx5sim_port_lid(const mlx5sim_config_t *config, unsigned dev,
                          unsigned port)
{
    const mlx5sim_netif_t *netif = mlx5sim_port_netif(config, dev, port);
    unsigned base;

    if (config->link == MLX5SIM_LINK_ROCE) {
        return 0;
    }

    if (netif != NULL) {
        return mlx5sim_netif_lid(netif, config->lmc);
    }

    /* as a subnet manager does, the low bits are free for paths */
    base = (config->lid_base + (1u << config->lmc) - 1) &
           ~((1u << config->lmc) - 1);
    return base + ((dev * config->ports + port - 1) << config->lmc);
}

int mlx5sim_port_has_lid(const mlx5sim_config_t *config, unsigned dev,
                         unsigned port, uint16_t lid)
{
    unsigned lmc = mlx5sim_port_lmc(config);

    return lid >> lmc == mlx5sim_port_lid(config, dev, port) >> lmc;
}

int mlx5sim_lid_find(const mlx5sim_config_t *config, uint16_t lid,
                     unsigned *dev_p, unsigned *port_p)
{
    unsigned dev, port;

    for (dev = 0; dev < config->devices; ++dev) {
        for (port = 1; port <= config->ports; ++port) {
            if (mlx5sim_port_has_lid(config, dev, port, lid)) {
                *dev_p  = dev;
                *port_p = port;
                return 1;
            }
        }
    }

    return 0;
}

unsigned mlx5sim_port_lmc(const mlx5sim_config_t *config)
{
    return (config->link == MLX5SIM_LINK_ROCE) ? 0 : config->lmc;
}

uint16_t mlx5sim_port_sm_lid(const mlx5sim_config_t *config)
{
    return (config->link == MLX5SIM_LINK_ROCE) ? 0 : MLX5SIM_SM_LID;
}

/* Whether it is a RoCE port in a list of the configuration */
static int mlx5sim_port_is_listed(const mlx5sim_config_t *config,
                                  const char *list, unsigned dev, unsigned port)
{
    uint32_t ports;

    return (config->link == MLX5SIM_LINK_ROCE) && (list[0] != '\0') &&
           (mlx5sim_quirk_parse_ports(list, &ports) == 0) &&
           (ports & mlx5sim_quirk_port(dev, port));
}

/* A RoCE port without GIDs */
static int mlx5sim_port_is_gidless(const mlx5sim_config_t *config, unsigned dev,
                                   unsigned port)
{
    return mlx5sim_port_is_listed(config, config->gidless, dev, port);
}

uint32_t mlx5sim_port_cap_mask(const mlx5sim_config_t *config, unsigned dev,
                               unsigned port)
{
    if (config->link != MLX5SIM_LINK_ROCE) {
        return MLX5SIM_CAP_MASK_IB;
    }

    return mlx5sim_port_is_gidless(config, dev, port) ? 0 :
                                                        MLX5SIM_CAP_MASK_ROCE;
}

unsigned mlx5sim_gid_table_len(const mlx5sim_config_t *config, unsigned dev,
                               unsigned port)
{
    if (config->link != MLX5SIM_LINK_ROCE) {
        return MLX5SIM_GID_TABLE_LEN_IB;
    }

    return mlx5sim_port_is_gidless(config, dev, port) ? 0 :
           MLX5SIM_GID_TABLE_LEN_ROCE;
}

unsigned mlx5sim_pkey_table_len(const mlx5sim_config_t *config)
{
    return (config->link == MLX5SIM_LINK_ROCE) ? MLX5SIM_PKEY_TABLE_LEN_ROCE :
                                                 MLX5SIM_PKEY_TABLE_LEN_IB;
}

int mlx5sim_port_gid(const mlx5sim_config_t *config, unsigned dev,
                     unsigned port, unsigned index,
                     uint8_t gid[MLX5SIM_GID_LEN])
{
    const mlx5sim_netif_t *netif = mlx5sim_port_netif(config, dev, port);
    uint64_t guid                = mlx5sim_port_guid(config, dev, port);
    unsigned used                = (config->link == MLX5SIM_LINK_ROCE) ? 4 : 1;
    unsigned i;

    memset(gid, 0, MLX5SIM_GID_LEN);
    if ((netif != NULL) && (config->link == MLX5SIM_LINK_ROCE)) {
        guid = mlx5sim_mac_fill(netif->mac, MLX5SIM_EUI64_FILL) ^ (2ull << 56);
        used = 2 * (1 + netif->has_ipv4 + netif->has_ipv6);
    }

    if ((index >= used) ||
        mlx5sim_port_is_listed(config, config->empty_gids, dev, port)) {
        return 0;
    }

    if (index < 2) {
        gid[0] = 0xfe;
        gid[1] = 0x80;
        for (i = 0; i < 8; ++i) {
            gid[8 + i] = guid >> (8 * (7 - i));
        }
    } else if ((netif != NULL) && ((index >= 4) || !netif->has_ipv4)) {
        memcpy(gid, netif->ipv6, MLX5SIM_GID_LEN);
    } else {
        /* IPv4-mapped; 198.18/15 is reserved for benchmarks (RFC 2544), so it
         * is nobody's address */
        const uint8_t ipv4[4] = {198, 18, dev, port};

        gid[10] = 0xff;
        gid[11] = 0xff;
        memcpy(gid + 12, (netif != NULL) ? netif->ipv4 : ipv4, sizeof(ipv4));
    }

    return 1;
}

int mlx5sim_port_has_gid(const mlx5sim_config_t *config, unsigned dev,
                         unsigned port, const uint8_t gid[MLX5SIM_GID_LEN])
{
    unsigned i, length = mlx5sim_gid_table_len(config, dev, port);
    uint8_t own[MLX5SIM_GID_LEN];

    /* entries in use come first */
    for (i = 0; i < length; ++i) {
        if (!mlx5sim_port_gid(config, dev, port, i, own)) {
            return 0;
        }

        if (memcmp(own, gid, sizeof(own)) == 0) {
            return 1;
        }
    }

    return 0;
}

int mlx5sim_gid_find(const mlx5sim_config_t *config,
                     const uint8_t gid[MLX5SIM_GID_LEN], unsigned *dev_p,
                     unsigned *port_p)
{
    unsigned dev, port;

    for (dev = 0; dev < config->devices; ++dev) {
        for (port = 1; port <= config->ports; ++port) {
            if (mlx5sim_port_has_gid(config, dev, port, gid)) {
                *dev_p  = dev;
                *port_p = port;
                return 1;
            }
        }
    }

    return 0;
}

void mlx5sim_gid_mac(const mlx5sim_config_t *config,
                     const uint8_t gid[MLX5SIM_GID_LEN], uint8_t mac[6])
{
    unsigned dev, port;

    if (mlx5sim_config_has_wire(config) &&
        mlx5sim_gid_find(config, gid, &dev, &port)) {
        memcpy(mac, mlx5sim_port_netif(config, dev, port)->mac, 6);
        return;
    }

    mac[0] = gid[8] ^ 2;
    mac[1] = gid[9];
    mac[2] = gid[10];
    mac[3] = gid[13];
    mac[4] = gid[14];
    mac[5] = gid[15];
}

unsigned mlx5sim_lag_ports(const mlx5sim_config_t *config)
{
    return ((config->link == MLX5SIM_LINK_ROCE) && (config->lag > 1)) ?
           config->lag : 0;
}

int mlx5sim_sl_is_in_order(const mlx5sim_config_t *config, unsigned sl)
{
    return (config->data_in_order != MLX5SIM_DATA_IN_ORDER_NO) &&
           ((config->link == MLX5SIM_LINK_ROCE) ||
            !((config->ooo_sl_mask >> (sl & 15)) & 1));
}

int mlx5sim_gid_is_roce_v2(const mlx5sim_config_t *config, unsigned index)
{
    return (config->link == MLX5SIM_LINK_ROCE) && (index & 1);
}

const char *mlx5sim_gid_type(const mlx5sim_config_t *config, unsigned index)
{
    /* reading the type of an empty entry fails with EINVAL in the kernel, which
     * libibverbs takes for v1; a file can only say v1 */
    return mlx5sim_gid_is_roce_v2(config, index) ? "RoCE v2" : "IB/RoCE v1";
}

const char *mlx5sim_guid_str(uint64_t guid, char *buf)
{
    snprintf(buf, MLX5SIM_GUID_STR_MAX, "%04x:%04x:%04x:%04x",
             (unsigned)(guid >> 48) & 0xffff, (unsigned)(guid >> 32) & 0xffff,
             (unsigned)(guid >> 16) & 0xffff, (unsigned)guid & 0xffff);
    return buf;
}

const char *mlx5sim_gid_str(const uint8_t gid[MLX5SIM_GID_LEN], char *buf)
{
    unsigned i;

    for (i = 0; i < 8; ++i) {
        snprintf(buf + i * 5, MLX5SIM_GID_STR_MAX - i * 5, "%02x%02x%s",
                 gid[i * 2], gid[i * 2 + 1], (i < 7) ? ":" : "");
    }

    return buf;
}

void mlx5sim_fw_version(const mlx5sim_config_t *config, uint16_t version[3])
{
    const mlx5sim_model_t *model = mlx5sim_model_get(config->model);
    unsigned numbers[3];
    unsigned i;

    if (sscanf(config->fw_version, "%u.%u.%u", &numbers[0], &numbers[1],
               &numbers[2]) != 3) {
        memcpy(version, model->fw_version, sizeof(model->fw_version));
        return;
    }

    for (i = 0; i < 3; ++i) {
        version[i] = numbers[i];
    }
}
