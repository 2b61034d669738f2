/*
 * aarch64.h: AArch64 under Linux with glibc (AAPCS64; "ELF for the Arm 64-bit Architecture"; TLS of variant I).
 *
 * Pages have 4, 16 or 64 KB, as the kernel was built: everything is laid out in steps of the largest.
 */
#ifndef RANK_MACHINE_AARCH64_H
#define RANK_MACHINE_AARCH64_H

#include "rank_debug.h"

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ucontext.h>

enum {
    MACHINE_ELF = EM_AARCH64,
    MACHINE_R_ABSOLUTE = R_AARCH64_ABS64,
    MACHINE_R_GLOB_DAT = R_AARCH64_GLOB_DAT,
    MACHINE_R_JUMP_SLOT = R_AARCH64_JUMP_SLOT,
    MACHINE_R_RELATIVE = R_AARCH64_RELATIVE,
    MACHINE_R_IRELATIVE = R_AARCH64_IRELATIVE,
    MACHINE_TLS_IS_ABOVE = 1,     /* blocks of static TLS lie above the thread pointer */
    MACHINE_MARKS_STATIC_TLS = 0, /* GNU ld sets no DF_STATIC_TLS */
};

#define MACHINE_PAGE UINT64_C(65536)

/* Far from what Linux uses with 48-bit addresses (programs near 0xaaaa..., libraries and stacks near 0xffff...). */
#define MACHINE_FIRST_RANGE UINT64_C(0x200000000000)

static inline uint64_t machine_thread_pointer(void) {
    uint64_t pointer;
    __asm__ volatile("mrs %0, tpidr_el0" : "=r"(pointer));
    return pointer;
}

/* The generic timer: it counts at a constant rate, on all processors alike. */
static inline uint64_t machine_cycles(void) {
    uint64_t count;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
}

/* ---- control blocks of threads: struct pthread lies below the pointer, two words and then the blocks from it on ----
 */

/* Of the `size` bytes that static TLS takes, with a struct pthread of `control` bytes: those below the pointer. */
static inline uint64_t machine_tls_below(uint64_t size, uint64_t control) {
    (void)size;
    return control;
}

static inline uint64_t machine_tls_above(uint64_t size, uint64_t control) {
    (void)control;
    return size;
}

/* Makes the control block at `pointer` the one at `thread`, for whatever asks who runs; the vector of blocks is its
 * own. */
static inline void machine_copy_control_block(uint64_t pointer, uint64_t thread, uint64_t control) {
    memcpy((void *)(pointer - control), (const void *)(thread - control), control);
}

static inline int machine_can_write_thread_pointer(void) {
    return 1;
}

static inline void machine_set_thread_pointer(uint64_t pointer, int can_write) {
    (void)can_write;
    __asm__ volatile("msr tpidr_el0, %0" : : "r"(pointer) : "memory");
}

/* Code finds a thread-local variable from the register alone. */
#define MACHINE_HAS_POINTER_WORD 0
#define MACHINE_BY_POINTER_WORD ""
static inline void machine_set_pointer_word(uint64_t pointer) {
    (void)pointer;
}

/* Two words lie at a thread pointer, the vector and one for libc alone; there is nothing to fill in. */
static inline void machine_fill_control_block(char *block) {
    (void)block;
}

#ifndef __cplusplus
/* ---- contexts ---- */

/* What context_switch() stores, from the saved stack pointer up. */
struct machine_frame {
    uint64_t d8_to_d15[8];
    uint64_t x19, x20, x21, x22, x23, x24, x25, x26, x27, x28, x29;
    uint64_t pc; /* x30 */
    uint64_t fpcr;
    uint64_t padding;
};

/* Of a rank that begins in rank_entry, which calls `entry` with `argument`. */
static inline struct machine_frame machine_first_frame(uint64_t start, uint64_t entry, uint64_t argument) {
    return (struct machine_frame){.x19 = entry, .x20 = argument, .pc = start};
}

#define MACHINE_SAVED(number, name)                                                                                    \
    { number, RANK_DEBUG_REGISTER_AT_OFFSET, offsetof(struct machine_frame, name) }
static const struct rank_debug_register machine_context_rules[] = {
    MACHINE_SAVED(19, x19),
    MACHINE_SAVED(20, x20),
    MACHINE_SAVED(21, x21),
    MACHINE_SAVED(22, x22),
    MACHINE_SAVED(23, x23),
    MACHINE_SAVED(24, x24),
    MACHINE_SAVED(25, x25),
    MACHINE_SAVED(26, x26),
    MACHINE_SAVED(27, x27),
    MACHINE_SAVED(28, x28),
    MACHINE_SAVED(29, x29),
    MACHINE_SAVED(30, pc),
    {31, RANK_DEBUG_REGISTER_IS_OFFSET, sizeof(struct machine_frame)},
    MACHINE_SAVED(32, pc),
};
#undef MACHINE_SAVED

#endif

/* ---- core files and checkpoints ---- */

#ifdef __USE_GNU
/* In the order of struct user_pt_regs (asm/ptrace.h): x0 to x30, sp, pc, pstate. */
static inline void machine_registers(const ucontext_t *context, uint64_t *to) {
    for (int i = 0; i < 31; i++)
        to[i] = context->uc_mcontext.regs[i];
    to[31] = context->uc_mcontext.sp, to[32] = context->uc_mcontext.pc, to[33] = context->uc_mcontext.pstate;
}
#endif

/*
 * The guards of stacks and of pointers are variables of the system's loader, one for all threads, in memory that it
 * has made read-only; `machine_set_guards` gives 0 or an errno value.
 */
void machine_guards(uint64_t guards[2]);
int machine_set_guards(const uint64_t guards[2]);

/* By which glibc's resolvers choose functions whose addresses then stand in the programs' tables. */
static inline void machine_write_features(FILE *file) {
    fprintf(file, "%lx-%lx", getauxval(AT_HWCAP), getauxval(AT_HWCAP2));
}

/* In assembler: writes what is between the labels 1 and 2 to standard error, and ends the process with 2. */
#define MACHINE_WRITE_AND_EXIT(write, exit_group)                                                                      \
    "    mov x8, #" write "\n"                                                                                         \
    "    mov x0, #2\n"                                                                                                 \
    "    adr x1, 1f\n"                                                                                                 \
    "    mov x2, #2f - 1f\n"                                                                                           \
    "    svc #0\n"                                                                                                     \
    "    mov x8, #" exit_group "\n"                                                                                    \
    "    mov x0, #2\n"                                                                                                 \
    "    svc #0\n"

#endif
