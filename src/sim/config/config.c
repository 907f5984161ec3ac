/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <sim/config/config.h>
#include <sim/config/fault.h>
#include <sim/config/model.h>
#include <sim/config/quirk.h>
#include <sim/config/seed.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define MLX5SIM_CONFIG_PREFIX "MLX5SIM_"

/* Environment variables of the launcher and the tests, not of the device. */
#define MLX5SIM_CONFIG_PRIVATE_PREFIX "MLX5SIM_RUN_"

/* First line of the config file of an instance. Counts up when the files in an
 * instance change in a way that older processes do not understand. */
#define MLX5SIM_CONFIG_LAYOUT "LAYOUT=1"

/* Name of a network interface in the config file, which is no variable */
#define MLX5SIM_CONFIG_NETIF "NETIF"

#define MLX5SIM_CONFIG_FIELD(_field) offsetof(mlx5sim_config_t, _field)

static int mlx5sim_config_check_version(const char *value);
static int mlx5sim_config_check_dir(const char *value);
static int mlx5sim_config_check_fail(const char *value);
static int mlx5sim_config_check_gids(const char *value);
static int mlx5sim_config_check_ports(const char *value);
static int mlx5sim_config_check_recv(const char *value);

static const char *const mlx5sim_link_names[] = {"ib", "roce", NULL};

static const char *const mlx5sim_uar_mode_names[] = {"dynamic", "legacy", NULL};

static const char *const mlx5sim_pci_atomics_names[] = {
    "none", "fadd8", "8", "4_8", NULL
};

static const char *const mlx5sim_cqe_compression_names[] = {
    "none", "64", "64_128", NULL
};

static const char *const mlx5sim_data_in_order_names[] = {
    "y", "n", "unknown", NULL
};

static const char *const mlx5sim_pci_wr_ordering_names[] = {
    "per_mkey", "force_relax", NULL
};

static const char *const mlx5sim_exec_names[] = {"sync", "deferred",
                                                 "stepped", NULL};

static const char *const mlx5sim_share_names[] = {"none", "queues",
                                                  "mappings", "memory",
                                                  NULL};

static const char *const mlx5sim_log_names[] = {
    "none", "error", "warn", "info", "debug", "trace", NULL
};

static const mlx5sim_config_row_t mlx5sim_config_table[] = {
    {"MLX5SIM_DIR", MLX5SIM_CONFIG_STRING, MLX5SIM_CONFIG_LOCATION, 0,
     "", 0, 0, NULL, "an absolute path", mlx5sim_config_check_dir,
     "Directory of the instance: processes with the same directory see the "
     "same devices and can reach each other. It is created when it does not "
     "exist. Default: /dev/shm/mlx5sim.UID"},
    {"MLX5SIM_DISABLE", MLX5SIM_CONFIG_BOOL, MLX5SIM_CONFIG_LOCATION, 0,
     "n", 0, 0, NULL, NULL, NULL,
     "Do nothing in this process: it sees the machine as it is"},

    {"MLX5SIM_DEVICES", MLX5SIM_CONFIG_UINT, MLX5SIM_CONFIG_INSTANCE,
     MLX5SIM_CONFIG_FIELD(devices), "1", 1, 16, NULL, NULL, NULL,
     "Number of devices: mlx5_0, mlx5_1, ..."},
    {"MLX5SIM_PORTS", MLX5SIM_CONFIG_UINT, MLX5SIM_CONFIG_INSTANCE,
     MLX5SIM_CONFIG_FIELD(ports), "1", 1, 2, NULL, NULL, NULL,
     "Number of ports of each device"},
    {"MLX5SIM_LINK", MLX5SIM_CONFIG_CHOICE, MLX5SIM_CONFIG_INSTANCE,
     MLX5SIM_CONFIG_FIELD(link), "ib", 0, 0, mlx5sim_link_names, NULL, NULL,
     "Link layer of the ports: InfiniBand or RoCE"},
    {"MLX5SIM_MODEL", MLX5SIM_CONFIG_CHOICE, MLX5SIM_CONFIG_INSTANCE,
     MLX5SIM_CONFIG_FIELD(model), "cx5", 0, 0, mlx5sim_model_names, NULL, NULL,
     "Adapter the devices pose as (ConnectX-4 to ConnectX-7)"},
    {"MLX5SIM_FW_VERSION", MLX5SIM_CONFIG_STRING, MLX5SIM_CONFIG_INSTANCE,
     MLX5SIM_CONFIG_FIELD(fw_version), "", 0, 0, NULL,
     "three numbers up to 65535 with dots between them, such as 16.35.4506",
     mlx5sim_config_check_version,
     "Firmware version the devices report. Default: one that fits the model"},
    {"MLX5SIM_LID_BASE", MLX5SIM_CONFIG_UINT, MLX5SIM_CONFIG_INSTANCE,
     MLX5SIM_CONFIG_FIELD(lid_base), "16", 1, 0xaf00, NULL, NULL, NULL,
     "LID of the first InfiniBand port; further ports and devices count up. "
     "Not with MLX5SIM_WIRE"},
    {"MLX5SIM_LMC", MLX5SIM_CONFIG_UINT, MLX5SIM_CONFIG_INSTANCE,
     MLX5SIM_CONFIG_FIELD(lmc), "0", 0, 7, NULL, NULL, NULL,
     "LID mask control, N: each InfiniBand port has 2^N LIDs, which differ in "
     "their path bits"},
    {"MLX5SIM_NETDEV", MLX5SIM_CONFIG_STRING, MLX5SIM_CONFIG_INSTANCE,
     MLX5SIM_CONFIG_FIELD(netdev), "lo", 0, 0, NULL,
     "the name of a network interface (up to 15 characters, no '/')",
     mlx5sim_netif_is_name,
     "Network interface that RoCE ports claim to belong to"},
    {"MLX5SIM_WIRE", MLX5SIM_CONFIG_STRING, MLX5SIM_CONFIG_INSTANCE,
     MLX5SIM_CONFIG_FIELD(wire), "", 0, 0, NULL,
     "names of up to 32 network interfaces with commas between them, each once",
     mlx5sim_netif_check,
     "Network interfaces behind ports, one for each port in order "
     "(mlx5_0:1, mlx5_0:2, mlx5_1:1, ...). A port takes MAC address, MTU, GIDs "
     "and GUIDs from its interface, as it is when the instance is created, so "
     "that ports of different nodes differ. Empty: addresses of nobody, and "
     "MLX5SIM_NETDEV"},
    {"MLX5SIM_GIDLESS", MLX5SIM_CONFIG_STRING, MLX5SIM_CONFIG_INSTANCE,
     MLX5SIM_CONFIG_FIELD(gidless), "", 0, 0, NULL,
     "a list of ports such as mlx5_0:1 with commas between them",
     mlx5sim_config_check_ports,
     "RoCE ports whose link is up and that have no GIDs (gid_tbl_len is 0): "
     "those of representors, and of functions where RoCE is switched off. No "
     "queue pair can be connected through one"},
    {"MLX5SIM_EMPTY_GIDS", MLX5SIM_CONFIG_STRING, MLX5SIM_CONFIG_INSTANCE,
     MLX5SIM_CONFIG_FIELD(empty_gids), "", 0, 0, NULL,
     "a list of ports such as mlx5_0:1 with commas between them",
     mlx5sim_config_check_ports,
     "RoCE ports whose link is up and whose table of GIDs is there, but has "
     "zeros only: those of which the kernel knows no network interface. No "
     "queue pair can be connected through one"},
    {"MLX5SIM_UAR_MODE", MLX5SIM_CONFIG_CHOICE, MLX5SIM_CONFIG_INSTANCE,
     MLX5SIM_CONFIG_FIELD(uar_mode), "dynamic", 0, 0, mlx5sim_uar_mode_names,
     NULL, NULL,
     "How contexts get UAR pages. dynamic: from UAR objects on demand, as with "
     "Linux 5.8 and later. legacy: 8 static pages (16 uUARs) per context, or "
     "as MLX5_TOTAL_UUARS and MLX5_NUM_LOW_LAT_UUARS say, and up to 512 "
     "dynamic ones, as with kernels before"},
    {"MLX5SIM_UARS", MLX5SIM_CONFIG_UINT, MLX5SIM_CONFIG_INSTANCE,
     MLX5SIM_CONFIG_FIELD(uars), "8171", 1, 65536, NULL, NULL, NULL,
     "UAR pages that each device has for all applications together. Default: "
     "8192 less 21 that drivers keep, so that at most 907 contexts of 9 pages "
     "fit"},
    {"MLX5SIM_BF", MLX5SIM_CONFIG_BOOL, MLX5SIM_CONFIG_INSTANCE,
     MLX5SIM_CONFIG_FIELD(bf), "y", 0, 0, NULL, NULL, NULL,
     "Whether the kernel has found that write combining works, and offers "
     "BlueFlame. n: bf_reg_size is 0, and no page can be had for BlueFlame or "
     "for a thread domain"},
    {"MLX5SIM_MAX_PD", MLX5SIM_CONFIG_UINT, MLX5SIM_CONFIG_INSTANCE,
     MLX5SIM_CONFIG_FIELD(max_pd), "16320", 1, 16320, NULL, NULL, NULL,
     "Protection domains that each device has, ibv_device_attr::max_pd"},
    {"MLX5SIM_MAX_MR", MLX5SIM_CONFIG_UINT, MLX5SIM_CONFIG_INSTANCE,
     MLX5SIM_CONFIG_FIELD(max_mr), "131008", 1, 131008, NULL, NULL, NULL,
     "Memory regions that each device has, ibv_device_attr::max_mr"},
    {"MLX5SIM_MAX_CQ", MLX5SIM_CONFIG_UINT, MLX5SIM_CONFIG_INSTANCE,
     MLX5SIM_CONFIG_FIELD(max_cq), "65472", 1, 65472, NULL, NULL, NULL,
     "Completion queues that each device has, ibv_device_attr::max_cq"},
    {"MLX5SIM_MAX_SRQ", MLX5SIM_CONFIG_UINT, MLX5SIM_CONFIG_INSTANCE,
     MLX5SIM_CONFIG_FIELD(max_srq), "16320", 1, 16320, NULL, NULL, NULL,
     "Shared receive queues that each device has, ibv_device_attr::max_srq"},
    {"MLX5SIM_MAX_QP", MLX5SIM_CONFIG_UINT, MLX5SIM_CONFIG_INSTANCE,
     MLX5SIM_CONFIG_FIELD(max_qp), "65472", 1, 65472, NULL, NULL, NULL,
     "Queue pairs that each device has, ibv_device_attr::max_qp"},

    {"MLX5SIM_PCI_ATOMICS", MLX5SIM_CONFIG_CHOICE, MLX5SIM_CONFIG_INSTANCE,
     MLX5SIM_CONFIG_FIELD(pci_atomics), "none", 0, 0, mlx5sim_pci_atomics_names,
     NULL, NULL,
     "Atomics that the devices report as atomics on PCIe, which the processor "
     "sees as atomic: none, fetch-and-add of 8 bytes, or fetch-and-add, swap "
     "and compare-and-swap of 8 bytes or of 4 and 8"},
    {"MLX5SIM_MASKED_ATOMICS", MLX5SIM_CONFIG_BOOL, MLX5SIM_CONFIG_INSTANCE,
     MLX5SIM_CONFIG_FIELD(masked_atomics), "y", 0, 0, NULL, NULL, NULL,
     "Whether the devices have masked (extended) atomics, by which those of 4 "
     "bytes are done. n: QUERY_HCA_CAP has none of them in atomic_operations, "
     "and such a work request fails"},
    {"MLX5SIM_CQE_COMPRESSION", MLX5SIM_CONFIG_CHOICE, MLX5SIM_CONFIG_INSTANCE,
     MLX5SIM_CONFIG_FIELD(cqe_compression), "64_128", 0, 0,
     mlx5sim_cqe_compression_names, NULL, NULL,
     "CQEs that the devices can compress, in completion queues that ask for it "
     "(mlx5dv_cqe_comp_caps): none, those of 64 bytes, or those of 64 and 128"},

    {"MLX5SIM_DEVX", MLX5SIM_CONFIG_BOOL, MLX5SIM_CONFIG_INSTANCE,
     MLX5SIM_CONFIG_FIELD(devx), "n", 0, 0, NULL, NULL, NULL,
     "Whether contexts can have DEVX: programs then give firmware commands, "
     "which ask for capabilities, and make, move and query queue pairs and "
     "their queues"},
    {"MLX5SIM_DC", MLX5SIM_CONFIG_BOOL, MLX5SIM_CONFIG_INSTANCE,
     MLX5SIM_CONFIG_FIELD(dc), "n", 0, 0, NULL, NULL, NULL,
     "Whether there are queue pairs of the dynamically connected transport "
     "(DC, mlx5dv_create_qp): UCX then has dc_mlx5. Not with MLX5SIM_WIRE"},
    {"MLX5SIM_ODP", MLX5SIM_CONFIG_BOOL, MLX5SIM_CONFIG_INSTANCE,
     MLX5SIM_CONFIG_FIELD(odp), "n", 0, 0, NULL, NULL, NULL,
     "Whether memory can be registered without being pinned (on-demand paging, "
     "IBV_ACCESS_ON_DEMAND). UCX then does so with UCP_MEM_MAP_NONBLOCK, and "
     "where UCX_IB_REG_METHODS says odp"},
    {"MLX5SIM_DM", MLX5SIM_CONFIG_BOOL, MLX5SIM_CONFIG_INSTANCE,
     MLX5SIM_CONFIG_FIELD(dm), "n", 0, 0, NULL, NULL, NULL,
     "Whether each device has 128 KB of memory that programs can have "
     "(ibv_alloc_dm). UCX's rc_mlx5 then sends short messages from there"},
    {"MLX5SIM_LAG", MLX5SIM_CONFIG_UINT, MLX5SIM_CONFIG_INSTANCE,
     MLX5SIM_CONFIG_FIELD(lag), "0", 0, 4, NULL, NULL, NULL,
     "RoCE: ports of the adapter that are bonded to the one that is seen, as "
     "DEVX tells. Each queue pair sends through one of them "
     "(lag_tx_port_affinity). Below 2: no LAG"},
    {"MLX5SIM_DATA_IN_ORDER", MLX5SIM_CONFIG_CHOICE, MLX5SIM_CONFIG_INSTANCE,
     MLX5SIM_CONFIG_FIELD(data_in_order), "y", 0, 0,
     mlx5sim_data_in_order_names, NULL, NULL,
     "Whether RDMA writes of a queue pair reach memory in order, which QPC "
     "field data_in_order tells. n: packets of consecutive writes come in any "
     "order (seen with deferred execution). unknown: they come in order, and "
     "the firmware does not have the field (qp_data_in_order is 0)"},
    {"MLX5SIM_OOO_SL_MASK", MLX5SIM_CONFIG_UINT, MLX5SIM_CONFIG_INSTANCE,
     MLX5SIM_CONFIG_FIELD(ooo_sl_mask), "0", 0, 0xffff, NULL, NULL, NULL,
     "InfiniBand: set of service levels that are routed adaptively, as the HCA "
     "vport context tells: writes of queue pairs on them come in any order, as "
     "with MLX5SIM_DATA_IN_ORDER=n"},
    {"MLX5SIM_PCI_WR_ORDERING", MLX5SIM_CONFIG_CHOICE, MLX5SIM_CONFIG_INSTANCE,
     MLX5SIM_CONFIG_FIELD(pci_wr_ordering), "per_mkey", 0, 0,
     mlx5sim_pci_wr_ordering_names, NULL, NULL,
     "PCI_WR_ORDERING of mlxconfig: which RDMA writes are written to memory in "
     "pieces of 256 bytes in any order (seen with deferred execution): those "
     "to keys with relaxed ordering, or all"},

    {"MLX5SIM_STRICT", MLX5SIM_CONFIG_BOOL, MLX5SIM_CONFIG_PROCESS,
     MLX5SIM_CONFIG_FIELD(strict), "y", 0, 0, NULL, NULL, NULL,
     "Report whatever hardware would not accept, with a decoded dump, and make "
     "mlx5sim-run fail"},
    {"MLX5SIM_LOG", MLX5SIM_CONFIG_CHOICE, MLX5SIM_CONFIG_PROCESS,
     MLX5SIM_CONFIG_FIELD(log), "warn", 0, 0, mlx5sim_log_names, NULL, NULL,
     "What the device writes to standard error"},
    {"MLX5SIM_FAIL", MLX5SIM_CONFIG_STRING, MLX5SIM_CONFIG_PROCESS,
     MLX5SIM_CONFIG_FIELD(fail), "", 0, 0, NULL,
     "up to 16 of OBJECT[:NTH[+][:ERRNO]] with commas between them",
     mlx5sim_config_check_fail,
     "Commands that fail: the NTH (default 1) on OBJECT in this process, with "
     "+ all later ones too, with ERRNO (default ENOMEM). Objects: context, "
     "uar, pd, mr, channel, cq, srq, qp, ah, modify_srq, modify_qp, "
     "modify_qp_init, modify_qp_rtr, modify_qp_rts, query_qp, query_device, "
     "query_port. It is read before each command; counting starts over when it "
     "changes"},
    {"MLX5SIM_CMD_DELAY", MLX5SIM_CONFIG_UINT, MLX5SIM_CONFIG_PROCESS,
     MLX5SIM_CONFIG_FIELD(cmd_delay), "0", 0, 1000000, NULL, NULL, NULL,
     "Commands (creating, modifying and destroying objects, registering "
     "memory) take up to this many microseconds longer, as the seed says: "
     "adapters take some 10 to 1000"},
    {"MLX5SIM_GONE_AFTER", MLX5SIM_CONFIG_UINT, MLX5SIM_CONFIG_PROCESS,
     MLX5SIM_CONFIG_FIELD(gone_after), "100", 0, 100000, NULL, NULL, NULL,
     "Longest time in milliseconds until a queue pair whose peer has gone ends "
     "with transport retries exceeded. An adapter takes timeout * (retry_cnt + "
     "1), seconds often; until then the program can finish what it has"},
    {"MLX5SIM_CM_TIMEOUT", MLX5SIM_CONFIG_UINT, MLX5SIM_CONFIG_PROCESS,
     MLX5SIM_CONFIG_FIELD(cm_timeout), "60000", 1, 3600000, NULL, NULL, NULL,
     "Connection manager (rdma_cm): time in milliseconds after which who has "
     "asked for a connection and has no answer is told so "
     "(RDMA_CM_EVENT_UNREACHABLE), and who has asked for its end is "
     "disconnected"},
    {"MLX5SIM_WC", MLX5SIM_CONFIG_UINT, MLX5SIM_CONFIG_PROCESS,
     MLX5SIM_CONFIG_FIELD(wc), "0", 0, 0xffffffffu, NULL, NULL, NULL,
     "Write combining: the device sees what a thread stores to a UAR page with "
     "BlueFlame when the thread executes a fence, a locked or a serializing "
     "instruction or a system call, or after a number of instructions up to "
     "this one, which the seed chooses. 0: at once"},
    {"MLX5SIM_PATCH_AFTER", MLX5SIM_CONFIG_UINT, MLX5SIM_CONFIG_PROCESS,
     MLX5SIM_CONFIG_FIELD(patch_after), "100", 0, 0xffffffffu, NULL, NULL, NULL,
     "Doorbells without signals: a store of the program that has rung this "
     "many times is replaced by a jump to the device, as is memcpy() for a "
     "library that rings by it. 0: never. Has no effect with MLX5SIM_WC, under "
     "valgrind and while the program is traced"},
    {"MLX5SIM_SHARE", MLX5SIM_CONFIG_CHOICE, MLX5SIM_CONFIG_PROCESS,
     MLX5SIM_CONFIG_FIELD(share), "queues", 0, 0, mlx5sim_share_names, NULL,
     NULL,
     "What the device puts into shared memory, at the address that it has, so "
     "that peers write to it without a system call. queues: completion queues. "
     "mappings: these, and memory regions of up to 16 MB that nobody has "
     "touched before they are registered, where userfaultfd() is allowed, if "
     "each is all of what the program has mapped with one call of mmap(), and "
     "children are not to have it (ibv_fork_init(3)). memory: all regions that "
     "nobody has touched, which is not for programs with threads that fork. "
     "Nothing is shared under valgrind"},
    {"MLX5SIM_BAD_GIDS", MLX5SIM_CONFIG_STRING, MLX5SIM_CONFIG_PROCESS,
     MLX5SIM_CONFIG_FIELD(bad_gids), "", 0, 0, NULL,
     "a list of GID indices up to 31 with commas between them",
     mlx5sim_config_check_gids,
     "GIDs of RoCE ports that are in the table and can't be used, such as "
     "those of an interface in another network namespace: an address handle "
     "with one as source can't be created, nor a QP be connected (ENODEV). It "
     "is read each time"},
    {"MLX5SIM_SRQ_PREFETCH", MLX5SIM_CONFIG_UINT, MLX5SIM_CONFIG_PROCESS,
     MLX5SIM_CONFIG_FIELD(srq_prefetch), "0", 0, 15, NULL, NULL, NULL,
     "Receives that a QP takes from its SRQ before messages need them: the "
     "seed chooses a number up to this one for each QP. A QP that goes to the "
     "error state flushes them after a while and then reports "
     "IBV_EVENT_QP_LAST_WQE_REACHED; one that is destroyed before keeps them"},
    {"MLX5SIM_RECV_ERROR", MLX5SIM_CONFIG_STRING, MLX5SIM_CONFIG_PROCESS,
     MLX5SIM_CONFIG_FIELD(recv_error), "", 0, 0, NULL,
     "NTH[+]:SYNDROME:VENDOR, such as 3+:0x22:0x93", mlx5sim_config_check_recv,
     "Receives that fail: the NTH on each RC QP of this process, with + all "
     "later ones too, is completed with this syndrome and vendor syndrome. "
     "After 0x22 (aborted) the message comes again and takes the next receive, "
     "any other one fails the QP. It is read when a QP is created"},
    {"MLX5SIM_SEED", MLX5SIM_CONFIG_STRING, MLX5SIM_CONFIG_PROCESS,
     MLX5SIM_CONFIG_FIELD(seed), "1", 0, 0, NULL,
     "a number of up to 64 bits, or random", mlx5sim_seed_check,
     "What decides in the modes that leave something to chance. Each process "
     "in such a mode prints it: the same number does the same again. random: "
     "mlx5sim-run draws one for all processes of the command; without it, each "
     "process draws its own"},
    {"MLX5SIM_EXEC", MLX5SIM_CONFIG_CHOICE, MLX5SIM_CONFIG_PROCESS,
     MLX5SIM_CONFIG_FIELD(exec), "sync", 0, 0, mlx5sim_exec_names, NULL, NULL,
     "When work requests are executed. sync: before the store that rings the "
     "doorbell returns. deferred: later, packet by packet, in an order that "
     "MLX5SIM_SEED chooses. stepped: the same, but only when the program asks "
     "for a step"},
    {"MLX5SIM_DELAY", MLX5SIM_CONFIG_UINT, MLX5SIM_CONFIG_PROCESS,
     MLX5SIM_CONFIG_FIELD(delay), "8", 0, 1000, NULL, NULL, NULL,
     "Deferred execution: rounds of the scheduler that a step waits at most, "
     "and now and then eight times as many. Rounds in which nothing happens "
     "take 20 microseconds or more"},
    {"MLX5SIM_LOSS", MLX5SIM_CONFIG_UINT, MLX5SIM_CONFIG_PROCESS,
     MLX5SIM_CONFIG_FIELD(loss), "0", 0, 1000, NULL, NULL, NULL,
     "Deferred execution: how many of 1000 packets are lost, of those that "
     "this process' queue pairs send and of the answers to them"},
    {"MLX5SIM_PCAP", MLX5SIM_CONFIG_STRING, MLX5SIM_CONFIG_PROCESS,
     MLX5SIM_CONFIG_FIELD(pcap), "", 0, 0, NULL, "an absolute path",
     mlx5sim_config_check_dir,
     "File to which each process writes the packets of its queue pairs, with a "
     "dot and its pid behind the name, for Wireshark, tshark and tcpdump. A "
     "file that exists is not overwritten"},
    {"MLX5SIM_TRACE", MLX5SIM_CONFIG_STRING, MLX5SIM_CONFIG_PROCESS,
     MLX5SIM_CONFIG_FIELD(trace), "", 0, 0, NULL, "an absolute path",
     mlx5sim_config_check_dir,
     "File to which all processes append what the devices do, as a timeline "
     "for Perfetto and Chrome: doorbells by thread, work requests by queue "
     "pair, completions by completion queue"}
};

#define MLX5SIM_CONFIG_ROWS \
    (sizeof(mlx5sim_config_table) / sizeof(mlx5sim_config_table[0]))

/* spellings of false and true, in pairs; the first pair is what is written */
static const char *const mlx5sim_bool_names[][2] = {
    {"n", "y"}, {"0", "1"}, {"no", "yes"}, {"off", "on"}, {"false", "true"}
};

#define MLX5SIM_BOOL_NAMES \
    (sizeof(mlx5sim_bool_names) / sizeof(mlx5sim_bool_names[0]))

static int mlx5sim_config_check_version(const char *value)
{
    unsigned major, minor, sub;
    int end = -1;

    /* sscanf accepts signs and blanks, a version does not */
    if (strspn(value, "0123456789.") != strlen(value)) {
        return 0;
    }

    return (sscanf(value, "%5u.%5u.%5u%n", &major, &minor, &sub, &end) == 3) &&
           ((size_t)end == strlen(value)) && (major <= 0xffff) &&
           (minor <= 0xffff) && (sub <= 0xffff);
}

static int mlx5sim_config_check_dir(const char *value)
{
    return value[0] == '/';
}

static int mlx5sim_config_check_fail(const char *value)
{
    mlx5sim_fault_list_t list;

    return mlx5sim_fault_parse(value, &list) == 0;
}

static int mlx5sim_config_check_gids(const char *value)
{
    uint32_t gids;

    return mlx5sim_quirk_parse_gids(value, &gids) == 0;
}

static int mlx5sim_config_check_ports(const char *value)
{
    uint32_t ports;

    return mlx5sim_quirk_parse_ports(value, &ports) == 0;
}

static int mlx5sim_config_check_recv(const char *value)
{
    mlx5sim_quirk_recv_t recv;

    return mlx5sim_quirk_parse_recv(value, &recv) == 0;
}

const mlx5sim_config_row_t *mlx5sim_config_rows(size_t *count_p)
{
    *count_p = MLX5SIM_CONFIG_ROWS;
    return mlx5sim_config_table;
}

static const mlx5sim_config_row_t *
mlx5sim_config_find(const char *name, size_t length)
{
    size_t i;

    for (i = 0; i < MLX5SIM_CONFIG_ROWS; ++i) {
        if (!strncmp(mlx5sim_config_table[i].name, name, length) &&
            (mlx5sim_config_table[i].name[length] == '\0')) {
            return &mlx5sim_config_table[i];
        }
    }

    return NULL;
}

static unsigned *
mlx5sim_config_number(mlx5sim_config_t *config, const mlx5sim_config_row_t *row)
{
    return (unsigned*)((char*)config + row->offset);
}

/* What a user may set the variable to, for error and help texts. */
static void mlx5sim_config_allowed(const mlx5sim_config_row_t *row, char *buf,
                                   size_t size)
{
    const char *const *choice;
    size_t length;

    switch (row->type) {
    case MLX5SIM_CONFIG_BOOL:
        snprintf(buf, size, "y or n");
        break;
    case MLX5SIM_CONFIG_UINT:
        snprintf(buf, size, "a number from %u to %u", row->min, row->max);
        break;
    case MLX5SIM_CONFIG_CHOICE:
        length = snprintf(buf, size, "one of");
        for (choice = row->choices; (*choice != NULL) && (length < size);
             ++choice) {
            length += snprintf(buf + length, size - length, "%s%s",
                               (choice == row->choices) ? " " : ", ", *choice);
        }
        break;
    case MLX5SIM_CONFIG_STRING:
        snprintf(buf, size, "%s", row->allowed);
        break;
    }
}

int mlx5sim_config_bool(const char *value)
{
    unsigned i, truth;

    for (i = 0; i < MLX5SIM_BOOL_NAMES; ++i) {
        for (truth = 0; truth < 2; ++truth) {
            if (!strcasecmp(value, mlx5sim_bool_names[i][truth])) {
                return truth;
            }
        }
    }

    return -1;
}

/* Parse into *number_p. Returns 0 if the text is not acceptable. */
static int mlx5sim_config_parse(const mlx5sim_config_row_t *row,
                                const char *value, unsigned *number_p)
{
    unsigned long number;
    unsigned i;
    int truth;
    char *end;

    switch (row->type) {
    case MLX5SIM_CONFIG_BOOL:
        truth     = mlx5sim_config_bool(value);
        *number_p = truth;
        return truth >= 0;
    case MLX5SIM_CONFIG_UINT:
        if (!isdigit((unsigned char)value[0])) {
            return 0;
        }
        errno    = 0;
        number   = strtoul(value, &end,
                           !strncasecmp(value, "0x", 2) ? 16 : 10);
        *number_p = number;
        return (errno == 0) && (*end == '\0') && (number >= row->min) &&
               (number <= row->max);
    case MLX5SIM_CONFIG_CHOICE:
        for (i = 0; row->choices[i] != NULL; ++i) {
            if (!strcasecmp(value, row->choices[i])) {
                *number_p = i;
                return 1;
            }
        }
        return 0;
    case MLX5SIM_CONFIG_STRING:
        return ((row->scope == MLX5SIM_CONFIG_LOCATION) ||
                (strlen(value) < MLX5SIM_CONFIG_STRING_MAX)) &&
               row->check(value);
    }

    return 0;
}

static int
mlx5sim_config_assign(mlx5sim_config_t *config, const mlx5sim_config_row_t *row,
                      const char *value, char *error, size_t error_size)
{
    char allowed[192];
    unsigned number = 0;

    if (!mlx5sim_config_parse(row, value, &number)) {
        mlx5sim_config_allowed(row, allowed, sizeof(allowed));
        snprintf(error, error_size, "%s='%.64s' is not valid: it must be %s",
                 row->name, value, allowed);
        errno = EINVAL;
        return -1;
    }

    if (row->scope == MLX5SIM_CONFIG_LOCATION) {
        return 0;
    }

    if (row->type == MLX5SIM_CONFIG_STRING) {
        strcpy((char*)config + row->offset, value);
    } else {
        *mlx5sim_config_number(config, row) = number;
    }

    return 0;
}

int mlx5sim_config_set(mlx5sim_config_t *config, const char *name,
                       const char *value, char *error, size_t error_size)
{
    const mlx5sim_config_row_t *row = mlx5sim_config_find(name, strlen(name));

    if (row == NULL) {
        snprintf(error, error_size, "%.64s is not a variable of mlx5sim", name);
        errno = ENOENT;
        return -1;
    }

    return mlx5sim_config_assign(config, row, value, error, error_size);
}

void mlx5sim_config_init(mlx5sim_config_t *config)
{
    const mlx5sim_config_row_t *row;
    unsigned number;

    memset(config, 0, sizeof(*config));
    for (row = mlx5sim_config_table;
         row < mlx5sim_config_table + MLX5SIM_CONFIG_ROWS; ++row) {
        if (row->scope == MLX5SIM_CONFIG_LOCATION) {
            continue;
        }

        if (row->type == MLX5SIM_CONFIG_STRING) {
            strcpy((char*)config + row->offset, row->def);
        } else if (mlx5sim_config_parse(row, row->def, &number)) {
            *mlx5sim_config_number(config, row) = number;
        }
    }
}

void mlx5sim_config_get(const mlx5sim_config_t *config,
                        const mlx5sim_config_row_t *row, char *buf, size_t size)
{
    const char *field = (const char*)config + row->offset;
    unsigned number   = 0;

    if (row->scope == MLX5SIM_CONFIG_LOCATION) {
        snprintf(buf, size, "%s", row->def);
        return;
    }

    if (row->type != MLX5SIM_CONFIG_STRING) {
        memcpy(&number, field, sizeof(number));
    }

    switch (row->type) {
    case MLX5SIM_CONFIG_BOOL:
        snprintf(buf, size, "%s", mlx5sim_bool_names[0][!!number]);
        break;
    case MLX5SIM_CONFIG_UINT:
        snprintf(buf, size, "%u", number);
        break;
    case MLX5SIM_CONFIG_CHOICE:
        snprintf(buf, size, "%s", row->choices[number]);
        break;
    case MLX5SIM_CONFIG_STRING:
        snprintf(buf, size, "%s", field);
        break;
    }
}

int mlx5sim_config_read_env(mlx5sim_config_t *config, unsigned scopes,
                            char *error, size_t error_size)
{
    const mlx5sim_config_row_t *row;
    const char *value;

    for (row = mlx5sim_config_table;
         row < mlx5sim_config_table + MLX5SIM_CONFIG_ROWS; ++row) {
        if (!(row->scope & scopes)) {
            continue;
        }

        value = getenv(row->name);
        if ((value == NULL) || (value[0] == '\0')) {
            continue;
        }

        if (mlx5sim_config_assign(config, row, value, error, error_size) != 0) {
            return -1;
        }
    }

    return 0;
}

int mlx5sim_config_find_netifs(mlx5sim_config_t *config, char *error,
                               size_t error_size)
{
    if (config->wire[0] == '\0') {
        return 0;
    }

    return mlx5sim_netif_find(config->wire, config->devices * config->ports,
                              (config->link == MLX5SIM_LINK_ROCE) ?
                              MLX5SIM_NETIF_NO_LIDS : (int)config->lmc,
                              config->netifs, error, error_size);
}

/* Open a file of a directory. A link in its place is not followed. */
static FILE *mlx5sim_config_open(int dir_fd, const char *name, int flags,
                                 const char *mode)
{
    int fd = openat(dir_fd, name, flags | O_NOFOLLOW | O_CLOEXEC, 0666);
    FILE *file;

    if (fd < 0) {
        return NULL;
    }

    file = fdopen(fd, mode);
    if (file == NULL) {
        close(fd);
    }
    return file;
}

int mlx5sim_config_save(const mlx5sim_config_t *config, int dir_fd,
                        const char *name, char *error, size_t error_size)
{
    char value[MLX5SIM_CONFIG_STRING_MAX];
    const mlx5sim_config_row_t *row;
    char netif[MLX5SIM_NETIF_STR_MAX];
    char *temporary;
    FILE *file;
    int saved_errno;
    unsigned i;

    if (asprintf(&temporary, "%s.%d", name, (int)getpid()) < 0) {
        snprintf(error, error_size, "%s: out of memory", name);
        errno = ENOMEM;
        return -1;
    }

    file = mlx5sim_config_open(dir_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC,
                               "w");
    if (file == NULL) {
        goto err_free;
    }

    fprintf(file, "%s\n", MLX5SIM_CONFIG_LAYOUT);
    for (row = mlx5sim_config_table;
         row < mlx5sim_config_table + MLX5SIM_CONFIG_ROWS; ++row) {
        if (row->scope == MLX5SIM_CONFIG_INSTANCE) {
            mlx5sim_config_get(config, row, value, sizeof(value));
            fprintf(file, "%s=%s\n", row->name, value);
        }
    }

    for (i = 0; (i < MLX5SIM_NETIFS_MAX) &&
                (config->netifs[i].name[0] != '\0'); ++i) {
        fprintf(file, MLX5SIM_CONFIG_NETIF "=%s\n",
                mlx5sim_netif_str(&config->netifs[i], netif));
    }

    if (ferror(file) != 0) {
        fclose(file);
        goto err_unlink;
    }

    if ((fclose(file) != 0) ||
        (renameat(dir_fd, temporary, dir_fd, name) != 0)) {
        goto err_unlink;
    }

    free(temporary);
    return 0;

err_unlink:
    saved_errno = errno;
    unlinkat(dir_fd, temporary, 0);
    errno = saved_errno;
err_free:
    saved_errno = errno;
    snprintf(error, error_size, "cannot write %s: %s", name, strerror(errno));
    free(temporary);
    errno = saved_errno;
    return -1;
}

int mlx5sim_config_load(mlx5sim_config_t *config, int dir_fd, const char *dir,
                        const char *name, char *error, size_t error_size)
{
    char line[MLX5SIM_CONFIG_STRING_MAX * 2];
    char reason[MLX5SIM_CONFIG_ERROR_MAX];
    const mlx5sim_config_row_t *row;
    unsigned netifs = 0;
    char *value;
    FILE *file;

    file = mlx5sim_config_open(dir_fd, name, O_RDONLY, "r");
    if (file == NULL) {
        snprintf(error, error_size, "cannot read %s/%s: %m", dir, name);
        return -1;
    }

    if ((fgets(line, sizeof(line), file) == NULL) ||
        strcmp(line, MLX5SIM_CONFIG_LAYOUT "\n")) {
        snprintf(reason, sizeof(reason), "the first line is not "
                 MLX5SIM_CONFIG_LAYOUT);
        goto err_content;
    }

    while (fgets(line, sizeof(line), file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        value                     = strchr(line, '=');
        if (value == NULL) {
            snprintf(reason, sizeof(reason), "'%.*s' is not NAME=value",
                     MLX5SIM_CONFIG_STRING_MAX, line);
            goto err_content;
        }

        *value++ = '\0';
        if (!strcmp(line, MLX5SIM_CONFIG_NETIF)) {
            if ((netifs == MLX5SIM_NETIFS_MAX) ||
                (mlx5sim_netif_parse(value, &config->netifs[netifs++]) != 0)) {
                snprintf(reason, sizeof(reason), "'%.*s' is no network "
                         "interface", MLX5SIM_CONFIG_STRING_MAX, value);
                goto err_content;
            }
            continue;
        }

        row = mlx5sim_config_find(line, strlen(line));
        if ((row != NULL) && (value[0] == '\0') &&
            (row->type == MLX5SIM_CONFIG_STRING)) {
            /* an empty string is a default and need not pass the check */
            *((char*)config + row->offset) = '\0';
        } else if (mlx5sim_config_set(config, line, value, reason,
                                      sizeof(reason)) != 0) {
            goto err_content;
        }
    }

    fclose(file);
    return 0;

err_content:
    snprintf(error, error_size, "%s/%s: %s; it is of another version: remove "
             "it with mlx5sim-run --reset when no process uses it", dir, name,
             reason);
    fclose(file);
    errno = EINVAL;
    return -1;
}

void mlx5sim_config_print(FILE *stream, mlx5sim_config_format_t format)
{
    const mlx5sim_config_row_t *row;
    char allowed[192];

    if (format == MLX5SIM_CONFIG_MARKDOWN) {
        fprintf(stream, "| variable | default | allowed | set for | meaning |\n"
                        "|---|---|---|---|---|\n");
    }

    for (row = mlx5sim_config_table;
         row < mlx5sim_config_table + MLX5SIM_CONFIG_ROWS; ++row) {
        mlx5sim_config_allowed(row, allowed, sizeof(allowed));
        if (format == MLX5SIM_CONFIG_MARKDOWN) {
            fprintf(stream, "| `%s` | %s%s%s | %s | %s | %s |\n", row->name,
                    (row->def[0] != '\0') ? "`" : "", row->def,
                    (row->def[0] != '\0') ? "`" : "", allowed,
                    (row->scope == MLX5SIM_CONFIG_INSTANCE) ? "instance" :
                                                              "process",
                    row->description);
        } else {
            fprintf(stream, "  %s=%s\n      %s.\n      Allowed: %s%s\n",
                    row->name, row->def, row->description, allowed,
                    (row->scope == MLX5SIM_CONFIG_INSTANCE) ?
                            ". Fixed when the instance is created" : "");
        }
    }
}

/* Number of single-character edits between two names (Levenshtein), with the
 * second cut at MLX5SIM_CONFIG_STRING_MAX. */
static unsigned mlx5sim_config_distance(const char *a, size_t a_length,
                                        const char *b)
{
    unsigned row[MLX5SIM_CONFIG_STRING_MAX + 1];
    size_t b_length = strnlen(b, MLX5SIM_CONFIG_STRING_MAX);
    unsigned diagonal, above, best;
    size_t i, j;

    for (j = 0; j <= b_length; ++j) {
        row[j] = j;
    }

    for (i = 1; i <= a_length; ++i) {
        diagonal = row[0];
        row[0]   = i;
        for (j = 1; j <= b_length; ++j) {
            above = row[j];
            best  = diagonal + (a[i - 1] != b[j - 1]);
            if (above + 1 < best) {
                best = above + 1;
            }
            if (row[j - 1] + 1 < best) {
                best = row[j - 1] + 1;
            }
            row[j]   = best;
            diagonal = above;
        }
    }

    return row[b_length];
}

const char *mlx5sim_config_find_unknown(const char **closest_p)
{
    static const size_t prefix   = sizeof(MLX5SIM_CONFIG_PREFIX) - 1;
    static const size_t excluded = sizeof(MLX5SIM_CONFIG_PRIVATE_PREFIX) - 1;
    static char name[MLX5SIM_CONFIG_STRING_MAX];
    unsigned distance, best;
    size_t i, length;
    char **var;

    for (var = environ; (var != NULL) && (*var != NULL); ++var) {
        length = strcspn(*var, "=");
        if (strncmp(*var, MLX5SIM_CONFIG_PREFIX, prefix) ||
            !strncmp(*var, MLX5SIM_CONFIG_PRIVATE_PREFIX, excluded) ||
            (mlx5sim_config_find(*var, length) != NULL)) {
            continue;
        }

        *closest_p = NULL;
        best       = 4;
        for (i = 0; i < MLX5SIM_CONFIG_ROWS; ++i) {
            distance = mlx5sim_config_distance(*var, length,
                                               mlx5sim_config_table[i].name);
            if (distance < best) {
                best       = distance;
                *closest_p = mlx5sim_config_table[i].name;
            }
        }

        snprintf(name, sizeof(name), "%.*s", (int)length, *var);
        return name;
    }

    return NULL;
}
