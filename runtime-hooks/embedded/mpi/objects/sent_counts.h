/*
 * sent_counts.h: how many messages and bytes each rank has sent to each other one, for the registry.
 */
#ifndef RANK_MPI_SENT_COUNTS_H
#define RANK_MPI_SENT_COUNTS_H

#include "mpi/objects/inbox.h"

/* The rank that runs on the calling kernel thread, `sender`, sends `bytes` to `receiver`; both of MPI_COMM_WORLD. */
void sent_counts_add(int sender, int receiver, enum channel channel, size_t bytes);

#endif
