/*
 * communicator.c: a group, and a context number that no other communicator of the job has.
 */
#include "mpi/objects/communicator.h"
#include "mpi/objects/group.h"
#include "mpi/objects/library_memory.h"
#include "ranks/scheduler.h"

#define CONTEXT_WORLD 1u /* above it one per rank for its MPI_COMM_SELF; communicator_create.c draws the others */

static struct communicator *comm_new(struct mpi_rank *self, uint64_t context, struct group *group) {
    struct communicator *comm = host_allocate(sizeof *comm);
    *comm = (struct communicator){.references = 1,
                                  .context = context,
                                  .rank = group_find(group, self->world),
                                  .current = {CALL_Init, NO_ROOT},
                                  .handler = MPI_ERRORS_ARE_FATAL,
                                  .group = group};
    return comm;
}

void comms_initialize(struct mpi_rank *self) {
    struct group *world = group_new(rank_total());
    for (int i = 0; i < world->size; i++)
        world->members[i] = i;
    struct group *alone = group_new(1);
    alone->members[0] = self->world;
    table_add(&self->communicators, comm_new(self, CONTEXT_WORLD, world));
    table_add(&self->communicators, comm_new(self, CONTEXT_WORLD + 1u + (unsigned)self->world, alone));
    table_add(&self->groups, group_new(0));
}

void comm_hold(struct communicator *comm) {
    comm->references++;
}

void comm_drop(struct communicator *comm) {
    if (--comm->references)
        return;
    group_drop(comm->group);
    host_release(comm->cartesian);
    host_release(comm);
}

int comm_size(const struct communicator *comm) {
    return comm->group->size;
}

MPI_Comm comm_add(struct mpi_rank *self, const struct communicator *parent, uint64_t context, struct group *group) {
    struct communicator *comm = comm_new(self, context, group);
    comm->handler = parent->handler;
    return table_add(&self->communicators, comm);
}
