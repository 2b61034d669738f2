/*
 * process.h: this process as one of a job: where the job's ranks are, and what the launcher wants of it.
 *
 * Without --procs, --checkpoint or --restart there is no job: the process has all ranks, and everything here says so.
 */
#ifndef RANK_JOB_PROCESS_H
#define RANK_JOB_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What every process of a job has in common, and which one this is. */
struct job {
    int ranks, processes;
    int index;           /* of this process */
    int launcher;        /* socket */
    const int *sockets;  /* by process; -1 for this one; NULL: there is no other, and no launcher */
    bool ranks_can_move; /* the method allows it */
    bool exit_on_deadlock;
    int *crashed; /* where the launcher looks for the rank that a signal has ended, plus one */
};

/* Before anything asks.  Once the scheduler's threads are there, the job waits until the launcher lets it begin. */
void process_join(const struct job *job);

/* What is called for a rank that leaves the process, once it is off its stack. */
void process_on_leave(void (*leaves)(int rank));

bool process_is_one_of_a_job(void);
int process_index(void);
int process_count(void);

bool process_has_rank(int rank);
int process_of_rank(int rank); /* as far as is known here */

/* Which ranks begin in a process: they are dealt out in blocks. */
int process_first_rank(int process);

/* The rank is now, or will be, in that process, having moved that often; older news is ignored. */
void process_note(int rank, int process, uint32_t moves);
/* Likewise, and tells the other processes. */
void process_announce(int rank, uint32_t moves);

#ifdef __cplusplus
}
#endif
#endif
