/*
 * forward.h: sends messages to ranks in other processes.
 */
#ifndef RANK_MPI_FORWARD_H
#define RANK_MPI_FORWARD_H

#include "mpi/objects/inbox.h"

/* What stands in a frame before the message's data. */
struct wire_message {
    int32_t world;
    struct message message;
};

struct wire_acknowledgment {
    int32_t owner;
    struct request *sender;
};

/*
 * Sends a message, or the news that a synchronous send was matched, to the process that has the rank, as far as is
 * known here; that one sends it on if the rank has left.  False: the rank is here by now, and nothing was sent.
 */
bool forward_message(int world, struct message *message);
bool forward_acknowledgment(int owner, struct request *sender);

#endif
