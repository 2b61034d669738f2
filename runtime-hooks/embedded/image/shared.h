/*
 * shared.h: memory and locks of the runtime itself, which all processes see where ranks are processes of their own.
 *
 * Elsewhere it is libc's memory, and the locks are a thread's.  A rank's malloc() never gives it.
 */
#ifndef RANK_SHARED_H
#define RANK_SHARED_H

#include <pthread.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From now on memory comes from range `range`, which is mapped shared; 0, or an errno value. */
int shared_begin(uint32_t range);

/* Makes this library's variables one for all processes that are forked from now on; 0, or an errno value. */
int shared_variables(void);

/* Zeroed memory, or NULL. */
void *shared_allocate(size_t size);
void shared_release(void *memory);

void shared_lock_init(pthread_mutex_t *lock);
void shared_condition_init(pthread_cond_t *condition);
void shared_barrier_init(pthread_barrier_t *barrier, unsigned int count);

#ifdef __cplusplus
}
#endif
#endif
