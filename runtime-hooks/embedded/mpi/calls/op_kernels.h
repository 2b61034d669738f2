/*
 * op_kernels.h: the predefined reductions.
 */
#ifndef RANK_MPI_OP_KERNELS_H
#define RANK_MPI_OP_KERNELS_H

#include "mpi.h"

#include <stdbool.h>
#include <stddef.h>

/* inout[i] = in[i] op inout[i], for dense arrays of a predefined type; false: the operation is not defined for it. */
bool op_reduce(MPI_Op op, MPI_Datatype type, const void *in, void *inout, size_t count);

#endif
