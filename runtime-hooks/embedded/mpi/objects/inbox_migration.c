/*
 * inbox_migration.c: the inbox of a rank that moves, and the messages that follow it.
 */
#include "mpi/objects/inbox_migration.h"
#include "image/heap.h"
#include "image/ranges.h"
#include "job/process.h"
#include "job/process_sockets.h"
#include "mpi/objects/forward.h"
#include "mpi/objects/inbox.h"
#include "mpi/objects/library_memory.h"
#include "mpi/objects/message_matching.h"
#include "mpi/objects/rank_state.h"
#include "ranks/fatal.h"
#include "ranks/scheduler.h"
#include "ranks/user_level_threads.h"

#include <string.h>

/* An inbox's content, in the rank's heap. */
struct packed_inbox {
    struct message *messages, *early;
    struct request *posted;
    uint32_t *expected;
};

/* ---- on the way ---- */

static bool names_a_rank(int world) {
    return world >= 0 && world < rank_total();
}

static void take_message(int from, uint64_t bytes) {
    (void)from;
    struct wire_message wire;
    transport_read(&wire, sizeof wire);
    if (bytes < sizeof wire || bytes - sizeof wire != wire.message.bytes || !names_a_rank(wire.world) ||
        !names_a_rank(wire.message.origin))
        rank_job_abort(2, "another process of the job sent a damaged message");
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
        rank_job_abort(2, "another process of the job sent a damaged message");
    message_acknowledge(wire.owner, wire.sender);
}

void inbox_migration_prepare(void) {
    if (!process_is_one_of_a_job())
        return;
    transport_handle(FRAME_MESSAGE, take_message);
    transport_handle(FRAME_ACKNOWLEDGED, take_acknowledgment);
}

/* ---- packing ---- */

void *inbox_migration_pack(int world) {
    struct inbox *inbox = inbox_of(world);
    struct rank_heap *heap = ranks_heap(world);
    pthread_mutex_lock(&inbox->lock);
    inbox->is_away = true;
    struct packed_inbox *inbox_content = heap_allocate(heap, sizeof *inbox_content, 16);
    if (!inbox_content)
        rank_job_abort(MPI_ERR_OTHER, "MPI: a rank's heap has no room for its messages, which move with it");
    for (struct message **link = &inbox->early; *link; link = &(*link)->next)
        *link = message_move(heap, *link);
    inbox->expected = host_move(heap, inbox->expected, (size_t)rank_total() * sizeof *inbox->expected);
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

void inbox_migration_unpack(int world, void *packed) {
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
