/*
 * communicator_create.h: communicators made of another by all of its members.
 */
#ifndef RANK_MPI_COMMUNICATOR_CREATE_H
#define RANK_MPI_COMMUNICATOR_CREATE_H

#include "mpi/objects/communicator.h"

/* As MPI_Comm_split(), published as `call`; no error handler is called. */
int comm_split(struct mpi_rank *self, struct communicator *comm, enum call call, int color, int key, MPI_Comm *made);

#endif
