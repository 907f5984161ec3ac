/* SPDX-License-Identifier: BSD-3-Clause */

#include <ucp/test_ucp_procs.h>

#include <uct/api/uct.h>

#include <algorithm>
#include <cstdarg>
#include <cstring>
#include <sstream>

#include <dlfcn.h>

/* What a lane answers to a flush, and what happens to it after that. */
enum Answer {
    NOTHING,           /* has nothing outstanding */
    LATER,             /* completes later */
    LATER_FAILS,       /* completes later, with an error */
    FAILS,             /* is in error */
    FULL,              /* has no resources; later, nothing is outstanding */
    FULL_THEN_LATER,   /* completes later than that */
    FULL_THEN_FAILS,   /* is in error when there are resources again */
    FULL_FOR_A_MOMENT, /* has resources when the request is to be queued */
    ANSWERS
};

static const char *const answer_names[] = {
    "nothing", "later", "later_fails", "fails", "full", "full_then_later",
    "full_then_fails", "full_for_a_moment"
};

/* Errors of a lane in the flush and in its completion. */
static constexpr ucs_status_t FLUSH_ERROR      = UCS_ERR_IO_ERROR;
static constexpr ucs_status_t COMPLETION_ERROR = UCS_ERR_CONNECTION_RESET;

/* A transport's endpoint whose answers the test gives. */
struct Lane {
    Answer answer              = NOTHING;
    bool is_full               = false;
    unsigned taken             = 0; /* how often it took a flush */
    unsigned failed            = 0; /* how often it said that it is in error */
    uct_pending_req_t *pending = nullptr;
    std::vector<uct_completion_t*> comps;

    void set(Answer new_answer)
    {
        *this   = Lane();
        answer  = new_answer;
        is_full = (answer >= FULL) && (answer <= FULL_FOR_A_MOMENT);
    }

    bool is_waited_for() const
    {
        return !comps.empty() || (pending != nullptr);
    }

    /** Whether it has given its last answer, and nobody waits for it. */
    bool is_flushed() const
    {
        const bool in_error = (answer == FAILS) || (answer == FULL_THEN_FAILS);
        return !is_waited_for() && !is_full &&
               ((in_error ? failed : taken) > 0);
    }
};

/* Interfaces that were opened since the test began, with their operations. */
static std::map<uct_iface_h, uct_iface_ops_t> ifaces;
/* Lanes that are the test's, and all that are asked, in this order. */
static std::map<uct_ep_h, Lane> lanes;
static std::vector<uct_ep_h> asked;
static bool is_noting;

extern "C" {

/* Of UCX, in no header that is installed. */
typedef int (*log_handler_t)(const char *file, unsigned line,
                             const char *function, ucs_log_level_t level,
                             const void *config, const char *message,
                             va_list ap);
void ucs_log_push_handler(log_handler_t handler);
void ucs_log_pop_handler();

__attribute__((visibility("default"))) ucs_status_t
uct_iface_open(uct_md_h md, uct_worker_h worker,
               const uct_iface_params_t *params,
               const uct_iface_config_t *config, uct_iface_h *iface_p)
{
    static auto real = (decltype(&uct_iface_open))dlsym(RTLD_NEXT,
                                                        "uct_iface_open");
    const ucs_status_t status = real(md, worker, params, config, iface_p);

    if (is_noting && (status == UCS_OK)) {
        ifaces[*iface_p] = (*iface_p)->ops;
    }
    return status;
}

static ucs_status_t
fake_flush(uct_ep_h ep, unsigned flags, uct_completion_t *comp)
{
    asked.push_back(ep);

    const auto found = lanes.find(ep);
    if (found == lanes.end()) {
        return ifaces.at(ep->iface).ep_flush(ep, flags, comp);
    }

    Lane &lane = found->second;
    if (lane.is_full) {
        return UCS_ERR_NO_RESOURCE;
    }

    switch (lane.answer) {
    case FAILS:
    case FULL_THEN_FAILS:
        ++lane.failed;
        return FLUSH_ERROR;
    case LATER:
    case LATER_FAILS:
    case FULL_THEN_LATER:
        ++lane.taken;
        EXPECT_GE(comp->count, 1);
        lane.comps.push_back(comp);
        return UCS_INPROGRESS;
    default:
        ++lane.taken;
        return UCS_OK;
    }
}

static ucs_status_t
fake_pending_add(uct_ep_h ep, uct_pending_req_t *req, unsigned flags)
{
    const auto found = lanes.find(ep);
    if (found == lanes.end()) {
        return ifaces.at(ep->iface).ep_pending_add(ep, req, flags);
    }

    Lane &lane = found->second;
    EXPECT_TRUE(lane.is_full);
    EXPECT_EQ(nullptr, lane.pending) << "queued twice";
    if (lane.answer == FULL_FOR_A_MOMENT) {
        lane.is_full = false;
        return UCS_ERR_BUSY;
    }

    lane.pending = req;
    return UCS_OK;
}

/* A worker's flush goes on to the endpoints if an interface has something
 * outstanding. */
static ucs_status_t
fake_iface_flush(uct_iface_h iface, unsigned flags, uct_completion_t *comp)
{
    return UCS_INPROGRESS;
}
}

/* Messages that something is missing or left. What fails is logged, too. */
static std::vector<std::string> complaints;

static int note_complaint(const char *file, unsigned line, const char *function,
                          ucs_log_level_t level, const void *config,
                          const char *message, va_list ap)
{
    char text[512];
    va_list copy;

    va_copy(copy, ap);
    vsnprintf(text, sizeof(text), message, copy);
    va_end(copy);

    if (strstr(text, "error during flush") != nullptr) {
        return 0; /* Nobody else sees it */
    }
    if (level <= UCS_LOG_LEVEL_WARN) {
        complaints.push_back(text);
    }
    return 1;
}

/* Flush of endpoints whose lanes answer what the test wants; with the
 * optimisation, and without it for comparison. */
class UcpFlushLanes : public UcpPair {
public:
    static constexpr size_t MAX_LANES = 4;

    using Plan = std::vector<Answer>;

    /** A sender with endpoints, and the lanes of each in UCP's order. */
    struct Side {
        std::unique_ptr<UcpWorker> worker;
        std::vector<ucp_ep_h> eps;
        std::vector<std::vector<uct_ep_h>> ep_lanes;
    };

    /** What there is to see of a flush. */
    struct Result {
        bool is_request;
        ucs_status_t status;
        unsigned calls;
        ucs_status_t call_status;
    };

    void SetUp() override
    {
        ucs_log_push_handler(note_complaint);
        complaints.clear();
        ifaces.clear();
        lanes.clear();
        receiver = std::make_unique<UcpWorker>();
        for (unsigned is_on = 0; is_on < 2; ++is_on) {
            UcpEnv env;
            env.set("UCX_OPT_FLUSH", is_on ? "y" : "n");
            is_noting = true;
            sides[is_on].worker.reset(new UcpWorker());
            is_noting = false;
            for (unsigned i = 0; i < 2; ++i) {
                ASSERT_NO_FATAL_FAILURE(add_endpoint(sides[is_on]));
            }
        }
        num_lanes = sides[0].ep_lanes[0].size();
        ASSERT_GE(num_lanes, 1u);
        for (const Side &side : sides) {
            for (const auto &ep_lanes : side.ep_lanes) {
                ASSERT_EQ(num_lanes, ep_lanes.size());
            }
        }
    }

    void TearDown() override
    {
        lanes.clear();
        set_fakes(false);
        for (Side &side : sides) {
            for (ucp_ep_h ep : side.eps) {
                sender.swap(side.worker);
                close(*sender, ep);
                sender.swap(side.worker);
            }
            side.worker.reset();
        }
        UcpPair::TearDown();
        ucs_log_pop_handler();
        ifaces.clear();

        /* A request that is not given back is one of these. */
        for (const std::string &complaint : complaints) {
            ADD_FAILURE() << complaint;
        }
    }

    void set_fakes(bool is_on)
    {
        for (auto &iface : ifaces) {
            uct_iface_ops_t &ops = iface.first->ops;
            ops.ep_flush       = is_on ? fake_flush : iface.second.ep_flush;
            ops.ep_pending_add = is_on ? fake_pending_add :
                                         iface.second.ep_pending_add;
            ops.iface_flush    = is_on ? fake_iface_flush :
                                         iface.second.iface_flush;
        }
    }

    /** Connect, and see which lanes there are. */
    void add_endpoint(Side &side)
    {
        sender.swap(side.worker);
        ucp_ep_h ep     = connect(*sender, *receiver);
        ucp_rkey_h rkey = unpack(ep, *receiver);
        uint64_t value  = 1;
        EXPECT_EQ(UCS_OK,
                  wait(put(ep, rkey, *receiver, &value, sizeof(value))));
        ucp_rkey_destroy(rkey);

        /* Nothing must be under way, or a test would not know whose it is. */
        ucp_request_param_t param = {};
        unsigned in_vain          = 0;
        EXPECT_TRUE(progress_until([&] {
            ucs_status_ptr_t request = ucp_ep_flush_nbx(ep, &param);
            EXPECT_EQ(UCS_OK, wait(request));
            in_vain = (request == nullptr) ? in_vain + 1 : 0;
            return in_vain > 100;
        }));

        /* With the caller's request, the lanes are asked in their order. */
        std::vector<uint64_t> memory(256);
        param.op_attr_mask = UCP_OP_ATTR_FIELD_REQUEST;
        param.request      = &memory[200];
        asked.clear();
        set_fakes(true);
        EXPECT_EQ(nullptr, ucp_ep_flush_nbx(ep, &param));
        set_fakes(false);
        side.eps.push_back(ep);
        side.ep_lanes.push_back(asked);
        sender.swap(side.worker);
    }

    static void called(void *request, ucs_status_t status, void *arg)
    {
        Result *result = static_cast<Result*>(arg);
        ++result->calls;
        result->call_status = status;
    }

    void step(Side &side)
    {
        for (unsigned i = 0; i < 5; ++i) {
            ucp_worker_progress(side.worker->worker);
        }
    }

    /** What a lane has been waited for happens. */
    static void happen(Lane &lane)
    {
        if (lane.pending != nullptr) {
            uct_pending_req_t *pending = lane.pending;
            lane.pending               = nullptr;
            lane.is_full               = false;
            EXPECT_EQ(UCS_OK, pending->func(pending));
            return;
        }

        std::vector<uct_completion_t*> comps;
        comps.swap(lane.comps);
        for (uct_completion_t *comp : comps) {
            if ((lane.answer == LATER_FAILS) && (comp->status == UCS_OK)) {
                comp->status = COMPLETION_ERROR;
            }
            EXPECT_GE(comp->count, 1);
            if (--comp->count == 0) {
                comp->func(comp);
            }
        }
    }

    /** Flush while the lanes answer according to a plan, and what they wait for
     *  happens in an order. */
    Result run(Side &side, const Plan &plan, const std::vector<size_t> &order,
               bool is_worker = false)
    {
        std::vector<uct_ep_h> uct_eps;
        Result result             = {};
        ucp_request_param_t param = {};

        lanes.clear();
        for (size_t i = 0; i < plan.size(); ++i) {
            uct_eps.push_back(side.ep_lanes[i / num_lanes][i % num_lanes]);
            lanes[uct_eps.back()].set(plan[i]);
        }

        param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                             UCP_OP_ATTR_FIELD_USER_DATA;
        param.cb.send      = called;
        param.user_data    = &result;
        asked.clear();
        set_fakes(true);
        ucs_status_ptr_t request =
                is_worker ? ucp_worker_flush_nbx(side.worker->worker, &param) :
                            ucp_ep_flush_nbx(side.eps[0], &param);
        first_asked       = asked.empty() ? nullptr : asked[0];
        result.is_request = UCS_PTR_IS_PTR(request);
        result.status     = UCS_PTR_IS_PTR(request) ? UCS_INPROGRESS :
                                                      UCS_PTR_STATUS(request);
        const auto flushed = [&] {
            return std::all_of(lanes.begin(), lanes.end(),
                               [](const auto &lane) {
                return lane.second.is_flushed();
            });
        };
        const auto is_complete = [&] {
            return !result.is_request ||
                   (ucp_request_check_status(request) != UCS_INPROGRESS);
        };

        /* Each lane once in turn, as long as one is waited for */
        for (unsigned round = 0; round < 3 * plan.size(); ++round) {
            for (size_t i : order) {
                EXPECT_EQ(is_complete(), (result.calls > 0) ||
                                         !result.is_request);
                EXPECT_TRUE(!is_complete() || flushed())
                        << "complete before lane " << i;
                happen(lanes[uct_eps[i]]);
                if (is_worker || (i % 2)) {
                    step(side);
                }
            }
            step(side);
        }

        EXPECT_TRUE(flushed());
        EXPECT_TRUE(is_complete());
        for (const auto &lane : lanes) {
            EXPECT_TRUE(is_worker || (lane.second.taken <= 1))
                    << "flushed twice";
        }
        if (result.is_request) {
            result.status = ucp_request_check_status(request);
            ucp_request_free(request);
        }
        set_fakes(false);
        lanes.clear();
        return result;
    }

    static bool has(const Plan &plan, Answer answer)
    {
        return std::find(plan.begin(), plan.end(), answer) != plan.end();
    }

    /** Whether the request is queued for some time. */
    static bool is_one_full(const Plan &plan)
    {
        return has(plan, FULL) || has(plan, FULL_THEN_LATER) ||
               has(plan, FULL_THEN_FAILS);
    }

    /** Whether UCX may forget an error: with a queue, lanes are asked and
     *  complete in several orders, and it is what happens last that says how
     *  the flush has ended. What UCX does not forget is kept in any order. */
    static bool may_lose_errors(const Plan &plan)
    {
        return is_one_full(plan) &&
               (has(plan, FAILS) || has(plan, LATER_FAILS) ||
                has(plan, FULL_THEN_FAILS));
    }

    /** Run a plan on both sides, in several orders. @return the result with the
     *  optimisation. */
    Result compare(const Plan &plan)
    {
        std::vector<size_t> order;
        for (size_t i = 0; i < plan.size(); ++i) {
            order.push_back(i);
        }

        Result with = {};
        for (unsigned i = 0; i < 3; ++i) {
            const Result without = run(sides[0], plan, order);
            with                 = run(sides[1], plan, order);
            EXPECT_EQ(without.is_request, with.is_request);
            EXPECT_EQ(without.calls, with.calls);
            if ((without.status != UCS_OK) || !may_lose_errors(plan)) {
                EXPECT_EQ(without.status == UCS_OK, with.status == UCS_OK);
            }
            if (!is_one_full(plan)) {
                /* All is asked in the call, and completes in one order */
                EXPECT_EQ(without.status, with.status);
            }
            EXPECT_EQ(with.is_request ? 1u : 0u, with.calls);
            if (with.is_request) {
                EXPECT_EQ(with.status, with.call_status);
            }
            if (i == 0) {
                std::reverse(order.begin(), order.end());
            } else {
                std::rotate(order.begin(), order.begin() + 1, order.end());
            }
        }
        return with;
    }

    static std::string name(const Plan &plan)
    {
        std::ostringstream out;
        for (Answer answer : plan) {
            out << answer_names[answer] << ' ';
        }
        return out.str();
    }

    /** All plans for so many lanes of answers. */
    static void for_each_plan(size_t size, const std::vector<Answer> &answers,
                              const std::function<void(const Plan&)> &function)
    {
        size_t count = 1;
        for (size_t i = 0; i < size; ++i) {
            count *= answers.size();
        }
        for (size_t number = 0; number < count; ++number) {
            Plan plan;
            size_t rest = number;
            for (size_t i = 0; i < size; ++i) {
                plan.push_back(answers[rest % answers.size()]);
                rest /= answers.size();
            }
            SCOPED_TRACE(name(plan));
            function(plan);
            if (HasFailure()) {
                return; /* One is enough to look at */
            }
        }
    }

    Side sides[2]; /* without and with the optimisation */
    size_t num_lanes     = 0;
    uct_ep_h first_asked = nullptr;
};


TEST_F(UcpFlushLanes, TheLastOfFewLanesIsAskedFirstAndEachOnce)
{
    /* Else the tests below are of the general way. */
    for (unsigned is_on = 0; is_on < 2; ++is_on) {
        Side &side = sides[is_on];
        run(side, Plan(num_lanes, NOTHING), {0});
        EXPECT_EQ(num_lanes, asked.size());
        EXPECT_EQ(is_on && (num_lanes <= MAX_LANES) ? side.ep_lanes[0].back() :
                                                      side.ep_lanes[0].front(),
                  first_asked);
    }
}

TEST_F(UcpFlushLanes, EndsWithTheErrorOfALaneOnlyAfterAllWereAsked)
{
    for (size_t lane = 0; lane < num_lanes; ++lane) {
        SCOPED_TRACE(lane);
        Plan plan(num_lanes, NOTHING);
        plan[lane]          = FAILS;
        const Result failed = compare(plan);
        EXPECT_FALSE(failed.is_request);
        EXPECT_EQ(FLUSH_ERROR, failed.status);

        plan[lane]         = LATER_FAILS;
        const Result later = compare(plan);
        EXPECT_TRUE(later.is_request);
        EXPECT_EQ(COMPLETION_ERROR, later.status);

        plan.assign(num_lanes, LATER);
        plan[lane]          = LATER_FAILS;
        const Result others = compare(plan);
        EXPECT_TRUE(others.is_request);
        EXPECT_EQ(COMPLETION_ERROR, others.status);
    }
}

TEST_F(UcpFlushLanes, CompletesWithTheLastOfItsLanesInAnyOrder)
{
    for_each_plan(num_lanes, {NOTHING, LATER}, [&](const Plan &plan) {
        std::vector<size_t> order;
        for (size_t i = 0; i < plan.size(); ++i) {
            order.push_back(i);
        }
        const bool is_request = plan != Plan(num_lanes, NOTHING);
        do {
            for (Side &side : sides) {
                const Result result = run(side, plan, order);
                EXPECT_EQ(is_request, result.is_request);
                EXPECT_EQ(UCS_OK, result.status);
                EXPECT_EQ(is_request, result.calls == 1);
            }
        } while (std::next_permutation(order.begin(), order.end()));
    });
}

TEST_F(UcpFlushLanes, WaitsInTheQueueOfALaneThatIsFull)
{
    for (Answer answer : {FULL, FULL_THEN_LATER, FULL_FOR_A_MOMENT}) {
        for (Answer other : {NOTHING, LATER}) {
            for (size_t lane = 0; lane < num_lanes; ++lane) {
                Plan plan(num_lanes, other);
                plan[lane] = answer;
                SCOPED_TRACE(name(plan));
                const Result result = compare(plan);
                EXPECT_EQ((answer != FULL_FOR_A_MOMENT) ||
                                  ((other == LATER) && (num_lanes > 1)),
                          result.is_request);
                EXPECT_EQ(UCS_OK, result.status);
            }
        }
    }
}

TEST_F(UcpFlushLanes, MixturesOfAnswersEndAsWithoutTheOptimisation)
{
    std::vector<Answer> answers;
    for (int i = 0; i < ANSWERS; ++i) {
        answers.push_back(static_cast<Answer>(i));
    }

    for_each_plan(std::min(num_lanes, MAX_LANES), answers,
                  [&](const Plan &part) {
        /* UCX itself never goes on if a lane fails whose queue the request was
         * in, and another is full. */
        const auto full = std::count_if(part.begin(), part.end(),
                                        [](Answer answer) {
            return (answer >= FULL) && (answer <= FULL_FOR_A_MOMENT);
        });
        if ((full > 1) && std::count(part.begin(), part.end(),
                                     FULL_THEN_FAILS)) {
            return;
        }

        Plan plan(num_lanes, NOTHING);
        std::copy(part.begin(), part.end(), plan.begin());
        compare(plan);
    });
}

TEST_F(UcpFlushLanes, WorkerFlushWaitsForAllLanesOfAllEndpoints)
{
    /* All lanes of one endpoint, and one lane of the other. An endpoint's
     * failure is its own. */
    for_each_plan(num_lanes, {NOTHING, LATER, FAILS, FULL_THEN_LATER},
                  [&](const Plan &part) {
        for (Answer other : {NOTHING, LATER, FAILS, FULL_THEN_LATER}) {
            Plan plan(2 * num_lanes, NOTHING);
            std::copy(part.begin(), part.end(), plan.begin());
            plan.back() = other;
            SCOPED_TRACE(name(plan));
            std::vector<size_t> order;
            for (size_t i = 0; i < plan.size(); ++i) {
                order.push_back(i);
            }
            for (Side &side : sides) {
                const Result result = run(side, plan, order, true);
                EXPECT_EQ(UCS_OK, result.status);
                EXPECT_EQ(result.is_request ? 1u : 0u, result.calls);
            }
        }
    });
}
