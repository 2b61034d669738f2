/*
 * library_start.h: starts the MPI library, before any rank runs.
 */
#ifndef RANK_MPI_LIBRARY_START_H
#define RANK_MPI_LIBRARY_START_H

/* Once; before there are processes that share what is made here. */
void mpi_prepare(void);

#endif
