/*
 * fortran.h: what the Fortran bindings share.
 *
 * Handles and statuses are the same in both languages, so bindings only pass arguments on; arrays of C's and of
 * Fortran's default integers are the same thing too.  Special buffers are recognised by their addresses in the common
 * blocks of mpif.h, which this library defines.
 */
#ifndef RANK_MPI_FORTRAN_H
#define RANK_MPI_FORTRAN_H

#include "mpi.h"

/* COMMON /MPIPRIV1/ and /MPIPRIV2/ of mpif.h. */
extern struct fortran_buffers { int bottom, in_place; } mpipriv1_;
extern struct fortran_statuses { int ignore[6], all_ignore[6]; } mpipriv2_;

typedef MPI_Fint fint;

void *fortran_buffer(void *buffer);       /* MPI_BOTTOM and MPI_IN_PLACE to C's */
MPI_Status *fortran_status(fint *status); /* MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE to C's */

#endif
