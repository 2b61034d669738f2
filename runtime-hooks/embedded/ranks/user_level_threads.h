/*
 * user_level_threads.h: the scheduler's record of each rank: made, packed into a ticket, and taken in from one.
 */
#ifndef RANK_USER_LEVEL_THREADS_H
#define RANK_USER_LEVEL_THREADS_H

#include "rank_debug.h"
#include "ranks/rank_work.h"

#include <stdbool.h>

struct method;
struct process_hooks;
struct rank_heap;

/* Prepares `count` ranks on `elements` kernel threads; switches call `method`, and read the clock for the sake of
 * `exact_load`. 0, or an errno value. */
int ranks_prepare(int count, int elements, const struct method *method, bool exact_load);

/* Makes rank `number`, whose record is in the registry already, on the stack that the record names. */
void ranks_add(int number, struct rank_debug_rank *record, const struct rank_work *work);

/* What goes with a rank's memory to another process, or into a checkpoint. */
struct rank_ticket {
    struct rank_debug_rank record;
    uint64_t exceptions[2];
    uint64_t cycles;
    void *attachment;
    void *inbox_content; /* of the layer above, in the rank's heap */
    struct exit_function *exit_functions;
    int32_t call_depth;
    uint32_t moves;
};

/* Before ranks_prepare(): the scheduler stays when its ranks have gone, until ranks_end(). */
void ranks_join(const struct process_hooks *hooks);

void ranks_pack(int number, struct rank_ticket *ticket);
void ranks_forget(int number);
struct rank_heap *ranks_heap(int number);
void ranks_arrive(const struct rank_ticket *ticket, struct rank_debug_rank *record, const struct rank_work *work);
void ranks_resume(int number);                    /* from any thread, once it has arrived */
void ranks_have_exited(int number);               /* or, of one that had ended when a checkpoint was written */
struct rank_debug_rank *ranks_record(int number); /* NULL: it was never here */

/* The processing element of a rank: ranks are dealt out in blocks. */
uint32_t ranks_element_of(int number);

#endif
