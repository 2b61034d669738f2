/*
 * mobility.h: what MPI has to do for ranks that move between processes: messages find them, none overtakes another, and
 * what waits for a rank goes with it.
 *
 * In a process that is the whole job, nothing here does anything.
 */
#ifndef RANK_MPI_MOBILITY_H
#define RANK_MPI_MOBILITY_H

#include "mpi/state.h"

/* Once, before any rank runs. */
void mobility_prepare(void);

/* Sends a message, or the news that a synchronous send was matched, to the process that has the rank. */
void mobility_forward(int world, struct message *message);
void mobility_acknowledge(int owner, struct request *sender);

/* The number of the next message from a rank to another. */
uint32_t mobility_sequence(struct mpi_rank *self, int world);

/* Both under the inbox's lock: keeps a message that is not due yet; after one that was, the next that had come. */
bool mobility_is_early(struct inbox *inbox, struct message *message);
struct message *mobility_next(struct inbox *inbox, int origin);

/* The message in the memory of the rank that it has come to, where it stays until it is unpacked. */
struct message *mobility_keep(int world, struct message *message);

/* Empties a rank's inbox, which is away from then on, into the rank's own heap; the rank is off its stack. */
void *mobility_pack(int world);
/* Makes it present again, with what mobility_pack() returned and the memory behind it. */
void mobility_unpack(int world, void *inbox_content);

#endif
