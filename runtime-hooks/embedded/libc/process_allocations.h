/*
 * process_allocations.h: where the calls lie that stand in front of libc's for what it keeps for the whole process.
 *
 * In a linker namespace they have to stay that namespace's own: behind them is a libc of its own.
 */
#ifndef RANK_PROCESS_ALLOCATIONS_H
#define RANK_PROCESS_ALLOCATIONS_H

#define IN_KEPT __attribute__((section("rank_kept")))

/* Made by the linker, since the section's name is an identifier. */
extern const char __start_rank_kept[] __attribute__((visibility("hidden")));
extern const char __stop_rank_kept[] __attribute__((visibility("hidden")));

#endif
