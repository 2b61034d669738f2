/*
 * process_allocations.h: the section of the functions that replace libc calls which keep memory for the whole
 * process.
 *
 * In a linker namespace they have to stay that namespace's own: it has a libc of its own.
 */
#ifndef RANK_PROCESS_ALLOCATIONS_H
#define RANK_PROCESS_ALLOCATIONS_H

#define PROCESS_HEAP_SECTION __attribute__((section("rank_process_heap")))

/* Made by the linker, since the section's name is an identifier. */
extern const char __start_rank_process_heap[] __attribute__((visibility("hidden")));
extern const char __stop_rank_process_heap[] __attribute__((visibility("hidden")));

#endif
