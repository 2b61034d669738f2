/*
 * scheduler.c: the ready queues and the switches between ranks.
 *
 * A rank is run by one processing element only, so a ready queue needs no lock; wake-ups from other elements arrive in
 * a lock-free inbox.
 */
#define _GNU_SOURCE
#include "ranks/scheduler.h"
#include "libc/current_rank.h"
#include "rank_hooks.h"
#include "ranks/context.h"
#include "ranks/process_hooks.h"
#include "ranks/scheduler_state.h"

#include <stdlib.h>
#include <unistd.h>

struct scheduler scheduler;
__thread struct element *element;

/* ---- what the layers above see ---- */

struct rank *rank_current(void) {
    return element ? element->current : NULL;
}

/* A process that a rank has forked has a thread of its own, and the memory of the element's. */
bool rank_was_forked(void) {
    return element && element->tid != gettid();
}

int current_rank(void) {
    const struct rank *rank = rank_current();
    return rank ? rank->number : -1;
}

int rank_number(const struct rank *rank) {
    return rank->number;
}

int rank_total(void) {
    return scheduler.rank_count;
}

struct rank *rank_by_number(int number) {
    return number >= 0 && number < scheduler.rank_count ? &scheduler.ranks[number] : NULL;
}

void *rank_attachment(const struct rank *rank) {
    return rank->attachment;
}

void rank_attach(struct rank *rank, void *attachment) {
    rank->attachment = attachment;
}

/* ---- the ready queue ---- */

void element_push_ready(struct element *owner, struct rank *rank) {
    rank->next = NULL;
    if (owner->last)
        owner->last->next = rank;
    else
        owner->first = rank;
    owner->last = rank;
}

/* Moves the inbox, which is newest first, to the end of the ready queue. */
static void empty_inbox(struct element *owner) {
    struct rank *newest = __atomic_exchange_n(&owner->inbox, NULL, __ATOMIC_ACQUIRE);
    struct rank *oldest = NULL;
    while (newest) {
        struct rank *before = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = before;
    }
    while (oldest) {
        struct rank *after = oldest->next;
        element_push_ready(owner, oldest);
        oldest = after;
    }
}

static struct rank *take_ready(struct element *owner) {
    if (scheduler.job && atomic_load_explicit(&scheduler.paused, memory_order_relaxed))
        return NULL;
    if (__atomic_load_n(&owner->inbox, __ATOMIC_RELAXED))
        empty_inbox(owner);
    struct rank *rank = owner->first;
    if (rank && !(owner->first = rank->next))
        owner->last = NULL;
    return rank;
}

/* ---- switching ---- */

static inline void release_lock(void) {
    pthread_mutex_t *lock = element->to_release;
    if (lock) {
        element->to_release = NULL;
        pthread_mutex_unlock(lock);
    }
}

void element_after_switch(const struct fiber *self) {
    release_lock();
    fiber_arrive(self, &element->fiber);
}

/* First of all, since the method may change what a thread-local variable is. */
static inline void enter_method(uint64_t token) {
    if (scheduler.enter)
        scheduler.enter(token);
}

/*
 * Returns the context to go on with.  None is in the record until the rank is left again: its state is written before
 * its registers are saved, and a reader would take those of its last suspension for them.  It is read last, so that it
 * is in no register that is saved with the rank that is left: it would look like that rank's pointer into the other.
 */
static inline uint64_t switch_to(struct rank *to) {
    enter_method(to->work.token);
    element->current = to;
    heap_here = to->work.heap;
    *element->exceptions = to->exceptions;
    to->record->switches++;
    uint64_t context = to->record->context;
    __atomic_store_n(&to->record->context, 0, __ATOMIC_RELEASE);
    set_state(to, RANK_DEBUG_STATE_RUNNING);
    return context;
}

/* Goes on with `to`, or on the kernel thread's own stack. */
static inline void leave_for(struct rank *from, struct rank *to) {
    from->exceptions = *element->exceptions;
    int error = *element->error;
    if (to) {
        uint64_t next = switch_to(to);
        fiber_leave(&from->fiber, &to->fiber);
        context_switch(&from->record->context, next);
    } else {
        element->current = NULL;
        enter_method(element->token);
        heap_here = NULL;
        fiber_leave(&from->fiber, &element->fiber);
        context_switch(&from->record->context, element->idle_context);
    }
    element_after_switch(&from->fiber);
    *element->error = error; /* of another kernel thread, if it has moved */
}

static inline void count_load(struct rank *from) {
    from->cycles += load_charge(element->load, from->load);
}

/* Leaves `from`, whose new state is already in its record; returns when it runs again.  `reads_clock` is a constant. */
static inline __attribute__((always_inline)) void leave(struct rank *from, bool reads_clock) {
    struct rank *to = take_ready(element);
    if (to == from) {
        set_state(from, RANK_DEBUG_STATE_RUNNING);
        return;
    }
    if (reads_clock || scheduler.exact_load)
        count_load(from);
    else
        element->load->turns = 1;
    leave_for(from, to);
}

void rank_yield(void) {
    struct rank *self = element->current;
    set_state(self, RANK_DEBUG_STATE_READY);
    element_push_ready(element, self);
    leave(self, false);
}

void rank_block(pthread_mutex_t *lock) {
    struct rank *self = element->current;
    __atomic_store_n(&self->record->state, RANK_DEBUG_STATE_BLOCKED, __ATOMIC_RELEASE);
    element->to_release = lock;
    leave(self, true);
    release_lock(); /* woken before it had left: no other stack has released the lock */
}

void rank_leave_process(void) {
    struct rank *self = element->current;
    set_state(self, RANK_DEBUG_STATE_READY);
    element->leaving = self;
    count_load(self);
    leave_for(self, NULL);
}

bool element_run_ready(struct element *self) {
    struct rank *next = take_ready(self);
    if (!next)
        return false;
    load_charge_idle(self->load);
    uint64_t context = switch_to(next);
    fiber_leave(&self->fiber, &next->fiber);
    context_switch(&self->idle_context, context);
    element_after_switch(&self->fiber);
    return true;
}

uint64_t rank_cycles(const struct rank *rank) {
    bool runs = element && element->current == rank;
    return scheduler.job ? rank->cycles + (runs ? load_ticks() - element->load->since : 0) : 0;
}

void rank_pause_point(void) {
    if (scheduler.job && atomic_load_explicit(&scheduler.paused, memory_order_relaxed))
        rank_yield();
}

void element_wake(struct element *owner, struct rank *rank) {
    struct rank *newest = __atomic_load_n(&owner->inbox, __ATOMIC_RELAXED);
    do
        rank->next = newest;
    while (!__atomic_compare_exchange_n(&owner->inbox, &newest, rank, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
    pthread_mutex_lock(&scheduler.sleeping);
    if (owner->asleep)
        pthread_cond_signal(&owner->wake);
    pthread_mutex_unlock(&scheduler.sleeping);
}

void rank_wake(struct rank *rank) {
    uint32_t blocked = RANK_DEBUG_STATE_BLOCKED;
    if (!__atomic_compare_exchange_n(&rank->record->state, &blocked, RANK_DEBUG_STATE_READY, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return;
    if (rank->element == element)
        element_push_ready(element, rank);
    else
        element_wake(rank->element, rank);
}

void rank_exit(int status) {
    struct rank *self = element->current;
    status &= 0xff; /* as a process's */
    self->status = status;
    self->record->exit_status = (uint32_t)status + 1;
    heap_here = NULL;
    rank_hooks_event(RANK_DEBUG_EVENT_EXITED, self->record, RANK_DEBUG_NONE);
    set_state(self, RANK_DEBUG_STATE_EXITED);
    __atomic_sub_fetch(&scheduler.left, 1, __ATOMIC_ACQ_REL);
    if (scheduler.job)
        scheduler.job->exited(self->number, status);
    leave(self, true);
    abort(); /* an exited rank never runs again */
}

/* ---- what a rank waits for ---- */

uint32_t rank_call_register(const char *name) {
    rank_hooks_begin();
    uint32_t index = rank_hooks_add_call(name);
    rank_hooks_commit();
    return index == RANK_DEBUG_NONE ? 0 : index;
}

void rank_call_enter(uint32_t call, int peer, int tag, const struct rank_members *members) {
    struct rank *self = rank_current();
    if (!self || self->call_depth++ > 0)
        return;
    self->record->wait_peer = peer;
    self->record->wait_tag = tag;
    self->record->wait_communicator = members->communicator;
    self->record->wait_member_count = (uint32_t)members->count;
    self->record->wait_members = (uint64_t)(uintptr_t)members->ranks;
    self->record->call = call;
}

void rank_call_leave(void) {
    struct rank *self = rank_current();
    if (self && --self->call_depth == 0)
        self->record->call = 0;
}

void rank_call_needs(int peer) {
    struct rank *self = rank_current();
    if (self && self->call_depth == 1)
        self->record->wait_peer = peer;
}
