/*
 * request.h: the life of a request: made, completed by its owner (who unpacks), released.
 */
#ifndef RANK_MPI_REQUEST_H
#define RANK_MPI_REQUEST_H

#include "mpi.h"
#include "mpi/objects/inbox.h"

struct mpi_rank;

struct request *request_new(struct mpi_rank *self, struct communicator *comm, bool receives, void *buffer, int count,
                            struct datatype *type, int peer, int tag);
struct request *request_receive(struct mpi_rank *self, struct communicator *comm, enum channel channel, void *buffer,
                                int count, struct datatype *type, int source, int tag);
/* Blocks until it is done, completes and releases it. */
int request_wait(struct mpi_rank *self, struct request *request, MPI_Status *status);
void request_release(struct request *request);

/* The same for a persistent request, which is not released: it waits for its next start. */
int request_wait_and_rest(struct mpi_rank *self, struct request *request, MPI_Status *status);

/* Of the calling rank's own. */
bool request_is_done(struct mpi_rank *self, const struct request *request);

/* Completes detached receives whose message has come. */
void request_sweep(struct mpi_rank *self);

#endif
