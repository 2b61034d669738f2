/*
 * control_frames.h: what the frames between a process and the launcher hold (transport.h names their kinds).
 */
#ifndef RANK_JOB_CONTROL_FRAMES_H
#define RANK_JOB_CONTROL_FRAMES_H

#include <limits.h>
#include <stdint.h>

struct frame_counts {
    uint64_t sent, handled; /* transport_counts() */
    uint32_t idle;          /* no rank can run before another message comes */
    uint32_t reserved;
};

struct wire_exited {
    int32_t rank, status;
};

/* What a process is to save. */
struct wire_save {
    int32_t number;
    char path[PATH_MAX];
};

struct wire_saved {
    int32_t error; /* errno, 0: saved */
};

#endif
