/*
 * agent.h: rankrun on each host of a job but the first: it forks the host's processes, and says how they end.
 *
 * The transport starts it with the first host's arguments and environment, so that the program is loaded at the same
 * addresses as there; it proves that what is loaded is the same.
 */
#ifndef RANK_JOB_AGENT_H
#define RANK_JOB_AGENT_H

#include "job/launch_plan.h"
#include "job/process.h"

/* Like launch(), in an agent. */
struct job agent_serve(const struct launch_plan *plan);

#endif
