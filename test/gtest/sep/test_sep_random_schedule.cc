/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_random_schedule.h>

#include <algorithm>
#include <random>
#include <set>
#include <sstream>

namespace sep_random {

typedef std::mt19937_64 generator;

static const struct {
    const char *name;
    unsigned   weight;
} kinds[NUM_KINDS] = {
    [PUT_SHORT]    = {"put_short", 8},
    [PUT_BCOPY]    = {"put_bcopy", 6},
    [PUT_ZCOPY]    = {"put_zcopy", 8},
    [GET_BCOPY]    = {"get_bcopy", 6},
    [GET_ZCOPY]    = {"get_zcopy", 6},
    [AM_SHORT]     = {"am_short", 16},
    [AM_SHORT_IOV] = {"am_short_iov", 4},
    [AM_BCOPY]     = {"am_bcopy", 12},
    [AM_ZCOPY]     = {"am_zcopy", 8},
    [ATOMIC_POST]  = {"atomic_post", 6},
    [ATOMIC_FETCH] = {"atomic_fetch", 6},
    [FENCE]        = {"fence", 6},
    [IFACE_FENCE]  = {"iface_fence", 2},
    [FLUSH]        = {"flush", 5},
    [IFACE_FLUSH]  = {"iface_flush", 3},
    [BURST]        = {"burst", 4},
    [RELEASE]      = {"release", 3},
    [DESTROY]      = {"destroy", 2},
    [EXPIRE]       = {"expire", 1},
    [IDLE]         = {"idle", 1},
    [CLOSE]        = {"close", 1},
    [BREAK]        = {"break", 1},
    [WRONG_KEY]    = {"wrong_key", 1},
    [CANCEL]       = {"cancel", 1}
};

/* What interfaces may be opened with, each with one chance in so many. Queues
 * are short, so that they are full now and then. */
static const struct {
    unsigned                 odds;
    const char               *name;
    std::vector<const char*> values;
} choices[] = {
    {1, "RX_QUEUE_LEN", {"8", "64", "128"}},
    {1, "TX_QUEUE_LEN", {"8", "32", "64"}},
    {1, "CATEGORY", {"dynamic", "dynamic", "2xdynamic", "mpi_everywhere",
                     "shared_dynamic"}},
    {2, "EAGER", {"y"}},
    {2, "EAGER_POLL_SET", {"1", "2"}},
    {2, "EAGER_SLOTS", {"2", "5", "16"}},
    {3, "EAGER_SLOT_SIZE", {"128", "320"}},
    {4, "API", {"verbs", "wr"}},
    {4, "CQ_SHARING", {"2", "8"}},
    {3, "TX_POST", {"bf", "db"}},
    {4, "TX_POSTLIST", {"4", "8"}},
    {2, "TX_CQ_MODERATION", {"1", "4", "16"}},
    {4, "TX_CQ_LEN", {"16", "64"}},
    {3, "TX_MAX_POLL", {"1"}},
    {3, "RX_MAX_POLL", {"4"}},
    {2, "FC_WND_SIZE", {"3", "8", "32"}},
    {4, "TX_INLINE_RESP", {"0", "64"}},
    {4, "RX_INLINE", {"0", "64"}},
    {4, "MAX_RD_ATOMIC", {"1"}},
    {8, "FC_ENABLE", {"n"}},
    {4, "MAX_GET_ZCOPY", {"2k"}},
    {4, "PATH_MTU", {"512", "1024"}},
    {6, "TX_THROTTLE", {"16", "64"}}
};

/* What refuses to be set with another setting, and to what it is set then */
static const std::pair<settings::value_type, settings::value_type>
        exclusions[] = {
    {{"FC_ENABLE", "n"}, {"EAGER", "n"}},
    {{"CATEGORY", "mpi_everywhere"}, {"CQ_SHARING", "1"}},
    {{"API", "verbs"}, {"CQ_SHARING", "1"}},
    {{"API", "verbs"}, {"TX_POST", "auto"}},
    {{"API", "verbs"}, {"TX_POSTLIST", "1"}},
    {{"API", "wr"}, {"CQ_SHARING", "1"}},
    {{"API", "wr"}, {"TX_POST", "auto"}},
    {{"API", "wr"}, {"TX_POSTLIST", "1"}}
};

static bool has(const settings &list, const settings::value_type &value)
{
    return std::find(list.begin(), list.end(), value) != list.end();
}

/* Budgets of queue pairs, each interface's share as small as can be or a little
 * more. Some need two for each connection. */
static void choose_budgets(generator &random, std::vector<settings> &ifaces)
{
    unsigned max = 2 * ifaces.size();

    for (auto &iface : ifaces) {
        if (has(iface, {"CATEGORY", "mpi_everywhere"})) {
            max = 4 * ifaces.size();
        }
    }
    max += random() % (ifaces.size() + 1);
    for (auto &iface : ifaces) {
        if (random() % 4 > 0) {
            iface.push_back({"MAX_QPS", std::to_string(max)});
        }
    }
}

/* Some categories are for all interfaces or for none */
static settings choose_settings(generator &random, const char *category)
{
    settings result;

    for (auto &choice : choices) {
        if (random() % choice.odds == 0) {
            result.push_back({choice.name,
                              choice.values[random() % choice.values.size()]});
        }
    }
    if (category != nullptr) {
        result.push_back({"CATEGORY", category});
    }
    for (auto &exclusion : exclusions) {
        if (has(result, exclusion.first)) {
            result.push_back(exclusion.second);
        }
    }
    return result;
}

schedule generate(uint64_t seed, bool has_faults)
{
    generator random(seed);
    unsigned weights[NUM_KINDS];
    unsigned sum = 0;
    schedule plan;

    plan.seed     = seed;
    plan.destroys = random() % 2;
    plan.cm_loss  = (random() % 4 == 0) ? 20 : 0;
    plan.acts     = (random() % 2) ? random() % (has_faults ? 8 : 4) : 0;
    plan.sleepers = (random() % 4 == 0) ? random() % 8 : 0;
    static const char *const categories[] = {"mpi_threads", "mpi_threads",
                                             "static"};
    size_t dice          = random() % 12;
    const char *category = (dice < 3) ? categories[dice] : nullptr;
    settings alike       = choose_settings(random, category);
    plan.ifaces.resize(2 + random() % 2);
    size_t seg_size = random() % 6;
    for (auto &iface : plan.ifaces) {
        /* Alike in half of the schedules, as in an application */
        iface = ((category != nullptr) || (random() % 2)) ?
                        alike : choose_settings(random, nullptr);
        if (seg_size < 2) {
            iface.push_back({"SEG_SIZE", (seg_size == 0) ? "1536" : "4096"});
        }
    }

    if (random() % 3 == 0) {
        choose_budgets(random, plan.ifaces);
    }

    /* Without some kinds the others meet more often */
    for (unsigned i = 0; i < NUM_KINDS; ++i) {
        weights[i] = ((i >= FIRST_FAULT) && !has_faults) ? 0 :
                     kinds[i].weight * (random() % 4);
        sum       += weights[i];
    }

    plan.ops.resize((sum == 0) ? 0 : (20 + random() % 180));
    for (auto &op : plan.ops) {
        unsigned dice = random() % sum;
        unsigned what = 0;

        while (dice >= weights[what]) {
            dice -= weights[what++];
        }
        op.what     = kind(what);
        op.iface    = random() % plan.ifaces.size();
        op.position = (random() % 2) ? 0 : random() % max_positions;
        op.rounds   = (random() % 4) ? random() % 4 : random() % 32;
        op.progress = random();
        op.value    = random();
    }
    return plan;
}

std::string to_string(const operation &op)
{
    std::ostringstream os;

    os << kinds[op.what].name << " iface " << (unsigned)op.iface << " ep "
       << (unsigned)op.position << " value 0x" << std::hex << op.value
       << std::dec << ", then " << (unsigned)op.rounds << " rounds, progress";
    for (unsigned i = 0; i < 3; ++i) {
        if (op.progress & (1 << i)) {
            os << " " << i;
        }
    }
    os << ((op.progress & 0x80) ? ", handle events" : "");
    return os.str();
}

std::string to_string(const schedule &plan)
{
    std::ostringstream os;

    for (size_t i = 0; i < plan.ifaces.size(); ++i) {
        os << "  iface " << i << ":";
        for (auto &setting : plan.ifaces[i]) {
            os << " " << setting.first << "=" << setting.second;
        }
        os << "\n";
    }
    if (plan.cm_loss > 0) {
        os << "  packets of connections are lost\n";
    }
    if (plan.destroys) {
        os << "  endpoints that fail are destroyed at once\n";
    }
    for (unsigned i = 0; i < 3; ++i) {
        static const char *const names[] = {"progress", "destroy", "cancel"};

        if (plan.acts & (1 << i)) {
            os << "  callbacks " << names[i] << "\n";
        }
        if (plan.sleepers & (1 << i)) {
            os << "  iface " << i << " sleeps\n";
        }
    }
    for (size_t i = 0; i < plan.ops.size(); ++i) {
        os << "  " << i << ". " << to_string(plan.ops[i]) << "\n";
    }
    return os.str();
}

/* Leave out operations that are not needed */
static void shrink_ops(schedule &plan,
                       const std::function<bool(const schedule&)> &fails)
{
    std::vector<operation> &ops = plan.ops;

    for (size_t length = (ops.size() + 1) / 2; length > 0; length /= 2) {
        for (size_t i = 0; i < ops.size();) {
            std::vector<operation> all = ops;

            ops.erase(ops.begin() + i,
                      ops.begin() + std::min(i + length, ops.size()));
            if (!fails(plan)) {
                ops = all;
                i  += length;
            }
        }
    }
}

/* Leave out settings: some are for all interfaces or for none */
static void shrink_settings(schedule &plan,
                            const std::function<bool(const schedule&)> &fails)
{
    std::set<std::string> names;

    for (auto &iface : plan.ifaces) {
        for (auto &setting : iface) {
            names.insert(setting.first);
        }
    }
    for (auto &name : names) {
        std::vector<settings> all = plan.ifaces;

        for (auto &iface : plan.ifaces) {
            iface.erase(std::remove_if(iface.begin(), iface.end(),
                                       [&](const settings::value_type &one) {
                return one.first == name;
            }), iface.end());
        }
        if (!fails(plan)) {
            plan.ifaces = all;
        }
    }
}

schedule shrink(const schedule &plan,
                const std::function<bool(const schedule&)> &fails)
{
    schedule least = plan;
    size_t num;

    do {
        num = least.ops.size();
        shrink_ops(least, fails);
    } while (least.ops.size() < num);

    shrink_settings(least, fails);
    for (unsigned *flags : {&least.acts, &least.sleepers}) {
        for (unsigned i = 0; i < 3; ++i) {
            unsigned all = *flags;

            *flags &= ~(1u << i);
            *flags  = ((*flags == all) || fails(least)) ? *flags : all;
        }
    }
    return least;
}

} // namespace sep_random
