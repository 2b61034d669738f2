/*
 * control_frames.h: what the frames between a process and the launcher hold (process_sockets.h names their kinds).
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

/* To rankrun on another host: what its processes begin with.  What is loaded on the first host follows
 * (loaded_files.h). */
struct wire_begin {
    uint64_t guards[2]; /* libc's, in the launcher */
    char job_id[64];
    char token[PATH_MAX + 96]; /* a file that the folder for checkpoints has, or "" */
};

/* From it: the host's processes are there.  Their pids follow, on that host. */
struct wire_started {
    int32_t count;
    char host[64];
};

/* One of them has ended. */
struct wire_ended {
    int32_t process, status; /* as waitpid() has it */
    int32_t crashed;         /* the rank that a signal ended it in, plus one; 0 */
    int32_t reserved;
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
