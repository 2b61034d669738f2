/*
 * frame.h: the header of each message that the processes of a job, its launcher and the transport between hosts send
 * one another: who sends it, who receives it, and how many bytes follow.
 *
 * The transport between hosts (relay.c) reads nothing else, so it is built without the runtime.
 */
#ifndef RANK_FRAME_H
#define RANK_FRAME_H

#include <stdint.h>

/* Receivers and senders that are not processes of the job. */
#define TRANSPORT_LAUNCHER (-1)
#define TRANSPORT_HOST(host) (-2 - (host)) /* rankrun on that host */

/* The last frame of a host, which its transport sends: rankrun there has ended, by this status of waitpid(). */
#define FRAME_HOST_ENDED 0

struct frame {
    uint32_t kind;
    int32_t from, to;
    uint32_t reserved;
    uint64_t bytes; /* that follow */
};

/* Processes are dealt out to hosts in blocks: the host of a process, and the first process of a host. */
static inline int frame_host_of(int process, int processes, int hosts) {
    return (int)((int64_t)process * hosts / processes);
}

static inline int frame_first_of(int host, int processes, int hosts) {
    return (int)(((int64_t)host * processes + hosts - 1) / hosts);
}

#endif
