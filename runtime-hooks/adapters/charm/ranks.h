/*
 * ranks.h: the ranks that this process hosts, from their creation or arrival until they leave, in the registry.
 *
 * Takes what a rank's creator, packer and unpacker know of it; publishes it and tells the events, in order.
 */
#ifndef CHARM_RANKS_H
#define CHARM_RANKS_H

#include "converse.h"
#include "memory-isomalloc.h"

#include <stdbool.h>
#include <stdint.h>

/* Creates the registry for `count` ranks in the whole job; false if memory for it can't be had. */
bool ranks_prepare(int count);

/* What AMPI has loaded the program as. */
void ranks_describe_job(const char *method);

/* A rank has been made in this process; `entry` is its thread's first function. */
void rank_created(int rank, CthThread thread, CmiIsomallocContext share, uint64_t entry);

/* A thread is about to be packed; the rank's number, -1 if it is not a rank's. */
int rank_packing(CthThread thread);

/* It has been packed, and stays here (a checkpoint) or has left. */
void rank_packed(int rank, bool has_left);

/* A thread has been unpacked; its memory may follow later. */
void rank_unpacked(CthThread thread);

/* The memory of the rank with this share is here: no earlier than this is it told to have arrived. */
void rank_memory_here(CmiIsomallocContext share);

/* The thread is freed without having been packed. */
void rank_freed(CthThread thread);

void rank_exited(int rank);

/* The rank that this kernel thread runs with this stack pointer, -1 for none; safe in a signal handler. */
int rank_running(uint64_t stack_pointer);

/* The original's address of what a rank's copy has at an address; the address itself if no copy has it; as safe. */
uint64_t rank_original(uint64_t address);

/* A word for the calling kernel thread's processing element: which thread runs. */
void ranks_observe(void);

#endif
