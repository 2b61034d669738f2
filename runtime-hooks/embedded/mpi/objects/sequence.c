/*
 * sequence.c: numbers of messages by receiver, and expected ones by sender.
 */
#include "mpi/objects/sequence.h"
#include "image/ranges.h"
#include "mpi/objects/inbox.h"
#include "mpi/objects/library_memory.h"
#include "mpi/objects/rank_state.h"
#include "ranks/scheduler.h"

uint32_t sequence_next(struct mpi_rank *self, int world) {
    if (!ranges_are_mobile())
        return 0;
    if (!self->sent)
        self->sent = host_allocate((size_t)rank_total() * sizeof *self->sent);
    return self->sent[world]++;
}

bool sequence_is_early(struct inbox *inbox, struct message *message) {
    if (!ranges_are_mobile())
        return false;
    uint32_t expected = inbox->expected ? inbox->expected[message->origin] : 0;
    if (message->sequence == expected)
        return false;
    message->next = inbox->early;
    inbox->early = message;
    return true;
}

struct message *sequence_due(struct inbox *inbox, int origin) {
    if (!ranges_are_mobile())
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
