/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/count_handlers.h>

#include <map>
#include <mutex>

static std::mutex lock;
static std::map<int, const ucs_async_context_t*> handlers; /* by number */

unsigned count_handlers(const ucs_async_context_t *async)
{
    std::lock_guard<std::mutex> guard(lock);
    unsigned count = 0;

    for (auto &handler : handlers) {
        count += handler.second == async;
    }
    return count;
}

extern "C" {

ucs_status_t
__real_ucs_async_set_event_handler(ucs_async_mode_t mode, int event_fd,
                                   ucs_event_set_types_t events,
                                   ucs_async_event_cb_t cb, void *arg,
                                   ucs_async_context_t *async);
ucs_status_t __real_ucs_async_add_timer(ucs_async_mode_t mode,
                                        ucs_time_t interval,
                                        ucs_async_event_cb_t cb, void *arg,
                                        ucs_async_context_t *async,
                                        int *timer_id_p);
ucs_status_t __real_ucs_async_remove_handler(int id, int sync);

ucs_status_t
__wrap_ucs_async_set_event_handler(ucs_async_mode_t mode, int event_fd,
                                   ucs_event_set_types_t events,
                                   ucs_async_event_cb_t cb, void *arg,
                                   ucs_async_context_t *async)
{
    ucs_status_t status = __real_ucs_async_set_event_handler(mode, event_fd,
                                                             events, cb, arg,
                                                             async);

    if (status == UCS_OK) {
        std::lock_guard<std::mutex> guard(lock);
        handlers[event_fd] = async;
    }
    return status;
}

ucs_status_t __wrap_ucs_async_add_timer(ucs_async_mode_t mode,
                                        ucs_time_t interval,
                                        ucs_async_event_cb_t cb, void *arg,
                                        ucs_async_context_t *async,
                                        int *timer_id_p)
{
    ucs_status_t status = __real_ucs_async_add_timer(mode, interval, cb, arg,
                                                     async, timer_id_p);

    if (status == UCS_OK) {
        std::lock_guard<std::mutex> guard(lock);
        handlers[*timer_id_p] = async;
    }
    return status;
}

ucs_status_t __wrap_ucs_async_remove_handler(int id, int sync)
{
    {
        /* Before its number can be another's */
        std::lock_guard<std::mutex> guard(lock);
        handlers.erase(id);
    }
    return __real_ucs_async_remove_handler(id, sync);
}

} // extern "C"
