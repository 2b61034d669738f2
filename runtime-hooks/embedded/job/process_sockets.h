/*
 * process_sockets.h: frames between the processes of a job, and between each of them and the launcher.
 *
 * A frame is a kind, a sender and bytes.  Frames from one process to another arrive in the order in which they were
 * sent.  Sending never waits: a thread of its own writes, another one reads and calls the handler of the kind.  What a
 * frame means is its handler's business.
 */
#ifndef RANK_PROCESS_SOCKETS_H
#define RANK_PROCESS_SOCKETS_H

#include "frame.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum frame_kind {
    /* between processes */
    FRAME_MESSAGE = FRAME_HOST_ENDED + 1, /* an MPI message */
    FRAME_ACKNOWLEDGED,                   /* a synchronous send was matched */
    FRAME_IMAGE,                          /* a rank that moves */
    FRAME_MOVED,                          /* where a rank is now */
    /* from the launcher to a process */
    FRAME_START,
    FRAME_COUNT,    /* send your frame counts */
    FRAME_DEADLOCK, /* report where your ranks wait */
    FRAME_PAUSE,
    FRAME_SAVE,
    FRAME_RESUME,
    FRAME_END,
    /* from a process to the launcher */
    FRAME_COUNTS,
    FRAME_EXITED,
    FRAME_REPORTED,
    FRAME_SAVED,
    /* between rankrun on the first host and on others */
    FRAME_BEGIN,
    FRAME_STARTED,
    FRAME_ENDED,
    FRAME_KINDS
};

/* Takes exactly the frame's bytes with transport_read(), on the reading thread; it may send, and must not wait. */
typedef void frame_handler(int from, uint64_t bytes);

/* A process's end of a job: sockets to the launcher and, by index, to every other process (-1: none).  All that are on
 * other hosts have one socket, which leads to the transport. */
void transport_open(int index, int count, const int *sockets, int launcher);

void transport_handle(enum frame_kind kind, frame_handler *handler);

/* Starts both threads, when all handlers are known. */
void transport_start(void);

/* Fills memory from the frame that is being handled; the job ends if its sender does. */
void transport_read(void *memory, size_t size);

/* Sends a frame whose bytes are copied, or, without a copy, given to `sent` once they are written. */
void transport_send(int to, enum frame_kind kind, const void *bytes, size_t size);
typedef void frame_sent(void *argument, uint64_t bytes_on_the_wire);
void transport_send_parts(int to, enum frame_kind kind, const struct iovec *parts, size_t count, frame_sent *sent,
                          void *argument);

/* Frames between processes: how many this one has sent, and has wholly handled. */
void transport_counts(uint64_t *sent, uint64_t *handled);

/* What both ends use, whole or not at all; signals don't interrupt. How many bytes the kernel took, or -1 with errno
 * set; false: the other end has gone (errno 0), or can't be read. */
int64_t socket_write(int socket, struct iovec *parts, size_t count);
bool socket_read(int socket, void *memory, size_t size);

#endif
