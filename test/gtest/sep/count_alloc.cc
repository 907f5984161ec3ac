/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/count_alloc.h>

#include <cerrno>
#include <map>
#include <mutex>

static std::mutex lock;
static bool is_counting;
static long num_bytes;
static std::map<void*, size_t> blocks;

count_alloc::count_alloc()
{
    std::lock_guard<std::mutex> guard(lock);

    blocks.clear();
    num_bytes   = 0;
    is_counting = true;
}

count_alloc::~count_alloc()
{
    std::lock_guard<std::mutex> guard(lock);

    is_counting = false;
    blocks.clear();
}

long count_alloc::bytes() const
{
    std::lock_guard<std::mutex> guard(lock);

    return num_bytes;
}

static void *add(void *ptr, size_t size)
{
    std::lock_guard<std::mutex> guard(lock);

    if (is_counting && (ptr != nullptr)) {
        blocks[ptr] = size;
        num_bytes  += size;
    }
    return ptr;
}

static void remove(void *ptr)
{
    std::lock_guard<std::mutex> guard(lock);
    auto block = blocks.find(ptr);

    if (block != blocks.end()) {
        num_bytes -= block->second;
        blocks.erase(block);
    }
}

extern "C" {

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *ptr, size_t size);
int __real_posix_memalign(void **ptr_p, size_t align, size_t size);
void __real_free(void *ptr);

void *__wrap_malloc(size_t size)
{
    return add(__real_malloc(size), size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return add(__real_calloc(count, size), count * size);
}

void *__wrap_realloc(void *ptr, size_t size)
{
    remove(ptr);
    return add(__real_realloc(ptr, size), size);
}

int __wrap_posix_memalign(void **ptr_p, size_t align, size_t size)
{
    int ret = __real_posix_memalign(ptr_p, align, size);

    if (ret == 0) {
        add(*ptr_p, size);
    }
    return ret;
}

void __wrap_free(void *ptr)
{
    remove(ptr);
    __real_free(ptr);
}

/* UCX's own, with the name of what is allocated */
void *__real_ucs_malloc(size_t size, const char *name);
void *__real_ucs_calloc(size_t count, size_t size, const char *name);
void *__real_ucs_realloc(void *ptr, size_t size, const char *name);
int __real_ucs_posix_memalign(void **ptr_p, size_t align, size_t size,
                              const char *name);
void __real_ucs_free(void *ptr);

void *__wrap_ucs_malloc(size_t size, const char *name)
{
    return add(__real_ucs_malloc(size, name), size);
}

void *__wrap_ucs_calloc(size_t count, size_t size, const char *name)
{
    return add(__real_ucs_calloc(count, size, name), count * size);
}

void *__wrap_ucs_realloc(void *ptr, size_t size, const char *name)
{
    remove(ptr);
    return add(__real_ucs_realloc(ptr, size, name), size);
}

int __wrap_ucs_posix_memalign(void **ptr_p, size_t align, size_t size,
                              const char *name)
{
    int ret = __real_ucs_posix_memalign(ptr_p, align, size, name);

    if (ret == 0) {
        add(*ptr_p, size);
    }
    return ret;
}

void __wrap_ucs_free(void *ptr)
{
    remove(ptr);
    __real_ucs_free(ptr);
}

} // extern "C"
