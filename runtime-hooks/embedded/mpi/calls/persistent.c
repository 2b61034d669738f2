/*
 * persistent.c: requests that are made once and begun again and again (MPI-3.1, 3.9), and the ready sends.
 *
 * Between its completion and its next start such a request is inactive: it is in no queue, and waiting for it is as
 * waiting for MPI_REQUEST_NULL (wait.c).  A ready send is a standard one, which the standard allows.
 */
#include "mpi/calls/point_to_point.h"
#include "mpi/objects/call_names.h"
#include "mpi/objects/communicator.h"
#include "mpi/objects/datatype.h"
#include "mpi/objects/error.h"
#include "mpi/objects/handle_table.h"
#include "mpi/objects/inbox.h"
#include "mpi/objects/message_matching.h"
#include "mpi/objects/rank_state.h"
#include "mpi/objects/request.h"

int MPI_Rsend(const void *buffer, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
    return MPI_Send(buffer, count, type, dest, tag, comm);
}

int MPI_Irsend(const void *buffer, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
               MPI_Request *request) {
    return MPI_Isend(buffer, count, type, dest, tag, comm, request);
}

static int make(enum call call, const struct request *wanted, MPI_Datatype type, MPI_Comm comm, MPI_Request *made) {
    struct mpi_rank *self = mpi_self(call);
    struct communicator *communicator = comm_get(self, comm);
    struct datatype *of = type_get(self, type);
    int code = check_message(communicator, wanted->count, of, wanted->peer, wanted->tag, wanted->receives);
    if (code)
        return mpi_fail(self, communicator, call, code);
    struct request *request =
        request_new(self, communicator, wanted->receives, wanted->buffer, wanted->count, of, wanted->peer, wanted->tag);
    request->persistent = true;
    request->active = false;
    request->synchronous = wanted->synchronous;
    *made = table_add(&self->requests, request);
    return MPI_SUCCESS;
}

static int make_send(enum call call, const void *buffer, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                     bool synchronous, MPI_Request *request) {
    const struct request wanted = {
        .buffer = (void *)buffer, .count = count, .peer = dest, .tag = tag, .synchronous = synchronous};
    return make(call, &wanted, type, comm, request);
}

int MPI_Send_init(const void *buffer, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                  MPI_Request *request) {
    return make_send(CALL_Send_init, buffer, count, type, dest, tag, comm, false, request);
}

int MPI_Rsend_init(const void *buffer, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                   MPI_Request *request) {
    return make_send(CALL_Rsend_init, buffer, count, type, dest, tag, comm, false, request);
}

int MPI_Ssend_init(const void *buffer, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                   MPI_Request *request) {
    return make_send(CALL_Ssend_init, buffer, count, type, dest, tag, comm, true, request);
}

int MPI_Recv_init(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                  MPI_Request *request) {
    const struct request wanted = {.buffer = buffer, .count = count, .peer = source, .tag = tag, .receives = true};
    return make(CALL_Recv_init, &wanted, type, comm, request);
}

static int start(struct mpi_rank *self, struct request *request) {
    request->active = true;
    request->next = NULL;
    request->done = request->peer == MPI_PROC_NULL || !(request->receives || request->synchronous);
    if (request->peer == MPI_PROC_NULL)
        return MPI_SUCCESS;
    if (request->receives) {
        message_post(self, request);
        return MPI_SUCCESS;
    }
    int code = message_send(self, request->comm, CHANNEL_USER, request->buffer, request->count, request->type,
                            request->peer, request->tag, request->done ? NULL : request);
    if (code)
        request->active = false;
    return code;
}

static int start_all(enum call call, int count, const MPI_Request requests[]) {
    struct mpi_rank *self = mpi_self(call);
    if (count < 0)
        return mpi_fail(self, NULL, call, MPI_ERR_COUNT);
    for (int i = 0; i < count; i++) {
        struct request *request = table_get(&self->requests, requests[i]);
        if (!request || !request->persistent || request->active)
            return mpi_fail(self, request ? request->comm : NULL, call, MPI_ERR_REQUEST);
        int code = start(self, request);
        if (code)
            return mpi_fail(self, request->comm, call, code);
    }
    return MPI_SUCCESS;
}

int MPI_Start(MPI_Request *request) {
    return start_all(CALL_Start, 1, request);
}

int MPI_Startall(int count, MPI_Request requests[]) {
    return start_all(CALL_Startall, count, requests);
}
