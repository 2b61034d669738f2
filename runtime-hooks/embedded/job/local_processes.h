/*
 * local_processes.h: processes of a job that are forked on one host, and the sockets that they begin with.
 *
 * They are forked once the program is loaded, so every address is the same in all of them.
 */
#ifndef RANK_JOB_LOCAL_PROCESSES_H
#define RANK_JOB_LOCAL_PROCESSES_H

#include "job/launch_plan.h"
#include "job/process.h"

#include <sys/types.h>

struct local_processes {
    int first, count; /* the processes that are forked here */
    int total;        /* processes of the job */
    int *sockets; /* by process of those, then by process; the link to the launcher comes last; -1: by the transport */
    pid_t *pids;
    int *crashed; /* by process: the rank that a signal ended it in, plus one; in memory that it shares */
};

/* Those of this host, with links among themselves; one to the launcher is the caller's to make.  Ends the process
 * (status 2) without memory. */
struct local_processes local_processes_new(int total);

/* One end of a process's link to another, or to the launcher (to == total). */
int *local_processes_socket(const struct local_processes *processes, int process, int to);

/* Two sockets that are connected; ends the process (status 2) if they can't be had. */
void local_processes_link(int ends[2]);

/* True in each of the processes, with what it has to know; false in the caller, once all are there, whose ends of
 * their sockets are closed then.  The processes end with the caller.  SIGCHLD is blocked in the caller from then on. */
bool local_processes_fork(struct local_processes *processes, const struct launch_plan *plan, struct job *job);

#endif
