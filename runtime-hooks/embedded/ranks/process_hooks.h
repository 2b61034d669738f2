/*
 * process_hooks.h: a job of several processes, as the scheduler of one of them has to know it: which ranks begin here,
 * and what it calls when.
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
