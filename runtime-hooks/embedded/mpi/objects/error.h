/*
 * error.h: what becomes of a call that fails: error handlers, the end of the job, texts.
 */
#ifndef RANK_MPI_ERROR_H
#define RANK_MPI_ERROR_H

#include "mpi/objects/call_names.h"

struct communicator;
struct mpi_rank;

/* Applies the error handler of the communicator, or, with NULL, of MPI_COMM_WORLD; returns `code`. */
int mpi_fail(struct mpi_rank *self, struct communicator *comm, enum call call, int code);

/* Ends the job with `line`, which names rank, call and reason, if errors are fatal there; else returns `code`, with
 * which the call shall fail. */
int mpi_end_if_fatal(struct mpi_rank *self, const struct communicator *comm, int code, const char *line);

const char *error_text(int code);

#endif
