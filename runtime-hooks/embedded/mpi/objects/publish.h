/*
 * publish.h: what the registry says of a rank that is in a call.
 */
#ifndef RANK_MPI_PUBLISH_H
#define RANK_MPI_PUBLISH_H

#include "mpi/objects/call.h"

struct communicator;

/* rank_debug.h: "any" and "none" for a peer or a tag. */
#define PUBLISH_ANY (-1)
#define PUBLISH_NONE (-2)

/* Publishes what the calling rank is about to do: MPI's own peer and tag; rank_call_leave() undoes it. */
void call_publish(enum call call, int peer, int tag, const struct communicator *comm);

#endif
