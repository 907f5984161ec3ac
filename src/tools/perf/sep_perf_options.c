/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <tools/perf/sep_perf_options.h>

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

/* Our transport */
#define SEP_PERF_TL  "sep_mlx5"

/* Options without a letter */
enum {
    SEP_PERF_OPT_LEVEL = 256,
    SEP_PERF_OPT_PORT,
    SEP_PERF_OPT_GID,
    SEP_PERF_OPT_TL,
    SEP_PERF_OPT_HOST,
    SEP_PERF_OPT_LISTEN,
    SEP_PERF_OPT_FEATURES,
    SEP_PERF_OPT_FIGURE,
    SEP_PERF_OPT_POSTLIST,
    SEP_PERF_OPT_SIGNAL,
    SEP_PERF_OPT_TURNS,
    SEP_PERF_OPT_UNALIGNED,
    SEP_PERF_OPT_NO_PIN,
    SEP_PERF_OPT_SERIAL,
    SEP_PERF_OPT_NO_LATENCY,
    SEP_PERF_OPT_TSV,
    SEP_PERF_OPT_JSON,
    SEP_PERF_OPT_ADAPTER,
    SEP_PERF_OPT_ADAPTERS
};

const char *sep_perf_level_names[SEP_PERF_LEVEL_LAST] = {
    [SEP_PERF_VERBS] = "verbs",
    [SEP_PERF_DV]    = "dv",
    [SEP_PERF_UCT]   = "uct"
};

static const char *sep_perf_feature_names[SEP_PERF_NUM_FEATURES] = {
#define SEP_PERF_FEATURE_NAME(_id, _name) \
    [SEP_PERF_FEATURE_INDEX_##_id] = _name,
    SEP_PERF_FEATURE_FOREACH(SEP_PERF_FEATURE_NAME)
#undef SEP_PERF_FEATURE_NAME
};


static void sep_perf_usage(FILE *stream)
{
    fprintf(stream,
"Usage: sep_perf [options]\n"
"Message rate and latency by threads, by what they share, and what that takes\n"
"of an adapter. On the software device times mean nothing: what the adapter\n"
"does for each message is shown, and rates are predicted by a model.\n"
"\n"
"What to measure:\n"
"  --level <level>   verbs (default), dv: the transport's own work requests,\n"
"                    or uct: workers of a UCT transport\n"
"  -s <sharing>      What threads share: a category (sep_info -l), naive, or\n"
"                    a list of buf, ctx, pd, mr, cq, qp=<threads>|all and\n"
"                    td=none|pair|own|spaced. \"categories\" is all of them.\n"
"                    May be repeated (default: the categories)\n"
"  --figure <number> What a figure of the 2018 paper shares; -l lists them\n"
"  -t <threads>      Numbers of threads with commas between (default %u)\n"
"  -o <operation>    write (default), read, send, atomic\n"
"  -b <bytes>        Data of a message (default %u; atomics have 8)\n"
"  -d <depth>        Messages outstanding per thread (default %u)\n"
"  --features <set>  all (default), no-postlist, no-unsignaled, no-inline,\n"
"                    no-blueflame, several (no-postlist+unsignaled), or each:\n"
"                    all, and all without one of them. May be repeated\n"
"  --postlist <n>    Messages posted together (default %u)\n"
"  --signal <n>      One in so many asks for a completion (default %u)\n"
"  --turns           Wait for all that was posted before posting more, which\n"
"                    is how the model's data was measured\n"
"  --unaligned       Local buffers side by side, several in a cache line\n"
"  -n <messages>     Of each thread (default: 1000000, the device 1024)\n"
"  --no-latency      Only the rate\n"
"  --no-pin          Do not pin threads to processors\n"
"  --serial          One thread after the other, to count instructions:\n"
"                    nobody waits for a lock\n"
"  -l                List figures, and what their threads share\n"
"\n"
"Where:\n"
"  -D <device>       Device, e.g. mlx5_0 (default: the first one)\n"
"  --port <number>   Its port (default 1)\n"
"  --gid <index>     Its address, for Ethernet (default: the last of RoCE v2)\n"
"  --tl <transport>  UCT transport (default sep_mlx5)\n"
"  --listen <port>   Be the peer of sep_perf --host on another machine\n"
"  --host <name>:<port>  That peer. Without, it is another process here\n"
"\n"
"Output:\n"
"  --tsv, --json     For programs\n"
"  --adapter <name>  The adapter whose rates the model predicts (default: the\n"
"                    one that the device looks like, or cx6)\n"
"  --adapters <file> Where it is described (share/sep/adapters.conf)\n"
"  -v, -h            Version, this help\n"
"\n"
"Exit status: 0; 1 if data did not arrive; 2 for wrong arguments; 3 if there\n"
"is no device, or resources are missing.\n",
            SEP_PERF_THREADS, SEP_PERF_BYTES, SEP_PERF_DEPTH, SEP_PERF_POSTLIST,
            SEP_PERF_SIGNAL);
}

static int sep_perf_fail(const char *option, const char *arg, const char *what)
{
    fprintf(stderr, "sep_perf: %s %s: %s\n", option, arg, what);
    return -1;
}

static int sep_perf_number(const char *option, const char *arg,
                           unsigned long min, unsigned long max,
                           unsigned long *value_p)
{
    char *end;

    errno    = 0;
    *value_p = strtoul(arg, &end, 10);
    if ((errno == 0) && isdigit((unsigned char)*arg) && (*end == '\0') &&
        (*value_p >= min) && (*value_p <= max)) {
        return 0;
    }

    fprintf(stderr, "sep_perf: %s %s: not a number between %lu and %lu\n",
            option, arg, min, max);
    return -1;
}

/* Parse a number for what is an unsigned int */
static int sep_perf_small(const char *option, const char *arg, unsigned min,
                          unsigned max, unsigned *value_p)
{
    unsigned long value;

    if (sep_perf_number(option, arg, min, max, &value) != 0) {
        return -1;
    }
    *value_p = value;
    return 0;
}

/* @return Index of a name, or -1 */
static int sep_perf_find(const char *name, const char *const *names, int count)
{
    int i;

    for (i = 0; i < count; ++i) {
        if (strcmp(name, names[i]) == 0) {
            return i;
        }
    }
    return -1;
}

static int
sep_perf_parse_threads(const char *arg, sep_perf_options_t *options)
{
    char copy[512];
    char *item, *next;

    if (strlen(arg) >= sizeof(copy)) {
        return sep_perf_fail("-t", arg, "too long");
    }

    snprintf(copy, sizeof(copy), "%s", arg);
    options->num_threads = 0;
    for (item = copy; item != NULL; item = next) {
        next = strchr(item, ',');
        if (next != NULL) {
            *next++ = '\0';
        }
        if (options->num_threads == SEP_PERF_MAX_LIST) {
            return sep_perf_fail("-t", arg, "too many numbers");
        }
        if (sep_perf_small("-t", item, 1, SEP_PERF_MAX_THREADS,
                           &options->threads[options->num_threads]) != 0) {
            return -1;
        }
        ++options->num_threads;
    }
    return 0;
}

static int sep_perf_add_features(unsigned features, sep_perf_options_t *options)
{
    if (options->num_features == SEP_PERF_MAX_LIST) {
        return sep_perf_fail("--features", "...", "too many of them");
    }
    options->features[options->num_features++] = features;
    return 0;
}

const char *sep_perf_features_name(unsigned features, char *name)
{
    size_t length = 0;
    int i;

    snprintf(name, SEP_PERF_NAME_MAX, "all");
    for (i = 0; i < SEP_PERF_NUM_FEATURES; ++i) {
        if (!(features & (1u << i))) {
            length += snprintf(name + length, SEP_PERF_NAME_MAX - length,
                               "%s%s", (length == 0) ? "no-" : "+",
                               sep_perf_feature_names[i]);
        }
    }
    return name;
}

static int
sep_perf_parse_features(const char *arg, sep_perf_options_t *options)
{
    unsigned features = SEP_PERF_FEATURE_ALL;
    char *item, *next;
    char copy[128];
    int i;

    if (strcmp(arg, "all") == 0) {
        return sep_perf_add_features(features, options);
    }
    if (strcmp(arg, "each") == 0) {
        for (i = -1; i < SEP_PERF_NUM_FEATURES; ++i) {
            if (sep_perf_add_features((i < 0) ? features :
                                      (features & ~(1u << i)), options) != 0) {
                return -1;
            }
        }
        return 0;
    }

    if ((strncmp(arg, "no-", 3) != 0) || (strlen(arg) >= sizeof(copy))) {
        return sep_perf_fail("--features", arg, "none of all, each, no-...");
    }

    snprintf(copy, sizeof(copy), "%s", arg + 3);
    for (item = copy; item != NULL; item = next) {
        next = strchr(item, '+');
        if (next != NULL) {
            *next++ = '\0';
        }
        i = sep_perf_find(item, sep_perf_feature_names, SEP_PERF_NUM_FEATURES);
        if (i < 0) {
            return sep_perf_fail("--features", arg, "there are postlist, "
                                 "unsignaled, inline and blueflame");
        }
        features &= ~(1u << i);
    }
    return sep_perf_add_features(features, options);
}

static int sep_perf_add_sharing(const char *text, sep_perf_options_t *options)
{
    char message[SEP_MODEL_MESSAGE_MAX];

    if (options->num_sharing == SEP_PERF_MAX_LIST) {
        return sep_perf_fail("-s", text, "too many of them");
    }
    if (sep_perf_sharing_parse(text, &options->sharing[options->num_sharing],
                               message) != 0) {
        fprintf(stderr, "sep_perf: -s %s\n", message);
        return -1;
    }
    ++options->num_sharing;
    return 0;
}

static int
sep_perf_parse_sharing(const char *text, sep_perf_options_t *options)
{
    int category;

    if (strcmp(text, "categories") != 0) {
        return sep_perf_add_sharing(text, options);
    }
    for (category = 0; category < SEP_PLAN_NUM_CATEGORIES; ++category) {
        if (sep_perf_add_sharing(sep_plan_category_name(
                                         (sep_plan_category_t)category),
                                 options) != 0) {
            return -1;
        }
    }
    return 0;
}

static int sep_perf_parse_figure(const char *arg, sep_perf_options_t *options)
{
    unsigned number;

    if (sep_perf_small("--figure", arg, 1, 99, &number) != 0) {
        return -1;
    }
    options->figure = sep_perf_figure_find(number);
    return (options->figure != NULL) ? 0 :
           sep_perf_fail("--figure", arg, "resources are in figures 3 and 5 to "
                         "11, see -l");
}

/* Rows of a figure, for the greatest number of threads */
static int sep_perf_expand_figure(sep_perf_options_t *options)
{
    static const unsigned steps[] = {1, 2, 4, 8, 16};
    char text[SEP_PERF_NAME_MAX], one[SEP_PERF_NAME_MAX];
    const char *next = options->figure->share;
    const char *place;
    unsigned i;

    if (options->num_sharing > 0) {
        return sep_perf_fail("--figure", "with -s", "one of both");
    }
    if (strchr(next, '%') == NULL) {
        if (options->num_threads == 0) {
            for (i = 0; i < 5; ++i) {
                options->threads[options->num_threads++] = steps[i];
            }
        }
        return sep_perf_add_sharing(next, options);
    }

    for (i = 0; i < 5; ++i) {
        text[0] = '\0';
        next    = options->figure->share;
        for (; (place = strstr(next, "%u")) != NULL; next = place + 2) {
            snprintf(one, sizeof(one), "%.*s%u", (int)(place - next), next,
                     steps[i]);
            strncat(text, one, sizeof(text) - strlen(text) - 1);
        }
        strncat(text, next, sizeof(text) - strlen(text) - 1);
        if (sep_perf_add_sharing(text, options) != 0) {
            return -1;
        }
    }
    return 0;
}

static int sep_perf_parse_name(int c, const char *arg,
                               sep_perf_options_t *options)
{
    int i;

    if (c == 'o') {
        i           = sep_perf_find(arg, sep_model_op_names, SEP_MODEL_OP_LAST);
        options->op = (sep_model_op_t)i;
        return (i >= 0) ? 0 : sep_perf_fail("-o", arg, "there are read, write, "
                                            "send and atomic");
    }
    i              = sep_perf_find(arg, sep_perf_level_names,
                                   SEP_PERF_LEVEL_LAST);
    options->level = (sep_perf_level_t)i;
    return (i >= 0) ? 0 : sep_perf_fail("--level", arg, "there are verbs, dv "
                                        "and uct");
}

/* @return 0, or -1 after a message */
static int sep_perf_parse_value(int c, const char *arg,
                                sep_perf_options_t *options)
{
    unsigned number = 0;
    int ret;

    switch (c) {
    case 'o':
    case SEP_PERF_OPT_LEVEL:
        return sep_perf_parse_name(c, arg, options);
    case 's':
        return sep_perf_parse_sharing(arg, options);
    case 't':
        return sep_perf_parse_threads(arg, options);
    case 'b':
        return sep_perf_number("-b", arg, 1, SEP_PERF_MAX_BYTES,
                               &options->bytes);
    case 'd':
        return sep_perf_small("-d", arg, 1, 8192, &options->depth);
    case 'n':
        return sep_perf_number("-n", arg, 1, 1ul << 40, &options->messages);
    case SEP_PERF_OPT_FEATURES:
        return sep_perf_parse_features(arg, options);
    case SEP_PERF_OPT_FIGURE:
        return sep_perf_parse_figure(arg, options);
    case SEP_PERF_OPT_POSTLIST:
        return sep_perf_small("--postlist", arg, 1, 8192, &options->postlist);
    case SEP_PERF_OPT_SIGNAL:
        return sep_perf_small("--signal", arg, 1, 8192, &options->signal);
    case SEP_PERF_OPT_PORT:
        return sep_perf_small("--port", arg, 1, 255, &options->port);
    case SEP_PERF_OPT_GID:
        ret                = sep_perf_small("--gid", arg, 0, 255, &number);
        options->gid_index = number;
        return ret;
    default:
        fprintf(stderr, "sep_perf: see sep_perf -h\n");
        return -1;
    }
}

/* @return 0, 1 to end the program with success, or -1 after a message. */
static int sep_perf_parse_option(int c, const char *arg, FILE *out,
                                 sep_perf_options_t *options)
{
    switch (c) {
    case 'h':
        sep_perf_usage(out);
        return 1;
    case 'v':
        fprintf(out, "# sep_perf %s\n", SEP_VERSION);
        return 1;
    case 'l':
        options->list = 1;
        return 0;
    case 'D':
        options->device = arg;
        return 0;
    case SEP_PERF_OPT_TL:
        options->tl = arg;
        return 0;
    case SEP_PERF_OPT_HOST:
        options->host = arg;
        return 0;
    case SEP_PERF_OPT_LISTEN:
        options->listen = arg;
        return 0;
    case SEP_PERF_OPT_TURNS:
        options->turns = 1;
        return 0;
    case SEP_PERF_OPT_UNALIGNED:
        options->aligned = 0;
        return 0;
    case SEP_PERF_OPT_NO_PIN:
        options->pin = 0;
        return 0;
    case SEP_PERF_OPT_SERIAL:
        options->serial = 1;
        return 0;
    case SEP_PERF_OPT_NO_LATENCY:
        options->latency = 0;
        return 0;
    case SEP_PERF_OPT_TSV:
        options->tsv = 1;
        return 0;
    case SEP_PERF_OPT_JSON:
        options->json = 1;
        return 0;
    case SEP_PERF_OPT_ADAPTER:
        options->adapter_name = arg;
        return 0;
    case SEP_PERF_OPT_ADAPTERS:
        options->adapters = arg;
        return 0;
    default:
        return sep_perf_parse_value(c, arg, options);
    }
}

/* What depends on several options. @return 0, or -1 after a message */
static int sep_perf_check(sep_perf_options_t *options)
{
    if (options->op == SEP_MODEL_ATOMIC) {
        if ((options->bytes != 0) && (options->bytes != 8)) {
            fprintf(stderr, "sep_perf: -b %zu: an atomic has 8 bytes\n",
                    options->bytes);
            return -1;
        }
        options->bytes = 8;
    }
    if (options->bytes == 0) {
        options->bytes = SEP_PERF_BYTES;
    }
    if (options->json && options->tsv) {
        return sep_perf_fail("--tsv", "--json", "one of both");
    }
    if ((options->host != NULL) && (options->listen != NULL)) {
        return sep_perf_fail("--listen", "--host", "one of both");
    }
    if ((options->host != NULL) && (strchr(options->host, ':') == NULL)) {
        return sep_perf_fail("--host", options->host, "<name>:<port>");
    }
    if ((options->tl != NULL) && (options->level != SEP_PERF_UCT)) {
        return sep_perf_fail("--tl", options->tl, "is for --level uct");
    }
    if ((options->level == SEP_PERF_UCT) && (options->tl == NULL)) {
        options->tl = SEP_PERF_TL;
    }
    if ((options->tl != NULL) && (strcmp(options->tl, SEP_PERF_TL) != 0)) {
        if (options->num_sharing > 0) {
            return sep_perf_fail("-s", options->sharing[0].name,
                                 "other transports have no categories");
        }
        sep_perf_sharing_unknown(&options->sharing[options->num_sharing++]);
    }
    return 0;
}

int sep_perf_parse(int argc, char **argv, FILE *out,
                   sep_perf_options_t *options)
{
    static const struct option long_options[] = {
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'v'},
        {"level", required_argument, NULL, SEP_PERF_OPT_LEVEL},
        {"port", required_argument, NULL, SEP_PERF_OPT_PORT},
        {"gid", required_argument, NULL, SEP_PERF_OPT_GID},
        {"tl", required_argument, NULL, SEP_PERF_OPT_TL},
        {"host", required_argument, NULL, SEP_PERF_OPT_HOST},
        {"listen", required_argument, NULL, SEP_PERF_OPT_LISTEN},
        {"features", required_argument, NULL, SEP_PERF_OPT_FEATURES},
        {"figure", required_argument, NULL, SEP_PERF_OPT_FIGURE},
        {"postlist", required_argument, NULL, SEP_PERF_OPT_POSTLIST},
        {"signal", required_argument, NULL, SEP_PERF_OPT_SIGNAL},
        {"turns", no_argument, NULL, SEP_PERF_OPT_TURNS},
        {"unaligned", no_argument, NULL, SEP_PERF_OPT_UNALIGNED},
        {"no-pin", no_argument, NULL, SEP_PERF_OPT_NO_PIN},
        {"serial", no_argument, NULL, SEP_PERF_OPT_SERIAL},
        {"no-latency", no_argument, NULL, SEP_PERF_OPT_NO_LATENCY},
        {"tsv", no_argument, NULL, SEP_PERF_OPT_TSV},
        {"json", no_argument, NULL, SEP_PERF_OPT_JSON},
        {"adapter", required_argument, NULL, SEP_PERF_OPT_ADAPTER},
        {"adapters", required_argument, NULL, SEP_PERF_OPT_ADAPTERS},
        {NULL, 0, NULL, 0}
    };
    int c, ret;

    memset(options, 0, sizeof(*options));
    options->op        = SEP_MODEL_WRITE;
    options->port      = 1;
    options->gid_index = -1;
    options->depth     = SEP_PERF_DEPTH;
    options->aligned   = 1;
    options->pin       = 1;
    options->latency   = 1;

    optind = 0; /* From the beginning: tests parse more than once */
    while ((c = getopt_long(argc, argv, "hvls:t:o:b:d:n:D:", long_options,
                            NULL)) != -1) {
        ret = sep_perf_parse_option(c, optarg, out, options);
        if (ret != 0) {
            return ret;
        }
    }
    if (optind < argc) {
        return sep_perf_fail("what is", argv[optind], "see sep_perf -h");
    }
    if (sep_perf_check(options) != 0) {
        return -1;
    }
    if ((options->figure != NULL) && (sep_perf_expand_figure(options) != 0)) {
        return -1;
    }
    if ((options->num_sharing == 0) &&
        (sep_perf_parse_sharing("categories", options) != 0)) {
        return -1;
    }
    if (options->num_threads == 0) {
        options->threads[options->num_threads++] = SEP_PERF_THREADS;
    }
    return (options->num_features > 0) ? 0 :
           sep_perf_add_features(SEP_PERF_FEATURE_ALL, options);
}

/* Whether workers can share like this: categories, and what is not known */
static int sep_perf_is_worker(const sep_perf_sharing_t *sharing)
{
    return (strcmp(sharing->name, SEP_PERF_UNKNOWN) == 0) ||
           (sep_plan_category_find(sharing->name) < SEP_PLAN_NUM_CATEGORIES);
}

int sep_perf_row_make(const sep_perf_options_t *options,
                      const sep_perf_sharing_t *sharing, unsigned features,
                      unsigned threads, sep_perf_row_t *row_p, char *message)
{
    unsigned postlist = (options->postlist > 0) ? options->postlist :
                                                  SEP_PERF_POSTLIST;
    unsigned signal   = (options->signal > 0) ? options->signal :
                                                SEP_PERF_SIGNAL;
    unsigned depth    = options->depth;

    if (!(features & SEP_PERF_FEATURE_POSTLIST)) {
        postlist = 1;
    }
    if (!(features & SEP_PERF_FEATURE_UNSIGNALED)) {
        signal = 1;
    }

    /* The defaults are as long as the depth allows; what is asked for, is not
     * to be changed */
    if (postlist > depth) {
        if (options->postlist > 0) {
            snprintf(message, SEP_MODEL_MESSAGE_MAX, "a list of %u messages "
                     "needs a depth of as many, and not %u", postlist, depth);
            return -1;
        }
        postlist = depth;
    }
    if (!options->turns && ((signal + postlist - 1) > depth)) {
        if (options->signal > 0) {
            snprintf(message, SEP_MODEL_MESSAGE_MAX, "with a depth of %u and "
                     "lists of %u, one in %u messages at least must ask for a "
                     "completion: with one in %u, there would be room for no "
                     "other list", depth, postlist, depth - postlist + 1,
                     signal);
            return -1;
        }
        signal = depth - postlist + 1;
    }
    if (signal > depth) {
        signal = depth;
    }

    row_p->sharing   = sharing;
    row_p->threads   = threads;
    row_p->features  = features;
    row_p->depth     = depth;
    row_p->postlist  = postlist;
    row_p->signal    = signal;
    row_p->is_inline = (features & SEP_PERF_FEATURE_INLINE) &&
                       (options->bytes <= SEP_PERF_MAX_INLINE) &&
                       ((options->op == SEP_MODEL_WRITE) ||
                        (options->op == SEP_MODEL_SEND));
    if ((options->level == SEP_PERF_UCT) && !sep_perf_is_worker(sharing)) {
        snprintf(message, SEP_MODEL_MESSAGE_MAX, "%s: workers of %s share as "
                 "one of its categories says", sharing->name, SEP_PERF_TL);
        return -1;
    }
    return sep_perf_sharing_check(sharing, threads, message);
}
