/*
 * context_switch.c: what it costs to leave one rank for another, and what of it the registry costs.
 *
 * Linked with the embedded runtime's objects.  Prints lines "NAME NANOSECONDS", one per name and round: `bare` is a
 * swap of the registers that the psABI makes callee-saved (control words included), `published` the same with the
 * registry's stores, `rank` is rank_yield() of the runtime between two ranks.  The three alternate, so that a change of
 * the processor's speed meets them all.
 */
#define _GNU_SOURCE
#include "methods/table.h"
#include "rank_hooks.h"
#include "ranks/context.h"
#include "ranks/kernel_threads.h"
#include "ranks/scheduler.h"
#include "ranks/user_level_threads.h"

#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 15, SWITCHES = 400000, STACK = 65536 };

static _Alignas(16) char stacks[4][STACK];
static struct rank_debug_rank *records[2];
static uint64_t measuring, other; /* saved contexts of the bare swap's two sides */

void swap(uint64_t *saved, uint64_t next);
__asm__(".pushsection .text\n"
        ".type swap, @function\n"
        "swap:\n"
        "  push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15; sub $8, %rsp\n"
        "  stmxcsr (%rsp); fnstcw 4(%rsp)\n"
        "  mov %rsp, (%rdi); mov %rsi, %rsp\n"
        "  ldmxcsr (%rsp); fldcw 4(%rsp)\n"
        "  add $8, %rsp; pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp; ret\n"
        ".size swap, . - swap\n"
        ".popsection\n");

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void print(const char *name, double start) {
    printf("%s %.4f\n", name, (now() - start) / SWITCHES);
}

/* What the scheduler writes into the records of the rank that leaves and of the one that goes on. */
static inline void publish(struct rank_debug_rank *from, struct rank_debug_rank *to) {
    ((volatile struct rank_debug_rank *)from)->state = RANK_DEBUG_STATE_READY;
    ((volatile struct rank_debug_rank *)to)->switches++;
    ((volatile struct rank_debug_rank *)to)->state = RANK_DEBUG_STATE_RUNNING;
}

static int with_stores;

static void answer(void *unused) {
    (void)unused;
    for (;;) {
        if (with_stores)
            publish(records[1], records[0]);
        swap(&other, measuring);
    }
}

/* Two switches per turn: there and back. */
static void measure_swap(const char *name, int stores) {
    with_stores = stores;
    double start = now();
    for (int i = 0; i < SWITCHES / 2; i++) {
        if (with_stores)
            publish(records[0], records[1]);
        swap(&measuring, other);
    }
    print(name, start);
}

static int measure(void *unused) {
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        measure_swap("bare", 0);
        measure_swap("published", 1);
        double start = now();
        for (int i = 0; i < SWITCHES / 2; i++)
            rank_yield();
        print("rank", start);
    }
    fflush(stdout);
    syscall(SYS_exit_group, 0); /* the runtime's exit() and _exit() would end one rank */
    return 0;
}

static int give_way(void *unused) {
    (void)unused;
    for (;;)
        rank_yield();
}

int main(void) {
    struct rank_hooks_capacity capacity = {.strings = 4096, .ranks = 2, .context_registers = 16, .calls = 1};
    if (rank_hooks_create(&capacity) || ranks_prepare(2, 1, method_named("none"), false))
        return 1;
    rank_hooks_begin();
    context_describe();
    for (uint32_t i = 0; i < 2; i++) {
        struct rank_debug_rank record = {.rank = i, .stack_start = (uint64_t)(uintptr_t)stacks[i], .stack_size = STACK};
        records[i] = rank_hooks_rank(rank_hooks_add_rank(&record));
    }
    rank_hooks_commit();
    other = context_make(stacks[2], STACK, answer, NULL);
    ranks_add(0, records[0], &(struct rank_work){.main = measure});
    ranks_add(1, records[1], &(struct rank_work){.main = give_way});
    return ranks_run(true);
}
