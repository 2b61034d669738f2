/*
 * threads.c: searches structures of Charm++ for what they must contain.
 */
#include "threads.h"
#include "rank_hooks.h"

#include <stddef.h>
#include <string.h>

#define REACH 0x40 /* words of a thread's structure that are searched */
#define RECORD_WORDS 0x20

/* What jump_fcontext pushes, from the saved stack pointer up. */
struct fcontext {
    uint64_t floating_point_control, reserved;
    uint64_t r12, r13, r14, r15, rbx, rbp, rip;
};

struct thread_form thread_form_of(const void *thread, uint64_t stack_start, uint64_t entry) {
    struct thread_form form = {.stack_start = stack_start};
    const uint64_t *words = thread;
    for (size_t at = 1; at < REACH; at++) {
        uint64_t context = words[at], function = words[at + 1], end = words[at + 2], size = words[at + 4];
        if (size == 0 || end - size != stack_start || context < stack_start || context + sizeof(struct fcontext) > end)
            continue;
        if (entry ? function != entry : !function_size(function))
            continue;
        form.stack_size = size;
        form.context = (uintptr_t)&words[at];
        form.entry = function;
        break;
    }
    return form;
}

struct share_form share_form_of(const void *record, uint64_t start, uint64_t used) {
    const uint64_t *words = record;
    for (size_t at = 0; at + 2 < RECORD_WORDS; at++)
        if (words[at] == start && words[at + 1] > used && words[at + 2] == used)
            return (struct share_form){start, words[at + 1] - start, (uintptr_t)&words[at + 2]};
    return (struct share_form){0};
}

int thread_has_word(const void *thread, const struct thread_form *form, uint64_t value) {
    for (const uint64_t *word = thread; (uintptr_t)word < form->context; word++)
        if (*word == value)
            return 1;
    return 0;
}

/* libgcc's; a function's entry begins with length, offset of its CIE, distance to it and its size (LSB, "The .eh_frame
 * section"; distances as every x86-64 linker writes them: DW_EH_PE_pcrel | DW_EH_PE_sdata4). */
struct unwind_bases {
    void *text, *data, *function;
};
extern const void *_Unwind_Find_FDE(void *address, struct unwind_bases *bases);

uint64_t function_size(uint64_t address) {
    struct unwind_bases bases;
    const unsigned char *entry = _Unwind_Find_FDE((void *)(address + 1), &bases);
    if (!entry || (uintptr_t)bases.function != address)
        return 0;
    int32_t distance;
    uint32_t size;
    memcpy(&distance, entry + 8, sizeof distance);
    memcpy(&size, entry + 12, sizeof size);
    return (uintptr_t)entry + 8 + (uint64_t)(int64_t)distance == address ? size : 0;
}

void describe_contexts(void) {
    static const struct rank_debug_register rules[] = {
        {12, RANK_DEBUG_REGISTER_AT_OFFSET, offsetof(struct fcontext, r12)},
        {13, RANK_DEBUG_REGISTER_AT_OFFSET, offsetof(struct fcontext, r13)},
        {14, RANK_DEBUG_REGISTER_AT_OFFSET, offsetof(struct fcontext, r14)},
        {15, RANK_DEBUG_REGISTER_AT_OFFSET, offsetof(struct fcontext, r15)},
        {3, RANK_DEBUG_REGISTER_AT_OFFSET, offsetof(struct fcontext, rbx)},
        {6, RANK_DEBUG_REGISTER_AT_OFFSET, offsetof(struct fcontext, rbp)},
        {16, RANK_DEBUG_REGISTER_AT_OFFSET, offsetof(struct fcontext, rip)},
        {7, RANK_DEBUG_REGISTER_IS_OFFSET, sizeof(struct fcontext)},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        rank_hooks_add_context_register(&rules[i]);
}
