/*
 * error.h: what a call does that fails.
 */
#ifndef RANK_MPI_ERROR_H
#define RANK_MPI_ERROR_H

#include "mpi/objects/call.h"

struct communicator;
struct mpi_rank;

/* Applies the error handler of the communicator, or, with NULL, of MPI_COMM_WORLD; returns `code`. */
int mpi_fail(struct mpi_rank *self, struct communicator *comm, enum call call, int code);

const char *error_text(int code);

#endif
