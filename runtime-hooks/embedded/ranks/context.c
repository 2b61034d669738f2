/*
 * context.c: new contexts, and their description for debuggers.
 *
 * The layout is that of switch_x86_64.S: this file and that one change together, and nothing else knows it.
 */
#include "ranks/context.h"
#include "rank_hooks.h"

#include <string.h>

extern void rank_entry(void);
extern const char rank_entry_end[];

/* What context_switch() pushes, from the saved stack pointer up. */
struct frame {
    uint32_t mxcsr;
    uint16_t x87_control;
    uint16_t padding;
    uint64_t r15, r14, r13, r12, rbx, rbp, rip;
};

uint64_t context_make(void *stack, size_t size, void (*entry)(void *), void *argument) {
    uintptr_t top = ((uintptr_t)stack + size) & ~(uintptr_t)15;
    struct frame frame = {
        .mxcsr = 0x1f80,       /* the processor's reset values as the psABI asks at process start: all masked */
        .x87_control = 0x037f, /* likewise, with 64-bit mantissas */
        .r13 = (uintptr_t)argument,
        .r12 = (uintptr_t)entry,
        .rip = (uintptr_t)rank_entry,
    };
    /* rank_entry is jumped to, and calls: its stack pointer must be a multiple of 16. */
    uintptr_t context = top - 16 - sizeof frame;
    memcpy((void *)context, &frame, sizeof frame);
    return context;
}

void context_describe(void) {
    static const struct rank_debug_register rules[] = {
        {15, RANK_DEBUG_REGISTER_AT_OFFSET, offsetof(struct frame, r15)},
        {14, RANK_DEBUG_REGISTER_AT_OFFSET, offsetof(struct frame, r14)},
        {13, RANK_DEBUG_REGISTER_AT_OFFSET, offsetof(struct frame, r13)},
        {12, RANK_DEBUG_REGISTER_AT_OFFSET, offsetof(struct frame, r12)},
        {3, RANK_DEBUG_REGISTER_AT_OFFSET, offsetof(struct frame, rbx)},
        {6, RANK_DEBUG_REGISTER_AT_OFFSET, offsetof(struct frame, rbp)},
        {16, RANK_DEBUG_REGISTER_AT_OFFSET, offsetof(struct frame, rip)},
        {7, RANK_DEBUG_REGISTER_IS_OFFSET, sizeof(struct frame)},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        rank_hooks_add_context_register(&rules[i]);
    struct rank_debug_header *header = rank_hooks_header();
    header->entry_function = (uintptr_t)rank_entry;
    header->entry_function_size = (uint64_t)(rank_entry_end - (const char *)(uintptr_t)rank_entry);
}
