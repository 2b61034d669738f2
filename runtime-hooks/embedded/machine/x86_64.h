/* x86_64.h: x86-64 under Linux with glibc (System V psABI; "ELF Handling For Thread-Local Storage", variant II). */
#ifndef RANK_MACHINE_X86_64_H
#define RANK_MACHINE_X86_64_H

#include "rank_debug.h"

#include <cpuid.h>
#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>
#include <unistd.h>

enum {
    MACHINE_ELF = EM_X86_64,
    MACHINE_R_ABSOLUTE = R_X86_64_64,
    MACHINE_R_GLOB_DAT = R_X86_64_GLOB_DAT,
    MACHINE_R_JUMP_SLOT = R_X86_64_JUMP_SLOT,
    MACHINE_R_RELATIVE = R_X86_64_RELATIVE,
    MACHINE_R_IRELATIVE = R_X86_64_IRELATIVE,
    MACHINE_TLS_IS_ABOVE = 0,     /* blocks of static TLS lie below the thread pointer */
    MACHINE_MARKS_STATIC_TLS = 1, /* linkers set DF_STATIC_TLS */
};

#define MACHINE_PAGE UINT64_C(4096)

/* Far from what Linux uses (programs near 0x55..., libraries and stacks near 0x7f...): free everywhere. */
#define MACHINE_FIRST_RANGE UINT64_C(0x200000000000)

/* What a thread control block has beside libc's own (glibc, tcbhead_t): its own address at 0 and 16. */
static inline uint64_t machine_thread_pointer(void) {
    uint64_t pointer;
    __asm__ volatile("movq %%fs:0x10, %0" : "=r"(pointer)); /* not the word at 0, which method tls-word changes */
    return pointer;
}

static inline uint64_t machine_cycles(void) {
    return __builtin_ia32_rdtsc();
}

/* ---- control blocks of threads (glibc, tcbhead_t) ---- */

struct machine_control_block {
    void *self; /* the pointer's own address, by which code finds thread-local variables */
    void *vector;
    void *descriptor;
};

/* Of the `size` bytes that static TLS takes with a control block of `control` bytes: those below the pointer. */
static inline uint64_t machine_tls_below(uint64_t size, uint64_t control) {
    return size - control;
}

static inline uint64_t machine_tls_above(uint64_t size, uint64_t control) {
    (void)size;
    return control;
}

/* Makes the control block at `pointer` the one at `thread`, for whatever asks who runs; only what points to itself,
 * and the vector of blocks, is its own. */
static inline void machine_copy_control_block(uint64_t pointer, uint64_t thread, uint64_t control) {
    struct machine_control_block *block = (struct machine_control_block *)pointer;
    void *vector = block->vector;
    memcpy(block, (const void *)thread, control);
    *block = (struct machine_control_block){block, vector, block};
}

#define MACHINE_FSGSBASE 2 /* bit of AT_HWCAP2: programs may set the thread pointer (the fs base) themselves */

static inline int machine_can_write_thread_pointer(void) {
    return (getauxval(AT_HWCAP2) & MACHINE_FSGSBASE) != 0;
}

static inline void machine_set_thread_pointer(uint64_t pointer, int can_write) {
    if (can_write)
        __asm__ volatile("wrfsbase %0" : : "r"(pointer) : "memory");
    else
        syscall(SYS_arch_prctl, 0x1002 /* ARCH_SET_FS (asm/prctl.h) */, pointer);
}

/* Code finds a thread-local variable from the word at the thread pointer, or by its distance from that alone. */
#define MACHINE_HAS_POINTER_WORD 1
#define MACHINE_BY_POINTER_WORD " -mno-tls-direct-seg-refs" /* the compiler's option for the former */
static inline void machine_set_pointer_word(uint64_t pointer) {
    __asm__ volatile("movq %0, %%fs:0" : : "r"(pointer) : "memory");
}

/* Makes a new control block, zero but for its vector, one that libc takes: tcbhead_t of glibc. */
static inline void machine_fill_control_block(char *block) {
    char *own = (char *)(uintptr_t)machine_thread_pointer();
    *(void **)block = *(void **)(block + 0x10) = block;
    *(int *)(block + 0x18) = 1;                              /* there are threads */
    *(uint64_t *)(block + 0x28) = *(uint64_t *)(own + 0x28); /* the stack protector's guard */
    *(uint64_t *)(block + 0x30) = *(uint64_t *)(own + 0x30); /* the guard of pointers */
}

#ifndef __cplusplus
/* ---- contexts ---- */

/* What context_switch() pushes, from the saved stack pointer up. */
struct machine_frame {
    uint32_t mxcsr;
    uint16_t x87_control;
    uint16_t padding;
    uint64_t r15, r14, r13, r12, rbx, rbp, rip;
};

/* Of a rank that begins in rank_entry, which calls `entry` with `argument`. */
static inline struct machine_frame machine_first_frame(uint64_t start, uint64_t entry, uint64_t argument) {
    return (struct machine_frame){
        .mxcsr = 0x1f80,       /* the processor's reset values as the psABI asks at process start: all masked */
        .x87_control = 0x037f, /* likewise, with 64-bit mantissas */
        .r13 = argument,
        .r12 = entry,
        .rip = start,
    };
}

static const struct rank_debug_register machine_context_rules[] = {
    {15, RANK_DEBUG_REGISTER_AT_OFFSET, offsetof(struct machine_frame, r15)},
    {14, RANK_DEBUG_REGISTER_AT_OFFSET, offsetof(struct machine_frame, r14)},
    {13, RANK_DEBUG_REGISTER_AT_OFFSET, offsetof(struct machine_frame, r13)},
    {12, RANK_DEBUG_REGISTER_AT_OFFSET, offsetof(struct machine_frame, r12)},
    {3, RANK_DEBUG_REGISTER_AT_OFFSET, offsetof(struct machine_frame, rbx)},
    {6, RANK_DEBUG_REGISTER_AT_OFFSET, offsetof(struct machine_frame, rbp)},
    {16, RANK_DEBUG_REGISTER_AT_OFFSET, offsetof(struct machine_frame, rip)},
    {7, RANK_DEBUG_REGISTER_IS_OFFSET, sizeof(struct machine_frame)},
};

#endif

/* ---- core files and checkpoints ---- */

#ifdef __USE_GNU /* sys/ucontext.h names registers only then */
/* In the order of struct user_regs_struct (sys/user.h). */
static inline void machine_registers(const ucontext_t *context, uint64_t *to) {
    const greg_t *from = context->uc_mcontext.gregs;
    static const int order[] = {REG_R15, REG_R14, REG_R13, REG_R12, REG_RBP, REG_RBX, REG_R11, REG_R10,
                                REG_R9,  REG_R8,  REG_RAX, REG_RCX, REG_RDX, REG_RSI, REG_RDI};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        to[i] = (uint64_t)from[order[i]];
    to[15] = UINT64_MAX; /* orig_rax: in no system call that could be begun again */
    to[16] = (uint64_t)from[REG_RIP], to[17] = 0x33, to[18] = (uint64_t)from[REG_EFL];
    to[19] = (uint64_t)from[REG_RSP], to[20] = 0x2b;
    to[21] = machine_thread_pointer();
}
#endif

/* The guards of stacks and of pointers (glibc's tcbhead_t: stack_guard, pointer_guard). */
static inline void machine_guards(uint64_t guards[2]) {
    __asm__("movq %%fs:0x28, %0" : "=r"(guards[0]));
    __asm__("movq %%fs:0x30, %0" : "=r"(guards[1]));
}

/* 0, or an errno value. */
static inline int machine_set_guards(const uint64_t guards[2]) {
    __asm__ volatile("movq %0, %%fs:0x28" : : "r"(guards[0]));
    __asm__ volatile("movq %0, %%fs:0x30" : : "r"(guards[1]));
    return 0;
}

/* Leaves 1 and 7, of which glibc's resolvers choose functions whose addresses then stand in the programs' tables. */
static inline void machine_write_features(FILE *file) {
    unsigned int eax, ebx, ecx = 0, edx = 0, ecx7 = 0, edx7 = 0;
    __get_cpuid(1, &eax, &ebx, &ecx, &edx);
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx7, &edx7))
        ebx = 0;
    fprintf(file, "%x-%x-%x-%x", ecx, edx, ebx, ecx7);
}

/* In assembler: writes what is between the labels 1 and 2 to standard error, and ends the process with 2. */
#define MACHINE_WRITE_AND_EXIT(write, exit_group)                                                                      \
    "    mov $" write ", %eax\n"                                                                                       \
    "    mov $2, %edi\n"                                                                                               \
    "    lea 1f(%rip), %rsi\n"                                                                                         \
    "    mov $2f - 1f, %edx\n"                                                                                         \
    "    syscall\n"                                                                                                    \
    "    mov $" exit_group ", %eax\n"                                                                                  \
    "    mov $2, %edi\n"                                                                                               \
    "    syscall\n"

#endif
