/*
 * wait.c: the calls that wait for requests, test and free them.
 */
#include "mpi/objects/call_names.h"
#include "mpi/objects/communicator.h"
#include "mpi/objects/error.h"
#include "mpi/objects/handle_table.h"
#include "mpi/objects/inbox.h"
#include "mpi/objects/message_matching.h"
#include "mpi/objects/publish.h"
#include "mpi/objects/rank_state.h"
#include "mpi/objects/request.h"
#include "ranks/scheduler.h"

/* Completes the request of a handle; releases it and nulls the handle unless it is persistent. */
static int finish(struct mpi_rank *self, enum call call, MPI_Request *handle, MPI_Status *status) {
    struct request *request = table_get(&self->requests, *handle);
    struct communicator *comm = request->comm;
    comm_hold(comm);
    int code;
    if (request->persistent) {
        code = request_wait_and_rest(self, request, status);
    } else {
        table_remove(&self->requests, *handle);
        *handle = MPI_REQUEST_NULL;
        code = request_wait(self, request, status);
    }
    if (code)
        mpi_fail(self, comm, call, code);
    comm_drop(comm);
    return code;
}

/* The request of a handle, if there is anything to wait for. */
static struct request *active_get(const struct mpi_rank *self, MPI_Request handle) {
    struct request *request = table_get(&self->requests, handle);
    return request && request->active ? request : NULL;
}

/* The same; NULL with *code set when the handle is bad, and without when it is null or inactive. */
static struct request *lookup(struct mpi_rank *self, enum call call, MPI_Request handle, int *code) {
    const struct request *request = table_get(&self->requests, handle);
    *code = request || handle == MPI_REQUEST_NULL ? MPI_SUCCESS : mpi_fail(self, NULL, call, MPI_ERR_REQUEST);
    return active_get(self, handle);
}

static void publish_request(enum call call, const struct request *request) {
    call_publish(call, request->peer, request->tag, request->comm);
}

static MPI_Status *status_at(MPI_Status *statuses, int index) {
    return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[index];
}

int MPI_Wait(MPI_Request *request, MPI_Status *status) {
    struct mpi_rank *self = mpi_self(CALL_Wait);
    int code;
    struct request *pending = lookup(self, CALL_Wait, *request, &code);
    if (!pending) {
        status_set_empty(status);
        return code;
    }
    publish_request(CALL_Wait, pending);
    code = finish(self, CALL_Wait, request, status);
    rank_call_leave();
    return code;
}

/* Finishes every request in turn, each published while it is waited for. */
static int finish_all(struct mpi_rank *self, enum call call, int count, MPI_Request requests[], MPI_Status *statuses) {
    int result = MPI_SUCCESS;
    for (int i = 0; i < count; i++) {
        int code;
        struct request *pending = lookup(self, call, requests[i], &code);
        if (pending) {
            publish_request(call, pending);
            code = finish(self, call, &requests[i], status_at(statuses, i));
            rank_call_leave();
        } else {
            status_set_empty(status_at(statuses, i));
        }
        if (code)
            result = MPI_ERR_IN_STATUS;
        if (statuses != MPI_STATUSES_IGNORE)
            statuses[i].MPI_ERROR = code;
    }
    return result;
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status *statuses) {
    struct mpi_rank *self = mpi_self(CALL_Waitall);
    if (count < 0)
        return mpi_fail(self, NULL, CALL_Waitall, MPI_ERR_COUNT);
    return finish_all(self, CALL_Waitall, count, requests, statuses);
}

/* Index of the first request that is done, -1 if none is; *active tells how many could be.  Under the lock. */
static int first_done(struct mpi_rank *self, int count, const MPI_Request requests[], int *active) {
    *active = 0;
    for (int i = 0; i < count; i++) {
        const struct request *request = active_get(self, requests[i]);
        if (!request)
            continue;
        (*active)++;
        if (request->done)
            return i;
    }
    return -1;
}

static int scan(struct mpi_rank *self, int count, const MPI_Request requests[], int *active) {
    pthread_mutex_lock(&self->inbox->lock);
    int index = first_done(self, count, requests, active);
    pthread_mutex_unlock(&self->inbox->lock);
    return index;
}

/* Blocks until one of the requests is done; -1 if all are null. */
static int await_any(struct mpi_rank *self, int count, const MPI_Request requests[]) {
    int active;
    pthread_mutex_lock(&self->inbox->lock);
    int index = first_done(self, count, requests, &active);
    while (index < 0 && active > 0) {
        rank_block(&self->inbox->lock); /* releases it */
        pthread_mutex_lock(&self->inbox->lock);
        index = first_done(self, count, requests, &active);
    }
    pthread_mutex_unlock(&self->inbox->lock);
    return index;
}

static int check_list(struct mpi_rank *self, enum call call, int count, const MPI_Request requests[]) {
    int code = count < 0 ? mpi_fail(self, NULL, call, MPI_ERR_COUNT) : MPI_SUCCESS;
    for (int i = 0; i < count && !code; i++)
        lookup(self, call, requests[i], &code);
    return code;
}

/* Publishes what a call that needs one request waits for: what they all have in common. */
static void publish_any(const struct mpi_rank *self, enum call call, int count, const MPI_Request requests[]) {
    const struct request *first = NULL;
    int peer = MPI_ANY_SOURCE, tag = PUBLISH_ANY;
    for (int i = 0; i < count; i++) {
        const struct request *request = active_get(self, requests[i]);
        if (!request)
            continue;
        if (!first) {
            first = request;
            peer = request->peer;
            tag = request->tag;
        } else if (request->comm != first->comm || request->peer != peer) {
            call_publish(call, MPI_ANY_SOURCE, PUBLISH_ANY, NULL); /* there is no room for several */
            return;
        } else if (request->tag != tag) {
            tag = PUBLISH_ANY;
        }
    }
    call_publish(call, peer, tag, first ? first->comm : NULL);
}

int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status) {
    struct mpi_rank *self = mpi_self(CALL_Waitany);
    int code = check_list(self, CALL_Waitany, count, requests);
    if (code)
        return code;
    publish_any(self, CALL_Waitany, count, requests);
    int done = await_any(self, count, requests);
    rank_call_leave();
    *index = done < 0 ? MPI_UNDEFINED : done;
    if (done >= 0)
        return finish(self, CALL_Waitany, &requests[done], status);
    status_set_empty(status);
    return MPI_SUCCESS;
}

int MPI_Waitsome(int count, MPI_Request requests[], int *done, int indices[], MPI_Status *statuses) {
    struct mpi_rank *self = mpi_self(CALL_Waitsome);
    int result = check_list(self, CALL_Waitsome, count, requests);
    if (result)
        return result;
    publish_any(self, CALL_Waitsome, count, requests);
    int first = await_any(self, count, requests);
    rank_call_leave();
    *done = first < 0 ? MPI_UNDEFINED : 0;
    for (int i = first; i >= 0 && i < count; i++) {
        const struct request *request = active_get(self, requests[i]);
        if (!request || !request_is_done(self, request))
            continue;
        int code = finish(self, CALL_Waitsome, &requests[i], status_at(statuses, *done));
        if (statuses != MPI_STATUSES_IGNORE)
            statuses[*done].MPI_ERROR = code;
        if (code)
            result = MPI_ERR_IN_STATUS;
        indices[(*done)++] = i;
    }
    return result;
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status) {
    struct mpi_rank *self = mpi_self(CALL_Test);
    int code;
    struct request *pending = lookup(self, CALL_Test, *request, &code);
    *flag = !pending || request_is_done(self, pending);
    if (!*flag) {
        rank_yield(); /* who polls must let others run, or nothing ever changes */
        return MPI_SUCCESS;
    }
    if (pending)
        return finish(self, CALL_Test, request, status);
    status_set_empty(status);
    return code;
}

int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status *statuses) {
    struct mpi_rank *self = mpi_self(CALL_Testall);
    int code = check_list(self, CALL_Testall, count, requests);
    if (code)
        return code;
    *flag = 1;
    for (int i = 0; i < count && *flag; i++) {
        const struct request *request = active_get(self, requests[i]);
        *flag = !request || request_is_done(self, request);
    }
    if (*flag)
        return finish_all(self, CALL_Testall, count, requests, statuses);
    rank_yield();
    return MPI_SUCCESS;
}

int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status) {
    struct mpi_rank *self = mpi_self(CALL_Testany);
    int code = check_list(self, CALL_Testany, count, requests);
    if (code)
        return code;
    int active;
    int done = scan(self, count, requests, &active);
    *flag = done >= 0 || active == 0;
    *index = done < 0 ? MPI_UNDEFINED : done;
    if (done >= 0)
        return finish(self, CALL_Testany, &requests[done], status);
    if (*flag)
        status_set_empty(status);
    else
        rank_yield();
    return MPI_SUCCESS;
}

int MPI_Request_free(MPI_Request *request) {
    struct mpi_rank *self = mpi_self(CALL_Request_free);
    struct request *freed = table_get(&self->requests, *request);
    if (!freed)
        return mpi_fail(self, NULL, CALL_Request_free, MPI_ERR_REQUEST);
    table_remove(&self->requests, *request);
    *request = MPI_REQUEST_NULL;
    if (!freed->active) {
        request_release(freed);
        return MPI_SUCCESS;
    }
    freed->detached_next = self->detached;
    self->detached = freed;
    request_sweep(self);
    return MPI_SUCCESS;
}
