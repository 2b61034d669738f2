/*
 * error.c: error codes, their texts and the programs' own handlers.
 *
 * An error ends the job with one line that names rank and call, unless the communicator's handler says otherwise.
 */
#include "mpi/objects/error.h"
#include "mpi/objects/communicator.h"
#include "mpi/objects/library_memory.h"
#include "mpi/objects/rank_state.h"
#include "ranks/fatal.h"

#include <stdio.h>

/* Handles of users' error handlers follow the predefined ones. */
#define LAST_HANDLER MPI_ERRORS_RETURN

static const char *const error_texts[] = {
    [MPI_SUCCESS] = "no error",
    [MPI_ERR_BUFFER] = "invalid buffer",
    [MPI_ERR_COUNT] = "invalid count",
    [MPI_ERR_TYPE] = "invalid datatype, or one that was not committed",
    [MPI_ERR_TAG] = "invalid tag",
    [MPI_ERR_COMM] = "invalid communicator",
    [MPI_ERR_RANK] = "invalid rank",
    [MPI_ERR_ROOT] = "invalid root",
    [MPI_ERR_GROUP] = "invalid group",
    [MPI_ERR_OP] = "invalid operation, or one that isn't defined for the datatype",
    [MPI_ERR_TOPOLOGY] = "invalid topology",
    [MPI_ERR_DIMS] = "invalid dimension",
    [MPI_ERR_ARG] = "invalid argument",
    [MPI_ERR_UNKNOWN] = "unknown error",
    [MPI_ERR_TRUNCATE] = "message truncated: it is longer than the receive buffer",
    [MPI_ERR_OTHER] = "not allowed at this point of the program",
    [MPI_ERR_INTERN] = "internal error",
    [MPI_ERR_IN_STATUS] = "see the error in the status",
    [MPI_ERR_PENDING] = "pending request",
    [MPI_ERR_REQUEST] = "invalid request",
};

const char *error_text(int code) {
    return code >= 0 && code <= MPI_ERR_LASTCODE ? error_texts[code] : "no such error code";
}

struct user_handler {
    MPI_Comm_errhandler_function *function;
};

/* The handle under which the rank knows a communicator; MPI_COMM_NULL once it is freed. */
static MPI_Comm handle_of(const struct mpi_rank *self, const struct communicator *comm) {
    for (int i = 1; i < self->communicators.size; i++)
        if (self->communicators.slots[i] == comm)
            return i;
    return MPI_COMM_NULL;
}

int mpi_end_if_fatal(struct mpi_rank *self, const struct communicator *comm, int code, const char *line) {
    if ((comm ? comm : comm_get(self, MPI_COMM_WORLD))->handler == MPI_ERRORS_ARE_FATAL)
        rank_job_abort(code, line);
    return code;
}

int mpi_fail(struct mpi_rank *self, struct communicator *comm, enum call call, int code) {
    if (!comm)
        comm = comm_get(self, MPI_COMM_WORLD);
    if (comm->handler == MPI_ERRORS_RETURN)
        return code;
    if (comm->handler > LAST_HANDLER) {
        const struct user_handler *user = table_get(&self->handlers, comm->handler - LAST_HANDLER);
        MPI_Comm handle = handle_of(self, comm);
        if (user)
            user->function(&handle, &code);
        return code;
    }
    char line[256];
    snprintf(line, sizeof line, "rank %d: %s: %s", self->world, call_name(call), error_text(code));
    rank_job_abort(code, line);
}

int MPI_Error_string(int code, char *string, int *length) {
    *length = snprintf(string, MPI_MAX_ERROR_STRING, "%s", error_text(code));
    return MPI_SUCCESS;
}

int MPI_Error_class(int code, int *error_class) {
    *error_class = code; /* every code is a class here */
    return MPI_SUCCESS;
}

int MPI_Comm_create_errhandler(MPI_Comm_errhandler_function *function, MPI_Errhandler *handler) {
    struct mpi_rank *self = mpi_self(CALL_Comm_create_errhandler);
    struct user_handler *made = host_allocate(sizeof *made);
    made->function = function;
    *handler = table_add(&self->handlers, made) + LAST_HANDLER;
    return MPI_SUCCESS;
}

static bool handler_valid(const struct mpi_rank *self, MPI_Errhandler handler) {
    return handler == MPI_ERRORS_ARE_FATAL || handler == MPI_ERRORS_RETURN ||
           table_get(&self->handlers, handler - LAST_HANDLER);
}

int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler) {
    struct mpi_rank *self = mpi_self(CALL_Comm_set_errhandler);
    struct communicator *communicator = comm_get(self, comm);
    if (!communicator || !handler_valid(self, handler))
        return mpi_fail(self, communicator, CALL_Comm_set_errhandler, communicator ? MPI_ERR_ARG : MPI_ERR_COMM);
    communicator->handler = handler;
    return MPI_SUCCESS;
}

int MPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler handler) {
    return MPI_Comm_set_errhandler(comm, handler);
}

int MPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler *handler) {
    struct mpi_rank *self = mpi_self(CALL_Comm_get_errhandler);
    const struct communicator *communicator = comm_get(self, comm);
    if (!communicator)
        return mpi_fail(self, NULL, CALL_Comm_get_errhandler, MPI_ERR_COMM);
    *handler = communicator->handler;
    return MPI_SUCCESS;
}

/* The function stays known to communicators that have it: only the handle goes. */
int MPI_Errhandler_free(MPI_Errhandler *handler) {
    struct mpi_rank *self = mpi_self(CALL_Errhandler_free);
    if (!handler_valid(self, *handler))
        return mpi_fail(self, NULL, CALL_Errhandler_free, MPI_ERR_ARG);
    *handler = MPI_ERRHANDLER_NULL;
    return MPI_SUCCESS;
}
