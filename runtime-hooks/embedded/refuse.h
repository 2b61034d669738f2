/*
 * refuse.h: ending rankrun before any rank runs, with one sentence that says why.
 */
#ifndef RANK_REFUSE_H
#define RANK_REFUSE_H

/* Writes `rankrun: ` and the sentence to standard error and ends the process with status 2. */
__attribute__((noreturn, format(printf, 1, 2))) void refuse(const char *format, ...);

#endif
