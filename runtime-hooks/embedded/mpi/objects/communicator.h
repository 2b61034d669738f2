/*
 * communicator.h: communicators as objects.
 */
#ifndef RANK_MPI_COMMUNICATOR_H
#define RANK_MPI_COMMUNICATOR_H

#include "mpi.h"
#include "mpi/objects/call_names.h"
#include "mpi/objects/rank_state.h"

#include <stdint.h>

struct cartesian_topology;
struct group;

struct communicator {
    int references;
    uint64_t context; /* equal on all members, and no other communicator's */
    int rank;
    int collective;                 /* how many collectives have begun: the tag of their messages */
    struct collective_call current; /* the last one that has begun */
    MPI_Errhandler handler;
    struct group *group;
    struct cartesian_topology *cartesian; /* its own; NULL: its ranks are in no grid */
};

static inline struct communicator *comm_get(struct mpi_rank *self, MPI_Comm handle) { /* NULL: no such one */
    return table_get(&self->communicators, handle);
}
void comm_hold(struct communicator *comm);
void comm_drop(struct communicator *comm);
int comm_size(const struct communicator *comm);

/* MPI_COMM_WORLD and MPI_COMM_SELF, in MPI_Init. */
void comms_initialize(struct mpi_rank *self);

/* A new one with the parent's error handler; its handle. */
MPI_Comm comm_add(struct mpi_rank *self, const struct communicator *parent, uint64_t context, struct group *group);

#endif
