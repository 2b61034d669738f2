/*
 * message.c: delivers packed messages to inboxes and matches them with posted receives.
 *
 * Order: both queues of an inbox are first in, first out, and whoever comes second takes the first that matches; so
 * messages of one source in one communicator never overtake.  It never reads or writes another rank's buffers.
 */
#include "state.h"

#include <string.h>

static bool matches(const struct message *message, const struct request *receive) {
    return message->context == receive->context && message->channel == receive->channel &&
           (receive->peer == MPI_ANY_SOURCE || receive->peer == message->source) &&
           (receive->tag == MPI_ANY_TAG || receive->tag == message->tag);
}

static struct request *take_posted(struct inbox *inbox, const struct message *message) {
    for (struct request **link = &inbox->first_posted; *link; link = &(*link)->next) {
        struct request *receive = *link;
        if (!matches(message, receive))
            continue;
        *link = receive->next;
        if (!receive->next)
            inbox->last_posted = link;
        receive->next = NULL;
        return receive;
    }
    return NULL;
}

static struct message *take_message(struct inbox *inbox, const struct request *receive) {
    for (struct message **link = &inbox->first_message; *link; link = &(*link)->next) {
        struct message *message = *link;
        if (!matches(message, receive))
            continue;
        *link = message->next;
        if (!message->next)
            inbox->last_message = link;
        message->next = NULL;
        return message;
    }
    return NULL;
}

/* Tells a synchronous send that it was matched.  Without any lock held: the sender's own inbox lock is taken. */
static void acknowledge(struct request *sender) {
    struct rank *owner = sender->owner;
    struct inbox *inbox = inbox_of(rank_number(owner));
    pthread_mutex_lock(&inbox->lock);
    sender->done = true; /* from here on its owner may release it */
    pthread_mutex_unlock(&inbox->lock);
    rank_wake(owner);
}

static void deliver(int world, struct message *message) {
    struct inbox *inbox = inbox_of(world);
    struct request *sender = message->sender;
    pthread_mutex_lock(&inbox->lock);
    struct request *receive = take_posted(inbox, message);
    if (receive) {
        receive->message = message;
        receive->done = true;
    } else {
        *inbox->last_message = message;
        inbox->last_message = &message->next;
    }
    pthread_mutex_unlock(&inbox->lock);
    /* Also without a match: the rank may wait in MPI_Probe. */
    rank_wake(rank_by_number(world));
    if (receive && sender)
        acknowledge(sender);
}

int message_send(struct mpi_rank *self, struct communicator *comm, enum channel channel, const void *buffer, int count,
                 struct datatype *type, int dest, int tag, struct request *sender) {
    (void)self;
    int world = comm->group->members[dest];
    if (!rank_by_number(world))
        return MPI_ERR_INTERN; /* a rank of another process: this library knows only one */
    size_t bytes = type->size * (size_t)count;
    if (!type_fits_buffer(type, bytes, buffer))
        return MPI_ERR_BUFFER;
    struct message *message = host_allocate(sizeof *message + bytes);
    *message = (struct message){.context = comm->context,
                                .channel = channel,
                                .source = comm->rank,
                                .tag = tag,
                                .bytes = bytes,
                                .sender = sender};
    type_pack(type, count, buffer, message->data);
    deliver(world, message);
    return MPI_SUCCESS;
}

void message_post(struct mpi_rank *self, struct request *receive) {
    struct inbox *inbox = self->inbox;
    struct request *sender = NULL;
    pthread_mutex_lock(&inbox->lock);
    struct message *message = take_message(inbox, receive);
    if (message) {
        sender = message->sender;
        receive->message = message;
        receive->done = true;
    } else {
        *inbox->last_posted = receive;
        inbox->last_posted = &receive->next;
    }
    pthread_mutex_unlock(&inbox->lock);
    if (sender)
        acknowledge(sender);
}

static const struct message *peek(const struct inbox *inbox, const struct request *pattern) {
    const struct message *message = inbox->first_message;
    while (message && !matches(message, pattern))
        message = message->next;
    return message;
}

bool message_find(struct mpi_rank *self, struct communicator *comm, int source, int tag, bool wait,
                  MPI_Status *status) {
    struct request pattern = {.context = comm->context, .channel = CHANNEL_USER, .peer = source, .tag = tag};
    pthread_mutex_lock(&self->inbox->lock);
    const struct message *message = peek(self->inbox, &pattern);
    while (!message && wait) {
        rank_block(&self->inbox->lock); /* releases it */
        pthread_mutex_lock(&self->inbox->lock);
        message = peek(self->inbox, &pattern);
    }
    if (message)
        status_set(status, message->source, message->tag, message->bytes);
    pthread_mutex_unlock(&self->inbox->lock);
    return message != NULL;
}

void status_set(MPI_Status *status, int source, int tag, size_t bytes) {
    if (status == MPI_STATUS_IGNORE)
        return;
    status->MPI_SOURCE = source;
    status->MPI_TAG = tag;
    status->rank_cancelled = 0;
    status->rank_bytes[0] = (unsigned)bytes;
    status->rank_bytes[1] = (unsigned)((uint64_t)bytes >> 32);
}

void status_set_empty(MPI_Status *status) {
    if (status == MPI_STATUS_IGNORE)
        return;
    status_set(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
    status->MPI_ERROR = MPI_SUCCESS;
}
