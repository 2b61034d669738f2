/*
 * publish.h: publishes in the registry which call a rank is in.
 */
#ifndef RANK_MPI_PUBLISH_H
#define RANK_MPI_PUBLISH_H

#include "mpi/objects/call_names.h"

struct communicator;

/* rank_debug.h: "any" and "none" for a peer or a tag. */
#define PUBLISH_ANY (-1)
#define PUBLISH_NONE (-2)

/* Publishes what the calling rank is about to do: MPI's own peer and tag; rank_call_leave() undoes it. */
void call_publish(enum call call, int peer, int tag, const struct communicator *comm);

#endif
