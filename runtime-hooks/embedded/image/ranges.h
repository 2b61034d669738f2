/*
 * ranges.h: one address range per rank, at the same place in every process of a job.
 *
 * A rank's whole image lies in its range, so that it could move to another process without changing an address.  Range
 * number `count` (one more than there are ranks) is the constructor heap's, the one after it the runtime's own.  Knows
 * nothing of what is put into a range.
 */
#ifndef RANK_RANGES_H
#define RANK_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RANGE_SIZE_DEFAULT (UINT64_C(1) << 30)

/*
 * Reserves count + 2 ranges of `size` bytes (a multiple of a page); 0, or an errno value.  With `shared`, processes
 * that are forked later see the same memory in all of them but range `count`.
 */
int ranges_reserve(uint32_t count, uint64_t size, bool shared);

uint64_t range_start(uint32_t index);
uint64_t range_size(void);

/* Whether processes that are forked see one memory there. */
bool range_is_shared(uint32_t index);

/* Which range an address lies in, or -1. */
int64_t range_of(const void *address);

/*
 * Makes [start, start+size) of a shared range readable and writable, before the processes are forked: what one of them
 * does to its own mapping later is not seen by the others.  Pages take memory when they are written; 0, or an errno
 * value.
 */
int range_open(uint64_t start, uint64_t size);

/* Makes [start, start+size) of a range readable and writable, and part of core dumps; 0, or an errno value. */
int range_commit(uint64_t start, uint64_t size);

/*
 * Whether what lies in a range may have to go to another process.  If so, all that is a rank's must lie in its range,
 * and nothing of the process's may.
 */
void ranges_set_mobile(void);
bool ranges_are_mobile(void);

/* Gives the memory of a whole range back. */
void range_release(uint32_t index);

#ifdef __cplusplus
}
#endif
#endif
