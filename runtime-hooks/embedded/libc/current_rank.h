/*
 * current_rank.h: which rank calls libc, for what stands in front of it.
 *
 * The scheduler (ranks/scheduler.c) defines the function: libc's part of the runtime knows of ranks their numbers
 * alone.
 */
#ifndef RANK_CURRENT_RANK_H
#define RANK_CURRENT_RANK_H

/* The number of the rank that runs on the calling kernel thread; -1: none does. */
int current_rank(void);

#endif
