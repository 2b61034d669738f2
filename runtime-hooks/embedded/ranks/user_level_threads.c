/*
 * user_level_threads.c: making ranks, and taking them from one process to another.
 */
#define _GNU_SOURCE
#include "ranks/user_level_threads.h"
#include "image/shared_heap.h"
#include "image/shared_memory.h"
#include "ranks/context.h"
#include "ranks/process_hooks.h"
#include "ranks/scheduler.h"
#include "ranks/scheduler_state.h"

#include <errno.h>

int ranks_prepare(int count, int element_count, const struct method *method, bool exact_load) {
    struct rank *ranks = shared_allocate((size_t)count * sizeof *ranks);
    struct element *elements = shared_allocate((size_t)element_count * sizeof *elements);
    if (!ranks || !elements)
        return ENOMEM;
    scheduler.method = method;
    scheduler.enter = method->enter;
    scheduler.ranks = ranks;
    scheduler.elements = elements;
    scheduler.rank_count = scheduler.left = count;
    scheduler.element_count = element_count;
    scheduler.exact_load = exact_load || scheduler.job;
    shared_lock_init(&scheduler.sleeping);
    for (int i = 0; i < element_count; i++) {
        elements[i].index = (uint32_t)i;
        if (!(elements[i].load = load_of_element((uint32_t)i)))
            return ENOMEM;
        shared_condition_init(&elements[i].wake);
    }
    return 0;
}

void ranks_join(const struct process_hooks *hooks) {
    scheduler.job = hooks;
}

uint32_t ranks_element_of(int number) {
    const struct process_hooks *job = scheduler.job;
    int first = job ? job->first : 0, count = job ? job->count : scheduler.rank_count;
    return (uint32_t)((int64_t)(number - first) * scheduler.element_count / count);
}

/* Entered as one fiber and left as another, which the thread sanitizer's count of calls must not see. */
__attribute__((no_sanitize("thread"))) static void begin_rank(void *argument) {
    (void)argument; /* of the process where it was made, which may be another than this */
    struct rank *self = element->current;
    element_after_switch(&self->fiber);
    rank_exit(self->work.main(self->work.argument));
}

void ranks_add(int number, struct rank_debug_rank *record, const struct rank_work *work) {
    struct rank *rank = &scheduler.ranks[number];
    *rank = (struct rank){.record = record, .load = load_of_rank((uint32_t)number), .number = number, .work = *work};
    rank->element = &scheduler.elements[ranks_element_of(number)];
    record->context = context_make((void *)(uintptr_t)record->stack_start, record->stack_size, begin_rank, rank);
    fiber_make(&rank->fiber, (void *)(uintptr_t)record->stack_start, record->stack_size);
    set_state(rank, RANK_DEBUG_STATE_READY);
    element_push_ready(rank->element, rank);
}

/* The element that has the fewest ranks. */
static struct element *least_busy(void) {
    struct element *best = NULL;
    int fewest = 0;
    for (int i = 0; i < scheduler.element_count; i++) {
        int residents = 0;
        for (int r = 0; r < scheduler.rank_count; r++)
            residents += scheduler.ranks[r].element == &scheduler.elements[i];
        if (!best || residents < fewest)
            best = &scheduler.elements[i], fewest = residents;
    }
    return best;
}

void ranks_pack(int number, struct rank_ticket *ticket) {
    const struct rank *rank = &scheduler.ranks[number];
    ticket->exceptions[0] = (uintptr_t)rank->exceptions.caught;
    ticket->exceptions[1] = rank->exceptions.uncaught;
    ticket->call_depth = rank->call_depth;
    ticket->attachment = rank->attachment;
    ticket->cycles = rank->cycles;
    ticket->record = *rank->record;
}

void ranks_forget(int number) {
    scheduler.ranks[number].element = NULL;
}

struct rank_debug_rank *ranks_record(int number) {
    return scheduler.ranks ? scheduler.ranks[number].record : NULL;
}

struct rank_heap *ranks_heap(int number) {
    return scheduler.ranks[number].work.heap;
}

void ranks_arrive(const struct rank_ticket *ticket, struct rank_debug_rank *record, const struct rank_work *work) {
    struct rank *rank = &scheduler.ranks[ticket->record.rank];
    struct element *owner = least_busy();
    *rank = (struct rank){.record = record,
                          .load = load_of_rank((uint32_t)ticket->record.rank),
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

void ranks_have_exited(int number) {
    set_state(&scheduler.ranks[number], RANK_DEBUG_STATE_EXITED);
    __atomic_sub_fetch(&scheduler.left, 1, __ATOMIC_ACQ_REL);
}

void ranks_resume(int number) {
    set_state(&scheduler.ranks[number], RANK_DEBUG_STATE_READY);
    element_wake(scheduler.ranks[number].element, &scheduler.ranks[number]);
}
