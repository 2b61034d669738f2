/*
 * mpir.h: the table of a job's processes that parallel debuggers read from the process that started them, or that
 * stands for it.
 *
 * "The MPIR Process Acquisition Interface", version 1.0 (MPI Forum, 2010).
 */
#ifndef RANK_MPIR_H
#define RANK_MPIR_H

#include <stdbool.h>
#include <sys/types.h>

/* Adds the next process of the job, one of this host. False if there is no such process, or no memory. */
bool mpir_add(pid_t pid);

/* Likewise one of another host; `program` NULL: this process's own. */
bool mpir_add_remote(const char *host, const char *program, pid_t pid);

/* Tells a debugger that all are there; returns once it has seen them. */
void mpir_publish(void);

#endif
