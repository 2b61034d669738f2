/*
 * sequence.h: the order of messages between two ranks of which one may move.
 *
 * Ways of different length would let one message overtake another, so each pair of ranks numbers its messages.  Where
 * ranks stay, nothing here does anything.
 */
#ifndef RANK_MPI_SEQUENCE_H
#define RANK_MPI_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

struct inbox;
struct message;
struct mpi_rank;

/* The number of the next message from a rank to another. */
uint32_t sequence_next(struct mpi_rank *self, int world);

/* Both under the inbox's lock: keeps a message that is not due yet; after one that was, the next that had come. */
bool sequence_is_early(struct inbox *inbox, struct message *message);
struct message *sequence_due(struct inbox *inbox, int origin);

#endif
