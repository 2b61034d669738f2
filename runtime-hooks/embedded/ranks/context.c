/*
 * context.c: new contexts, and their description for debuggers.
 *
 * What a context holds, and the function that switches, are the processor's (machine/).
 */
#include "ranks/context.h"
#include "machine/machine.h"
#include "rank_hooks.h"

#include <string.h>

extern void rank_entry(void);
extern const char rank_entry_end[];

uint64_t context_make(void *stack, size_t size, void (*entry)(void *), void *argument) {
    uintptr_t top = ((uintptr_t)stack + size) & ~(uintptr_t)15;
    struct machine_frame frame = machine_first_frame((uintptr_t)rank_entry, (uintptr_t)entry, (uintptr_t)argument);
    /* rank_entry is jumped to, and calls: its stack pointer must be a multiple of 16. */
    uintptr_t context = top - 16 - sizeof frame;
    memcpy((void *)context, &frame, sizeof frame);
    return context;
}

void context_describe(void) {
    for (size_t i = 0; i < sizeof machine_context_rules / sizeof *machine_context_rules; i++)
        rank_hooks_add_context_register(&machine_context_rules[i]);
    struct rank_debug_header *header = rank_hooks_header();
    header->entry_function = (uintptr_t)rank_entry;
    header->entry_function_size = (uint64_t)(rank_entry_end - (const char *)(uintptr_t)rank_entry);
}
