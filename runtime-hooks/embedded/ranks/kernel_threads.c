/*
 * kernel_threads.c: the kernel threads that run ranks (processing elements), their sleep and their end.
 *
 * An element without work sleeps.  When all sleep and ranks are left, they are deadlocked.
 */
#define _GNU_SOURCE
#include "ranks/kernel_threads.h"
#include "image/shared_memory.h"
#include "rank_hooks.h"
#include "ranks/crash.h"
#include "ranks/deadlock_report.h"
#include "ranks/fatal.h"
#include "ranks/memory_sharing_process.h"
#include "ranks/process_hooks.h"
#include "ranks/scheduler_state.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_barrier_t start_line;
static int asleep;
static atomic_bool over;
static bool ends_on_deadlock;

/* ---- sleep ---- */

static bool has_work(struct element *owner) {
    if (scheduler.job && atomic_load(&scheduler.paused))
        return false;
    return owner->first || __atomic_load_n(&owner->inbox, __ATOMIC_ACQUIRE);
}

/* In a job of several processes the launcher says so: a rank may still come here. */
static bool is_over(void) {
    return scheduler.job ? atomic_load(&over) : __atomic_load_n(&scheduler.left, __ATOMIC_ACQUIRE) == 0;
}

static bool any_element_runs(void) {
    bool any_runs = asleep < scheduler.element_count;
    for (int i = 0; i < scheduler.element_count; i++)
        any_runs = any_runs || has_work(&scheduler.elements[i]);
    return any_runs;
}

static void wake_all(void) {
    for (int i = 0; i < scheduler.element_count; i++)
        pthread_cond_signal(&scheduler.elements[i].wake);
}

static void report_deadlock(void) {
    deadlock_report(ends_on_deadlock);
    if (ends_on_deadlock)
        _exit(3);
    for (;;) /* until a debugger comes */
        pause();
}

/* Waits for work; false when all ranks have exited. */
static bool sleep_until_work(struct element *owner) {
    pthread_mutex_lock(&scheduler.sleeping);
    owner->asleep = true;
    asleep++;
    while (!has_work(owner) && !is_over()) {
        if (!scheduler.job && !any_element_runs())
            report_deadlock();
        pthread_cond_wait(&owner->wake, &scheduler.sleeping);
    }
    owner->asleep = false;
    asleep--;
    bool work = has_work(owner);
    if (!work)
        wake_all();
    pthread_mutex_unlock(&scheduler.sleeping);
    return work;
}

/* ---- the thread ---- */

static void adopt_ranks(struct element *self) {
    if (scheduler.method->thread_token)
        self->token = scheduler.method->thread_token();
    for (int i = 0; scheduler.method->adopt && i < scheduler.rank_count; i++)
        if (scheduler.ranks[i].element == self)
            scheduler.method->adopt(scheduler.ranks[i].work.token);
}

static void let_leave(struct element *self) {
    struct rank *leaving = self->leaving;
    self->leaving = NULL;
    scheduler.job->leaves(leaving->number);
}

static void run_element(struct element *self) {
    element = self;
    crash_watch_thread();
    adopt_ranks(self);
    fiber_of_thread(&self->fiber);
    self->exceptions = __cxa_get_globals();
    self->error = &errno;
    struct exceptions own = *self->exceptions;
    load_begin(self->load, (uint32_t)self->tid);
    do {
        while (element_run_ready(self)) {
            *self->exceptions = own;
            if (self->leaving)
                let_leave(self);
        }
    } while (sleep_until_work(self));
    element = NULL;
}

static void call_element_starts(struct element *self) {
    if (scheduler.job)
        scheduler.job->element_starts(self->index);
}

static void *element_thread(void *argument) {
    struct element *self = argument;
    self->tid = (pid_t)syscall(SYS_gettid);
    call_element_starts(self);
    pthread_barrier_wait(&start_line);
    pthread_barrier_wait(&start_line); /* the registry now names every thread */
    run_element(self);
    return NULL;
}

/* ---- what a job of several processes asks ---- */

bool ranks_idle(void) {
    pthread_mutex_lock(&scheduler.sleeping);
    bool idle = !any_element_runs();
    pthread_mutex_unlock(&scheduler.sleeping);
    return idle;
}

void ranks_pause(void) {
    pthread_mutex_lock(&scheduler.sleeping);
    atomic_store(&scheduler.paused, true);
    wake_all();
    pthread_mutex_unlock(&scheduler.sleeping);
}

void ranks_continue(void) {
    pthread_mutex_lock(&scheduler.sleeping);
    atomic_store(&scheduler.paused, false);
    wake_all();
    pthread_mutex_unlock(&scheduler.sleeping);
}

void ranks_end(void) {
    pthread_mutex_lock(&scheduler.sleeping);
    atomic_store(&over, true);
    wake_all();
    pthread_mutex_unlock(&scheduler.sleeping);
}

/* ---- from the start to the end ---- */

static void publish_threads(void) {
    rank_hooks_begin();
    for (int i = 0; i < scheduler.rank_count; i++) {
        const struct rank *rank = &scheduler.ranks[i];
        if (!rank->record)
            continue;
        rank->record->kernel_thread = (uint32_t)rank->element->tid;
        rank->record->address_space = scheduler.method->is_process ? (uint32_t)rank->element->tid : 0;
    }
    rank_hooks_commit();
}

static void start_element(struct element *self) {
    const struct method *method = scheduler.method;
    bool failed = method->has_private_pages ? task_fork(element_thread, self) < 0
                  : method->is_process      ? task_start(element_thread, self) < 0
                                            : pthread_create(&self->thread, NULL, element_thread, self) != 0;
    if (failed)
        rank_job_abort(2, "the kernel thread for another processing element cannot be started");
}

static int largest_status(void) {
    int status = 0;
    for (int i = 0; i < scheduler.rank_count; i++)
        status = scheduler.ranks[i].status > status ? scheduler.ranks[i].status : status;
    return status;
}

int ranks_run(bool exit_on_deadlock) {
    ends_on_deadlock = exit_on_deadlock;
    struct element *elements = scheduler.elements;
    int count = scheduler.element_count;
    const struct method *method = scheduler.method;
    /* Where elements are processes, this one only waits for them. */
    int first = method->is_process ? 0 : 1;
    shared_barrier_init(&start_line, (unsigned int)(count - first + 1));
    if (method->has_private_pages && shared_memory_variables())
        rank_job_abort(2, "the runtime's memory can't be shared between processes");
    for (int i = first; i < count; i++)
        start_element(&elements[i]);
    elements[0].tid = first ? (pid_t)syscall(SYS_gettid) : elements[0].tid;
    if (first)
        call_element_starts(&elements[0]);
    pthread_barrier_wait(&start_line);
    publish_threads();
    if (scheduler.job)
        scheduler.job->ready();
    pthread_barrier_wait(&start_line);
    if (first)
        run_element(&elements[0]);
    for (int i = first; i < count && !method->is_process; i++)
        pthread_join(elements[i].thread, NULL);
    if (method->is_process)
        task_wait_for_all();
    return largest_status();
}
