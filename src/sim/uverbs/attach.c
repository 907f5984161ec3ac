/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/uverbs/attach.h>
#include <sim/check/report.h>
#include <sim/config/seed.h>
#include <sim/doorbell/trap.h>
#include <sim/instance/instance.h>
#include <sim/limit/inject.h>
#include <sim/objs/mapping.h>
#include <sim/objs/proc.h>
#include <sim/objs/shared.h>
#include <sim/objs/store.h>
#include <sim/reap/reap.h>
#include <sim/sched/chance.h>
#include <sim/sched/helper.h>
#include <sim/sched/tap.h>
#include <sim/trace/trace.h>
#include <sim/uar/legacy.h>
#include <sim/uar/map.h>

#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t mlx5sim_attach_mutex = PTHREAD_MUTEX_INITIALIZER;
static pid_t mlx5sim_attach_pid;


/* Contexts belong to the process that opened them; a child starts afresh.
 *
 * There is nothing to do at exit: other threads may ring doorbells until the
 * very end, as with hardware. What a process leaves behind is found by the next
 * one that joins the instance or looks at it. */
static void mlx5sim_attach_fork_child(void)
{
    mlx5sim_shared_fork_child();
    mlx5sim_trap_fork_child();
    if (mlx5sim_self_tag != 0) {
        mlx5sim_proc_forget();
        mlx5sim_helper_forget();
        mlx5sim_tap_forget();
        mlx5sim_map_fork_child();
        mlx5sim_legacy_fork_child();
        mlx5sim_inject_fork_child();
        mlx5sim_attach_pid = 0;
        pthread_mutex_init(&mlx5sim_attach_mutex, NULL);
    }
}

/* Whether this process defers execution */
static void mlx5sim_attach_init_chance(void)
{
    const mlx5sim_config_t *config = mlx5sim_instance_config();
    mlx5sim_chance_t chance        = {
        .is_deferred = config->exec != MLX5SIM_EXEC_SYNC,
        .is_stepped  = config->exec == MLX5SIM_EXEC_STEPPED,
        .delay       = config->delay,
        .loss        = config->loss
    };

    mlx5sim_chance_init(&chance);
    if (chance.is_deferred || (config->cmd_delay > 0)) {
        mlx5sim_seed_tell();
    }
}

/* What of this process its peers may map */
static void mlx5sim_attach_init_shared(void)
{
    unsigned share = mlx5sim_trap_is_valgrind() ?
                     MLX5SIM_SHARE_NONE : mlx5sim_instance_config()->share;

    if (share < MLX5SIM_SHARE_MAPPINGS) {
        mlx5sim_mapping_stop();
    }
    if (share != MLX5SIM_SHARE_NONE) {
        mlx5sim_shared_enable(share >= MLX5SIM_SHARE_MAPPINGS,
                              share == MLX5SIM_SHARE_MEMORY);
    }
}

static void mlx5sim_attach_fork_prepare(void)
{
    mlx5sim_trap_fork_prepare();
    mlx5sim_shared_fork_prepare();
}

static void mlx5sim_attach_fork_parent(void)
{
    mlx5sim_shared_fork_parent();
    mlx5sim_trap_fork_parent();
}

/* When the program is loaded, so that handlers of its own are called before
 * these in front of fork(), and after them behind it: what they lock, others
 * may hold who want the device, and what they write is the child's already */
__attribute__((constructor))
static void mlx5sim_attach_fork_init(void)
{
    pthread_atfork(mlx5sim_attach_fork_prepare, mlx5sim_attach_fork_parent,
                   mlx5sim_attach_fork_child);
}

/* The mutex is held */
static int mlx5sim_attach_locked(void)
{
    const char *dir;

    if (mlx5sim_self_tag != 0) {
        return 0;
    }

    dir = mlx5sim_instance_dir();
    if ((dir == NULL) || (mlx5sim_store_open(dir) != 0)) {
        return -1;
    }

    mlx5sim_proc_reap_dead();
    if (mlx5sim_proc_attach() != 0) {
        return -1;
    }

    mlx5sim_report_init(mlx5sim_instance_config()->strict, dir);
    mlx5sim_seed_init(mlx5sim_instance_config()->seed);
    mlx5sim_attach_init_chance();
    mlx5sim_attach_pid = getpid();
    if ((mlx5sim_tap_open() != 0) || (mlx5sim_trace_open() != 0) ||
        (mlx5sim_trap_install(mlx5sim_instance_config()->bf ?
                              mlx5sim_instance_config()->wc : 0,
                              mlx5sim_instance_config()->patch_after) != 0) ||
        (mlx5sim_helper_start() != 0)) {
        mlx5sim_tap_forget();
        mlx5sim_proc_reap(mlx5sim_self_tag);
        mlx5sim_proc_forget();
        return -1;
    }

    mlx5sim_attach_init_shared();
    return 0;
}

int mlx5sim_attach(void)
{
    int ret;

    pthread_mutex_lock(&mlx5sim_attach_mutex);
    ret = mlx5sim_attach_locked();
    pthread_mutex_unlock(&mlx5sim_attach_mutex);
    return ret;
}

int mlx5sim_attach_is_other(void)
{
    return (mlx5sim_attach_pid != 0) && (mlx5sim_attach_pid != getpid());
}
