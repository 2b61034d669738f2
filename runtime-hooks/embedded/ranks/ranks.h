/*
 * ranks.h: making ranks and running them; what rankrun needs of the scheduler, and nobody above it.
 */
#ifndef RANK_RANKS_H
#define RANK_RANKS_H

#include "image/heap.h"
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

/* A job of several processes, as this one's scheduler has to know it: the ranks that begin here, and who is told. */
struct ranks_job {
    int first, count;
    void (*exited)(int number, int status);
    void (*leaves)(int number);               /* off its stack, on its kernel thread's */
    void (*element_starts)(uint32_t element); /* on its own kernel thread */
    void (*ready)(void);                      /* all have started, and no rank runs yet */
};

/* Before ranks_prepare(): the scheduler stays when its ranks have gone, until ranks_end(). */
void ranks_join(const struct ranks_job *job);

void ranks_pack(int number, struct rank_ticket *ticket);
void ranks_forget(int number);
struct rank_heap *ranks_heap(int number);
void ranks_arrive(const struct rank_ticket *ticket, struct rank_debug_rank *record, const struct rank_work *work);
void ranks_resume(int number);                    /* from any thread, once it has arrived */
void ranks_have_exited(int number);               /* or, of one that had ended when a checkpoint was written */
struct rank_debug_rank *ranks_record(int number); /* NULL: it was never here */

bool ranks_idle(void);
void ranks_pause(void);
void ranks_continue(void);
void ranks_end(void);

/* The processing element of a rank: ranks are dealt out in blocks. */
uint32_t ranks_element_of(int number);

/* Runs all ranks to their end and returns the largest exit status.  With `exit_on_deadlock`, 3 if none can go on. */
int ranks_run(bool exit_on_deadlock);

/* How long this process waits for a debugger after a deadlock; never returns. */
__attribute__((noreturn)) void ranks_wait_for_debugger(void);

#endif
