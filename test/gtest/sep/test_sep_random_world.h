/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef TEST_SEP_RANDOM_WORLD_H
#define TEST_SEP_RANDOM_WORLD_H

#include <sep/test_sep_random_model.h>
#include <sep/test_sep_random_schedule.h>

#include <list>
#include <memory>
#include <set>
#include <string>
#include <vector>

/*
 * Runs a schedule: interfaces of one process on a device that is stepped
 * (common/step.h), each endpoint beside its model.
 */
namespace sep_random {

using sep_uct_test::entity;
using sep_uct_test::memory;

class world;

/* An endpoint, from when it was made until the end of the schedule */
struct link {
    link(unsigned id, unsigned src, unsigned dst, unsigned incarnation,
         const uint8_t *place) :
        id(id), src(src), dst(dst), incarnation(incarnation), truth(place)
    {
    }

    const unsigned id;
    const unsigned src, dst;
    const unsigned incarnation; /* Of the receiving interface */
    uct_ep_h       ep        = nullptr; /* If it is not destroyed */
    bool           is_failed = false;
    bool           is_cut    = false; /* Something was given up on purpose */
    uint64_t       remote    = 0;
    model          truth;
};

/* An operation that completes later */
struct outstanding {
    outstanding(world &self, link &owner);

    static void done(uct_completion_t *comp);

    uct_completion_t                  comp;
    world                             &self;
    link                              &owner;
    std::function<void(ucs_status_t)> func;
    unsigned                          calls   = 0;
    bool                              is_used = false; /* It was posted */
    int                               buffer  = -1;
    uint64_t                          value   = 0; /* Result of an atomic */
};

/* An operation that waits for resources */
struct waiting {
    uct_pending_req_t             req;
    std::function<ucs_status_t()> func;
    world                         *self;
    link                          *owner;
    unsigned                      num     = 1; /* Times it has to be called */
    bool                          is_done = false;
};

class world {
public:
    /* For one schedule after the other. All device objects but those of the
     * memory domain are made anew for each, so what one does does not depend on
     * those before it. */
    world();
    ~world();

    /* What went wrong, or "" */
    std::string run(const schedule &plan);

    /* Of the last schedule: a number that depends on all that was seen */
    uint64_t trace() const { return m_trace; }

private:
    friend struct outstanding;

    /* A message whose descriptor was kept */
    struct kept_desc {
        uint8_t  *data;
        size_t   length;
        uint64_t sum;
    };

    struct node {
        std::unique_ptr<entity> e;
        sep_uct_test::address   addr; /* The last one it had */
        unsigned                incarnation = 0;
        unsigned                next_place  = 0;
        link                    *links[max_positions] = {};
        std::unique_ptr<memory> mem;
        uct_rkey_bundle_t       rkey;
        std::list<kept_desc>    kept;
        uint64_t                added = 0;    /* To its common counter */
        int                     event_fd  = -1;
        bool                    is_asleep = false;
    };

    struct handler {
        world    *self;
        unsigned iface;
        uint8_t  id;
    };

    static constexpr unsigned max_ifaces  = 3;
    static constexpr unsigned max_places  = 24;
    static constexpr unsigned max_buffers = 16;
    static constexpr unsigned max_depth   = 2;     /* Of callbacks */
    static constexpr unsigned patience    = 20000; /* Rounds */

    /* Its life */
    void begin(const schedule &plan);
    void settle();
    void check_all();
    void end();
    bool open(unsigned iface);
    void close(unsigned iface);
    bool drive(unsigned iface);
    bool is_waiting(unsigned iface) const;
    bool wake_all();
    void act(unsigned iface, link *l);
    void expect_share(unsigned iface);
    void advance(const operation &op);
    void expire(unsigned iface);
    void stir();
    void describe_busy(bool is_moving);
    void find_unused(unsigned iface);
    link *get_link(unsigned iface, unsigned position);
    void purge(link &l);
    void destroy(link &l);
    void release(unsigned iface);
    void on_failure(unsigned iface);
    void on_message(unsigned iface, uint8_t id, void *data, size_t length);

    /* Operations */
    void execute(const operation &op);
    ucs_status_t post(link &l, kind what, uint32_t value);
    ucs_status_t post_put(link &l, kind what, uint32_t value);
    ucs_status_t post_get(link &l, kind what, uint32_t value);
    ucs_status_t post_message(link &l, kind what, uint32_t value);
    ucs_status_t post_atomic(link &l, kind what, uint32_t value);
    ucs_status_t post_flush(link &l);
    ucs_status_t call(waiting &w);
    void wait(link &l, kind what, uint32_t value);
    bool has_waiting(const link &l) const;
    void fence(link &l, kind what);
    void flush_iface(unsigned iface);
    void fault(link &l, kind what);

    outstanding &begin_op(link &l, bool has_buffer);
    ucs_status_t end_op(outstanding &op, ucs_status_t status);
    int take_buffer();
    void return_buffer(const link &l, int index);
    uint8_t *buffer(int index);
    bool may_fail(const link &l) const;
    void cut(unsigned a, unsigned b);
    void expect(const link &l, const std::string &wrong);
    void wrong(const std::string &what);
    void note(uint64_t a, uint64_t b, uint64_t c, uint64_t d);
    bool is_hub(unsigned iface) const;

    const schedule                *m_plan = nullptr;
    std::unique_ptr<entity>       m_base; /* Has the memory domain */
    std::unique_ptr<memory>       m_local;
    std::vector<node>             m_nodes;
    std::list<link>               m_links;
    std::vector<link*>            m_by_id;
    std::list<outstanding>        m_outstanding;
    std::list<waiting>            m_waiting;
    std::set<std::pair<unsigned, unsigned>> m_cut; /* Pairs, see cut() */
    unsigned                      m_buffers_used = 0; /* One bit each */
    uint64_t                      m_num_packets  = 0;
    uint64_t                      m_trace        = 0;
    unsigned                      m_num_stirs    = 0;
    unsigned                      m_num_acts     = 0;
    unsigned                      m_depth        = 0; /* Of callbacks */
    unsigned                      m_sleepers     = 0;
    waiting                       *m_called      = nullptr;
    std::string                   m_wrong;
    handler                       m_handlers[max_ifaces][2];
};

} // namespace sep_random

#endif
