/*
 * heap.h: a heap that lies whole within a rank's range.
 *
 * Built on Boost.Interprocess' rbtree_best_fit, because its state is in the managed memory itself and its links are
 * offsets: a byte copy of a heap is a heap.  So constructor blocks are replayed by copying, and an image can move to
 * another process; an allocator with tables of its own elsewhere (jemalloc's, for instance) can do neither.
 */
#ifndef RANK_HEAP_H
#define RANK_HEAP_H

#include "rank_debug.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rank_heap;

/* The heap that malloc() serves on this kernel thread now; NULL: libc's.  The scheduler sets it at each switch. */
extern __thread struct rank_heap *heap_here;

/* An empty heap in range `range` from `start` to `limit`; NULL with errno set if memory is short. */
struct rank_heap *heap_create(uint32_t range, uint64_t start, uint64_t limit);

/* A heap in range `range` that begins as the byte image of `original`: block x of it is at start + x. */
struct rank_heap *heap_replay(uint32_t range, uint64_t start, uint64_t limit, const struct rank_heap *original);

/* The heap in range `range` of a rank that has come, its `size` bytes of content yet to be filled in; and its end. */
struct rank_heap *heap_arrive(uint32_t range, uint64_t start, uint64_t size, uint64_t limit);
void heap_leave(uint32_t range);

uint64_t heap_start(const struct rank_heap *heap);
uint64_t heap_size(const struct rank_heap *heap); /* committed so far */

/* From now on the heap keeps size and use up to date in this record. */
void heap_publish(struct rank_heap *heap, struct rank_debug_rank *record);

/* The heap that owns an address, or NULL. */
struct rank_heap *heap_of(const void *address);

/* Whether a block of this heap begins at an address and is allocated, as far as the words around it tell. */
bool heap_has(struct rank_heap *heap, const void *block);

/* As malloc and memalign; NULL if the range is used up. */
void *heap_allocate(struct rank_heap *heap, size_t size, size_t alignment);

/* As free; false, and nothing is done, if heap_has() no such block. */
bool heap_release(struct rank_heap *heap, void *block);

/* As malloc_usable_size, of a block that heap_has(). */
size_t heap_block_size(struct rank_heap *heap, const void *block);

/* While on, every live block of `heap` is kept in a list, in ascending order of address. */
void heap_record(struct rank_heap *heap, bool on);
size_t heap_recorded(const struct rank_debug_block **blocks);

#ifdef __cplusplus
}
#endif
#endif
