/*
 * prepare.h: the library before any rank runs.
 */
#ifndef RANK_MPI_PREPARE_H
#define RANK_MPI_PREPARE_H

/* Once; before there are processes that share what is made here. */
void mpi_prepare(void);

#endif
