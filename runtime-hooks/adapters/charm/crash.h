/*
 * crash.h: tells in the job's own output which rank has crashed and where, so that a batch log alone is enough.
 *
 * Off unless asked for.  The handler calls nothing but what signal-safety(7) lists and system calls; afterwards the
 * signal does what it would have done without it.
 */
#ifndef CHARM_CRASH_H
#define CHARM_CRASH_H

/* Handles SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT from now on. */
void crash_prepare(void);

/* Gives the calling kernel thread a stack of its own for handlers: the rank's may have overflowed. */
void crash_prepare_thread(void);

#endif
