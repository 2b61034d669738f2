/*
 * task.h: a process that shares this one's memory: what Process-in-Process calls a task in process mode.
 *
 * Knows nothing of ranks.
 */
#ifndef RANK_TASK_H
#define RANK_TASK_H

#include <sys/types.h>

/* Runs main(argument) in a new process that ends with this thread at the latest; its number, or -1 with errno set. */
pid_t task_start(void *(*main)(void *), void *argument);

/* Waits until all tasks have ended; ends the process with the status of the first that did not end well. */
void task_wait_for_all(void);

#endif
