/*
 * shared_heap.c: a heap in a range of its own.
 */
#include "image/shared_heap.h"
#include "image/heap.h"
#include "image/ranges.h"
#include "image/shared_memory.h"

#include <errno.h>
#include <string.h>

extern void *__libc_calloc(size_t count, size_t size);
extern void __libc_free(void *memory);

static struct rank_heap *heap; /* NULL: libc's memory serves */

int shared_heap_begin(uint32_t range) {
    shared_memory_begin();
    uint64_t start = range_start(range);
    heap = heap_create(range, start, start + range_size());
    return heap ? 0 : errno;
}

void *shared_allocate(size_t size) {
    if (!heap)
        return __libc_calloc(1, size);
    void *memory = heap_allocate(heap, size, 16);
    return memory ? memset(memory, 0, size) : NULL;
}

void shared_release(void *memory) {
    if (heap && heap_of(memory) == heap)
        heap_release(heap, memory);
    else
        __libc_free(memory);
}
