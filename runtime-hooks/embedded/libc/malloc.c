/*
 * malloc.c: the malloc family of every rank, in front of libc's.
 *
 * A rank allocates from its own heap; start-up, schedulers and other threads from libc's.  A freed block returns to the
 * heap that its address belongs to, whichever rank frees it.
 */
#define _GNU_SOURCE
#include "image/heap.h"
#include "image/ranges.h"
#include "libc/second_runtime_instance.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LARGE (1 << 20)

extern void *__libc_malloc(size_t size);
extern void __libc_free(void *block);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

/* ld.so's own text: what it allocates during dlopen() is the process's and must not be taken for a constructor's. */
static uintptr_t loader_start, loader_end;

__attribute__((constructor)) static void find_loader(void) {
    const struct link_map *map;
    for (map = _r_debug.r_map; map && map->l_addr != _r_debug.r_ldbase; map = map->l_next)
        ;
    if (!map)
        return;
    loader_start = loader_end = map->l_addr;
    const ElfW(Ehdr) *header = (const void *)loader_start;
    const ElfW(Phdr) *program = (const void *)(loader_start + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++) {
        uintptr_t end = loader_start + program[i].p_vaddr + program[i].p_memsz;
        if (program[i].p_type == PT_LOAD && end > loader_end)
            loader_end = end;
    }
}

/* In a linker namespace's idle instance of this library, every call is the first instance's. */
#define PASS_ON(function, ...)                                                                                         \
    if (__builtin_expect(is_second_instance(), 0))                                                                     \
    return ((__typeof__(&function))first_instance_function((void *)(uintptr_t)function))(__VA_ARGS__)

static struct rank_heap *heap_for(const void *caller) {
    uintptr_t at = (uintptr_t)caller;
    return at >= loader_start && at < loader_end ? NULL : heap_here;
}

static void *allocate(struct rank_heap *heap, size_t size, size_t alignment) {
    void *block = heap_allocate(heap, size, alignment);
    if (!block)
        errno = ENOMEM;
    return block;
}

/* Such a pointer would corrupt a rank's heap, or let the allocator spin for ever: the program ends as glibc would end
 * it, and the handler of SIGABRT names the rank. */
static _Noreturn void not_a_block(void) {
    static const char text[] =
        "rankrun: free or realloc of a pointer that malloc did not return, or that was freed before\n";
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    abort();
}

static struct rank_heap *owner(const void *block) {
    struct rank_heap *heap = heap_of(block);
    if (heap && !heap_has(heap, block))
        not_a_block();
    return heap;
}

void *malloc(size_t size) {
    PASS_ON(malloc, size);
    struct rank_heap *heap = heap_for(__builtin_return_address(0));
    return heap ? allocate(heap, size, 16) : __libc_malloc(size);
}

void free(void *block) {
    PASS_ON(free, block);
    if (!block)
        return;
    int error = errno; /* free() leaves errno alone */
    struct rank_heap *heap = heap_of(block);
    if (!heap)
        __libc_free(block);
    else if (!heap_release(heap, block))
        not_a_block();
    errno = error;
}

/* Whole pages of a large block are given back: pages that are not written need no memory.  Shared ones keep their
 * bytes. */
static void clear(void *block, size_t bytes) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)block, end = start + bytes;
    uintptr_t first = (start + page - 1) & ~(page - 1), last = end & ~(page - 1);
    if (bytes < LARGE || range_is_shared((uint32_t)range_of(block)) ||
        madvise((void *)first, last - first, MADV_DONTNEED)) {
        memset(block, 0, bytes);
        return;
    }
    memset(block, 0, first - start);
    memset((void *)last, 0, end - last);
}

void *calloc(size_t count, size_t size) {
    PASS_ON(calloc, count, size);
    struct rank_heap *heap = heap_for(__builtin_return_address(0));
    if (!heap)
        return __libc_calloc(count, size);
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    void *block = allocate(heap, bytes, 16);
    if (block)
        clear(block, bytes);
    return block;
}

void *realloc(void *block, size_t size) {
    PASS_ON(realloc, block, size);
    struct rank_heap *from = block ? owner(block) : NULL;
    if (block && !from)
        return __libc_realloc(block, size);
    struct rank_heap *heap = from ? from : heap_for(__builtin_return_address(0));
    if (!heap)
        return __libc_realloc(NULL, size);
    if (block && size == 0) {
        free(block);
        return NULL;
    }
    void *moved = allocate(heap, size, 16);
    if (moved && block) {
        size_t old = heap_block_size(from, block);
        memcpy(moved, block, old < size ? old : size);
        free(block);
    }
    return moved;
}

void *memalign(size_t alignment, size_t size) {
    PASS_ON(memalign, alignment, size);
    struct rank_heap *heap = heap_for(__builtin_return_address(0));
    return heap ? allocate(heap, size, alignment) : __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    PASS_ON(aligned_alloc, alignment, size);
    struct rank_heap *heap = heap_for(__builtin_return_address(0));
    return heap ? allocate(heap, size, alignment) : __libc_memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    PASS_ON(posix_memalign, result, alignment, size);
    if (alignment < sizeof(void *) || (alignment & (alignment - 1)))
        return EINVAL;
    struct rank_heap *heap = heap_for(__builtin_return_address(0));
    void *block = heap ? heap_allocate(heap, size, alignment) : __libc_memalign(alignment, size);
    if (!block)
        return ENOMEM;
    *result = block;
    return 0;
}

void *valloc(size_t size) {
    return memalign((size_t)sysconf(_SC_PAGESIZE), size);
}

void *reallocarray(void *block, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(block, bytes);
}

size_t malloc_usable_size(void *block) {
    PASS_ON(malloc_usable_size, block);
    static size_t (*libc_size)(void *);
    struct rank_heap *heap = block ? owner(block) : NULL;
    if (heap)
        return heap_block_size(heap, block);
    if (!libc_size)
        libc_size = (size_t(*)(void *))(uintptr_t)dlsym(RTLD_NEXT, "malloc_usable_size");
    return libc_size(block);
}
