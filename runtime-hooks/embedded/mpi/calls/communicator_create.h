/*
 * communicator_create.h: communicators made of another by all of its members.
 */
#ifndef RANK_MPI_COMMUNICATOR_CREATE_H
#define RANK_MPI_COMMUNICATOR_CREATE_H

#include "mpi/objects/communicator.h"

/* As MPI_Comm_split(): collective; publishes no call. */
MPI_Comm comm_split(struct mpi_rank *self, struct communicator *comm, int color, int key);

#endif
