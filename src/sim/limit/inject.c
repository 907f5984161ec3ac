/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/limit/inject.h>
#include <sim/instance/instance.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    pthread_mutex_t      mutex;
    char                 text[MLX5SIM_CONFIG_STRING_MAX];
    mlx5sim_fault_list_t list;
    unsigned             counts[MLX5SIM_FAULT_LAST];
} mlx5sim_inject_state = {.mutex = PTHREAD_MUTEX_INITIALIZER};


/* Adopt a list that has changed; the mutex is held */
static void mlx5sim_inject_update(const char *text)
{
    if (!strncmp(mlx5sim_inject_state.text, text,
                 sizeof(mlx5sim_inject_state.text))) {
        return;
    }

    snprintf(mlx5sim_inject_state.text, sizeof(mlx5sim_inject_state.text), "%s",
             text);
    memset(mlx5sim_inject_state.counts, 0, sizeof(mlx5sim_inject_state.counts));
    if ((strlen(text) >= sizeof(mlx5sim_inject_state.text)) ||
        (mlx5sim_fault_parse(text, &mlx5sim_inject_state.list) != 0)) {
        fprintf(stderr, "mlx5sim: MLX5SIM_FAIL=%s has no effect: it is not a "
                "list of OBJECT[:NTH[+][:ERRNO]], see mlx5sim-run --help\n",
                text);
        mlx5sim_inject_state.list.num = 0;
    }
}

int mlx5sim_inject(mlx5sim_fault_object_t object)
{
    const char *text = getenv("MLX5SIM_FAIL");
    unsigned count;
    int error;

    pthread_mutex_lock(&mlx5sim_inject_state.mutex);
    mlx5sim_inject_update((text != NULL) ? text : "");
    count = ++mlx5sim_inject_state.counts[object];
    error = mlx5sim_fault_match(&mlx5sim_inject_state.list, object, count);
    pthread_mutex_unlock(&mlx5sim_inject_state.mutex);

    if ((error != 0) &&
        (mlx5sim_instance_config()->log >= MLX5SIM_LOG_LEVEL_INFO)) {
        fprintf(stderr, "mlx5sim: %s number %u fails with %s on request\n",
                mlx5sim_fault_name(object), count,
                mlx5sim_fault_error_name(error));
    }

    return -error;
}

void mlx5sim_inject_recv(mlx5sim_quirk_recv_t *recv_p)
{
    const char *text = getenv("MLX5SIM_RECV_ERROR");

    if (mlx5sim_quirk_parse_recv((text != NULL) ? text : "", recv_p) != 0) {
        fprintf(stderr, "mlx5sim: MLX5SIM_RECV_ERROR=%s has no effect: it is "
                "not NTH[+]:SYNDROME:VENDOR, see mlx5sim-run --help\n", text);
        memset(recv_p, 0, sizeof(*recv_p));
    }
}

uint32_t mlx5sim_inject_gids(void)
{
    const char *text = getenv("MLX5SIM_BAD_GIDS");
    uint32_t gids;

    if (mlx5sim_quirk_parse_gids((text != NULL) ? text : "", &gids) != 0) {
        fprintf(stderr, "mlx5sim: MLX5SIM_BAD_GIDS=%s has no effect: it is not "
                "a list of GID indices, see mlx5sim-run --help\n", text);
        gids = 0;
    }
    return gids;
}

void mlx5sim_inject_fork_child(void)
{
    pthread_mutex_init(&mlx5sim_inject_state.mutex, NULL);
    memset(mlx5sim_inject_state.counts, 0, sizeof(mlx5sim_inject_state.counts));
}
