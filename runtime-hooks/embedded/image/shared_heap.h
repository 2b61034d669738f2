/*
 * shared_heap.h: allocates memory of the runtime that all processes share, where ranks are processes.
 *
 * Elsewhere it is libc's memory. A rank's malloc() never gives it.
 */
#ifndef RANK_SHARED_HEAP_H
#define RANK_SHARED_HEAP_H

#include <stddef.h>
#include <stdint.h>

/* From now on memory comes from range `range`, which is mapped shared; 0, or an errno value. */
int shared_heap_begin(uint32_t range);

/* Zeroed memory, or NULL. */
void *shared_allocate(size_t size);
void shared_release(void *memory);

#endif
