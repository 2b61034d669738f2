/*
 * request.c: the life of a request: made, completed by its owner (who unpacks), released.
 *
 * `done` of a request is set by the rank that matched it, under the owner's inbox lock.
 */
#include "mpi/objects/request.h"
#include "mpi/objects/communicator.h"
#include "mpi/objects/datatype.h"
#include "mpi/objects/inbox.h"
#include "mpi/objects/library_memory.h"
#include "mpi/objects/message_matching.h"
#include "mpi/objects/rank_state.h"
#include "ranks/scheduler.h"

#include <string.h>

struct request *request_new(struct mpi_rank *self, struct communicator *comm, bool receives, void *buffer, int count,
                            struct datatype *type, int peer, int tag) {
    struct request *request = host_allocate(sizeof *request);
    *request = (struct request){.owner = self->world,
                                .receives = receives,
                                .active = true,
                                .context = comm->context,
                                .peer = peer,
                                .tag = tag,
                                .buffer = buffer,
                                .count = count,
                                .type = type,
                                .comm = comm};
    type_hold(type);
    comm_hold(comm);
    return request;
}

struct request *request_receive(struct mpi_rank *self, struct communicator *comm, enum channel channel, void *buffer,
                                int count, struct datatype *type, int source, int tag) {
    struct request *request = request_new(self, comm, true, buffer, count, type, source, tag);
    request->channel = channel;
    if (source == MPI_PROC_NULL)
        request->done = true;
    else
        message_post(self, request);
    return request;
}

void request_release(struct request *request) {
    type_drop(request->type);
    comm_drop(request->comm);
    host_release(request->message);
    host_release(request);
}

bool request_is_done(struct mpi_rank *self, const struct request *request) {
    pthread_mutex_lock(&self->inbox->lock);
    bool done = request->done;
    pthread_mutex_unlock(&self->inbox->lock);
    return done;
}

static void await(struct mpi_rank *self, const struct request *request) {
    pthread_mutex_lock(&self->inbox->lock);
    while (!request->done) {
        rank_block(&self->inbox->lock); /* releases it */
        pthread_mutex_lock(&self->inbox->lock);
    }
    pthread_mutex_unlock(&self->inbox->lock);
}

/* What is left to do for a request that is done, on its owner: unpack, fill the status. */
static int complete(const struct request *request, MPI_Status *status) {
    if (!request->receives) {
        status_set_empty(status);
        return MPI_SUCCESS;
    }
    const struct message *message = request->message;
    if (!message) {
        status_set(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
        return MPI_SUCCESS;
    }
    size_t room = request->type->size * (size_t)request->count;
    size_t bytes = message->bytes < room ? message->bytes : room;
    status_set(status, message->source, message->tag, bytes);
    if (!type_fits_buffer(request->type, bytes, request->buffer))
        return MPI_ERR_BUFFER;
    type_unpack(request->type, bytes, message->data, request->buffer);
    return message->bytes > room ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
}

int request_wait(struct mpi_rank *self, struct request *request, MPI_Status *status) {
    await(self, request);
    int code = complete(request, status);
    request_release(request);
    return code;
}

void request_sweep(struct mpi_rank *self) {
    struct request **link = &self->detached;
    while (*link) {
        struct request *request = *link;
        if (!request_is_done(self, request)) {
            link = &request->detached_next;
            continue;
        }
        *link = request->detached_next;
        complete(request, MPI_STATUS_IGNORE);
        request_release(request);
    }
}

int request_wait_and_rest(struct mpi_rank *self, struct request *request, MPI_Status *status) {
    await(self, request);
    int code = complete(request, status);
    host_release(request->message);
    request->message = NULL;
    request->active = false;
    return code;
}
