/*
 * library_memory.h: allocates the memory that the MPI library keeps for a rank.
 *
 * All of it is the process's memory, or, where ranks may move, in the rank's heap, so that it goes with it. Never
 * NULL: no memory ends the job.
 */
#ifndef RANK_MPI_LIBRARY_MEMORY_H
#define RANK_MPI_LIBRARY_MEMORY_H

#include <stddef.h>

struct rank_heap;

/* The calling rank's, zeroed. */
void *host_allocate(size_t bytes);
/* The process's, whichever rank calls. */
void *host_allocate_message(size_t bytes);
void host_release(void *memory);

/* The same bytes in a rank's heap, which `memory` is released for unless it is there already; NULL of NULL. */
void *host_move(struct rank_heap *heap, void *memory, size_t bytes);

#endif
