/*
 * fatal.h: ends rankrun, or the job, with one sentence that says why.
 */
#ifndef RANK_FATAL_H
#define RANK_FATAL_H

/* In a job of several hosts sentences name this one from now on; the name stays the caller's. */
void fatal_on_host(const char *host);

/* ` on host NAME`, or nothing: what follows the word `rankrun` in a sentence of this process. */
const char *fatal_place(void);

/* Before any rank runs: writes `rankrun: ` and the sentence to standard error and ends the process with status 2. */
__attribute__((noreturn, format(printf, 1, 2))) void fatal(const char *format, ...);

/* Ends the job at once with this exit status (MPI_Abort): message to standard error, no destructors. */
__attribute__((noreturn)) void rank_job_abort(int status, const char *message);

#endif
