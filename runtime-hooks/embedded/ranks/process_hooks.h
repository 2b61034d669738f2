/*
 * process_hooks.h: what the scheduler of one process calls when a job has several: which ranks begin here, and
 * functions for events.
 */
#ifndef RANK_PROCESS_HOOKS_H
#define RANK_PROCESS_HOOKS_H

#include <stdint.h>

struct process_hooks {
    int first, count; /* ranks that begin here */
    void (*exited)(int number, int status);
    void (*leaves)(int number);               /* off its stack, on its kernel thread's */
    void (*element_starts)(uint32_t element); /* on its own kernel thread */
    void (*ready)(void);                      /* all have started, and no rank runs yet */
};

#endif
