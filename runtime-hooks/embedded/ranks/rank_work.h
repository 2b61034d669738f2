/*
 * rank_work.h: what a rank does, and with which memory.
 */
#ifndef RANK_RANK_WORK_H
#define RANK_RANK_WORK_H

#include "image/heap.h"

#include <stdint.h>

/* What a rank does first, on its own stack; its result is the rank's exit status. */
typedef int rank_main(void *argument);

struct rank_work {
    rank_main *main;
    void *argument;
    struct rank_heap *heap; /* what malloc() serves on it; NULL: libc's */
    uint64_t token;         /* what the method gets when it runs */
};

#endif
