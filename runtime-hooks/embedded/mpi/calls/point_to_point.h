/*
 * point_to_point.h: checks the arguments of calls that send and receive.
 */
#ifndef RANK_MPI_POINT_TO_POINT_H
#define RANK_MPI_POINT_TO_POINT_H

#include "mpi.h"

#include <stdbool.h>

struct communicator;
struct datatype;

/* MPI_SUCCESS, or the error code of the first that is bad. */
int check_message(struct communicator *comm, int count, struct datatype *type, int peer, int tag, bool receives);

#endif
