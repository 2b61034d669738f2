/*
 * current_rank.h: the number of the running rank, for the functions that replace libc's.
 *
 * The scheduler (ranks/scheduler.c) defines the function: libc's part of the runtime knows of ranks their numbers
 * alone.
 */
#ifndef RANK_CURRENT_RANK_H
#define RANK_CURRENT_RANK_H

/* The number of the rank that runs on the calling kernel thread; -1: none does. */
int current_rank(void);

#endif
