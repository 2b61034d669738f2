/*
 * state.c: the per-rank state, the inboxes, handle tables, host memory, and the names of calls.
 *
 * Inboxes are made for all ranks at once, because a rank may get messages before it calls MPI_Init.
 */
#include "mpi/state.h"
#include "image/heap.h"
#include "image/shared.h"
#include "job/process.h"
#include "mpi/mobility.h"

#include <stdio.h>
#include <string.h>

#define CALL_STRING(name) "MPI_" #name,
#define CALL_STRING_BEYOND(name) "MPIX_" #name,
static const char *const call_names[] = {MPI_CALLS(CALL_STRING) MPIX_CALLS(CALL_STRING_BEYOND)};
static uint32_t call_indices[CALL_COUNT];

static struct inbox *inboxes;

const char *call_name(enum call call) {
    return call_names[call];
}

void call_publish(enum call call, int peer, int tag, const struct communicator *comm) {
    if (peer == MPI_ANY_SOURCE)
        peer = PUBLISH_ANY;
    else if (peer == MPI_PROC_NULL)
        peer = PUBLISH_NONE;
    struct rank_members members = {0};
    if (comm)
        members = (struct rank_members){comm->context, comm->group->size, comm->group->members};
    rank_call_enter(call_indices[call], peer, tag, &members);
}

static void *checked(void *memory) {
    if (!memory)
        rank_job_abort(MPI_ERR_OTHER, "MPI: out of memory");
    return memory;
}

void *host_allocate_message(size_t bytes) {
    return checked(shared_allocate(bytes));
}

void *host_allocate(size_t bytes) {
    bytes = bytes ? bytes : 1;
    if (!heap_here || !process_may_lose_ranks())
        return checked(shared_allocate(bytes));
    return memset(checked(heap_allocate(heap_here, bytes, 16)), 0, bytes);
}

void host_release(void *memory) {
    struct rank_heap *heap = process_may_lose_ranks() ? heap_of(memory) : NULL;
    if (heap)
        heap_release(heap, memory);
    else
        shared_release(memory);
}

static void inboxes_make(void) {
    int ranks = rank_total();
    inboxes = host_allocate((size_t)ranks * sizeof *inboxes);
    for (int i = 0; i < ranks; i++) {
        struct inbox *inbox = &inboxes[i];
        shared_lock_init(&inbox->lock);
        inbox->first_message = NULL;
        inbox->last_message = &inbox->first_message;
        inbox->first_posted = NULL;
        inbox->last_posted = &inbox->first_posted;
        inbox->is_away = !process_has_rank(i);
    }
}

/* Before there are ranks, and before there are processes that share what is made here. */
void mpi_prepare(void) {
    for (int call = 0; call < CALL_COUNT; call++)
        call_indices[call] = rank_call_register(call_names[call]);
    inboxes_make();
    types_prepare();
    mobility_prepare();
}

struct inbox *inbox_of(int world) {
    return &inboxes[world];
}

static struct mpi_rank *state_new(struct rank *rank) {
    struct mpi_rank *self = host_allocate(sizeof *self);
    memset(self, 0, sizeof *self);
    self->rank = rank;
    self->world = rank_number(rank);
    self->inbox = inbox_of(self->world);
    types_initialize(self);
    comms_initialize(self);
    rank_attach(rank, self);
    return self;
}

struct mpi_rank *mpi_rank_state(void) {
    struct rank *rank = rank_current();
    if (!rank)
        rank_job_abort(MPI_ERR_OTHER, "MPI: called on a thread that is no rank");
    struct mpi_rank *self = rank_attachment(rank);
    return self ? self : state_new(rank);
}

/* Out of line: every call would make room on its stack for a text that it never prints. */
__attribute__((noinline, cold)) static void end_untimely_call(const struct mpi_rank *self, enum call call) {
    char line[128];
    snprintf(line, sizeof line, "rank %d: %s: called %s", self->world, call_names[call],
             self->finalized ? "after MPI_Finalize" : "before MPI_Init");
    rank_job_abort(MPI_ERR_OTHER, line);
}

struct mpi_rank *mpi_self(enum call call) {
    struct mpi_rank *self = mpi_rank_state();
    if (!self->initialized || self->finalized)
        end_untimely_call(self, call);
    if (self->detached)
        request_sweep(self);
    rank_pause_point();
    return self;
}

static void table_grow(struct table *table) {
    int size = table->size ? 2 * table->size : 64;
    void **slots = host_allocate((size_t)size * sizeof *slots);
    memset(slots, 0, (size_t)size * sizeof *slots);
    if (table->size)
        memcpy(slots, table->slots, (size_t)table->size * sizeof *slots);
    host_release(table->slots);
    table->slots = slots;
    table->size = size;
}

/* Half of the slots are free, so the search is short. */
int table_add(struct table *table, void *value) {
    if (2 * (table->used + 1) > table->size)
        table_grow(table);
    int handle = table->last;
    do
        handle = handle + 1 < table->size ? handle + 1 : 1;
    while (table->slots[handle]);
    table->slots[handle] = value;
    table->last = handle;
    table->used++;
    return handle;
}

void table_remove(struct table *table, int handle) {
    table->slots[handle] = NULL;
    table->used--;
}
