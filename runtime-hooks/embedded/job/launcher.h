/*
 * launcher.h: the process that a user starts: it makes the processes of the job, and watches over them.
 *
 * On its own host it forks them (local_processes.h), on others it has agents do so (agent.h).  It runs no rank.
 */
#ifndef RANK_JOB_LAUNCHER_H
#define RANK_JOB_LAUNCHER_H

#include "job/launch_plan.h"
#include "job/process.h"

/* Returns in the processes of the job, with what each has to know; in the launcher it never returns. */
struct job launch(const struct launch_plan *plan);

#endif
