/*
 * collective_move.c: the collectives that move data: gather, scatter, allgather, all-to-all.
 *
 * Each regular one is its v-variant with equal counts; a `layout` answers where a member's block lies.
 */
#include "mpi/calls/collective_common.h"
#include "mpi/objects/call_names.h"
#include "mpi/objects/datatype.h"

/* Where each member's block lies in a buffer: by arrays, or (counts NULL) equal blocks one after another. */
struct layout {
    void *buffer;
    const int *counts, *offsets;
    int count;
    struct datatype *type;
};

static int block_count(const struct layout *layout, int member) {
    return layout->counts ? layout->counts[member] : layout->count;
}

static void *block(const struct layout *layout, int member) {
    ptrdiff_t index = layout->offsets ? layout->offsets[member] : (ptrdiff_t)member * layout->count;
    return element_at(layout->buffer, index, layout->type);
}

static void note(struct collective *call, int code) {
    if (!call->code)
        call->code = code;
}

static void send_block(struct collective *call, const struct layout *from, int member, int dest) {
    note(call, collective_send(call->self, call->comm, block(from, member), block_count(from, member), from->type, dest,
                               call->tag));
}

static void recv_block(struct collective *call, const struct layout *to, int member, int source) {
    note(call, collective_recv(call->self, call->comm, block(to, member), block_count(to, member), to->type, source,
                               call->tag));
}

/* Layouts of one block, for the side of a call that has only its own. */
static struct layout own(const void *buffer, int count, struct datatype *type) {
    return (struct layout){.buffer = (void *)buffer, .count = count, .type = type};
}

static void gather(struct collective *call, const void *send, int count, MPI_Datatype send_type, struct layout *to,
                   MPI_Datatype recv_type, int root) {
    bool at_root = call->rank == root, in_place = at_root && send == MPI_IN_PLACE;
    struct layout from = own(send, count, in_place ? NULL : collective_type(call, count, send_type));
    if (at_root)
        to->type = collective_type(call, to->count, recv_type);
    if (call->code)
        return;
    if (!at_root) {
        send_block(call, &from, 0, root);
        return;
    }
    for (int i = 0; i < call->size; i++)
        if (i != root)
            recv_block(call, to, i, i);
    if (!in_place)
        collective_copy(send, count, from.type, block(to, root), to->type);
}

int MPI_Gather(const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count,
               MPI_Datatype recv_type, int root, MPI_Comm comm) {
    struct collective call = collective_enter(CALL_Gather, comm, root);
    struct layout to = {.buffer = recv, .count = recv_count};
    gather(&call, send, send_count, send_type, &to, recv_type, root);
    return collective_leave(&call);
}

int MPI_Gatherv(const void *send, int send_count, MPI_Datatype send_type, void *recv, const int recv_counts[],
                const int offsets[], MPI_Datatype recv_type, int root, MPI_Comm comm) {
    struct collective call = collective_enter(CALL_Gatherv, comm, root);
    struct layout to = {.buffer = recv, .counts = recv_counts, .offsets = offsets};
    gather(&call, send, send_count, send_type, &to, recv_type, root);
    return collective_leave(&call);
}

static void scatter(struct collective *call, struct layout *from, MPI_Datatype send_type, void *recv, int count,
                    MPI_Datatype recv_type, int root) {
    bool at_root = call->rank == root, in_place = at_root && recv == MPI_IN_PLACE;
    struct layout to = own(recv, count, in_place ? NULL : collective_type(call, count, recv_type));
    if (at_root)
        from->type = collective_type(call, from->count, send_type);
    if (call->code)
        return;
    if (!at_root) {
        recv_block(call, &to, 0, root);
        return;
    }
    for (int i = 0; i < call->size; i++)
        if (i != root)
            send_block(call, from, i, i);
    if (!in_place)
        collective_copy(block(from, root), block_count(from, root), from->type, recv, to.type);
}

int MPI_Scatter(const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count,
                MPI_Datatype recv_type, int root, MPI_Comm comm) {
    struct collective call = collective_enter(CALL_Scatter, comm, root);
    struct layout from = {.buffer = (void *)send, .count = send_count};
    scatter(&call, &from, send_type, recv, recv_count, recv_type, root);
    return collective_leave(&call);
}

int MPI_Scatterv(const void *send, const int send_counts[], const int offsets[], MPI_Datatype send_type, void *recv,
                 int recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm) {
    struct collective call = collective_enter(CALL_Scatterv, comm, root);
    struct layout from = {.buffer = (void *)send, .counts = send_counts, .offsets = offsets};
    scatter(&call, &from, send_type, recv, recv_count, recv_type, root);
    return collective_leave(&call);
}

/* A ring: in each step a rank passes on the block that it got last. */
static void allgather(struct collective *call, const void *send, int count, MPI_Datatype send_type, struct layout *to,
                      MPI_Datatype recv_type) {
    bool in_place = send == MPI_IN_PLACE;
    struct datatype *from_type = in_place ? NULL : collective_type(call, count, send_type);
    to->type = collective_type(call, to->count, recv_type);
    if (call->code)
        return;
    if (!in_place)
        collective_copy(send, count, from_type, block(to, call->rank), to->type);
    int next = (call->rank + 1) % call->size, previous = (call->rank - 1 + call->size) % call->size;
    for (int step = 0; step < call->size - 1; step++) {
        send_block(call, to, (call->rank - step + call->size) % call->size, next);
        recv_block(call, to, (call->rank - step - 1 + call->size) % call->size, previous);
    }
}

int MPI_Allgather(const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count,
                  MPI_Datatype recv_type, MPI_Comm comm) {
    struct collective call = collective_enter(CALL_Allgather, comm, NO_ROOT);
    struct layout to = {.buffer = recv, .count = recv_count};
    allgather(&call, send, send_count, send_type, &to, recv_type);
    return collective_leave(&call);
}

int MPI_Allgatherv(const void *send, int send_count, MPI_Datatype send_type, void *recv, const int recv_counts[],
                   const int offsets[], MPI_Datatype recv_type, MPI_Comm comm) {
    struct collective call = collective_enter(CALL_Allgatherv, comm, NO_ROOT);
    struct layout to = {.buffer = recv, .counts = recv_counts, .offsets = offsets};
    allgather(&call, send, send_count, send_type, &to, recv_type);
    return collective_leave(&call);
}

/* All sends copy before anything arrives, so sending from the receive buffer (MPI_IN_PLACE) needs no more. */
static void all_to_all(struct collective *call, struct layout *from, MPI_Datatype send_type, struct layout *to,
                       MPI_Datatype recv_type) {
    to->type = collective_type(call, to->count, recv_type);
    if (from->buffer == MPI_IN_PLACE)
        *from = *to;
    else
        from->type = collective_type(call, from->count, send_type);
    if (call->code)
        return;
    for (int step = 1; step < call->size; step++) {
        int dest = (call->rank + step) % call->size;
        send_block(call, from, dest, dest);
    }
    collective_copy(block(from, call->rank), block_count(from, call->rank), from->type, block(to, call->rank),
                    to->type);
    for (int step = 1; step < call->size; step++) {
        int source = (call->rank - step + call->size) % call->size;
        recv_block(call, to, source, source);
    }
}

int MPI_Alltoall(const void *send, int send_count, MPI_Datatype send_type, void *recv, int recv_count,
                 MPI_Datatype recv_type, MPI_Comm comm) {
    struct collective call = collective_enter(CALL_Alltoall, comm, NO_ROOT);
    struct layout from = {.buffer = (void *)send, .count = send_count}, to = {.buffer = recv, .count = recv_count};
    all_to_all(&call, &from, send_type, &to, recv_type);
    return collective_leave(&call);
}

int MPI_Alltoallv(const void *send, const int send_counts[], const int send_offsets[], MPI_Datatype send_type,
                  void *recv, const int recv_counts[], const int recv_offsets[], MPI_Datatype recv_type,
                  MPI_Comm comm) {
    struct collective call = collective_enter(CALL_Alltoallv, comm, NO_ROOT);
    struct layout from = {.buffer = (void *)send, .counts = send_counts, .offsets = send_offsets};
    struct layout to = {.buffer = recv, .counts = recv_counts, .offsets = recv_offsets};
    all_to_all(&call, &from, send_type, &to, recv_type);
    return collective_leave(&call);
}
