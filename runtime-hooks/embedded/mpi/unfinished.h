/*
 * unfinished.h: what the rest of the runtime asks of MPI about a rank that ends.
 */
#ifndef RANK_MPI_UNFINISHED_H
#define RANK_MPI_UNFINISHED_H

#include <stdbool.h>

/* Whether a rank that is here has called MPI_Init and not MPI_Finalize. */
bool mpi_is_unfinished(int world);

#endif
