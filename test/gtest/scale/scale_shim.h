/* SPDX-License-Identifier: BSD-3-Clause */

/**
 * @file scale_shim.h
 *
 * What the world of scale_world.h has in place of a clock, of UCX's timers and
 * progress, of chance, and of the heap. It is included before everything else
 * by the transport's files that are compiled for that world.
 */

#ifndef TEST_SCALE_SHIM_H_
#define TEST_SCALE_SHIM_H_

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

/* A unit of time is a nanosecond, on each machine */
#define ucs_get_cpu_clocks_per_sec scale_clocks_per_sec

#include <ucs/async/async.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/time/time.h>
#include <uct/api/uct.h>
#include <uct/base/uct_iface.h>
#include <sys/random.h>

BEGIN_C_DECLS

ucs_time_t scale_time(void);

ucs_status_t scale_set_event_handler(void);
ucs_status_t
scale_add_timer(ucs_time_t interval, ucs_async_event_cb_t cb, void *arg,
                int *timer_id_p);
ucs_status_t scale_remove_handler(int id);

void scale_progress_register(ucs_callback_t func, void *arg,
                             uct_worker_cb_id_t *id_p);
void scale_progress_unregister(uct_worker_cb_id_t *id_p);

ssize_t scale_random(void *buf, size_t length);

/* An endpoint has failed */
ucs_status_t scale_endpoint_failed(ucs_status_t status);

void *scale_calloc(size_t count, size_t size);
void *scale_realloc(void *ptr, size_t size);
int scale_memalign(void **ptr_p, size_t alignment, size_t size);
void scale_free(void *ptr);

END_C_DECLS

#ifndef __cplusplus
#  define ucs_get_time                      scale_time
#  define ucs_async_set_event_handler(...)  scale_set_event_handler()
#  define ucs_async_add_timer(_mode, _interval, _cb, _arg, _async, _id_p) \
       scale_add_timer(_interval, _cb, _arg, _id_p)
#  define ucs_async_remove_handler(_id, _sync) \
       scale_remove_handler(_id)
#  define ucs_async_poll(_async)
#  define uct_worker_progress_register_safe(_worker, _func, _arg, _flags, \
                                            _id_p) \
       ((void)(_worker), scale_progress_register(_func, _arg, _id_p))
#  define uct_worker_progress_unregister_safe(_worker, _id_p) \
       ((void)(_worker), scale_progress_unregister(_id_p))
#  define uct_iface_handle_ep_err(_iface, _ep, _status) \
       scale_endpoint_failed(_status)
#  define getrandom(_buf, _length, _flags)  scale_random(_buf, _length)

#  define ucs_malloc(_size, _name)          scale_calloc(1, _size)
#  define ucs_calloc(_count, _size, _name)  scale_calloc(_count, _size)
#  define ucs_realloc(_ptr, _size, _name)   scale_realloc(_ptr, _size)
#  define kmalloc(_size)                    scale_calloc(1, _size)
#  define kcalloc(_count, _size)            scale_calloc(_count, _size)
#  define krealloc(_ptr, _size)             scale_realloc(_ptr, _size)
#  define kfree(_ptr)                       scale_free(_ptr)
#  define ucs_posix_memalign(_ptr_p, _alignment, _size, _name) \
       scale_memalign(_ptr_p, _alignment, _size)
#  define ucs_free                          scale_free
#endif

#endif
