/*
 * transport_mpi.h: messages between the hosts of a job, by the site's MPI.  What carries them (relay.c) knows no MPI.
 */
#ifndef RANK_TRANSPORT_MPI_H
#define RANK_TRANSPORT_MPI_H

#include <stdbool.h>
#include <stdint.h>

#define TRANSPORT_PIECE (1 << 22) /* bytes that a message has at most: MPI counts by int */

/* A message that has come; its bytes are there until the next call of transport_receive(). */
struct transport_message {
    int from, tag, size;
    const char *bytes;
};

/* Bytes on their way to a host, in as many messages as they need. */
struct transport_sending;

/* Says which of how many hosts this is. */
void transport_start(int *argc, char ***argv, int *host, int *hosts);

/* The bytes of host 0, on all hosts. */
void transport_share(void *memory, int size);

/* The bytes have to stay until transport_is_sent().  Returns NULL if memory can't be had. */
struct transport_sending *transport_send(int to, int tag, const char *bytes, uint64_t size);

/* Once it is, the sending is freed. */
bool transport_is_sent(struct transport_sending *sending);

/* A message without bytes, and whether to wait until it is sent: not where the other host may be lost. */
void transport_notify(int to, int tag, bool waits);

/* Whether a message has come. */
bool transport_receive(struct transport_message *message);

/* Whether all hosts have called this; to be called again until they have. */
bool transport_all_are_done(void);

/* End the processes of all hosts. */
__attribute__((noreturn)) void transport_abort(int status);

void transport_end(void);

#endif
