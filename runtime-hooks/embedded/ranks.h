/*
 * ranks.h: making ranks and running them; what rankrun needs of the scheduler, and nobody above it.
 */
#ifndef RANK_RANKS_H
#define RANK_RANKS_H

#include "heap.h"
#include "rank_debug.h"

#include <stdbool.h>

struct rank;

/* What a rank does first, on its own stack; its result is the rank's exit status. */
typedef int rank_main(void *argument);

struct method;

/* Prepares `count` ranks on `elements` kernel threads; `method` is told of switches. 0, or an errno value. */
int ranks_prepare(int count, int elements, const struct method *method);

struct rank_work {
    rank_main *main;
    void *argument;
    struct rank_heap *heap; /* what malloc() serves on it; NULL: libc's */
    uint64_t token;         /* what the method is told when it runs */
};

/* Makes rank `number`, whose record is in the registry already, on the stack that the record names. */
void ranks_add(int number, struct rank_debug_rank *record, const struct rank_work *work);

/* The processing element of a rank: ranks are dealt out in blocks. */
uint32_t ranks_element_of(int number);

/* Runs all ranks to their end and returns the largest exit status.  With `exit_on_deadlock`, 3 if none can go on. */
int ranks_run(bool exit_on_deadlock);

/* How long this process waits for a debugger after a deadlock; never returns. */
__attribute__((noreturn)) void ranks_wait_for_debugger(void);

#endif
