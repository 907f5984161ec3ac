/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/info/sep_info_options.h>
#include <tools/info/sep_info_out.h>

#include <model/row.h>

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

/* Options without a letter */
enum {
    SEP_INFO_OPT_ADAPTER = 256,
    SEP_INFO_OPT_ADAPTERS,
    SEP_INFO_OPT_PREDICT,
    SEP_INFO_OPT_NODE,
    SEP_INFO_OPT_DEPTH,
    SEP_INFO_OPT_BYTES,
    SEP_INFO_OPT_PATH
};

const char *sep_info_path_names[SEP_INFO_PATH_LAST] = {
    [SEP_INFO_PATH_VERBS]     = "verbs",
    [SEP_INFO_PATH_INLINE]    = "inline",
    [SEP_INFO_PATH_BLUEFLAME] = "blueflame",
    [SEP_INFO_PATH_SEP]       = "sep"
};


static void sep_info_usage_categories(FILE *stream)
{
    int column = fprintf(stream,
"  -c <category>");
    int category;

    for (category = 0; category < SEP_PLAN_NUM_CATEGORIES; ++category) {
        if ((column + strlen(sep_plan_category_name(category))) > 74) {
            column = fprintf(stream, "\n%15s", "");
        }
        column += fprintf(stream, " %s,", sep_plan_category_name(category));
    }
    fprintf(stream,
"\n"
"                naive (a context with a thread domain for each worker; only\n"
"                for -p), or all (default)\n");
}

static void sep_info_usage(FILE *stream)
{
    fprintf(stream,
"Usage: sep_info [options]\n"
"What the sharing categories of sep_mlx5 cost: see UCX_SEP_CATEGORY.\n"
"\n"
"What to show (-d if none is given):\n"
"  -d            Devices and ports: how contexts get UAR pages, limits\n"
"  -p            Plan: what workers would take; needs no device\n"
"  -t            Try: open the workers on the device, connect them, and show\n"
"                what they have taken next to the plan\n"
"  -l            List the categories, those with the most resources first\n"
"  --predict <file>  Predict rates of an adapter for rows of CSV,\n"
"                op,policy,threads,depth,bytes and perhaps more, and print\n"
"                them with a column predicted_mops. Policies: shared-qp,\n"
"                mul-<threads>, per-qp, per-doorbell, or a category. The\n"
"                file may be \"-\", standard input\n"
"  --node <file>  Plan a node: what all that shares its adapter takes, what\n"
"                ends first, and how sep_mlx5 could be set. The file says\n"
"                what runs there (docs/node.md); it may be \"-\", standard\n"
"                input, or \"live\": what the processes here hold now\n"
"  -v            Version\n"
"  -h            This help\n"
"\n"
"Options:\n"
"  -w <number>   Workers of the process (default 16)\n"
"  -n <number>   Peers of each worker (default 1)\n");
    sep_info_usage_categories(stream);
    fprintf(stream,
"  -r <regime>   legacy (a kernel that gives each context 8 UAR pages),\n"
"                dynamic (today's: on demand), both (default; dynamic for\n"
"                --node), or nc (one that can't combine writes, only for -p);\n"
"                only for -p and --node\n"
"  -u <number>   UAR pages of the device (default %u); -p and --node\n"
"  -k <number>   Of these, the kernel's own (default %u); -p and --node\n"
"  -D <device>   Device, e.g. mlx5_0; only for -d, -t and --node live\n"
"  -j, --json    JSON instead of tables\n"
"\n"
"Rates, predicted by a model and not measured (docs/model.md), for -p,\n"
"--predict and --node:\n"
"  --adapter <name>  The adapter, cx4 or cx6\n"
"  --adapters <file> Where it is described (share/sep/adapters.conf)\n"
"  --depth <number>  Requests that a worker has outstanding (default 8)\n"
"  --bytes <number>  Data of a request (default 8)\n"
"  --path <path>     verbs (default): through libibverbs, a doorbell for each\n"
"                request; inline: the same, data up to 60 bytes inline and by\n"
"                BlueFlame; blueflame: all by BlueFlame, libmlx5's default;\n"
"                sep: BlueFlame and inline data, as sep_mlx5 does\n"
"\n"
"The configuration of the transport, UCX_SEP_*, and of libmlx5,\n"
"MLX5_TOTAL_UUARS and MLX5_NUM_LOW_LAT_UUARS, is taken from the environment.\n"
"\n"
"Exit status: 0; 1 if what was taken differs from the plan (-t), or does not\n"
"fit (--node); 2 for wrong arguments; 3 if there is no device, or resources\n"
"are missing.\n",
            SEP_PLAN_DEVICE_UARS, SEP_PLAN_KERNEL_UARS);
}

static int sep_info_named_number(const char *option, const char *arg,
                                 unsigned long min, unsigned long max,
                                 unsigned long *value_p)
{
    char *end;

    errno    = 0;
    *value_p = strtoul(arg, &end, 0);
    if ((errno == 0) && (end != arg) && (*end == '\0') && (*arg != '-') &&
        (*value_p >= min) && (*value_p <= max)) {
        return 0;
    }

    fprintf(stderr, "sep_info: %s %s: not a number between %lu and %lu\n",
            option, arg, min, max);
    return -1;
}

static int sep_info_number(char option, const char *arg, unsigned long min,
                           unsigned long max, unsigned long *value_p)
{
    const char name[] = {'-', option, '\0'};

    return sep_info_named_number(name, arg, min, max, value_p);
}

static int
sep_info_parse_category(const char *arg, sep_info_options_t *options)
{
    char names[256];

    if (strcmp(arg, "auto") == 0) {
        fprintf(stderr, "sep_info: -c auto: that chooses among the others, by "
                "the number of workers and what the device has left; take one "
                "of these\n");
        return -1;
    }

    /* The plan is for a device that has what it takes */
    if (strcmp(arg, "default") == 0) {
        arg = sep_plan_category_name((sep_plan_category_t)
                uct_sep_category_wanted(UCT_SEP_CATEGORY_DEFAULT, 1));
    }

    options->category = sep_plan_category_find(arg);
    if ((options->category == SEP_PLAN_LAST) && (strcmp(arg, "all") != 0)) {
        fprintf(stderr, "sep_info: there is no category \"%s\": use %s, naive "
                "or all\n", arg, uct_sep_category_list(names, sizeof(names)));
        return -1;
    }
    return 0;
}

static int sep_info_parse_regime(const char *arg, sep_info_options_t *options)
{
    int regime;

    for (regime = 0; regime < SEP_PLAN_REGIME_LAST; ++regime) {
        if (strcmp(arg, sep_plan_regime_names[regime]) == 0) {
            break;
        }
    }

    options->regime = regime;
    if ((regime == SEP_PLAN_REGIME_LAST) && (strcmp(arg, "both") != 0)) {
        fprintf(stderr, "sep_info: there is no regime \"%s\", see -h\n", arg);
        return -1;
    }
    return 0;
}

static int sep_info_parse_path(const char *arg, sep_info_options_t *options)
{
    int path;

    for (path = 0; path < SEP_INFO_PATH_LAST; ++path) {
        if (strcmp(arg, sep_info_path_names[path]) == 0) {
            options->path = (sep_info_path_t)path;
            return 0;
        }
    }
    fprintf(stderr, "sep_info: there is no path \"%s\", only verbs, inline, "
            "blueflame and sep\n", arg);
    return -1;
}

/* Options of the model. @return As sep_info_parse_option() */
static int sep_info_parse_long_option(int c, const char *arg,
                                      sep_info_options_t *options)
{
    unsigned long number;
    int ret;

    switch (c) {
    case SEP_INFO_OPT_ADAPTER:
        options->adapter_name = arg;
        return 0;
    case SEP_INFO_OPT_ADAPTERS:
        options->adapters = arg;
        return 0;
    case SEP_INFO_OPT_PREDICT:
        options->predict = arg;
        return 0;
    case SEP_INFO_OPT_NODE:
        options->node = arg;
        return 0;
    default:
        break;
    }

    options->is_load_set = 1;
    switch (c) {
    case SEP_INFO_OPT_DEPTH:
        ret            = sep_info_named_number("--depth", arg, 1,
                                               SEP_MODEL_MAX_DEPTH, &number);
        options->depth = number;
        return ret;
    case SEP_INFO_OPT_BYTES:
        return sep_info_named_number("--bytes", arg, 0, SEP_MODEL_MAX_BYTES,
                                     &options->bytes);
    case SEP_INFO_OPT_PATH:
        return sep_info_parse_path(arg, options);
    default:
        fprintf(stderr, "sep_info: see sep_info -h\n");
        return -1;
    }
}

/* Options that need others. @return 0, or -1 after a message */
static int sep_info_check_model(const sep_info_options_t *options)
{
    const char *reason = NULL;

    if (options->predict != NULL) {
        if (options->devices || options->plan || options->try ||
            options->list || options->json || (options->node != NULL)) {
            reason = "--predict prints CSV and nothing else: give no -d, -p, "
                     "-t, -l, -j or --node";
        } else if (options->adapter_name == NULL) {
            reason = "--predict needs --adapter: which one?";
        }
    } else if ((options->adapter_name != NULL) && !options->plan &&
               (options->node == NULL)) {
        reason = "--adapter is for -p and --predict, and for --node";
    } else if ((options->adapter_name == NULL) &&
               (options->is_load_set || (options->adapters != NULL))) {
        reason = "--adapters, --depth, --bytes and --path need --adapter";
    } else if ((options->node != NULL) && (options->regime == SEP_PLAN_NC)) {
        reason = "-r nc is for -p only, not for --node";
    }

    if (reason != NULL) {
        fprintf(stderr, "sep_info: %s\n", reason);
        return -1;
    }
    return 0;
}

/* @return 0, 1 to end the program with success, or -1 after a message. */
static int sep_info_parse_option(int c, const char *arg,
                                 sep_info_options_t *options)
{
    unsigned long number;
    int ret = 0;

    switch (c) {
    case 'd':
        options->devices = 1;
        return 0;
    case 'p':
        options->plan = 1;
        return 0;
    case 't':
        options->try = 1;
        return 0;
    case 'l':
        options->list = 1;
        return 0;
    case 'j':
        options->json = 1;
        return 0;
    case 'D':
        options->dev_name = arg;
        return 0;
    case 'c':
        return sep_info_parse_category(arg, options);
    case 'r':
        return sep_info_parse_regime(arg, options);
    case 'w':
        ret              = sep_info_number(c, arg, 1, 4096, &number);
        options->workers = number;
        return ret;
    case 'n':
        ret            = sep_info_number(c, arg, 0, 1 << 20, &number);
        options->peers = number;
        return ret;
    case 'u':
        return sep_info_number(c, arg, 1, 1ul << 24, &options->device_uars);
    case 'k':
        return sep_info_number(c, arg, 0, 1ul << 24, &options->kernel_uars);
    case 'v':
        sep_info_print("# sep_info %s\n", SEP_VERSION);
        return 1;
    case 'h':
        sep_info_usage(sep_info_out);
        return 1;
    default:
        return sep_info_parse_long_option(c, arg, options);
    }
}

int sep_info_parse(int argc, char **argv, sep_info_options_t *options)
{
    static const struct option long_options[] = {
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'v'},
        {"adapter", required_argument, NULL, SEP_INFO_OPT_ADAPTER},
        {"adapters", required_argument, NULL, SEP_INFO_OPT_ADAPTERS},
        {"predict", required_argument, NULL, SEP_INFO_OPT_PREDICT},
        {"node", required_argument, NULL, SEP_INFO_OPT_NODE},
        {"depth", required_argument, NULL, SEP_INFO_OPT_DEPTH},
        {"bytes", required_argument, NULL, SEP_INFO_OPT_BYTES},
        {"path", required_argument, NULL, SEP_INFO_OPT_PATH},
        {NULL, 0, NULL, 0}
    };
    int c, ret;

    memset(options, 0, sizeof(*options));
    options->workers     = 16;
    options->peers       = 1;
    options->category    = SEP_PLAN_LAST;
    options->regime      = SEP_PLAN_REGIME_LAST;
    options->device_uars = SEP_PLAN_DEVICE_UARS;
    options->kernel_uars = SEP_PLAN_KERNEL_UARS;
    options->depth       = 8;
    options->bytes       = 8;

    while ((c = getopt_long(argc, argv, "dptljvhw:n:c:r:u:k:D:", long_options,
                            NULL)) != -1) {
        ret = sep_info_parse_option(c, optarg, options);
        if (ret != 0) {
            return ret;
        }
    }

    if (optind < argc) {
        fprintf(stderr, "sep_info: what is \"%s\"? See sep_info -h\n",
                argv[optind]);
        return -1;
    }

    if (options->try && (options->category == SEP_PLAN_NAIVE)) {
        fprintf(stderr, "sep_info: -c naive can only be planned (-p)\n");
        return -1;
    }

    if (sep_info_check_model(options) != 0) {
        return -1;
    }

    if (!options->plan && !options->try && !options->list &&
        (options->predict == NULL) && (options->node == NULL)) {
        options->devices = 1;
    }
    return 0;
}
