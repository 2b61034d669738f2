/*
 * collective_check.h: whether the members of a communicator call the same collectives, with one root and one size.
 *
 * Each message of a collective says what its sender has called.  A disagreement ends the job with a sentence that names
 * both ranks and calls, or, where errors are not fatal, is the code that is returned.  It costs no message.
 */
#ifndef RANK_MPI_COLLECTIVE_CHECK_H
#define RANK_MPI_COLLECTIVE_CHECK_H

#include "mpi/objects/call_names.h"

struct communicator;
struct mpi_rank;
struct request;

/* Whether messages of earlier collectives are left, as a collective begins. */
int collective_check_earlier(struct mpi_rank *self, struct communicator *comm);

/* Whether any are left, after the last one: in `call`, which ends the communicator. */
int collective_check_last(struct mpi_rank *self, struct communicator *comm, enum call call);

/* Waits for what a receive of the current collective matches, and checks that message and any other that came for this
 * collective. */
int collective_check_wait(struct mpi_rank *self, struct communicator *comm, struct request *receive);

#endif
