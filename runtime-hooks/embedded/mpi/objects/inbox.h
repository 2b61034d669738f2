/*
 * inbox.h: what other ranks may touch of a rank: its messages, the receives that it has posted, and whether its
 * requests are done.
 *
 * They do so under the inbox's lock; everything else of a rank is touched by the rank alone, so it needs no lock.  A
 * rank's buffers are never touched by another rank: senders pack, receivers unpack.
 */
#ifndef RANK_MPI_INBOX_H
#define RANK_MPI_INBOX_H

#include "mpi/objects/call_names.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct communicator;
struct datatype;

enum channel { CHANNEL_USER, CHANNEL_COLLECTIVE };

struct request;

/* A message on its way: packed data, owned by the inbox and then by the request that it matched. */
struct message {
    struct message *next;
    uint64_t context;
    enum channel channel;
    int source; /* rank in the communicator */
    int tag;
    struct collective_call collective; /* what the sender called; in the channel of collectives only */
    int origin;                        /* the same rank in MPI_COMM_WORLD */
    uint32_t sequence; /* how many messages that one had sent to this rank before: ways differ where ranks move */
    size_t bytes;
    struct request *sender; /* a synchronous send of `origin` that waits for the match, or NULL */
    unsigned char data[];
};

/* A communication that was begun.  `done` and `message` belong to the owner's inbox lock. */
struct request {
    struct request *next; /* in the inbox's posted receives */
    struct request
        *detached_next; /* in the owner's detached requests: MPI_Request_free, so that no call will wait for it */
    int owner;          /* rank in MPI_COMM_WORLD */
    bool receives;
    bool done;
    bool persistent;  /* MPI_Start begins it, any number of times */
    bool active;      /* begun, and not completed since; always so if it is not persistent */
    bool synchronous; /* how a persistent send is begun */
    enum channel channel;
    uint64_t context;
    int peer;
    int tag;
    struct message *message; /* what it received */
    void *buffer;
    int count;
    struct datatype *type;
    struct communicator *comm;
};

/* What other ranks may touch of a rank. */
struct inbox {
    pthread_mutex_t lock;
    struct message *first_message, **last_message;
    struct request *first_posted, **last_posted;
    /* Where ranks may move: */
    bool is_away;          /* the rank is in another process */
    struct message *early; /* overtook one that is still on its way */
    uint32_t *expected;    /* by origin: the next sequence number; NULL: all 0 */
};

/* Once, before any rank runs, for all ranks: a rank may get messages before it calls MPI_Init. */
void inboxes_make(void);

struct inbox *inbox_of(int world);

#endif
