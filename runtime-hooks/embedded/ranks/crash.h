/*
 * crash.h: says which rank it was when a signal ends the process.
 */
#ifndef RANK_CRASH_H
#define RANK_CRASH_H

/* For all kernel threads; where `reporter` is not NULL, another process says it, and this one notes the rank there,
 * plus one (0: none). */
void crash_watch(int *reporter);

/* The rank that was noted; -1: none. */
int crash_noted(void);

/* On each kernel thread that runs ranks: a stack to say it from, since the rank's may be full. */
void crash_watch_thread(void);

#endif
