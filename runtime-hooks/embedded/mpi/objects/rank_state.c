/*
 * rank_state.c: makes a rank's MPI state at its first call.
 */
#include "mpi/objects/rank_state.h"
#include "mpi.h"
#include "mpi/objects/inbox.h"
#include "mpi/objects/library_memory.h"
#include "ranks/fatal.h"
#include "ranks/scheduler.h"

#include <stdio.h>

static void (*sweep_detached)(struct mpi_rank *self);

void mpi_rank_on_detached(void (*sweep)(struct mpi_rank *self)) {
    sweep_detached = sweep;
}

static struct mpi_rank *state_new(struct rank *rank) {
    struct mpi_rank *self = host_allocate(sizeof *self);
    self->rank = rank;
    self->world = rank_number(rank);
    self->inbox = inbox_of(self->world);
    self->root = NO_ROOT;
    rank_attach(rank, self);
    return self;
}

struct mpi_rank *mpi_rank_state(void) {
    struct rank *rank = rank_current();
    if (!rank)
        rank_job_abort(MPI_ERR_OTHER, "MPI: called on a thread that is not a rank");
    struct mpi_rank *self = rank_attachment(rank);
    return self ? self : state_new(rank);
}

/* Out of line: every call would make room on its stack for a text that it never prints. */
__attribute__((noinline, cold)) static void end_untimely_call(const struct mpi_rank *self, enum call call) {
    char line[128];
    snprintf(line, sizeof line, "rank %d: %s: called %s", self->world, call_name(call),
             self->finalized ? "after MPI_Finalize" : "before MPI_Init");
    rank_job_abort(MPI_ERR_OTHER, line);
}

struct mpi_rank *mpi_self(enum call call) {
    struct mpi_rank *self = mpi_rank_state();
    if (!self->initialized || self->finalized)
        end_untimely_call(self, call);
    if (self->detached)
        sweep_detached(self);
    rank_pause_point();
    return self;
}
