/*
 * collective_common.c: what the collectives are built of: messages in a channel of their own, a broadcast and a
 * barrier.
 *
 * Members call the collectives of a communicator in the same order, so counting them gives each its own tag.  Sends are
 * eager: a collective may send all it has before it receives anything.
 */
#include "mpi/calls/collective_common.h"
#include "mpi/calls/collective_check.h"
#include "mpi/objects/call_names.h"
#include "mpi/objects/communicator.h"
#include "mpi/objects/datatype.h"
#include "mpi/objects/error.h"
#include "mpi/objects/inbox.h"
#include "mpi/objects/library_memory.h"
#include "mpi/objects/message_matching.h"
#include "mpi/objects/publish.h"
#include "mpi/objects/rank_state.h"
#include "mpi/objects/request.h"
#include "ranks/scheduler.h"

int collective_publish(struct mpi_rank *self, struct communicator *comm, enum call call, int root) {
    call_publish(call, MPI_PROC_NULL, PUBLISH_NONE, comm);
    comm->current = (struct collective_call){call, root};
    self->root = root;
    return collective_check_earlier(self, comm);
}

int collective_begin(struct communicator *comm) {
    comm->collective = (comm->collective + 1) & MPI_TAG_UB_VALUE;
    return comm->collective;
}

int collective_send(struct mpi_rank *self, struct communicator *comm, const void *buffer, int count,
                    struct datatype *type, int dest, int tag) {
    return message_send(self, comm, CHANNEL_COLLECTIVE, buffer, count, type, dest, tag, NULL);
}

int collective_recv(struct mpi_rank *self, struct communicator *comm, void *buffer, int count, struct datatype *type,
                    int source, int tag) {
    struct request *request = request_receive(self, comm, CHANNEL_COLLECTIVE, buffer, count, type, source, tag);
    rank_call_needs(source); /* collectives are chains of such waits: this is the next rank of the chain */
    int code = collective_check_wait(self, comm, request);
    rank_call_needs(PUBLISH_NONE);
    if (!code)
        return request_wait(self, request, MPI_STATUS_IGNORE);
    message_withdraw(self, request);
    request_release(request);
    return code;
}

/* A binomial tree over the ranks, counted from the root. */
int collective_broadcast(struct mpi_rank *self, struct communicator *comm, void *buffer, int count,
                         struct datatype *type, int root) {
    int size = comm_size(comm), tag = collective_begin(comm), code = MPI_SUCCESS;
    int place = (comm->rank - root + size) % size, mask = 1;
    while (mask < size && !(place & mask))
        mask <<= 1;
    if (place)
        code = collective_recv(self, comm, buffer, count, type, (comm->rank - mask + size) % size, tag);
    for (mask >>= 1; mask > 0; mask >>= 1)
        if (place + mask < size) {
            int sent = collective_send(self, comm, buffer, count, type, (comm->rank + mask) % size, tag);
            code = code ? code : sent;
        }
    return code;
}

/* Dissemination: after step k every rank has heard, directly or not, of the 2^(k+1) - 1 before it. */
int collective_barrier(struct mpi_rank *self, struct communicator *comm) {
    int size = comm_size(comm), tag = collective_begin(comm), code = MPI_SUCCESS;
    struct datatype *type = type_get(self, MPI_BYTE);
    for (int step = 1; step < size && !code; step <<= 1) {
        code = collective_send(self, comm, NULL, 0, type, (comm->rank + step) % size, tag);
        if (!code)
            code = collective_recv(self, comm, NULL, 0, type, (comm->rank - step + size) % size, tag);
    }
    return code;
}

void *element_at(const void *buffer, ptrdiff_t index, const struct datatype *type) {
    return (void *)((uintptr_t)buffer + (uintptr_t)(index * type_extent(type)));
}

void collective_copy(const void *from, int from_count, const struct datatype *from_type, void *to,
                     const struct datatype *to_type) {
    size_t bytes = from_type->size * (size_t)from_count;
    bool same = from == to && from_type == to_type; /* from MPI_BOTTOM, types alone say where the elements are */
    if (same || bytes == 0)
        return;
    void *packed = host_allocate(bytes);
    type_pack(from_type, from_count, from, packed);
    type_unpack(to_type, bytes, packed, to);
    host_release(packed);
}

struct collective collective_enter(enum call call, MPI_Comm comm, int root) {
    struct mpi_rank *self = mpi_self(call);
    struct collective collective = {.self = self, .comm = comm_get(self, comm), .call = call};
    if (!collective.comm) {
        call_publish(call, MPI_PROC_NULL, PUBLISH_NONE, NULL);
        collective.code = MPI_ERR_COMM;
        return collective;
    }
    collective.code = collective_publish(self, collective.comm, call, root);
    collective.size = comm_size(collective.comm);
    collective.rank = collective.comm->rank;
    collective.tag = collective_begin(collective.comm);
    if (root != NO_ROOT && (root < 0 || root >= collective.size))
        collective.code = MPI_ERR_ROOT;
    return collective;
}

struct datatype *collective_type(struct collective *collective, int count, MPI_Datatype type) {
    struct datatype *datatype = type_get(collective->self, type);
    if (!collective->code && (!datatype || !datatype->committed))
        collective->code = MPI_ERR_TYPE;
    if (!collective->code && count < 0)
        collective->code = MPI_ERR_COUNT;
    return datatype;
}

int collective_leave(struct collective *collective) {
    rank_call_leave();
    collective->self->root = NO_ROOT;
    if (collective->code)
        mpi_fail(collective->self, collective->comm, collective->call, collective->code);
    return collective->code;
}

int MPI_Barrier(MPI_Comm comm) {
    struct collective call = collective_enter(CALL_Barrier, comm, NO_ROOT);
    if (!call.code)
        call.code = collective_barrier(call.self, call.comm);
    return collective_leave(&call);
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    struct collective call = collective_enter(CALL_Bcast, comm, root);
    struct datatype *datatype = collective_type(&call, count, type);
    if (!call.code)
        call.code = collective_broadcast(call.self, call.comm, buffer, count, datatype, root);
    return collective_leave(&call);
}
