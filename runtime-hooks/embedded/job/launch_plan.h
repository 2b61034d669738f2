/*
 * launch_plan.h: what the launcher, and the agents that it has on other hosts, have to know of a job that is to start.
 */
#ifndef RANK_JOB_LAUNCH_PLAN_H
#define RANK_JOB_LAUNCH_PLAN_H

#include <stdbool.h>

struct checkpoint;
struct checkpoint_job;

#define JOB_ID_SIZE 64

struct launch_plan {
    int ranks, processes;
    bool ranks_can_move, exit_on_deadlock;
    char *job_id;                     /* of JOB_ID_SIZE; on other hosts than the first, that one's is written there */
    const char *checkpoint;           /* folder for checkpoints, or NULL */
    double every;                     /* seconds between them */
    const struct checkpoint *restart; /* what the job begins from, or NULL */
    const struct checkpoint_job *description;
    const char *loaded; /* what has to be the same on all hosts: lines (loaded_files.h), some after a word */
};

#endif
