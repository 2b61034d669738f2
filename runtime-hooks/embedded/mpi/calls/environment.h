/*
 * environment.h: whether a rank is between MPI_Init and MPI_Finalize.
 */
#ifndef RANK_MPI_ENVIRONMENT_H
#define RANK_MPI_ENVIRONMENT_H

#include <stdbool.h>

/* Whether a rank that is here has called MPI_Init and not MPI_Finalize. */
bool mpi_is_unfinished(int world);

/* The root of the collective in which a rank that is here is; NO_ROOT: in none that has a root. */
int mpi_root(int world);

#endif
