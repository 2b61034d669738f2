/*
 * collective_common.h: what the collectives are built of; only collective_publish() and collective_enter() publish a
 * call.
 */
#ifndef RANK_MPI_COLLECTIVE_COMMON_H
#define RANK_MPI_COLLECTIVE_COMMON_H

#include "mpi.h"
#include "mpi/objects/call_names.h"

#include <stddef.h>

struct communicator;
struct datatype;
struct mpi_rank;

/* Publishes what the calling rank is about to do; fails with a message of an earlier collective that no call of this
 * rank took.  rank_call_leave() undoes it. */
int collective_publish(struct mpi_rank *self, struct communicator *comm, enum call call, int root);
int collective_begin(struct communicator *comm); /* the tag of this collective's messages */
int collective_send(struct mpi_rank *self, struct communicator *comm, const void *buffer, int count,
                    struct datatype *type, int dest, int tag);
int collective_recv(struct mpi_rank *self, struct communicator *comm, void *buffer, int count, struct datatype *type,
                    int source, int tag);
int collective_broadcast(struct mpi_rank *self, struct communicator *comm, void *buffer, int count,
                         struct datatype *type, int root);
int collective_barrier(struct mpi_rank *self, struct communicator *comm);
/* from and to may be the same buffer, but must not overlap otherwise */
void collective_copy(const void *from, int from_count, const struct datatype *from_type, void *to,
                     const struct datatype *to_type);
void *element_at(const void *buffer, ptrdiff_t index, const struct datatype *type);

/* A collective call between its checks and its end. */
struct collective {
    struct mpi_rank *self;
    struct communicator *comm;
    enum call call;
    int size, rank, tag;
    int code; /* not MPI_SUCCESS: the call ends with it */
};
/* Checks and publishes; `root` is NO_ROOT for collectives that have none. */
struct collective collective_enter(enum call call, MPI_Comm comm, int root);
/* The type, or NULL with code set. */
struct datatype *collective_type(struct collective *collective, int count, MPI_Datatype type);
int collective_leave(struct collective *collective);

#endif
