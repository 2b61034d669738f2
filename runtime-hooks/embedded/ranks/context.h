/*
 * context.h: the registers of a user-level thread that is not running.
 *
 * Per processor: switch_*.S holds the instructions, context.c the description.  Knows nothing of ranks or queues.
 */
#ifndef RANK_CONTEXT_H
#define RANK_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

/* Stores the caller's context in *saved and continues `next`; returns when a later switch continues *saved. */
void context_switch(uint64_t *saved, uint64_t next);

/* A context that will call entry(argument) on the stack [stack, stack+size); entry must not return. */
uint64_t context_make(void *stack, size_t size, void (*entry)(void *), void *argument);

/* Describes contexts and the outermost frame in the registry (between rank_hooks_begin and _commit). */
void context_describe(void);

#endif
