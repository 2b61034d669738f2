/*
 * kernel_threads.h: the kernel threads that run ranks, from their start to their end.
 */
#ifndef RANK_KERNEL_THREADS_H
#define RANK_KERNEL_THREADS_H

#include <stdbool.h>

/* Runs all ranks to their end and returns the largest exit status.  With `exit_on_deadlock`, 3 if none can go on. */
int ranks_run(bool exit_on_deadlock);

/* In a job of several processes, from any thread: whether no rank here can run before another message comes, */
bool ranks_idle(void);
/* that none goes on until ranks_continue(), */
void ranks_pause(void);
void ranks_continue(void);
/* and that no rank will come any more: ranks_run() returns. */
void ranks_end(void);

#endif
