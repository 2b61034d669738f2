/*
 * fatal.h: ending rankrun before any rank runs, with one sentence that says why.
 */
#ifndef RANK_FATAL_H
#define RANK_FATAL_H

/* In a job of several hosts sentences name this one from now on; the name stays the caller's. */
void refuse_on(const char *host);

/* ` on host NAME`, or nothing: what follows the word `rankrun` in a sentence of this process. */
const char *refuse_place(void);

/* Writes `rankrun: ` and the sentence to standard error and ends the process with status 2. */
__attribute__((noreturn, format(printf, 1, 2))) void refuse(const char *format, ...);

#endif
