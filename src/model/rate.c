/* SPDX-License-Identifier: BSD-3-Clause */

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <model/rate.h>

#include <math.h>
#include <string.h>

/*
 * How sharp the change is from one limit to another: of two rates a and b that
 * limit a third, this is (a^-n + b^-n)^(-1/n), 8 % less than either where they
 * are equal for n = 8, and 16 % for n = 4. Part of the model's form, and not
 * fitted: the adapter is a pipeline that hardly waits until it is full; threads
 * meet at a lock by chance.
 */
#define SEP_MODEL_SHARP_ADAPTER  8
#define SEP_MODEL_SHARP_LOCK     4

/* Critical sections of a request that a thread has to itself or shares: one to
 * post it. Completions take two: polls that find one, and those that do not. */
#define SEP_MODEL_SECTIONS_POST  1
#define SEP_MODEL_SECTIONS_POLL  2

/* Bytes of a work queue element without data: control, address, one pointer or
 * the length of inline data. And what a packet and a transaction have besides
 * their data: InfiniBand's headers with GRH; PCIe's header and framing. */
#define SEP_MODEL_WQE_BYTES      36
#define SEP_MODEL_WQE_BLOCK      64
#define SEP_MODEL_PACKET_BYTES   82
#define SEP_MODEL_TLP_BYTES      24

/* Steps to a fixed point at most; some ten are usual */
#define SEP_MODEL_MAX_STEPS      10000

const char *sep_model_op_names[SEP_MODEL_OP_LAST] = {
    [SEP_MODEL_READ]   = "read",
    [SEP_MODEL_WRITE]  = "write",
    [SEP_MODEL_SEND]   = "send",
    [SEP_MODEL_ATOMIC] = "atomic"
};

const char *sep_model_limit_names[SEP_MODEL_LIMIT_LAST] = {
    [SEP_MODEL_LIMIT_THREADS] = "threads",
    [SEP_MODEL_LIMIT_LOCKS]   = "locks",
    [SEP_MODEL_LIMIT_QP]      = "queue pairs",
    [SEP_MODEL_LIMIT_ADAPTER] = "adapter",
    [SEP_MODEL_LIMIT_STATE]   = "outstanding",
    [SEP_MODEL_LIMIT_CONTEXT] = "contexts",
    [SEP_MODEL_LIMIT_DATA]    = "data rate"
};

/** What does not change while a prediction is made. Times are in us, rates in
 *  requests per us, which is million per second. */
typedef struct sep_model_state {
    const double           *value;    /**< Parameters */
    const sep_model_load_t *load;
    double                 slow;      /**< By how much threads are slower than
                                           one alone */
    double                 cpu;       /**< Time of a thread per request */
    double                 latency;   /**< Of what is posted together */
    unsigned               per_qp;    /**< Threads of a queue pair, of a CQ */
    unsigned               per_cq;
    unsigned               qps;       /**< That they share */
    unsigned               used;      /**< All, with those that a thread uses by
                                           turns */
    int                    locked;    /**< A lock has made it slower */
    int                    qp_bound;  /**< A queue pair's rate has */
} sep_model_state_t;


/* The lesser of two rates, with a soft change from one to the other */
static double sep_model_lesser(double a, double b, int sharp)
{
    double least = fmin(a, b);
    double most  = fmax(a, b);

    return (least <= 0) ? 0 :
           least * pow(1 + pow(least / most, sharp), -1.0 / sharp);
}

/* Sum of a function over units to which items are dealt as evenly as can be */
static double
sep_model_deal(sep_model_state_t *state, unsigned units, unsigned items,
               double (*rate)(sep_model_state_t*, unsigned))
{
    unsigned few  = items / units;
    unsigned many = items - (few * units);
    double sum    = 0;

    if (few > 0) {
        sum += (units - many) * rate(state, few);
    }
    if (many > 0) {
        sum += many * rate(state, few + 1);
    }
    return sum;
}

/* Time of a thread's turn for one request: its own, and its part of the latency
 * of all that it posts together, unless it goes on meanwhile */
static double sep_model_turn(const sep_model_state_t *state)
{
    double latency = state->latency / state->load->depth;

    return state->load->is_steady ? fmax(state->cpu, latency) :
                                    (state->cpu + latency);
}

/* Whether an answer brings data, or only says that there is one */
static int sep_model_op_fetches(sep_model_op_t op)
{
    return (op == SEP_MODEL_READ) || (op == SEP_MODEL_ATOMIC);
}

static unsigned sep_model_signal(const sep_model_load_t *load)
{
    return (load->signal > 0) ? load->signal : 1;
}

/*
 * Threads that share a lock. Those that are neither posting nor waiting for a
 * completion wait for it, which delays each hand-over; the rate follows from
 * how many wait, and that from the rate. Of several solutions the slowest is
 * taken: a lock over which threads have begun to fight stays that way. Nothing
 * is handed over if the last one to have the lock was the same thread.
 *
 * @param rate  Without the lock, of all of them.
 */
static double sep_model_lock(sep_model_state_t *state, double threads,
                             unsigned sections, double rate)
{
    const double *value = state->value;
    double turn         = sep_model_turn(state);
    double old          = -1;
    double now          = 0;
    double waiting, hold;
    int step;

    if (threads <= 1) {
        return rate;
    }

    for (step = 0; (step < SEP_MODEL_MAX_STEPS) &&
                   (fabs(now - old) > (1e-12 * now)); ++step) {
        old     = now;
        waiting = fmin(fmax(threads - (now * turn), 0),
                       value[SEP_MODEL_CORES]);
        hold    = ((sections * value[SEP_MODEL_LOCK_HANDOVER]) +
                   (waiting * value[SEP_MODEL_LOCK_WAITER])) *
                  (threads - 1) / threads;
        if (hold <= 0) {
            return rate;
        }
        now = sep_model_lesser(rate, 1 / hold, SEP_MODEL_SHARP_LOCK);
    }

    if (now < (0.9 * rate)) {
        state->locked = 1;
    }
    return now;
}

/* What one queue pair can do, in the adapter, with those that are used in turn
 * with it */
static double sep_model_qp_limit(const sep_model_state_t *state)
{
    double limit = state->value[SEP_MODEL_QP_RATE];

    if (sep_model_op_fetches(state->load->op)) {
        limit = fmin(limit, state->value[SEP_MODEL_READS_PER_QP] /
                            state->latency);
    }
    return limit * state->used / state->qps;
}

/* Queue pair that some threads share, with its CQ if that is not shared with
 * others */
static double sep_model_qp_rate(sep_model_state_t *state, unsigned threads)
{
    double limit      = sep_model_qp_limit(state);
    unsigned sections = SEP_MODEL_SECTIONS_POST;
    double rate;

    if (state->per_cq == state->per_qp) {
        sections += SEP_MODEL_SECTIONS_POLL;
    }
    rate = sep_model_lock(state, threads, sections,
                          threads / sep_model_turn(state));
    if (limit < rate) {
        state->qp_bound = 1;
    }
    return sep_model_lesser(rate, limit, SEP_MODEL_SHARP_ADAPTER);
}

/* Average queue pair of all, with its part of the CQ */
static double sep_model_qp_average(sep_model_state_t *state)
{
    unsigned threads = state->load->threads;
    double rate      = sep_model_deal(state, state->qps, threads,
                                      sep_model_qp_rate) / state->qps;
    double cqs       = ceil((double)threads / state->per_cq);

    if (state->per_cq > state->per_qp) {
        rate = sep_model_lock(state, threads / cqs, SEP_MODEL_SECTIONS_POLL,
                              rate * state->qps / cqs) * cqs / state->qps;
    }
    return rate;
}

/* uUAR that some queue pairs share */
static double sep_model_uuar_rate(sep_model_state_t *state, unsigned qps)
{
    double rate = qps * sep_model_qp_average(state);

    return (qps <= 1) ? rate :
           sep_model_lock(state, (double)qps * state->load->threads /
                                 state->qps, SEP_MODEL_SECTIONS_POST, rate);
}

static double sep_model_threads_rate(sep_model_state_t *state)
{
    const sep_model_sharing_t *sharing = &state->load->sharing;
    unsigned alone                     = state->qps;
    double rate;

    if ((sharing->uuars_dedicated < alone) && (sharing->uuars_shared > 0)) {
        alone = sharing->uuars_dedicated;
    }
    rate = alone * sep_model_qp_average(state);
    if (alone < state->qps) {
        /* Their lock, which the first do not have */
        state->cpu += state->value[SEP_MODEL_LOCK] * state->slow;
        rate       += sep_model_deal(state, sharing->uuars_shared,
                                     state->qps - alone, sep_model_uuar_rate);
    }
    return rate;
}

/* Extra time of a BlueFlame write, by where others write */
static double sep_model_page_time(const sep_model_state_t *state)
{
    const sep_model_sharing_t *sharing = &state->load->sharing;
    double pages = ceil((double)state->qps / sharing->uuars_per_page);

    if (state->qps <= 1) {
        return 0;
    }
    if (sharing->uuars_per_page > 1) {
        return state->value[SEP_MODEL_PAGE_SHARED];
    }
    return (sharing->pages_adjacent &&
            (pages > state->value[SEP_MODEL_PAGE_RUN])) ?
           state->value[SEP_MODEL_PAGE_ADJACENT] : 0;
}

static double sep_model_cpu_time(const sep_model_state_t *state)
{
    const sep_model_load_t *load = state->load;
    const double *value          = state->value;
    double time                  = value[SEP_MODEL_CPU_REQUEST];
    unsigned sections            = 0;

    if (load->instructions > 0) {
        time *= load->instructions / value[SEP_MODEL_INSTRUCTIONS];
    }
    if (load->post == SEP_MODEL_BLUEFLAME) {
        time += value[SEP_MODEL_CPU_BLUEFLAME] + sep_model_page_time(state);
    }
    if (load->sharing.qp_lock || (load->sharing.threads_per_qp != 1)) {
        sections += SEP_MODEL_SECTIONS_POST;
    }
    if (load->sharing.threads_per_cq != 1) {
        sections += SEP_MODEL_SECTIONS_POLL;
    }
    return (time + (sections * value[SEP_MODEL_LOCK])) * state->slow;
}

static void sep_model_state_init(sep_model_state_t *state,
                                 const sep_model_adapter_t *adapter,
                                 const sep_model_load_t *load)
{
    const double *value = adapter->value;
    double hw           = value[SEP_MODEL_HW_THREADS];
    double busy         = fmin(load->threads, hw);
    unsigned per_qp     = load->sharing.threads_per_qp;
    unsigned per_cq     = load->sharing.threads_per_cq;
    double latency      = value[SEP_MODEL_LATENCY];

    memset(state, 0, sizeof(*state));
    state->value  = value;
    state->load   = load;
    state->per_qp = (per_qp > load->threads) ? load->threads : per_qp;
    state->per_cq = (per_cq > load->threads) ? load->threads : per_cq;
    if (state->per_cq < state->per_qp) {
        state->per_cq = state->per_qp;
    }
    state->qps  = (load->threads + state->per_qp - 1) / state->per_qp;
    state->used = (load->qps > state->qps) ? load->qps : state->qps;
    state->slow = 1 + ((hw > 1) ? value[SEP_MODEL_CROWDING] * (busy - 1) /
                                  (hw - 1) : 0);

    if (load->post == SEP_MODEL_BLUEFLAME) {
        latency = fmax(latency - value[SEP_MODEL_FETCH_WAIT], latency / 10);
    } else if (load->depth > 1) {
        latency += value[SEP_MODEL_FETCH_WAIT];
    }
    /* Over the network and into memory; Gb/s are 1000 bits per us */
    latency       += load->bytes *
                     ((8e-3 / value[SEP_MODEL_LINK_RATE]) +
                      (1e-3 / value[SEP_MODEL_PCIE_RATE]));
    state->latency = latency * state->slow;
    /* More threads than the machine has take turns; what they have posted goes
     * on without them */
    state->cpu     = sep_model_cpu_time(state) * load->threads / busy;
}

/* Transactions of a request on the adapter's PCIe link, whoever causes them */
static double sep_model_count_tlps(const double *value,
                                   const sep_model_load_t *load)
{
    double pieces = ceil(load->bytes / value[SEP_MODEL_TLP_PAYLOAD]);
    double tlps   = 1.0 / sep_model_signal(load); /* Completion queue entry */
    double wqe    = SEP_MODEL_WQE_BYTES + (load->is_inline ? load->bytes : 0);

    if (load->post == SEP_MODEL_BLUEFLAME) {
        tlps += ceil(wqe / SEP_MODEL_WQE_BLOCK);
    } else {
        /* Doorbell; request for the work queue element, and the answer */
        tlps += 2 + ceil(wqe / value[SEP_MODEL_TLP_PAYLOAD]);
    }

    if (sep_model_op_fetches(load->op)) {
        tlps += pieces;
    } else if (!load->is_inline) {
        tlps += pieces + ceil(load->bytes / value[SEP_MODEL_READ_REQUEST]);
    }
    return tlps;
}

/* Rate at which the data gets through */
static double sep_model_data_rate(const double *value, size_t bytes)
{
    double pieces  = fmax(1, ceil(bytes / value[SEP_MODEL_TLP_PAYLOAD]));
    double packets = fmax(1, ceil(bytes / value[SEP_MODEL_MTU]));

    return fmin(value[SEP_MODEL_PCIE_RATE] * 1e3 /
                (bytes + (pieces * SEP_MODEL_TLP_BYTES)),
                value[SEP_MODEL_LINK_RATE] * 1e3 / 8 /
                (bytes + (packets * SEP_MODEL_PACKET_BYTES)));
}

/* The part of what is needed that an adapter has no room for */
static double sep_model_missing(double capacity, double needed)
{
    return 1 - sep_model_lesser(1, capacity / fmax(needed, 1e-9),
                                SEP_MODEL_SHARP_ADAPTER);
}

/* How often state is looked for when a request is answered. Of writes and sends
 * only the last one before a completion needs it: one answer is for all that
 * were sent before, and who posted the others does not want to know */
static double sep_model_lookups(const sep_model_load_t *load)
{
    return sep_model_op_fetches(load->op) ? 1 : (1.0 / sep_model_signal(load));
}

static sep_model_limit_t
sep_model_find_limit(const sep_model_state_t *state,
                     const sep_model_rate_t *rate, double data_rate)
{
    if (rate->threads <= rate->adapter) {
        return state->locked ? SEP_MODEL_LIMIT_LOCKS :
               state->qp_bound ? SEP_MODEL_LIMIT_QP : SEP_MODEL_LIMIT_THREADS;
    }
    if (data_rate <= rate->adapter) {
        return SEP_MODEL_LIMIT_DATA;
    }
    if (fmax(rate->refetches, rate->contexts) <= 0.1) {
        return SEP_MODEL_LIMIT_ADAPTER;
    }
    return (rate->refetches > rate->contexts) ? SEP_MODEL_LIMIT_STATE :
                                                SEP_MODEL_LIMIT_CONTEXT;
}

void sep_model_predict(const sep_model_adapter_t *adapter,
                       const sep_model_load_t *load, sep_model_rate_t *rate_p)
{
    const double *value = adapter->value;
    double posted       = (double)load->threads * load->depth;
    double data_rate    = sep_model_data_rate(value, load->bytes);
    double lookups      = sep_model_lookups(load);
    double old          = -1;
    sep_model_state_t state;
    double now;
    int step;

    sep_model_state_init(&state, adapter, load);
    rate_p->threads     = sep_model_threads_rate(&state);
    rate_p->tlps        = sep_model_count_tlps(value, load);
    rate_p->outstanding = 0;
    rate_p->refetches   = 0;
    rate_p->contexts    = lookups * value[SEP_MODEL_CONTEXT_FETCHES] *
                          sep_model_missing(value[SEP_MODEL_CONTEXT_CAPACITY],
                                            state.used);
    rate_p->adapter     = 0;

    /* From above: of several solutions the fastest, which a thread after the
     * other comes to that begins */
    now = rate_p->threads;
    for (step = 0; (step < SEP_MODEL_MAX_STEPS) &&
                   (fabs(now - old) > (1e-12 * now)); ++step) {
        old                 = now;
        /* Those of the unhurried adapter, and those that wait for it */
        rate_p->outstanding = load->is_steady ? posted :
                              fmin(posted, (now * state.latency) +
                                           (posted * fmax(0, 1 -
                                            (now / rate_p->threads))));
        rate_p->refetches   = lookups * value[SEP_MODEL_REFETCHES] *
                              sep_model_missing(
                                      value[SEP_MODEL_STATE_CAPACITY],
                                      rate_p->outstanding * rate_p->tlps);
        /* Each is a request for it, and the answer */
        rate_p->adapter     = fmin(1e3 / (value[SEP_MODEL_TLP_TIME] *
                                          (rate_p->tlps +
                                           (2 * (rate_p->refetches +
                                                 rate_p->contexts)))),
                                   value[SEP_MODEL_WQE_RATE]);
        rate_p->adapter     = fmin(rate_p->adapter, data_rate);
        now                 = sep_model_lesser(rate_p->threads, rate_p->adapter,
                                               SEP_MODEL_SHARP_ADAPTER);
    }

    rate_p->mops  = now;
    rate_p->limit = sep_model_find_limit(&state, rate_p, data_rate);
}

unsigned sep_model_most_qps(const sep_model_adapter_t *adapter,
                            const sep_model_load_t *load, double keep)
{
    sep_model_load_t trial = *load;
    unsigned long few      = 1;
    unsigned long many     = UINT_MAX;
    sep_model_rate_t rate;
    double least;

    trial.qps = 0;
    sep_model_predict(adapter, &trial, &rate);
    least     = keep * rate.mops;
    trial.qps = many;
    sep_model_predict(adapter, &trial, &rate);
    if (rate.mops >= least) {
        return many;
    }

    /* Few are enough, many are too many */
    while ((few + 1) < many) {
        trial.qps = (few + many) / 2;
        sep_model_predict(adapter, &trial, &rate);
        if (rate.mops >= least) {
            few = trial.qps;
        } else {
            many = trial.qps;
        }
    }
    return few;
}

void sep_model_throttle(const sep_model_adapter_t *adapter, unsigned budget,
                        unsigned min_depth, sep_model_load_t *load)
{
    sep_model_load_t trial = *load;
    sep_model_rate_t rate;
    double best = 0;

    if (budget != SEP_MODEL_THROTTLE_BEST) {
        trial.depth = budget / load->threads;
        if (trial.depth < min_depth) {
            trial.depth = min_depth;
        }
        if (trial.depth < load->depth) {
            load->depth = trial.depth;
        }
        return;
    }

    for (trial.depth = (min_depth < load->depth) ? min_depth : load->depth;
         trial.depth <= load->depth; ++trial.depth) {
        sep_model_predict(adapter, &trial, &rate);
        if (rate.mops > best) {
            best   = rate.mops;
            budget = trial.depth;
        }
    }
    load->depth = budget;
}
