/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/config/model.h>

#include <stddef.h>

#define MLX5SIM_MODEL_COUNT \
    (sizeof(mlx5sim_models) / sizeof(mlx5sim_models[0]))

const char *const mlx5sim_model_names[] = {
    "cx4", "cx5", "cx5ex", "cx6", "cx6dx", "cx7", NULL
};

static const mlx5sim_model_t mlx5sim_models[] = {
    {"cx4", "ConnectX-4", "MT4115", "MT_2180110032", 0x1013,
     {12, 28, 2040}, 32, 2, "100 Gb/sec (4X EDR)", "8.0 GT/s PCIe"},
    {"cx5", "ConnectX-5", "MT4119", "MT_0000000008", 0x1017,
     {16, 35, 4506}, 32, 2, "100 Gb/sec (4X EDR)", "8.0 GT/s PCIe"},
    {"cx5ex", "ConnectX-5 Ex", "MT4121", "MT_0000000009", 0x1019,
     {16, 35, 4506}, 32, 2, "100 Gb/sec (4X EDR)", "16.0 GT/s PCIe"},
    {"cx6", "ConnectX-6", "MT4123", "MT_0000000223", 0x101b,
     {20, 35, 4506}, 64, 2, "200 Gb/sec (4X HDR)", "16.0 GT/s PCIe"},
    {"cx6dx", "ConnectX-6 Dx", "MT4125", "MT_0000000359", 0x101d,
     {22, 35, 4506}, 64, 2, "200 Gb/sec (4X HDR)", "16.0 GT/s PCIe"},
    {"cx7", "ConnectX-7", "MT4129", "MT_0000000838", 0x1021,
     {28, 35, 4506}, 128, 2, "400 Gb/sec (4X NDR)", "32.0 GT/s PCIe"}
};

_Static_assert(sizeof(mlx5sim_model_names) / sizeof(char*) ==
                       MLX5SIM_MODEL_COUNT + 1,
               "one name per model and the NULL");

const mlx5sim_model_t *mlx5sim_model_get(unsigned index)
{
    return (index < MLX5SIM_MODEL_COUNT) ? &mlx5sim_models[index] : NULL;
}
