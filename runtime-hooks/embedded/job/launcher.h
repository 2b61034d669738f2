/*
 * launcher.h: the process that a user starts: it makes the processes of the job, and watches over them.
 *
 * On its own host it forks them (local_processes.h), on others it has agents do so (hosts.h).  It runs no rank.
 */
#ifndef RANK_JOB_LAUNCHER_H
#define RANK_JOB_LAUNCHER_H

#include "job/checkpoint.h"
#include "job/host_list.h"
#include "job/process.h"

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

#define JOB_ID_SIZE 64

struct launch {
    int ranks, processes;
    bool ranks_can_move, exit_on_deadlock;
    char *job_id;                     /* of JOB_ID_SIZE; of several hosts, the launcher's is written there */
    const char *checkpoint;           /* folder for checkpoints, or NULL */
    double every;                     /* seconds between them */
    const struct checkpoint *restart; /* what the job begins from, or NULL */
    const struct checkpoint_job *description;
    const struct host_list *hosts; /* none: all processes are on this one */
    const char *remote_shell;      /* a command, which a host's name and another command follow */
    double silence;                /* seconds that a host may not answer */
    char **command;                /* rankrun's own, ended by NULL */
    const char *loaded; /* what has to be the same on all hosts: lines (loaded_files.h), some behind a word */
};

/* Returns in the processes of the job, with what each has to know; in the launcher it never returns. */
struct job launch(const struct launch *launch);

#endif
