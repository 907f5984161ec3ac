/* SPDX-License-Identifier: BSD-3-Clause */

#include <sim/config/fault.h>

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const mlx5sim_fault_names[MLX5SIM_FAULT_LAST] = {
    [MLX5SIM_FAULT_NONE]           = "",
    [MLX5SIM_FAULT_CONTEXT]        = "context",
    [MLX5SIM_FAULT_UAR]            = "uar",
    [MLX5SIM_FAULT_PD]             = "pd",
    [MLX5SIM_FAULT_MR]             = "mr",
    [MLX5SIM_FAULT_CHANNEL]        = "channel",
    [MLX5SIM_FAULT_CQ]             = "cq",
    [MLX5SIM_FAULT_SRQ]            = "srq",
    [MLX5SIM_FAULT_QP]             = "qp",
    [MLX5SIM_FAULT_AH]             = "ah",
    [MLX5SIM_FAULT_MODIFY_SRQ]     = "modify_srq",
    [MLX5SIM_FAULT_MODIFY_QP]      = "modify_qp",
    [MLX5SIM_FAULT_MODIFY_QP_INIT] = "modify_qp_init",
    [MLX5SIM_FAULT_MODIFY_QP_RTR]  = "modify_qp_rtr",
    [MLX5SIM_FAULT_MODIFY_QP_RTS]  = "modify_qp_rts",
    [MLX5SIM_FAULT_QUERY_QP]       = "query_qp",
    [MLX5SIM_FAULT_QUERY_DEVICE]   = "query_device",
    [MLX5SIM_FAULT_QUERY_PORT]     = "query_port"
};

/* What the kernel's driver returns from these commands */
static const struct {
    const char *name;
    int        error;
} mlx5sim_fault_errors[] = {
    {"ENOMEM", ENOMEM}, {"EAGAIN", EAGAIN}, {"EINVAL", EINVAL},
    {"ENOSPC", ENOSPC}, {"EBUSY", EBUSY}, {"EIO", EIO}, {"EFAULT", EFAULT},
    {"EPERM", EPERM}, {"EMFILE", EMFILE}, {"ENODEV", ENODEV},
    {"ETIMEDOUT", ETIMEDOUT}, {"EOPNOTSUPP", EOPNOTSUPP}
};

#define MLX5SIM_FAULT_NUM_ERRORS \
    (sizeof(mlx5sim_fault_errors) / sizeof(mlx5sim_fault_errors[0]))


const char *mlx5sim_fault_name(mlx5sim_fault_object_t object)
{
    return mlx5sim_fault_names[object];
}

const char *mlx5sim_fault_error_name(int error)
{
    size_t i;

    for (i = 0; i < MLX5SIM_FAULT_NUM_ERRORS; ++i) {
        if (mlx5sim_fault_errors[i].error == error) {
            return mlx5sim_fault_errors[i].name;
        }
    }

    return NULL;
}

/* Whether the @a length characters at @a text are that word */
static int mlx5sim_fault_is(const char *text, size_t length, const char *word)
{
    return (strlen(word) == length) && !memcmp(text, word, length);
}

static int mlx5sim_fault_parse_object(const char *text, size_t length,
                                      mlx5sim_fault_object_t *object_p)
{
    unsigned i;

    for (i = MLX5SIM_FAULT_NONE + 1; i < MLX5SIM_FAULT_LAST; ++i) {
        if (mlx5sim_fault_is(text, length, mlx5sim_fault_names[i])) {
            *object_p = i;
            return 0;
        }
    }

    return -1;
}

static int mlx5sim_fault_parse_nth(const char *text, size_t length,
                                   mlx5sim_fault_entry_t *entry_p)
{
    unsigned long value;
    char *end;

    if ((length == 0) || !isdigit((unsigned char)text[0])) {
        return -1;
    }

    value = strtoul(text, &end, 10);
    if (*end == '+') {
        entry_p->onwards = 1;
        ++end;
    }

    entry_p->nth = value;
    return ((end == text + length) && (value > 0) && (value <= 0x7fffffff)) ?
           0 : -1;
}

static int mlx5sim_fault_parse_error(const char *text, size_t length,
                                     int *error_p)
{
    size_t i;

    for (i = 0; i < MLX5SIM_FAULT_NUM_ERRORS; ++i) {
        if (mlx5sim_fault_is(text, length, mlx5sim_fault_errors[i].name)) {
            *error_p = mlx5sim_fault_errors[i].error;
            return 0;
        }
    }

    return -1;
}

static int mlx5sim_fault_parse_entry(const char *text, size_t length,
                                     mlx5sim_fault_entry_t *entry_p)
{
    const char *end = text + length;
    unsigned field;
    size_t size;

    memset(entry_p, 0, sizeof(*entry_p));
    entry_p->nth   = 1;
    entry_p->error = ENOMEM;
    for (field = 0; field < 3; ++field) {
        size = strcspn(text, ":,");
        if (((field == 0) &&
             (mlx5sim_fault_parse_object(text, size, &entry_p->object) != 0)) ||
            ((field == 1) &&
             (mlx5sim_fault_parse_nth(text, size, entry_p) != 0)) ||
            ((field == 2) &&
             (mlx5sim_fault_parse_error(text, size, &entry_p->error) != 0))) {
            return -1;
        }

        text += size;
        if (text == end) {
            return 0;
        }
        ++text; /* the colon */
    }

    return -1;
}

int mlx5sim_fault_parse(const char *text, mlx5sim_fault_list_t *list_p)
{
    size_t length;

    memset(list_p, 0, sizeof(*list_p));
    while (*text != '\0') {
        length = strcspn(text, ",");
        if ((list_p->num == MLX5SIM_FAULT_MAX) ||
            (mlx5sim_fault_parse_entry(text, length,
                                       &list_p->entries[list_p->num]) != 0)) {
            return -1;
        }

        ++list_p->num;
        text += length;
        if ((*text == ',') && (*++text == '\0')) {
            return -1;
        }
    }

    return 0;
}

int mlx5sim_fault_match(const mlx5sim_fault_list_t *list,
                        mlx5sim_fault_object_t object, unsigned count)
{
    const mlx5sim_fault_entry_t *entry;
    unsigned i;

    for (i = 0; i < list->num; ++i) {
        entry = &list->entries[i];
        if ((entry->object == object) &&
            ((entry->nth == count) ||
             (entry->onwards && (entry->nth < count)))) {
            return entry->error;
        }
    }

    return 0;
}
