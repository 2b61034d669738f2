/*
 * mpir.h: the table of the job's processes that parallel debuggers read from the launcher.
 *
 * "The MPIR Process Acquisition Interface", version 1.0 (MPI Forum, 2010).
 */
#ifndef RANK_JOB_MPIR_H
#define RANK_JOB_MPIR_H

#include <sys/types.h>

/* Adds the next process of the job. */
void mpir_add(pid_t pid);

/* Tells a debugger that all are there; returns once it has seen them. */
void mpir_publish(void);

#endif
