/*
 * collective_check.c: compares what members of a communicator call.
 *
 * Collectives of a communicator are numbered, and the number is the tag of their messages.  Every message that is sent
 * to a rank in a collective is received in it; so one that is left over, or says something else than this rank calls,
 * proves that the calls differ.
 */
#include "mpi/calls/collective_check.h"
#include "mpi.h"
#include "mpi/objects/communicator.h"
#include "mpi/objects/datatype.h"
#include "mpi/objects/error.h"
#include "mpi/objects/library_memory.h"
#include "mpi/objects/message_matching.h"
#include "ranks/scheduler.h"

#include <stdio.h>

static bool is_of(const struct message *message, const struct communicator *comm) {
    return message->channel == CHANNEL_COLLECTIVE && message->context == comm->context;
}

/* Of the collective with the communicator's number or one before.  Numbers begin again after MPI_TAG_UB_VALUE. */
static bool is_begun(const struct message *message, const struct communicator *comm) {
    return is_of(message, comm) && ((comm->collective - message->tag) & MPI_TAG_UB_VALUE) <= MPI_TAG_UB_VALUE / 2;
}

static bool is_other_call(const struct message *message, const struct communicator *comm) {
    return message->collective.call != comm->current.call || message->collective.root != comm->current.root;
}

static bool is_stray(const struct message *message, const struct communicator *comm) {
    return is_begun(message, comm) && (message->tag != comm->collective || is_other_call(message, comm));
}

/* As in "MPI_Bcast with root 0". */
static const char *describe(struct collective_call collective, char *text, size_t room) {
    if (collective.root == NO_ROOT)
        snprintf(text, room, "%s", call_name(collective.call));
    else
        snprintf(text, room, "%s with root %d", call_name(collective.call), collective.root);
    return text;
}

/* A message of the collective that this rank is in. */
static int fail_by_call(struct mpi_rank *self, const struct communicator *comm, const struct message *message) {
    char theirs[64], ours[64], line[256];
    bool by_root = message->collective.call == comm->current.call;
    describe(message->collective, theirs, sizeof theirs);
    describe(comm->current, ours, sizeof ours);
    snprintf(line, sizeof line, "rank %d: %s: rank %d calls %s instead", self->world, ours, message->origin, theirs);
    return mpi_end_if_fatal(self, comm, by_root ? MPI_ERR_ROOT : MPI_ERR_OTHER, line);
}

/* A message of a collective that has ended here; `call` is what the rank calls now. */
static int fail_by_past(struct mpi_rank *self, const struct communicator *comm, const struct message *message,
                        enum call call) {
    char theirs[64], line[256];
    describe(message->collective, theirs, sizeof theirs);
    snprintf(line, sizeof line, "rank %d: %s: rank %d called %s, and this rank did not take part in that", self->world,
             call_name(call), message->origin, theirs);
    return mpi_end_if_fatal(self, comm, MPI_ERR_OTHER, line);
}

static int fail_by_size(struct mpi_rank *self, const struct communicator *comm, const struct message *message,
                        size_t expected) {
    char line[256];
    snprintf(line, sizeof line, "rank %d: %s: rank %d sent %zu bytes, and this rank expects %zu", self->world,
             call_name(comm->current.call), message->origin, message->bytes, expected);
    return mpi_end_if_fatal(self, comm, message->bytes > expected ? MPI_ERR_TRUNCATE : MPI_ERR_COUNT, line);
}

typedef bool condition(const struct message *message, const struct communicator *comm);

/* Takes such a message from the inbox and fails with it; MPI_SUCCESS if there is none. */
static int check(struct mpi_rank *self, const struct communicator *comm, enum call call, condition *is_wrong) {
    struct inbox *inbox = self->inbox;
    if (!__atomic_load_n(&inbox->first_message, __ATOMIC_ACQUIRE))
        return MPI_SUCCESS; /* one that comes meanwhile is left to the next check */
    pthread_mutex_lock(&inbox->lock);
    struct message *message = message_take_unexpected(inbox, comm, is_wrong);
    pthread_mutex_unlock(&inbox->lock);
    int code = message ? fail_by_past(self, comm, message, call) : MPI_SUCCESS;
    host_release(message);
    return code;
}

int collective_check_earlier(struct mpi_rank *self, struct communicator *comm) {
    return check(self, comm, comm->current.call,
                 is_begun); /* the number is still that of the last one, which has ended */
}

int collective_check_last(struct mpi_rank *self, struct communicator *comm, enum call call) {
    return check(self, comm, call, is_of);
}

static int check_received(struct mpi_rank *self, const struct communicator *comm, const struct request *receive) {
    const struct message *message = receive->message;
    size_t expected = receive->type->size * (size_t)receive->count;
    if (is_other_call(message, comm))
        return fail_by_call(self, comm, message);
    return message->bytes == expected ? MPI_SUCCESS : fail_by_size(self, comm, message, expected);
}

int collective_check_wait(struct mpi_rank *self, struct communicator *comm, struct request *receive) {
    struct message *stray = NULL;
    pthread_mutex_lock(&self->inbox->lock); /* the inbox of a rank that moves is another one after each wait */
    while (!receive->done && !(stray = message_take_unexpected(self->inbox, comm, is_stray))) {
        rank_block(&self->inbox->lock); /* releases it */
        pthread_mutex_lock(&self->inbox->lock);
    }
    pthread_mutex_unlock(&self->inbox->lock);
    int code;
    if (!stray)
        code = check_received(self, comm, receive);
    else if (stray->tag == comm->collective)
        code = fail_by_call(self, comm, stray);
    else
        code = fail_by_past(self, comm, stray, comm->current.call);
    host_release(stray);
    return code;
}
