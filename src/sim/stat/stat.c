/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * mlx5sim-stat: what the processes of an instance have and did.
 */

#include <sim/stat/stat.h>
#include <sim/config/missing.h>
#include <sim/devx/opcode.h>
#include <sim/instance/instance.h>
#include <sim/instance/tree.h>
#include <sim/objs/port.h>
#include <sim/objs/store.h>
#include <sim/reap/reap.h>
#include <sim/stat/control.h>
#include <sim/stat/private.h>
#include <sim/stat/program.h>

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>


static void usage(FILE *stream)
{
    fprintf(stream,
            "Usage: mlx5sim-stat [--json | --node | --watch SECONDS] [--all] "
            "[--detail]\n"
            "                    [--check-leaks] [--dir DIR]\n"
            "       mlx5sim-stat --variables | --variables-markdown | "
            "--missing-markdown |\n"
            "                    --opcodes-markdown\n"
            "       mlx5sim-stat --check-program FILE\n"
            "       mlx5sim-stat --port-down | --port-up DEVICE:PORT "
            "[--dir DIR]\n"
            "       mlx5sim-stat --port-speed DEVICE:PORT=SPEED [--dir DIR]\n"
            "       mlx5sim-stat --fatal DEVICE [--dir DIR]\n"
            "       mlx5sim-stat --remove [--force] [--dir DIR]\n"
            "       mlx5sim-stat --make-private PID\n"
            "\n"
            "Show the resources and counters of the processes that use the "
            "software mlx5\ndevice.\n"
            "\n"
            "  --json         machine readable: processes, devices and totals\n"
            "  --all          also processes that have ended (the last %d)\n"
            "  --node         the same for sep_info --node\n"
            "  --watch SECONDS\n"
            "                 print the table again and again, with what has "
            "been counted\n"
            "                 since, until the instance is removed\n"
            "  --detail       also the contexts and QPs of each, and the UARs "
            "they use\n"
            "  --check-leaks  fail if an object is in use and no process is\n"
            "  --variables    describe the MLX5SIM_* variables\n"
            "  --check-program FILE\n"
            "                 fail and give the reason if the device can't be "
            "preloaded\n"
            "                 into that program\n"
            "  --port-down, --port-up DEVICE:PORT\n"
            "                 take a port such as mlx5_0:1 down, or up again\n"
            "  --port-speed DEVICE:PORT=SPEED\n"
            "                 give a port another speed, such as "
            "mlx5_0:1=2xEDR\n"
            "  --fatal DEVICE fail a device such as mlx5_0 for those who have "
            "it open\n"
            "  --remove       remove the instance, unless a process uses it; "
            "with --force\n"
            "                 even then, with all that is in its directory\n"
            "  --make-private PID\n"
            "                 make a directory for an instance that process "
            "PID removes\n"
            "                 at its end, and print its name; remove those of "
            "processes\n"
            "                 that were killed before\n"
            "  --dir DIR      instance; default $MLX5SIM_DIR or "
            "/dev/shm/mlx5sim.UID\n"
            "  --help         this text\n",
            MLX5SIM_MAX_EXITED);
}

static int check_leaks(void)
{
    unsigned i, live = 0;
    uint32_t in_use, index;
    mlx5sim_obj_t *obj;
    int kind, leaks = 0;

    for (i = 0; i < MLX5SIM_MAX_PROCS; ++i) {
        live += atomic_load(&mlx5sim_store->procs[i].tag) != 0;
    }

    for (kind = 0; (live == 0) && (kind < MLX5SIM_OBJ_LAST); ++kind) {
        /* counted here: the table's own count may be off by processes killed
         * while changing it */
        in_use = 0;
        for (index = 0;
             index < atomic_load(&mlx5sim_store->tables[kind].high); ++index) {
            obj     = mlx5sim_obj_at(kind, index);
            in_use += atomic_load(&obj->owner) != 0;
        }
        if (in_use != 0) {
            fprintf(stderr, "mlx5sim-stat: %u %s objects are in use by no "
                    "process\n", in_use, mlx5sim_obj_kind_name(kind));
            leaks = 1;
        }
    }

    return leaks;
}

/* Files of sysfs, for who reads them without the device's library */
static void tell_ports(const char *dir)
{
    const mlx5sim_config_t *config = mlx5sim_instance_config();
    unsigned dev, port;

    for (dev = 0; dev < config->devices; ++dev) {
        for (port = 1; port <= config->ports; ++port) {
            mlx5sim_port_tell(dir, dev, port, "counters",
                              mlx5sim_tree_set_counter);
            mlx5sim_port_tell(dir, dev, port, "hw_counters",
                              mlx5sim_tree_set_counter);
        }
    }
}

/* @param path  Of the store, for as long as it is there */
static void watch(const char *dir, const char *path, double seconds, int all,
                  int detail)
{
    mlx5sim_stat_row_t before = {};

    while (access(path, F_OK) == 0) {
        mlx5sim_proc_reap_dead();
        tell_ports(dir);
        if (isatty(STDOUT_FILENO)) {
            fputs("\033[H\033[2J", stdout); /* ECMA-48: home, erase */
        }
        mlx5sim_stat_table(stdout, mlx5sim_instance_config(), all, detail,
                           &before);
        if (fflush(stdout) != 0) {
            return; /* Nobody looks any more */
        }
        usleep(seconds * 1e6);
    }
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'},
        {"node", no_argument, NULL, 'N'},
        {"all", no_argument, NULL, 'a'},
        {"detail", no_argument, NULL, 'D'},
        {"watch", required_argument, NULL, 'w'},
        {"check-leaks", no_argument, NULL, 'l'},
        {"dir", required_argument, NULL, 'd'},
        {"port-down", required_argument, NULL, 'n'},
        {"port-up", required_argument, NULL, 'u'},
        {"port-speed", required_argument, NULL, 's'},
        {"fatal", required_argument, NULL, 'f'},
        {"remove", no_argument, NULL, 'r'},
        {"force", no_argument, NULL, 'F'},
        {"make-private", required_argument, NULL, 'P'},
        {"check-program", required_argument, NULL, 'p'},
        {"variables", no_argument, NULL, 'v'},
        {"variables-markdown", no_argument, NULL, 'm'},
        {"missing-markdown", no_argument, NULL, 'M'},
        {"opcodes-markdown", no_argument, NULL, 'o'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0}
    };
    int json = 0, node = 0, all = 0, detail = 0, leaks = 0, removal = 0;
    int force = 0;
    double seconds = 0;
    int opt;
    char path[512];
    struct stat st;
    const char *dir, *name = NULL;
    int action = 0;

    while ((opt = getopt_long(argc, argv, "jaDld:h", options, NULL)) != -1) {
        switch (opt) {
        case 'j':
            json = 1;
            break;
        case 'N':
            node = 1;
            break;
        case 'a':
            all = 1;
            break;
        case 'D':
            detail = 1;
            break;
        case 'l':
            leaks = 1;
            break;
        case 'w':
            seconds = atof(optarg);
            if (!(seconds >= 0.01) || (seconds > 3600)) {
                fprintf(stderr, "mlx5sim-stat: --watch %s: it must be a number "
                        "of seconds from 0.01 to 3600\n", optarg);
                return 2;
            }
            break;
        case 'd':
            setenv("MLX5SIM_DIR", optarg, 1);
            break;
        case 'n':
        case 'u':
        case 's':
        case 'f':
            action = opt;
            name   = optarg;
            break;
        case 'r':
            removal = 1;
            break;
        case 'F':
            force = 1;
            break;
        case 'P':
            return mlx5sim_private_create(atoi(optarg));
        case 'p':
            if (!mlx5sim_program_is_preloadable(optarg, path, sizeof(path))) {
                puts(path);
                return 1;
            }
            return 0;
        case 'v':
            mlx5sim_config_print(stdout, MLX5SIM_CONFIG_TEXT);
            return 0;
        case 'm':
            mlx5sim_config_print(stdout, MLX5SIM_CONFIG_MARKDOWN);
            return 0;
        case 'M':
            mlx5sim_missing_print(stdout);
            return 0;
        case 'o':
            mlx5sim_fw_opcodes_print(stdout);
            return 0;
        case 'h':
            usage(stdout);
            return 0;
        default:
            usage(stderr);
            return 2;
        }
    }

    if (removal) {
        return mlx5sim_private_remove(force);
    }

    dir = mlx5sim_instance_dir();
    if (dir == NULL) {
        return 1;
    }

    snprintf(path, sizeof(path), "%s/store", dir);
    if (stat(path, &st) != 0) {
        fprintf(stderr, "mlx5sim-stat: no process has used the device of %s "
                "yet\n", dir);
        return json ? (puts("{\"processes\": [], \"devices\": [], "
                            "\"totals\": {}}"), 0) : 0;
    }

    if (mlx5sim_store_open(dir) != 0) {
        return 1;
    }

    mlx5sim_proc_reap_dead();
    tell_ports(dir);
    if (action == 'f') {
        return mlx5sim_control_fatal(name);
    } else if (action == 's') {
        return mlx5sim_control_speed(name);
    } else if (action != 0) {
        return mlx5sim_control_port(name, action == 'u');
    }

    if (node) {
        mlx5sim_stat_node(stdout);
    } else if (json) {
        mlx5sim_stat_json(stdout, mlx5sim_instance_config(), all, detail);
    } else if (seconds > 0) {
        watch(dir, path, seconds, all, detail);
    } else {
        mlx5sim_stat_table(stdout, mlx5sim_instance_config(), all, detail,
                           NULL);
    }

    return leaks ? check_leaks() : 0;
}
