/*
 * memory_sharing_process.h: a process that shares memory with this one: all of it (what Process-in-Process calls a task
 * in process mode), or what was mapped so.
 *
 * Knows nothing of ranks.
 */
#ifndef RANK_MEMORY_SHARING_PROCESS_H
#define RANK_MEMORY_SHARING_PROCESS_H

#include <sys/types.h>

/* Runs main(argument) in a new process that ends with this thread at the latest; its number, or -1 with errno set. */
pid_t task_start(void *(*main)(void *), void *argument);

/* Likewise, but in a process with private pages, as fork() makes it. */
pid_t task_fork(void *(*main)(void *), void *argument);

/* Waits until all tasks have ended; ends the process with the status of the first that did not end well. */
void task_wait_for_all(void);

#endif
