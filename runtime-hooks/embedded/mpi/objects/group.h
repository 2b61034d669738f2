/*
 * group.h: ordered sets of ranks.  Immutable once made, and shared by the communicators and handles of one rank.
 */
#ifndef RANK_MPI_GROUP_H
#define RANK_MPI_GROUP_H

#include "mpi.h"

struct mpi_rank;

struct group {
    int references;
    int size;
    int members[]; /* ranks of MPI_COMM_WORLD */
};

struct group *group_new(int size);
struct group *group_get(struct mpi_rank *self, MPI_Group handle); /* NULL: no such one */
void group_drop(struct group *group);
int group_find(const struct group *group, int world); /* MPI_UNDEFINED if it isn't a member */
int group_compare(const struct group *first, const struct group *second);

#endif
