/*
 * communicator_create.c: the calls that make communicators of others, compare and free them.
 *
 * One member draws the new context number from numbers of its own and tells the others, so no rank needs to know what
 * communicators exist elsewhere.
 */
#include "mpi/calls/communicator_create.h"
#include "mpi/calls/collective_check.h"
#include "mpi/calls/collective_common.h"
#include "mpi/objects/call_names.h"
#include "mpi/objects/cartesian_topology.h"
#include "mpi/objects/datatype.h"
#include "mpi/objects/error.h"
#include "mpi/objects/group.h"
#include "mpi/objects/library_memory.h"
#include "mpi/objects/publish.h"
#include "ranks/scheduler.h"

#include <stdlib.h>

/* 1 is MPI_COMM_WORLD's; then comes one per rank for its MPI_COMM_SELF; above these, each rank has numbers to draw. */
#define CONTEXTS_PER_RANK (UINT64_C(1) << 32)

/* *first: the first of `count` fresh context numbers, the same on all members. */
static int draw_contexts(struct mpi_rank *self, struct communicator *comm, int count, uint64_t *first) {
    if (comm->rank == 0)
        *first = CONTEXTS_PER_RANK * (uint64_t)(self->world + 1) + self->contexts, self->contexts += (unsigned)count;
    return collective_broadcast(self, comm, first, 1, type_get(self, MPI_UINT64_T), 0);
}

int MPI_Comm_rank(MPI_Comm comm, int *rank) {
    struct mpi_rank *self = mpi_self(CALL_Comm_rank);
    const struct communicator *communicator = comm_get(self, comm);
    if (!communicator)
        return mpi_fail(self, NULL, CALL_Comm_rank, MPI_ERR_COMM);
    *rank = communicator->rank;
    return MPI_SUCCESS;
}

int MPI_Comm_size(MPI_Comm comm, int *size) {
    struct mpi_rank *self = mpi_self(CALL_Comm_size);
    const struct communicator *communicator = comm_get(self, comm);
    if (!communicator)
        return mpi_fail(self, NULL, CALL_Comm_size, MPI_ERR_COMM);
    *size = comm_size(communicator);
    return MPI_SUCCESS;
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *copy) {
    struct mpi_rank *self = mpi_self(CALL_Comm_dup);
    struct communicator *communicator = comm_get(self, comm);
    if (!communicator)
        return mpi_fail(self, NULL, CALL_Comm_dup, MPI_ERR_COMM);
    uint64_t context;
    int code = collective_publish(self, communicator, CALL_Comm_dup, NO_ROOT);
    if (!code)
        code = draw_contexts(self, communicator, 1, &context);
    rank_call_leave();
    if (code)
        return mpi_fail(self, communicator, CALL_Comm_dup, code);
    communicator->group->references++;
    *copy = comm_add(self, communicator, context, communicator->group);
    comm_get(self, *copy)->cartesian = cartesian_topology_copy(communicator->cartesian);
    return MPI_SUCCESS;
}

/* A rank's arguments of MPI_Comm_split(). */
struct choice {
    int color, key, rank;
};

static int by_key(const void *first, const void *second) {
    const struct choice *a = first, *b = second;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->rank - b->rank;
}

/* All members' choices, at every member; `choices` has this member's own. */
static int exchange_choices(struct mpi_rank *self, struct communicator *comm, struct choice *choices) {
    int size = comm_size(comm), tag = collective_begin(comm), code = MPI_SUCCESS;
    struct datatype *type = type_get(self, MPI_INT);
    if (comm->rank != 0)
        code = collective_send(self, comm, &choices[comm->rank], 3, type, 0, tag);
    for (int i = 1; comm->rank == 0 && i < size && !code; i++)
        code = collective_recv(self, comm, &choices[i], 3, type, i, tag);
    return code ? code : collective_broadcast(self, comm, choices, 3 * size, type, 0);
}

/* Keeps the choices of `color`, in the new order; returns how many.  *lowest: the lowest old rank among them. */
static int select_color(struct choice *choices, int size, int color, int *lowest) {
    int kept = 0;
    *lowest = size;
    for (int i = 0; i < size; i++) {
        if (choices[i].color != color)
            continue;
        if (choices[i].rank < *lowest)
            *lowest = choices[i].rank;
        choices[kept++] = choices[i];
    }
    qsort(choices, (size_t)kept, sizeof *choices, by_key);
    return kept;
}

int comm_split(struct mpi_rank *self, struct communicator *comm, enum call call, int color, int key, MPI_Comm *made) {
    int size = comm_size(comm), lowest;
    struct choice *choices = host_allocate((size_t)size * sizeof *choices);
    uint64_t first;
    choices[comm->rank] = (struct choice){color, key, comm->rank};
    int code = collective_publish(self, comm, call, NO_ROOT);
    if (!code)
        code = exchange_choices(self, comm, choices);
    if (!code)
        code = draw_contexts(self, comm, size, &first);
    rank_call_leave();
    *made = MPI_COMM_NULL;
    if (!code && color != MPI_UNDEFINED) {
        struct group *group = group_new(select_color(choices, size, color, &lowest));
        for (int i = 0; i < group->size; i++)
            group->members[i] = comm->group->members[choices[i].rank];
        *made = comm_add(self, comm, first + (unsigned)lowest, group);
    }
    host_release(choices);
    return code;
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *part) {
    struct mpi_rank *self = mpi_self(CALL_Comm_split);
    struct communicator *communicator = comm_get(self, comm);
    if (!communicator)
        return mpi_fail(self, NULL, CALL_Comm_split, MPI_ERR_COMM);
    if (color < 0 && color != MPI_UNDEFINED)
        return mpi_fail(self, communicator, CALL_Comm_split, MPI_ERR_ARG);
    int code = comm_split(self, communicator, CALL_Comm_split, color, key, part);
    return code ? mpi_fail(self, communicator, CALL_Comm_split, code) : MPI_SUCCESS;
}

/* A split in which the members of the group have one color and their place in it as the key. */
int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *created) {
    struct mpi_rank *self = mpi_self(CALL_Comm_create);
    struct communicator *communicator = comm_get(self, comm);
    const struct group *members = group_get(self, group);
    if (!communicator || !members)
        return mpi_fail(self, communicator, CALL_Comm_create, communicator ? MPI_ERR_GROUP : MPI_ERR_COMM);
    int place = group_find(members, self->world);
    /* Disjoint groups may be given in one call: the first member tells them apart. */
    int color = place == MPI_UNDEFINED ? MPI_UNDEFINED : members->members[0];
    int code = comm_split(self, communicator, CALL_Comm_create, color, place, created);
    return code ? mpi_fail(self, communicator, CALL_Comm_create, code) : MPI_SUCCESS;
}

int MPI_Comm_free(MPI_Comm *comm) {
    struct mpi_rank *self = mpi_self(CALL_Comm_free);
    struct communicator *communicator = comm_get(self, *comm);
    if (!communicator || *comm <= MPI_COMM_SELF)
        return mpi_fail(self, communicator, CALL_Comm_free, MPI_ERR_COMM);
    int code = collective_check_last(self, communicator, CALL_Comm_free);
    if (code)
        return mpi_fail(self, communicator, CALL_Comm_free, code);
    table_remove(&self->communicators, *comm);
    comm_drop(communicator);
    *comm = MPI_COMM_NULL;
    return MPI_SUCCESS;
}

int MPI_Comm_compare(MPI_Comm first, MPI_Comm second, int *result) {
    struct mpi_rank *self = mpi_self(CALL_Comm_compare);
    const struct communicator *first_communicator = comm_get(self, first),
                              *second_communicator = comm_get(self, second);
    if (!first_communicator || !second_communicator)
        return mpi_fail(self, NULL, CALL_Comm_compare, MPI_ERR_COMM);
    *result = group_compare(first_communicator->group, second_communicator->group);
    if (*result == MPI_IDENT && first_communicator->context != second_communicator->context)
        *result = MPI_CONGRUENT;
    return MPI_SUCCESS;
}
