/*
 * message_matching.c: delivers packed messages to inboxes and matches them with posted receives.
 *
 * Order: both queues of an inbox are first in, first out, and the second to come takes the first that matches; so
 * messages of one source in one communicator never overtake.  It never reads or writes another rank's buffers.
 */
#include "mpi/objects/message_matching.h"
#include "image/ranges.h"
#include "mpi/objects/communicator.h"
#include "mpi/objects/datatype.h"
#include "mpi/objects/forward.h"
#include "mpi/objects/group.h"
#include "mpi/objects/inbox.h"
#include "mpi/objects/library_memory.h"
#include "mpi/objects/rank_state.h"
#include "mpi/objects/sent_counts.h"
#include "mpi/objects/sequence.h"
#include "ranks/scheduler.h"
#include "ranks/user_level_threads.h"

#include <string.h>

static bool matches(const struct message *message, const struct request *receive) {
    return message->context == receive->context && message->channel == receive->channel &&
           (receive->peer == MPI_ANY_SOURCE || receive->peer == message->source) &&
           (receive->tag == MPI_ANY_TAG || receive->tag == message->tag);
}

/* Removes the receive that `link` points to from the inbox. */
static struct request *unlink_posted(struct inbox *inbox, struct request **link) {
    struct request *receive = *link;
    *link = receive->next;
    if (!receive->next)
        inbox->last_posted = link;
    receive->next = NULL;
    return receive;
}

static struct request *take_posted(struct inbox *inbox, const struct message *message) {
    for (struct request **link = &inbox->first_posted; *link; link = &(*link)->next)
        if (matches(message, *link))
            return unlink_posted(inbox, link);
    return NULL;
}

/* Removes the message that `link` points to from the inbox. */
static struct message *unlink_message(struct inbox *inbox, struct message **link) {
    struct message *message = *link;
    *link = message->next;
    if (!message->next)
        inbox->last_message = link;
    message->next = NULL;
    return message;
}

static struct message *take_message(struct inbox *inbox, const struct request *receive) {
    for (struct message **link = &inbox->first_message; *link; link = &(*link)->next)
        if (matches(*link, receive))
            return unlink_message(inbox, link);
    return NULL;
}

struct message *message_take_unexpected(struct inbox *inbox, const struct communicator *comm,
                                        bool (*is_wanted)(const struct message *message,
                                                          const struct communicator *comm)) {
    for (struct message **link = &inbox->first_message; *link; link = &(*link)->next)
        if (is_wanted(*link, comm))
            return unlink_message(inbox, link);
    return NULL;
}

/* Tells a synchronous send that it was matched.  Without any lock held: the sender's own inbox lock is taken. */
void message_acknowledge(int owner, struct request *sender) {
    struct inbox *inbox = inbox_of(owner);
    pthread_mutex_lock(&inbox->lock);
    bool is_away = inbox->is_away;
    if (!is_away)
        sender->done = true; /* from here on its owner may release it */
    pthread_mutex_unlock(&inbox->lock);
    if (!is_away)
        rank_wake(rank_by_number(owner));
    else if (!forward_acknowledgment(owner, sender))
        message_acknowledge(owner, sender); /* it has returned */
}

/* A synchronous send that was matched; sender NULL: none. */
struct matched {
    int owner;
    struct request *sender;
};

/* Under the inbox's lock. */
static struct matched accept(struct inbox *inbox, struct message *message) {
    struct matched matched = {message->origin, NULL};
    struct request *receive = take_posted(inbox, message);
    message->next = NULL;
    if (receive) {
        matched.sender = message->sender;
        receive->message = message;
        receive->done = true;
    } else {
        __atomic_store_n(inbox->last_message, message, __ATOMIC_RELEASE); /* message_find() may look without the lock */
        inbox->last_message = &message->next;
    }
    return matched;
}

struct message *message_move(struct rank_heap *heap, struct message *message) {
    return message ? host_move(heap, message, sizeof *message + message->bytes) : NULL;
}

/* In the memory of the rank that it has come to, where it stays until it is unpacked. */
static struct message *keep(int world, struct message *message) {
    return ranges_are_mobile() ? message_move(ranks_heap(world), message) : message;
}

/* Returns what is to be delivered next: this message again, if its rank has returned meanwhile, or one that had come
 * before it was due, and is due now; or NULL. */
static struct message *deliver(int world, struct message *message) {
    struct inbox *inbox = inbox_of(world);
    pthread_mutex_lock(&inbox->lock);
    bool is_away = inbox->is_away;
    if (is_away || sequence_is_early(inbox, message)) {
        pthread_mutex_unlock(&inbox->lock);
        return is_away && !forward_message(world, message) ? message : NULL;
    }
    struct matched matched = accept(inbox, keep(world, message));
    struct message *next = sequence_due(inbox, matched.owner);
    pthread_mutex_unlock(&inbox->lock);
    /* Also without a match: the rank may wait in MPI_Probe. */
    rank_wake(rank_by_number(world));
    if (matched.sender)
        message_acknowledge(matched.owner, matched.sender);
    return next;
}

void message_deliver(int world, struct message *message) {
    while (message)
        message = deliver(world, message);
}

int message_send(struct mpi_rank *self, struct communicator *comm, enum channel channel, const void *buffer, int count,
                 struct datatype *type, int dest, int tag, struct request *sender) {
    int world = comm->group->members[dest];
    size_t bytes = type->size * (size_t)count;
    if (!type_fits_buffer(type, bytes, buffer))
        return MPI_ERR_BUFFER;
    struct message *message = host_allocate_message(sizeof *message + bytes);
    *message = (struct message){.context = comm->context,
                                .channel = channel,
                                .source = comm->rank,
                                .tag = tag,
                                .collective = comm->current,
                                .origin = self->world,
                                .sequence = sequence_next(self, world),
                                .bytes = bytes,
                                .sender = sender};
    type_pack(type, count, buffer, message->data);
    sent_counts_add(self->world, world, channel, bytes);
    message_deliver(world, message);
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
        message_acknowledge(message->origin, sender);
}

void message_withdraw(struct mpi_rank *self, struct request *receive) {
    struct inbox *inbox = self->inbox;
    pthread_mutex_lock(&inbox->lock);
    struct request **link = &inbox->first_posted;
    while (*link && *link != receive)
        link = &(*link)->next;
    if (*link)
        unlink_posted(inbox, link);
    pthread_mutex_unlock(&inbox->lock);
}

static const struct message *peek(const struct inbox *inbox, const struct request *pattern) {
    const struct message *message = inbox->first_message;
    while (message && !matches(message, pattern))
        message = message->next;
    return message;
}

bool message_find(struct mpi_rank *self, struct communicator *comm, int source, int tag, bool wait,
                  MPI_Status *status) {
    if (!wait && !__atomic_load_n(&self->inbox->first_message, __ATOMIC_ACQUIRE))
        return false; /* who polls an empty inbox needs no lock */
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
