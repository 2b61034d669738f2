/*
 * op.h: operations of reductions.
 */
#ifndef RANK_MPI_OP_H
#define RANK_MPI_OP_H

#include "mpi.h"

#include <stdbool.h>

struct mpi_rank;

bool op_valid(struct mpi_rank *self, MPI_Op op, MPI_Datatype type);
/* inout[i] = in[i] op inout[i] */
void op_apply(struct mpi_rank *self, MPI_Op op, void *in, void *inout, int count, MPI_Datatype type);

#endif
