/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_random_chance.h>

#include <ucs/async/async.h>
#include <ucs/sys/math.h>
#include <ucs/sys/sys.h>

#include <dlfcn.h>
#include <sched.h>
#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace sep_random {

namespace chance {

static bool is_fixed;
static uint64_t seed, num_drawn;
static void (*yield)();

/* Of an event or a timer, which expires each time */
struct handler {
    int                       id;
    ucs_event_set_types_t     events;
    ucs_async_event_cb_t      cb;
    void                      *arg;
    const ucs_async_context_t *async;
};

static std::vector<handler> handlers;
static int last_timer = 1 << 30;

static std::vector<handler>::iterator find(int id)
{
    return std::find_if(handlers.begin(), handlers.end(),
                        [=](const handler &one) { return one.id == id; });
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ull;
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ull;
    return x ^ (x >> 32);
}

void fix(uint64_t value, void (*func)())
{
    is_fixed  = true;
    yield     = func;
    seed      = value;
    num_drawn = 0;
}

uint64_t draw(uint64_t what, uint64_t number)
{
    return mix(mix(mix(seed + 1) + what) + number);
}

} // namespace chance

} // namespace sep_random

using namespace sep_random;

extern "C" {

uint64_t ucs_generate_uuid(uint64_t seed)
{
    static auto real = (decltype(&ucs_generate_uuid))
            dlsym(RTLD_NEXT, "ucs_generate_uuid");

    return chance::is_fixed ? chance::draw(0, ++chance::num_drawn) : real(seed);
}

ssize_t getrandom(void *buf, size_t length, unsigned flags) noexcept
{
    static auto real = (decltype(&getrandom))dlsym(RTLD_NEXT, "getrandom");

    if (!chance::is_fixed) {
        return real(buf, length, flags);
    }

    for (size_t i = 0; i < length; i += sizeof(uint64_t)) {
        uint64_t value = chance::draw(0, ++chance::num_drawn);

        memcpy((char*)buf + i, &value, std::min(sizeof(value), length - i));
    }
    return length;
}

ucs_status_t ucs_async_context_create(ucs_async_mode_t mode,
                                      ucs_async_context_t **async_p)
{
    static auto real = (decltype(&ucs_async_context_create))
            dlsym(RTLD_NEXT, "ucs_async_context_create");

    return real(chance::is_fixed ? UCS_ASYNC_MODE_POLL : mode, async_p);
}

ucs_status_t ucs_async_set_event_handler(ucs_async_mode_t mode, int fd,
                                         ucs_event_set_types_t events,
                                         ucs_async_event_cb_t cb, void *arg,
                                         ucs_async_context_t *async)
{
    static auto real = (decltype(&ucs_async_set_event_handler))
            dlsym(RTLD_NEXT, "ucs_async_set_event_handler");

    if (!chance::is_fixed) {
        return real(mode, fd, events, cb, arg, async);
    }

    chance::handlers.push_back({fd, events, cb, arg, async});
    return UCS_OK;
}

ucs_status_t ucs_async_add_timer(ucs_async_mode_t mode, ucs_time_t interval,
                                 ucs_async_event_cb_t cb, void *arg,
                                 ucs_async_context_t *async, int *id_p)
{
    static auto real = (decltype(&ucs_async_add_timer))
            dlsym(RTLD_NEXT, "ucs_async_add_timer");

    if (!chance::is_fixed) {
        return real(mode, interval, cb, arg, async, id_p);
    }

    *id_p = ++chance::last_timer;
    chance::handlers.push_back({*id_p, UCS_EVENT_SET_EVREAD, cb, arg, async});
    return UCS_OK;
}

ucs_status_t ucs_async_remove_handler(int id, int sync)
{
    static auto real = (decltype(&ucs_async_remove_handler))
            dlsym(RTLD_NEXT, "ucs_async_remove_handler");
    auto it          = chance::find(id);

    if (it == chance::handlers.end()) {
        return real(id, sync);
    }

    chance::handlers.erase(it);
    return UCS_OK;
}

void ucs_async_poll(ucs_async_context_t *async)
{
    static auto real = (decltype(&ucs_async_poll))
            dlsym(RTLD_NEXT, "ucs_async_poll");

    if (!chance::is_fixed) {
        real(async);
        return;
    }

    /* Handlers set and remove others */
    for (auto one : std::vector<chance::handler>(chance::handlers)) {
        if ((one.async == async) &&
            ((async == NULL) || (async->poll_block == 0)) &&
            (chance::find(one.id) != chance::handlers.end())) {
            one.cb(one.id, one.events, one.arg);
        }
    }
}

int sched_yield() noexcept
{
    static auto real = (decltype(&sched_yield))dlsym(RTLD_NEXT, "sched_yield");

    if (!chance::is_fixed) {
        return real();
    }

    chance::yield();
    return 0;
}

} // extern "C"
