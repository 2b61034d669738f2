/*
 * point_to_point.c: the calls that send, receive and probe.
 *
 * Standard sends are eager: the data is copied before the call returns, so they never block.
 */
#include "mpi/calls/point_to_point.h"
#include "mpi/objects/call_names.h"
#include "mpi/objects/communicator.h"
#include "mpi/objects/datatype.h"
#include "mpi/objects/error.h"
#include "mpi/objects/handle_table.h"
#include "mpi/objects/inbox.h"
#include "mpi/objects/message_matching.h"
#include "mpi/objects/publish.h"
#include "mpi/objects/rank_state.h"
#include "mpi/objects/request.h"
#include "ranks/scheduler.h"

#include <limits.h>

int check_message(struct communicator *comm, int count, struct datatype *type, int peer, int tag, bool receives) {
    if (!comm)
        return MPI_ERR_COMM;
    if (count < 0)
        return MPI_ERR_COUNT;
    if (!type || !type->committed)
        return MPI_ERR_TYPE;
    if (peer != MPI_PROC_NULL && !(receives && peer == MPI_ANY_SOURCE) && (peer < 0 || peer >= comm_size(comm)))
        return MPI_ERR_RANK;
    if (!(receives && tag == MPI_ANY_TAG) && (tag < 0 || tag > MPI_TAG_UB_VALUE))
        return MPI_ERR_TAG;
    return MPI_SUCCESS;
}

/* A communication as a call's arguments give it, looked up and checked. */
struct transfer {
    struct mpi_rank *self;
    struct communicator *comm;
    struct datatype *type;
    int code; /* not MPI_SUCCESS: the error handler has been called */
};

/* Inline: as a function, a tenth of what polling costs went into saving registers and copying arguments for it. */
static inline __attribute__((always_inline)) struct transfer begin(enum call call, int count, MPI_Datatype type,
                                                                   int peer, int tag, MPI_Comm comm, bool receives) {
    struct mpi_rank *self = mpi_self(call);
    struct transfer transfer = {self, comm_get(self, comm), type_get(self, type), MPI_SUCCESS};
    transfer.code = check_message(transfer.comm, count, transfer.type, peer, tag, receives);
    if (transfer.code)
        mpi_fail(self, transfer.comm, call, transfer.code);
    return transfer;
}

/* Starts a send; the request is done at once unless it is synchronous. */
static struct request *start_send(const struct transfer *transfer, const void *buffer, int count, int dest, int tag,
                                  bool synchronous, int *code) {
    struct request *request = request_new(transfer->self, transfer->comm, false, NULL, 0, transfer->type, dest, tag);
    request->done = !synchronous || dest == MPI_PROC_NULL;
    *code = MPI_SUCCESS;
    if (dest != MPI_PROC_NULL)
        *code = message_send(transfer->self, transfer->comm, CHANNEL_USER, buffer, count, transfer->type, dest, tag,
                             request->done ? NULL : request);
    return request;
}

static int send_now(const struct transfer *transfer, const void *buffer, int count, int dest, int tag) {
    if (dest == MPI_PROC_NULL)
        return MPI_SUCCESS;
    return message_send(transfer->self, transfer->comm, CHANNEL_USER, buffer, count, transfer->type, dest, tag, NULL);
}

static int result(const struct transfer *transfer, enum call call, int code) {
    return code ? mpi_fail(transfer->self, transfer->comm, call, code) : MPI_SUCCESS;
}

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
    struct transfer transfer = begin(CALL_Send, count, type, dest, tag, comm, false);
    if (transfer.code)
        return transfer.code;
    return result(&transfer, CALL_Send, send_now(&transfer, buffer, count, dest, tag));
}

int MPI_Ssend(const void *buffer, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
    struct transfer transfer = begin(CALL_Ssend, count, type, dest, tag, comm, false);
    if (transfer.code)
        return transfer.code;
    int code;
    call_publish(CALL_Ssend, dest, tag, transfer.comm);
    struct request *request = start_send(&transfer, buffer, count, dest, tag, true, &code);
    if (code)
        request_release(request);
    else
        code = request_wait(transfer.self, request, MPI_STATUS_IGNORE);
    rank_call_leave();
    return result(&transfer, CALL_Ssend, code);
}

static int receive(const struct transfer *transfer, void *buffer, int count, int source, int tag, MPI_Status *status) {
    struct request *request =
        request_receive(transfer->self, transfer->comm, CHANNEL_USER, buffer, count, transfer->type, source, tag);
    return request_wait(transfer->self, request, status);
}

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status) {
    struct transfer transfer = begin(CALL_Recv, count, type, source, tag, comm, true);
    if (transfer.code)
        return transfer.code;
    call_publish(CALL_Recv, source, tag, transfer.comm);
    int code = receive(&transfer, buffer, count, source, tag, status);
    rank_call_leave();
    return result(&transfer, CALL_Recv, code);
}

int MPI_Sendrecv(const void *send_buffer, int send_count, MPI_Datatype send_type, int dest, int send_tag,
                 void *recv_buffer, int recv_count, MPI_Datatype recv_type, int source, int recv_tag, MPI_Comm comm,
                 MPI_Status *status) {
    struct transfer in = begin(CALL_Sendrecv, recv_count, recv_type, source, recv_tag, comm, true);
    if (in.code)
        return in.code;
    struct transfer out = begin(CALL_Sendrecv, send_count, send_type, dest, send_tag, comm, false);
    if (out.code)
        return out.code;
    call_publish(CALL_Sendrecv, source, recv_tag, in.comm);
    int code = send_now(&out, send_buffer, send_count, dest, send_tag);
    if (!code)
        code = receive(&in, recv_buffer, recv_count, source, recv_tag, status);
    rank_call_leave();
    return result(&in, CALL_Sendrecv, code);
}

int MPI_Sendrecv_replace(void *buffer, int count, MPI_Datatype type, int dest, int send_tag, int source, int recv_tag,
                         MPI_Comm comm, MPI_Status *status) {
    struct transfer in = begin(CALL_Sendrecv_replace, count, type, source, recv_tag, comm, true);
    if (in.code)
        return in.code;
    struct transfer out = begin(CALL_Sendrecv_replace, count, type, dest, send_tag, comm, false);
    if (out.code)
        return out.code;
    call_publish(CALL_Sendrecv_replace, source, recv_tag, in.comm);
    int code = send_now(&out, buffer, count, dest, send_tag); /* eager: the buffer is free again */
    if (!code)
        code = receive(&in, buffer, count, source, recv_tag, status);
    rank_call_leave();
    return result(&in, CALL_Sendrecv_replace, code);
}

static int start_send_call(enum call call, const void *buffer, int count, MPI_Datatype type, int dest, int tag,
                           MPI_Comm comm, bool synchronous, MPI_Request *request) {
    struct transfer transfer = begin(call, count, type, dest, tag, comm, false);
    if (transfer.code)
        return transfer.code;
    int code;
    struct request *started = start_send(&transfer, buffer, count, dest, tag, synchronous, &code);
    if (code) {
        request_release(started);
        return result(&transfer, call, code);
    }
    *request = table_add(&transfer.self->requests, started);
    return MPI_SUCCESS;
}

int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
              MPI_Request *request) {
    return start_send_call(CALL_Isend, buffer, count, type, dest, tag, comm, false, request);
}

int MPI_Issend(const void *buffer, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
               MPI_Request *request) {
    return start_send_call(CALL_Issend, buffer, count, type, dest, tag, comm, true, request);
}

int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *request) {
    struct transfer transfer = begin(CALL_Irecv, count, type, source, tag, comm, true);
    if (transfer.code)
        return transfer.code;
    struct request *started =
        request_receive(transfer.self, transfer.comm, CHANNEL_USER, buffer, count, transfer.type, source, tag);
    *request = table_add(&transfer.self->requests, started);
    return MPI_SUCCESS;
}

int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status) {
    struct transfer transfer = begin(CALL_Probe, 0, MPI_BYTE, source, tag, comm, true);
    if (transfer.code)
        return transfer.code;
    if (source == MPI_PROC_NULL) {
        status_set(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
        return MPI_SUCCESS;
    }
    call_publish(CALL_Probe, source, tag, transfer.comm);
    message_find(transfer.self, transfer.comm, source, tag, true, status);
    rank_call_leave();
    return MPI_SUCCESS;
}

int MPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status) {
    struct transfer transfer = begin(CALL_Iprobe, 0, MPI_BYTE, source, tag, comm, true);
    if (transfer.code)
        return transfer.code;
    *flag = 1;
    if (source == MPI_PROC_NULL) {
        status_set(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
        return MPI_SUCCESS;
    }
    *flag = message_find(transfer.self, transfer.comm, source, tag, false, status);
    if (!*flag)
        rank_yield(); /* who polls must let others run, or nothing ever changes */
    return MPI_SUCCESS;
}

int MPI_Get_count(const MPI_Status *status, MPI_Datatype type, int *count) {
    struct mpi_rank *self = mpi_self(CALL_Get_count);
    const struct datatype *datatype = type_get(self, type);
    if (!datatype)
        return mpi_fail(self, NULL, CALL_Get_count, MPI_ERR_TYPE);
    uint64_t bytes = status->rank_bytes[0] | (uint64_t)status->rank_bytes[1] << 32;
    if (datatype->size == 0)
        *count = bytes ? MPI_UNDEFINED : 0;
    else if (bytes % datatype->size || bytes / datatype->size > INT_MAX)
        *count = MPI_UNDEFINED;
    else
        *count = (int)(bytes / datatype->size);
    return MPI_SUCCESS;
}
