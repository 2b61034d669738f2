/*
 * scheduler.h: ranks as user-level threads on a few kernel threads (processing elements).
 *
 * A rank stays on its processing element for life, so what it does between two blocking points needs no lock against
 * the other ranks of that element; what is shared with other elements does.  It knows nothing of MPI messages and
 * nothing of how a rank's globals were made private.
 */
#ifndef RANK_SCHEDULER_H
#define RANK_SCHEDULER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rank; /* one rank of this process */

/* The rank that runs on the calling kernel thread, or NULL (start-up, a scheduler, a foreign thread). */
struct rank *rank_current(void);
bool rank_was_forked(void); /* the caller is in a process that a rank has forked: it is not a rank */

int rank_number(const struct rank *rank); /* in MPI_COMM_WORLD */
int rank_total(void);                     /* ranks of the job */
struct rank *rank_by_number(int number);  /* NULL if there is no such rank */

/* What a layer above (MPI) keeps for a rank; NULL until set. */
void *rank_attachment(const struct rank *rank);
void rank_attach(struct rank *rank, void *attachment);

/* Lets other ready ranks run; returns when this one is next. */
void rank_yield(void);

/*
 * Suspends the calling rank until rank_wake().  `lock` is held by the caller, and is released only once the rank is off
 * its stack (so no wake-up is lost); it is not held on return.  May return without a wake-up: callers loop.
 */
void rank_block(pthread_mutex_t *lock);

/* Makes a blocked rank ready, from any thread; no effect on one that is not blocked. */
void rank_wake(struct rank *rank);

/* Cycles that a rank has run, where ranks may move; else 0. */
uint64_t rank_cycles(const struct rank *rank);

/* Leaves the process: the calling rank goes on where its image has been taken to. */
void rank_leave_process(void);

/* Where a rank that never waits lets the job pause it. */
void rank_pause_point(void);

/* Ends the calling rank: its main has returned, or it called exit(). */
__attribute__((noreturn)) void rank_exit(int status);

/* A communicator's number, and its ranks as ranks of MPI_COMM_WORLD, which stay where they are as long as it exists. */
struct rank_members {
    uint64_t communicator;
    int count;
    const int *ranks;
};

/*
 * What the calling rank is about to do, for the registry: `call` is an index of rank_call_register(), `peer` and `tag`
 * as rank_debug.h defines them.  rank_call_leave() undoes it.  Calls may nest; the outermost one is published.
 */
void rank_call_enter(uint32_t call, int peer, int tag, const struct rank_members *members);
void rank_call_leave(void);

/* Within the outermost call: which rank of its communicator it needs a message of next, or -2 for none. */
void rank_call_needs(int peer);

/* Registers the name of a call before any rank runs; returns its index. */
uint32_t rank_call_register(const char *name);

#ifdef __cplusplus
}
#endif
#endif
