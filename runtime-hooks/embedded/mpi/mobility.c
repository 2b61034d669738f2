/*
 * mobility.c: the inbox of a rank that moves, and the messages that follow it.
 *
 * Messages to a rank go to the process where it is as far as the sender's knows, which sends them on if it has left.
 * Ways of different length would let one overtake another, so each pair of ranks numbers its messages.
 */
#include "mpi/mobility.h"
#include "image/heap.h"
#include "job/process.h"
#include "job/transport.h"
#include "ranks/ranks.h"

#include <string.h>

/* What stands in a frame before the message's data. */
struct wire_message {
    int32_t world;
    struct message message;
};

struct wire_acknowledgment {
    int32_t owner;
    struct request *sender;
};

/* An inbox's content, in the rank's heap. */
struct packed_inbox {
    struct message *messages, *early;
    struct request *posted;
    uint32_t *expected;
};

/* ---- on the way ---- */

static void was_sent(void *wire, uint64_t bytes_on_the_wire) {
    (void)bytes_on_the_wire;
    host_release(wire);
}

/*
 * Where to send what found the rank away is read once: a rank that returns opens its inbox first and is noted here
 * next, so this process among the answers says that the inbox is open.
 */

/* The message's own memory becomes the frame's, its head in front of it. */
void mobility_forward(int world, struct message *message) {
    int to = process_of_rank(world);
    if (to == process_index()) {
        message_deliver(world, message);
        return;
    }
    size_t size = sizeof(struct wire_message) + message->bytes;
    struct wire_message *wire = host_allocate_message(size);
    wire->world = world;
    wire->message = *message;
    memcpy(wire + 1, message->data, message->bytes);
    host_release(message);
    struct iovec part = {wire, size};
    transport_send_parts(to, FRAME_MESSAGE, &part, 1, was_sent, wire);
}

void mobility_acknowledge(int owner, struct request *sender) {
    int to = process_of_rank(owner);
    if (to == process_index()) {
        request_acknowledge(owner, sender);
        return;
    }
    struct wire_acknowledgment wire = {owner, sender};
    transport_send(to, FRAME_ACKNOWLEDGED, &wire, sizeof wire);
}

static bool names_a_rank(int world) {
    return world >= 0 && world < rank_total();
}

static void take_message(int from, uint64_t bytes) {
    (void)from;
    struct wire_message wire;
    transport_read(&wire, sizeof wire);
    if (bytes - sizeof wire != wire.message.bytes || !names_a_rank(wire.world) || !names_a_rank(wire.message.origin))
        rank_job_abort(2, "another process of the job sent a message that can't be one");
    struct message *message = host_allocate_message(sizeof *message + wire.message.bytes);
    *message = wire.message;
    transport_read(message->data, message->bytes);
    message_deliver(wire.world, message);
}

static void take_acknowledgment(int from, uint64_t bytes) {
    (void)from, (void)bytes;
    struct wire_acknowledgment wire;
    transport_read(&wire, sizeof wire);
    if (!names_a_rank(wire.owner))
        rank_job_abort(2, "another process of the job sent a message that can't be one");
    request_acknowledge(wire.owner, wire.sender);
}

void mobility_prepare(void) {
    if (!process_is_one_of_a_job())
        return;
    transport_handle(FRAME_MESSAGE, take_message);
    transport_handle(FRAME_ACKNOWLEDGED, take_acknowledgment);
}

/* ---- the order of messages ---- */

uint32_t mobility_sequence(struct mpi_rank *self, int world) {
    if (!process_may_lose_ranks())
        return 0;
    if (!self->sent)
        self->sent = host_allocate((size_t)rank_total() * sizeof *self->sent);
    return self->sent[world]++;
}

bool mobility_is_early(struct inbox *inbox, struct message *message) {
    if (!process_may_lose_ranks())
        return false;
    uint32_t expected = inbox->expected ? inbox->expected[message->origin] : 0;
    if (message->sequence == expected)
        return false;
    message->next = inbox->early;
    inbox->early = message;
    return true;
}

struct message *mobility_next(struct inbox *inbox, int origin) {
    if (!process_may_lose_ranks())
        return NULL;
    if (!inbox->expected)
        inbox->expected = host_allocate_message((size_t)rank_total() * sizeof *inbox->expected);
    uint32_t expected = ++inbox->expected[origin];
    for (struct message **link = &inbox->early; *link; link = &(*link)->next) {
        struct message *message = *link;
        if (message->origin != origin || message->sequence != expected)
            continue;
        *link = message->next;
        return message;
    }
    return NULL;
}

/* ---- packing ---- */

static void *moved(struct rank_heap *heap, void *memory, size_t size) {
    if (!memory || heap_of(memory) == heap)
        return memory;
    void *own = heap_allocate(heap, size, 16);
    if (!own)
        rank_job_abort(MPI_ERR_OTHER, "MPI: no room in a rank's heap for the messages that wait for it");
    memcpy(own, memory, size);
    host_release(memory);
    return own;
}

static struct message *moved_message(struct rank_heap *heap, struct message *message) {
    return message ? moved(heap, message, sizeof *message + message->bytes) : NULL;
}

struct message *mobility_keep(int world, struct message *message) {
    return process_may_lose_ranks() ? moved_message(ranks_heap(world), message) : message;
}

void *mobility_pack(int world) {
    struct inbox *inbox = inbox_of(world);
    struct rank_heap *heap = ranks_heap(world);
    pthread_mutex_lock(&inbox->lock);
    inbox->is_away = true;
    struct packed_inbox *inbox_content = heap_allocate(heap, sizeof *inbox_content, 16);
    if (!inbox_content)
        rank_job_abort(MPI_ERR_OTHER, "MPI: no room in a rank's heap for what goes with it");
    for (struct message **link = &inbox->early; *link; link = &(*link)->next)
        *link = moved_message(heap, *link);
    inbox->expected = moved(heap, inbox->expected, (size_t)rank_total() * sizeof *inbox->expected);
    *inbox_content = (struct packed_inbox){inbox->first_message, inbox->early, inbox->first_posted, inbox->expected};
    inbox->first_message = NULL;
    inbox->last_message = &inbox->first_message;
    inbox->first_posted = NULL;
    inbox->last_posted = &inbox->first_posted;
    inbox->early = NULL;
    inbox->expected = NULL;
    pthread_mutex_unlock(&inbox->lock);
    return inbox_content;
}

void mobility_unpack(int world, void *packed) {
    struct packed_inbox *inbox_content = packed;
    struct inbox *inbox = inbox_of(world);
    struct mpi_rank *self = rank_attachment(rank_by_number(world));
    pthread_mutex_lock(&inbox->lock);
    inbox->first_message = inbox_content->messages;
    for (inbox->last_message = &inbox->first_message; *inbox->last_message;)
        inbox->last_message = &(*inbox->last_message)->next;
    inbox->first_posted = inbox_content->posted;
    for (inbox->last_posted = &inbox->first_posted; *inbox->last_posted;)
        inbox->last_posted = &(*inbox->last_posted)->next;
    inbox->early = inbox_content->early;
    inbox->expected = inbox_content->expected;
    inbox->is_away = false;
    host_release(inbox_content);
    if (self) {
        self->rank = rank_by_number(world);
        self->inbox = inbox;
    }
    pthread_mutex_unlock(&inbox->lock);
}
