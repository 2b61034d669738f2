/*
 * group.c: groups as objects; group_calls.c has the calls.
 */
#include "mpi/objects/group.h"
#include "mpi/objects/library_memory.h"
#include "mpi/objects/rank_state.h"

#include <string.h>

struct group *group_new(int size) {
    struct group *group = host_allocate(sizeof *group + (size_t)size * sizeof group->members[0]);
    group->references = 1;
    group->size = size;
    return group;
}

struct group *group_get(struct mpi_rank *self, MPI_Group handle) {
    return table_get(&self->groups, handle);
}

void group_drop(struct group *group) {
    if (--group->references == 0)
        host_release(group);
}

int group_find(const struct group *group, int world) {
    for (int i = 0; i < group->size; i++)
        if (group->members[i] == world)
            return i;
    return MPI_UNDEFINED;
}

int group_compare(const struct group *first, const struct group *second) {
    if (first->size != second->size)
        return MPI_UNEQUAL;
    if (!memcmp(first->members, second->members, (size_t)first->size * sizeof first->members[0]))
        return MPI_IDENT;
    for (int i = 0; i < first->size; i++)
        if (group_find(second, first->members[i]) == MPI_UNDEFINED)
            return MPI_UNEQUAL;
    return MPI_SIMILAR;
}
