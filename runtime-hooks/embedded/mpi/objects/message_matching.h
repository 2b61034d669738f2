/*
 * message_matching.h: delivers packed messages to inboxes and matches them with posted receives.
 */
#ifndef RANK_MPI_MESSAGE_MATCHING_H
#define RANK_MPI_MESSAGE_MATCHING_H

#include "mpi.h"
#include "mpi/objects/inbox.h"

struct mpi_rank;
struct rank_heap;

/* To a rank's inbox, here or where the rank has gone. */
void message_deliver(int world, struct message *message);

/* Tells a synchronous send that it was matched. */
void message_acknowledge(int owner, struct request *sender);

/* Packs and delivers; `sender`: the request of a synchronous send, or NULL. */
int message_send(struct mpi_rank *self, struct communicator *comm, enum channel channel, const void *buffer, int count,
                 struct datatype *type, int dest, int tag, struct request *sender);

/* Matches a receive with a message that has come, or posts it. */
void message_post(struct mpi_rank *self, struct request *receive);

/* Takes a receive back that no message has matched. */
void message_withdraw(struct mpi_rank *self, struct request *receive);

/* Under the inbox's lock: removes the first message that came for no posted receive and for which `is_wanted` is true;
 * NULL: none. */
struct message *message_take_unexpected(struct inbox *inbox, const struct communicator *comm,
                                        bool (*is_wanted)(const struct message *message,
                                                          const struct communicator *comm));

/* As MPI_Probe() (`wait`) and MPI_Iprobe(). */
bool message_find(struct mpi_rank *self, struct communicator *comm, int source, int tag, bool wait, MPI_Status *status);

/* The message in a rank's heap; NULL of NULL. */
struct message *message_move(struct rank_heap *heap, struct message *message);

void status_set(MPI_Status *status, int source, int tag, size_t bytes);
void status_set_empty(MPI_Status *status);

#endif
