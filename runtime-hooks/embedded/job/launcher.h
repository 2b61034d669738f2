/*
 * launcher.h: the process that a user starts: it makes the processes of the job, and watches over them.
 *
 * It forks them once the program is loaded, so every address is the same in all of them.  It runs no rank.
 */
#ifndef RANK_JOB_LAUNCHER_H
#define RANK_JOB_LAUNCHER_H

#include "checkpoint.h"
#include "process.h"

#include <stdbool.h>
#include <stdint.h>

/* What the frames between a process and the launcher hold. */
struct standing {
    uint64_t sent, handled; /* transport_counts() */
    uint32_t idle;          /* no rank can run before another message comes */
    uint32_t reserved;
};

struct wire_exited {
    int32_t rank, status;
};

struct wire_saved {
    int32_t error; /* errno, 0: saved */
};

struct launch {
    int ranks, processes;
    bool ranks_can_move, exit_on_deadlock;
    const char *job_id;
    const char *checkpoint;           /* folder for checkpoints, or NULL */
    double every;                     /* seconds between them */
    const struct checkpoint *restart; /* what the job begins from, or NULL */
    const struct checkpoint_job *description;
};

/* Returns in the processes of the job, with what each has to know; in the launcher it never returns. */
struct job launch(const struct launch *launch);

#endif
