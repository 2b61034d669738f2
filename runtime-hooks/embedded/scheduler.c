/*
 * scheduler.c: the ready queues, the kernel threads and the switches between ranks.
 *
 * A rank is run by one processing element only, so a ready queue needs no lock; wake-ups from other elements arrive in
 * a lock-free inbox.  An element without work sleeps.  When all sleep and ranks are left, they are deadlocked.
 */
#define _GNU_SOURCE
#include "scheduler.h"
#include "context.h"
#include "crash.h"
#include "deadlock.h"
#include "fiber.h"
#include "methods/method.h"
#include "open_files.h"
#include "rank_hooks.h"
#include "ranks.h"
#include "shared.h"
#include "task.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What libstdc++ keeps per kernel thread of exceptions in flight (Itanium C++ ABI, 2.2.2), and is the rank's own. */
struct exceptions {
    void *caught;
    unsigned int uncaught;
};
extern struct exceptions *__cxa_get_globals(void);

struct element;

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
    uint64_t cycles; /* that it has run, where load is measured */
};

struct element {
    struct rank *current;
    struct rank *first, *last;   /* ready */
    struct rank *inbox;          /* ready, from other elements; atomic */
    pthread_mutex_t *to_release; /* of the rank that has just left its stack */
    struct exceptions *exceptions;
    int *error;         /* the kernel thread's errno: a compiler takes its address once for a whole function */
    struct fiber fiber; /* of the kernel thread's own stack */
    uint64_t idle_context;
    uint64_t token;       /* the method's, for the kernel thread itself */
    struct rank *leaving; /* has just left its stack, and this process */
    uint64_t since;       /* when the current rank began to run, in cycles */
    uint32_t index;
    pid_t tid;
    pthread_t thread;
    pthread_cond_t wake;
    bool asleep;
};

static struct rank *ranks;
static int rank_count;
static struct element *elements;
static int element_count;
static __thread struct element *element;

/* Guards who sleeps, and through it the question whether anybody can still run. */
static pthread_mutex_t sleeping;
static pthread_barrier_t start_line;
static int asleep;
static int left;                    /* ranks that have not exited; atomic */
static const struct ranks_job *job; /* NULL: this process is all of it */
static atomic_bool paused, over;
static bool leave_on_deadlock;
static int job_status;
static void (*enter)(uint64_t token); /* the method's; NULL if it needs no telling */
static const struct method *method;

/* ---- what the layers above see ---- */

struct rank *rank_current(void) {
    return element ? element->current : NULL;
}

/* A process that a rank has forked has a thread of its own, and the memory of the element's. */
bool rank_was_forked(void) {
    return element && element->tid != gettid();
}

int rank_number(const struct rank *rank) {
    return rank->number;
}

int rank_total(void) {
    return rank_count;
}

struct rank *rank_by_number(int number) {
    return number >= 0 && number < rank_count ? &ranks[number] : NULL;
}

void *rank_attachment(const struct rank *rank) {
    return rank->attachment;
}

void rank_attach(struct rank *rank, void *attachment) {
    rank->attachment = attachment;
}

/* ---- the ready queue ---- */

static void push_ready(struct element *owner, struct rank *rank) {
    rank->next = NULL;
    if (owner->last)
        owner->last->next = rank;
    else
        owner->first = rank;
    owner->last = rank;
}

/* Moves the inbox, which is newest first, behind the ready queue. */
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
        push_ready(owner, oldest);
        oldest = after;
    }
}

static struct rank *take_ready(struct element *owner) {
    if (job && atomic_load_explicit(&paused, memory_order_relaxed))
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

/* What the new stack does for the one that was left. */
static inline void after_switch(const struct fiber *self) {
    release_lock();
    fiber_arrive(self, &element->fiber);
}

/* Other threads compare the state when they wake a rank; debuggers read it at any time. */
static inline void set_state(struct rank *rank, uint32_t state) {
    __atomic_store_n(&rank->record->state, state, __ATOMIC_RELAXED);
}

/* First of all, since the method may change what a thread-local variable is. */
static inline void enter_method(uint64_t token) {
    if (enter)
        enter(token);
}

static inline void switch_to(struct rank *to) {
    if (job)
        element->since = __builtin_ia32_rdtsc();
    enter_method(to->work.token);
    element->current = to;
    heap_here = to->work.heap;
    *element->exceptions = to->exceptions;
    to->record->switches++;
    set_state(to, RANK_DEBUG_STATE_RUNNING);
}

/* Goes on with `to`, or on the kernel thread's own stack. */
static inline void leave_for(struct rank *from, struct rank *to) {
    if (job)
        from->cycles += __builtin_ia32_rdtsc() - element->since;
    from->exceptions = *element->exceptions;
    int error = *element->error;
    if (to) {
        switch_to(to);
        fiber_leave(&from->fiber, &to->fiber);
        context_switch(&from->record->context, to->record->context);
    } else {
        element->current = NULL;
        enter_method(element->token);
        heap_here = NULL;
        fiber_leave(&from->fiber, &element->fiber);
        context_switch(&from->record->context, element->idle_context);
    }
    after_switch(&from->fiber);
    *element->error = error; /* of another kernel thread, if it has moved */
}

/* Leaves `from`, whose new state is already in its record; returns when it runs again. */
static void leave(struct rank *from) {
    struct rank *to = take_ready(element);
    if (to == from)
        set_state(from, RANK_DEBUG_STATE_RUNNING);
    else
        leave_for(from, to);
}

void rank_yield(void) {
    struct rank *self = element->current;
    set_state(self, RANK_DEBUG_STATE_READY);
    push_ready(element, self);
    leave(self);
}

void rank_block(pthread_mutex_t *lock) {
    struct rank *self = element->current;
    __atomic_store_n(&self->record->state, RANK_DEBUG_STATE_BLOCKED, __ATOMIC_RELEASE);
    element->to_release = lock;
    leave(self);
    release_lock(); /* woken before it had left: no other stack has released the lock */
}

void rank_leave_process(void) {
    struct rank *self = element->current;
    set_state(self, RANK_DEBUG_STATE_READY);
    element->leaving = self;
    leave_for(self, NULL);
}

uint64_t rank_cycles(const struct rank *rank) {
    bool runs = job && element && element->current == rank;
    return rank->cycles + (runs ? __builtin_ia32_rdtsc() - element->since : 0);
}

void rank_pause_point(void) {
    if (job && atomic_load_explicit(&paused, memory_order_relaxed))
        rank_yield();
}

static void wake_element(struct element *owner, struct rank *rank) {
    struct rank *newest = __atomic_load_n(&owner->inbox, __ATOMIC_RELAXED);
    do
        rank->next = newest;
    while (!__atomic_compare_exchange_n(&owner->inbox, &newest, rank, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
    pthread_mutex_lock(&sleeping);
    if (owner->asleep)
        pthread_cond_signal(&owner->wake);
    pthread_mutex_unlock(&sleeping);
}

void rank_wake(struct rank *rank) {
    uint32_t blocked = RANK_DEBUG_STATE_BLOCKED;
    if (!__atomic_compare_exchange_n(&rank->record->state, &blocked, RANK_DEBUG_STATE_READY, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return;
    if (rank->element == element)
        push_ready(element, rank);
    else
        wake_element(rank->element, rank);
}

void rank_exit(int status) {
    struct rank *self = element->current;
    status &= 0xff; /* as a process's */
    self->status = status;
    heap_here = NULL;
    rank_hooks_event(RANK_DEBUG_EVENT_EXITED, self->record, RANK_DEBUG_NONE);
    set_state(self, RANK_DEBUG_STATE_EXITED);
    __atomic_sub_fetch(&left, 1, __ATOMIC_ACQ_REL);
    if (job)
        job->exited(self->number, status);
    leave(self);
    abort(); /* nobody runs an exited rank again */
}

/* ---- what a rank waits for ---- */

uint32_t rank_call_register(const char *name) {
    rank_hooks_begin();
    uint32_t index = rank_hooks_add_call(name);
    rank_hooks_commit();
    return index == RANK_DEBUG_NONE ? 0 : index;
}

void rank_call_enter(uint32_t call, int peer, int tag, uint64_t communicator) {
    struct rank *self = rank_current();
    if (!self || self->call_depth++ > 0)
        return;
    self->record->wait_peer = peer;
    self->record->wait_tag = tag;
    self->record->wait_communicator = communicator;
    self->record->call = call;
}

void rank_call_leave(void) {
    struct rank *self = rank_current();
    if (self && --self->call_depth == 0)
        self->record->call = 0;
}

void rank_job_abort(int status, const char *message) {
    fprintf(stderr, "rankrun: %s\n", message);
    open_files_flush();
    syscall(SYS_exit_group, status); /* a rank's _exit() is the end of that rank */
    __builtin_unreachable();
}

/* ---- processing elements ---- */

static bool has_work(struct element *owner) {
    if (job && atomic_load(&paused))
        return false;
    return owner->first || __atomic_load_n(&owner->inbox, __ATOMIC_ACQUIRE);
}

/* In a job of several processes the launcher says so: a rank may still come here. */
static bool is_over(void) {
    return job ? atomic_load(&over) : __atomic_load_n(&left, __ATOMIC_ACQUIRE) == 0;
}

static bool anybody_runs(void) {
    bool anybody = asleep < element_count;
    for (int i = 0; i < element_count; i++)
        anybody = anybody || has_work(&elements[i]);
    return anybody;
}

static void end_all(void) {
    for (int i = 0; i < element_count; i++)
        pthread_cond_signal(&elements[i].wake);
}

static void report_deadlock(void) {
    deadlock_report(leave_on_deadlock);
    if (leave_on_deadlock)
        _exit(3);
    ranks_wait_for_debugger();
}

/* Waits for work; false when all ranks have exited. */
static bool sleep_until_work(struct element *owner) {
    pthread_mutex_lock(&sleeping);
    owner->asleep = true;
    asleep++;
    while (!has_work(owner) && !is_over()) {
        if (!job && !anybody_runs())
            report_deadlock();
        pthread_cond_wait(&owner->wake, &sleeping);
    }
    owner->asleep = false;
    asleep--;
    bool work = has_work(owner);
    if (!work)
        end_all();
    pthread_mutex_unlock(&sleeping);
    return work;
}

static void adopt_ranks(struct element *self) {
    if (method->thread_token)
        self->token = method->thread_token();
    for (int i = 0; method->adopt && i < rank_count; i++)
        if (ranks[i].element == self)
            method->adopt(ranks[i].work.token);
}

static void run_element(struct element *self) {
    element = self;
    crash_watch_thread();
    adopt_ranks(self);
    fiber_of_thread(&self->fiber);
    self->exceptions = __cxa_get_globals();
    self->error = &errno;
    struct exceptions own = *self->exceptions;
    for (;;) {
        struct rank *next = take_ready(self);
        if (next) {
            switch_to(next);
            fiber_leave(&self->fiber, &next->fiber);
            context_switch(&self->idle_context, next->record->context);
            after_switch(&self->fiber);
            *self->exceptions = own;
            if (self->leaving) {
                struct rank *leaving = self->leaving;
                self->leaving = NULL;
                job->leaves(leaving->number);
            }
        } else if (!sleep_until_work(self)) {
            break;
        }
    }
    element = NULL;
}

static void tell_element_starts(struct element *self) {
    if (job)
        job->element_starts(self->index);
}

static void *element_thread(void *argument) {
    struct element *self = argument;
    self->tid = (pid_t)syscall(SYS_gettid);
    tell_element_starts(self);
    pthread_barrier_wait(&start_line);
    pthread_barrier_wait(&start_line); /* the registry now names every thread */
    run_element(self);
    return NULL;
}

/* ---- making and running ranks ---- */

int ranks_prepare(int count, int wanted_elements, const struct method *wanted_method) {
    method = wanted_method;
    enter = method->enter;
    ranks = shared_allocate((size_t)count * sizeof *ranks);
    elements = shared_allocate((size_t)wanted_elements * sizeof *elements);
    if (!ranks || !elements)
        return ENOMEM;
    shared_lock_init(&sleeping);
    rank_count = left = count;
    element_count = wanted_elements;
    for (int i = 0; i < element_count; i++) {
        elements[i].index = (uint32_t)i;
        shared_condition_init(&elements[i].wake);
    }
    return 0;
}

void ranks_join(const struct ranks_job *joined) {
    job = joined;
}

uint32_t ranks_element_of(int number) {
    int first = job ? job->first : 0, count = job ? job->count : rank_count;
    return (uint32_t)((int64_t)(number - first) * element_count / count);
}

/* Entered as one fiber and left as another, which the thread sanitizer's count of calls must not see. */
__attribute__((no_sanitize("thread"))) static void begin_rank(void *argument) {
    (void)argument; /* of the process where it was made, which may be another than this */
    struct rank *self = element->current;
    after_switch(&self->fiber);
    rank_exit(self->work.main(self->work.argument));
}

void ranks_add(int number, struct rank_debug_rank *record, const struct rank_work *work) {
    struct rank *rank = &ranks[number];
    *rank = (struct rank){.record = record, .number = number, .work = *work};
    rank->element = &elements[ranks_element_of(number)];
    record->context = context_make((void *)(uintptr_t)record->stack_start, record->stack_size, begin_rank, rank);
    fiber_make(&rank->fiber, (void *)(uintptr_t)record->stack_start, record->stack_size);
    set_state(rank, RANK_DEBUG_STATE_READY);
    push_ready(rank->element, rank);
}

/* The element that has the fewest ranks. */
static struct element *least_busy(void) {
    struct element *best = NULL;
    int fewest = 0;
    for (int i = 0; i < element_count; i++) {
        int residents = 0;
        for (int r = 0; r < rank_count; r++)
            residents += ranks[r].element == &elements[i];
        if (!best || residents < fewest)
            best = &elements[i], fewest = residents;
    }
    return best;
}

void ranks_pack(int number, struct rank_ticket *ticket) {
    const struct rank *rank = &ranks[number];
    ticket->exceptions[0] = (uintptr_t)rank->exceptions.caught;
    ticket->exceptions[1] = rank->exceptions.uncaught;
    ticket->call_depth = rank->call_depth;
    ticket->attachment = rank->attachment;
    ticket->cycles = rank->cycles;
    ticket->record = *rank->record;
}

void ranks_forget(int number) {
    ranks[number].element = NULL;
}

struct rank_debug_rank *ranks_record(int number) {
    return ranks ? ranks[number].record : NULL;
}

struct rank_heap *ranks_heap(int number) {
    return ranks[number].work.heap;
}

void ranks_arrive(const struct rank_ticket *ticket, struct rank_debug_rank *record, const struct rank_work *work) {
    struct rank *rank = &ranks[ticket->record.rank];
    struct element *owner = least_busy();
    *rank = (struct rank){.record = record,
                          .element = owner,
                          .number = ticket->record.rank,
                          .call_depth = ticket->call_depth,
                          .exceptions = {(void *)ticket->exceptions[0], (unsigned int)ticket->exceptions[1]},
                          .attachment = ticket->attachment,
                          .cycles = ticket->cycles,
                          .work = *work};
    record->processing_element = owner->index;
    record->kernel_thread = (uint32_t)owner->tid;
    fiber_make(&rank->fiber, (void *)(uintptr_t)record->stack_start, record->stack_size);
}

void ranks_resume(int number) {
    set_state(&ranks[number], RANK_DEBUG_STATE_READY);
    wake_element(ranks[number].element, &ranks[number]);
}

/* ---- what a job of several processes asks ---- */

static void wake_all(void) {
    for (int i = 0; i < element_count; i++)
        pthread_cond_signal(&elements[i].wake);
}

bool ranks_idle(void) {
    pthread_mutex_lock(&sleeping);
    bool idle = !anybody_runs();
    pthread_mutex_unlock(&sleeping);
    return idle;
}

void ranks_pause(void) {
    pthread_mutex_lock(&sleeping);
    atomic_store(&paused, true);
    wake_all();
    pthread_mutex_unlock(&sleeping);
}

void ranks_continue(void) {
    pthread_mutex_lock(&sleeping);
    atomic_store(&paused, false);
    wake_all();
    pthread_mutex_unlock(&sleeping);
}

void ranks_end(void) {
    pthread_mutex_lock(&sleeping);
    atomic_store(&over, true);
    wake_all();
    pthread_mutex_unlock(&sleeping);
}

static void publish_threads(void) {
    rank_hooks_begin();
    for (int i = 0; i < rank_count; i++) {
        if (!ranks[i].record)
            continue;
        ranks[i].record->kernel_thread = (uint32_t)ranks[i].element->tid;
        ranks[i].record->address_space = method->is_process ? (uint32_t)ranks[i].element->tid : 0;
    }
    rank_hooks_commit();
}

static void start_element(struct element *self) {
    bool failed = method->has_private_pages ? task_fork(element_thread, self) < 0
                  : method->is_process      ? task_start(element_thread, self) < 0
                                            : pthread_create(&self->thread, NULL, element_thread, self) != 0;
    if (failed)
        rank_job_abort(2, "no kernel thread can be had for another processing element");
}

int ranks_run(bool exit_on_deadlock) {
    leave_on_deadlock = exit_on_deadlock;
    /* Where elements are processes, this one only waits for them. */
    int first = method->is_process ? 0 : 1;
    shared_barrier_init(&start_line, (unsigned int)(element_count - first + 1));
    if (method->has_private_pages && shared_variables())
        rank_job_abort(2, "the runtime's memory can't be shared between processes");
    for (int i = first; i < element_count; i++)
        start_element(&elements[i]);
    elements[0].tid = first ? (pid_t)syscall(SYS_gettid) : elements[0].tid;
    if (first)
        tell_element_starts(&elements[0]);
    pthread_barrier_wait(&start_line);
    publish_threads();
    if (job)
        job->ready();
    pthread_barrier_wait(&start_line);
    if (first)
        run_element(&elements[0]);
    for (int i = first; i < element_count && !method->is_process; i++)
        pthread_join(elements[i].thread, NULL);
    if (method->is_process)
        task_wait_for_all();
    for (int i = 0; i < rank_count; i++)
        if (ranks[i].status > job_status)
            job_status = ranks[i].status;
    return job_status;
}

void ranks_wait_for_debugger(void) {
    for (;;)
        pause();
}
