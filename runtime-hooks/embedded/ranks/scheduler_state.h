/*
 * scheduler_state.h: what the scheduler's parts share: its ranks and its processing elements.  For scheduler.c
 * (switches), kernel_threads.c (the threads) and user_level_threads.c (making and moving ranks) only.
 */
#ifndef RANK_SCHEDULER_STATE_H
#define RANK_SCHEDULER_STATE_H

#include "image/method.h"
#include "rank_debug.h"
#include "ranks/fiber.h"
#include "ranks/load.h"
#include "ranks/rank_work.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

/* What libstdc++ keeps per kernel thread of exceptions in flight (Itanium C++ ABI, 2.2.2), and is the rank's own. */
struct exceptions {
    void *caught;
    unsigned int uncaught;
};
extern struct exceptions *__cxa_get_globals(void);

struct element;
struct process_hooks;

struct rank {
    struct rank_debug_rank *record; /* holds the state and the saved context */
    struct element *element;
    struct rank *next; /* in a ready queue or an inbox */
    struct exceptions exceptions;
    struct fiber fiber;
    int number;
    int call_depth;
    int status;
    void *attachment;
    struct rank_work work;
    struct rank_debug_load *load; /* here */
    uint64_t cycles;              /* that it has run, in all processes where it was */
};

struct element {
    struct rank *current;
    struct rank *first, *last;   /* ready */
    struct rank *inbox;          /* ready, from other elements; atomic */
    pthread_mutex_t *to_release; /* of the rank that has just left its stack */
    struct exceptions *exceptions;
    int *error;         /* the kernel thread's errno: a compiler takes its address once for a whole function */
    struct fiber fiber; /* of the kernel thread's own stack */
    struct rank_debug_element_load *load;
    uint64_t idle_context;
    uint64_t token;       /* the method's, for the kernel thread itself */
    struct rank *leaving; /* has just left its stack, and this process */
    uint32_t index;
    pid_t tid;
    pthread_t thread;
    pthread_cond_t wake;
    bool asleep;
};

struct scheduler {
    struct rank *ranks;
    int rank_count;
    struct element *elements;
    int element_count;
    /* Guards which elements sleep, and through it whether any rank can still run. */
    pthread_mutex_t sleeping;
    int left;                        /* ranks that have not exited; atomic */
    const struct process_hooks *job; /* NULL: this process is all of it */
    atomic_bool paused;
    bool exact_load;               /* the clock is read at every switch */
    void (*enter)(uint64_t token); /* the method's; NULL if it needs no telling */
    const struct method *method;
};

#pragma GCC visibility push(hidden) /* a switch takes no longer for what other files see of it */

extern struct scheduler scheduler;
extern __thread struct element *element; /* of the calling kernel thread */

/* Other threads compare the state when they wake a rank; debuggers read it at any time. */
static inline void set_state(struct rank *rank, uint32_t state) {
    __atomic_store_n(&rank->record->state, state, __ATOMIC_RELAXED);
}

/* At the end of its queue; by the element itself, or before it starts. */
void element_push_ready(struct element *owner, struct rank *rank);

/* Likewise, from any thread. */
void element_wake(struct element *owner, struct rank *rank);

/* Runs ranks, from the kernel thread's own stack, until none is ready or one leaves the process; false: none was. */
bool element_run_ready(struct element *self);

/* What the new stack does for the one that was left. */
void element_after_switch(const struct fiber *self);

#pragma GCC visibility pop

#endif
