/*
 * shared_memory.h: locks and permanent memory of the runtime that all processes share, where ranks are processes.
 *
 * Elsewhere the locks are a thread's. Knows nothing of heaps: these are built on it (shared_heap.h).
 */
#ifndef RANK_SHARED_MEMORY_H
#define RANK_SHARED_MEMORY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From now on locks work across processes. */
void shared_memory_begin(void);

/* Zeroed memory that every process forked later shares, and that stays until all of them end; NULL with errno set.
 * Called at start-up only, by one thread. */
void *shared_memory_map(size_t size);

/* Makes this library's variables one for all processes that are forked from now on; 0, or an errno value. */
int shared_memory_variables(void);

void shared_lock_init(pthread_mutex_t *lock);
void shared_condition_init(pthread_cond_t *condition);
void shared_barrier_init(pthread_barrier_t *barrier, unsigned int count);

#ifdef __cplusplus
}
#endif
#endif
