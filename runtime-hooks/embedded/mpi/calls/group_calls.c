/*
 * group_calls.c: the calls that make, ask and free groups.
 */
#include "mpi/objects/communicator.h"
#include "mpi/objects/error.h"
#include "mpi/objects/group.h"
#include "mpi/objects/rank_state.h"

int MPI_Comm_group(MPI_Comm comm, MPI_Group *group) {
    struct mpi_rank *self = mpi_self(CALL_Comm_group);
    struct communicator *communicator = comm_get(self, comm);
    if (!communicator)
        return mpi_fail(self, NULL, CALL_Comm_group, MPI_ERR_COMM);
    communicator->group->references++;
    *group = table_add(&self->groups, communicator->group);
    return MPI_SUCCESS;
}

int MPI_Group_rank(MPI_Group group, int *rank) {
    struct mpi_rank *self = mpi_self(CALL_Group_rank);
    const struct group *members = group_get(self, group);
    if (!members)
        return mpi_fail(self, NULL, CALL_Group_rank, MPI_ERR_GROUP);
    *rank = group_find(members, self->world);
    return MPI_SUCCESS;
}

int MPI_Group_size(MPI_Group group, int *size) {
    struct mpi_rank *self = mpi_self(CALL_Group_size);
    const struct group *members = group_get(self, group);
    if (!members)
        return mpi_fail(self, NULL, CALL_Group_size, MPI_ERR_GROUP);
    *size = members->size;
    return MPI_SUCCESS;
}

static bool ranks_valid(const struct group *group, int count, const int ranks[]) {
    if (count < 0 || count > group->size)
        return false;
    for (int i = 0; i < count; i++)
        if (ranks[i] < 0 || ranks[i] >= group->size)
            return false;
    return true;
}

static MPI_Group handle_of(struct mpi_rank *self, struct group *made) {
    if (made->size)
        return table_add(&self->groups, made);
    group_drop(made);
    return MPI_GROUP_EMPTY;
}

int MPI_Group_incl(MPI_Group group, int count, const int ranks[], MPI_Group *part) {
    struct mpi_rank *self = mpi_self(CALL_Group_incl);
    const struct group *members = group_get(self, group);
    if (!members || !ranks_valid(members, count, ranks))
        return mpi_fail(self, NULL, CALL_Group_incl, members ? MPI_ERR_RANK : MPI_ERR_GROUP);
    struct group *made = group_new(count);
    for (int i = 0; i < count; i++)
        made->members[i] = members->members[ranks[i]];
    *part = handle_of(self, made);
    return MPI_SUCCESS;
}

static bool contains(int count, const int ranks[], int rank) {
    for (int i = 0; i < count; i++)
        if (ranks[i] == rank)
            return true;
    return false;
}

int MPI_Group_excl(MPI_Group group, int count, const int ranks[], MPI_Group *part) {
    struct mpi_rank *self = mpi_self(CALL_Group_excl);
    const struct group *members = group_get(self, group);
    if (!members || !ranks_valid(members, count, ranks))
        return mpi_fail(self, NULL, CALL_Group_excl, members ? MPI_ERR_RANK : MPI_ERR_GROUP);
    struct group *made = group_new(members->size - count);
    made->size = 0;
    for (int i = 0; i < members->size; i++)
        if (!contains(count, ranks, i))
            made->members[made->size++] = members->members[i];
    *part = handle_of(self, made);
    return MPI_SUCCESS;
}

int MPI_Group_translate_ranks(MPI_Group from, int count, const int ranks[], MPI_Group to, int translated[]) {
    struct mpi_rank *self = mpi_self(CALL_Group_translate_ranks);
    const struct group *source = group_get(self, from), *target = group_get(self, to);
    if (!source || !target)
        return mpi_fail(self, NULL, CALL_Group_translate_ranks, MPI_ERR_GROUP);
    for (int i = 0; i < count; i++) {
        if (ranks[i] == MPI_PROC_NULL)
            translated[i] = MPI_PROC_NULL;
        else if (ranks[i] < 0 || ranks[i] >= source->size)
            return mpi_fail(self, NULL, CALL_Group_translate_ranks, MPI_ERR_RANK);
        else
            translated[i] = group_find(target, source->members[ranks[i]]);
    }
    return MPI_SUCCESS;
}

int MPI_Group_compare(MPI_Group first, MPI_Group second, int *result) {
    struct mpi_rank *self = mpi_self(CALL_Group_compare);
    const struct group *first_group = group_get(self, first), *second_group = group_get(self, second);
    if (!first_group || !second_group)
        return mpi_fail(self, NULL, CALL_Group_compare, MPI_ERR_GROUP);
    *result = group_compare(first_group, second_group);
    return MPI_SUCCESS;
}

int MPI_Group_free(MPI_Group *group) {
    struct mpi_rank *self = mpi_self(CALL_Group_free);
    struct group *members = group_get(self, *group);
    if (!members)
        return mpi_fail(self, NULL, CALL_Group_free, MPI_ERR_GROUP);
    if (*group != MPI_GROUP_EMPTY) {
        table_remove(&self->groups, *group);
        group_drop(members);
    }
    *group = MPI_GROUP_NULL;
    return MPI_SUCCESS;
}
