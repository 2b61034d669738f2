/*
 * A runtime of its own that docs/abi.md points to: ranks are user-level threads (ucontext(3)), each with a copy of the
 * program in a linker namespace of its own (dlmopen(3)).  It shows its ranks by rank_hooks.h, and knows no debugger.
 *
 *     two_copies PROGRAM.so TURNS     runs both ranks TURNS times in turn, says "ready", and stays
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "rank_hooks.h"
#include "two_copies.h"

#define RANKS 2
#define STACK_SIZE (256 * 1024)
#define TAG 7

struct rank {
    ucontext_t context;
    struct rank_debug_rank *record;
    struct link_map *copy;
    main_function *main;
    char *stack;
};

static struct rank ranks[RANKS];
static ucontext_t scheduler;
static int current, turns;
static uint32_t waiting_call;

static void wait_in_call(int peer) {
    struct rank_debug_rank *record = ranks[current].record;
    record->call = waiting_call;
    record->wait_peer = peer;
    record->wait_tag = TAG;
    swapcontext(&ranks[current].context, &scheduler);
}

/* Plain stores: no context while the rank runs, and its context and state once its registers are saved. */
static void run(int number) {
    struct rank_debug_rank *record = ranks[number].record;
    current = number;
    record->call = 0;
    record->switches++;
    record->context = 0;
    record->state = RANK_DEBUG_STATE_RUNNING;
    swapcontext(&scheduler, &ranks[number].context);
    record->context = (uint64_t)(uintptr_t)&ranks[number].context;
    record->state = RANK_DEBUG_STATE_BLOCKED;
}

static void rank_entry(int number) {
    ranks[number].main(number, turns + 1);
    abort(); /* nobody runs them so often */
}

static void load(struct rank *rank, const char *path) {
    void *handle = dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
    if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &rank->copy) != 0) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    rank->main = (main_function *)dlsym(handle, "program_main");
    *(wait_function **)dlsym(handle, "wait_for") = wait_in_call;
}

/* Where swapcontext(3) keeps registers, from the address of a ucontext_t on. */
static void describe_contexts(void) {
    static const struct {
        uint32_t dwarf_register;
        int kept;
    } rules[] = {{3, REG_RBX},  {6, REG_RBP},  {7, REG_RSP},  {12, REG_R12},
                 {13, REG_R13}, {14, REG_R14}, {15, REG_R15}, {16, REG_RIP}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        rank_hooks_add_context_register(&(struct rank_debug_register){
            rules[i].dwarf_register, RANK_DEBUG_REGISTER_AT_OFFSET,
            (int64_t)(offsetof(ucontext_t, uc_mcontext.gregs) + sizeof(greg_t) * (size_t)rules[i].kept)});
}

static void add_rank(struct rank *rank, int number, uint32_t object) {
    rank->stack = malloc(STACK_SIZE);
    getcontext(&rank->context);
    rank->context.uc_stack.ss_sp = rank->stack;
    rank->context.uc_stack.ss_size = STACK_SIZE;
    makecontext(&rank->context, (void (*)(void))rank_entry, 1, number);
    uint32_t index = rank_hooks_add_rank(&(struct rank_debug_rank){
        .rank = number,
        .state = RANK_DEBUG_STATE_READY,
        .kernel_thread = (uint32_t)syscall(SYS_gettid),
        .context = (uint64_t)(uintptr_t)&rank->context,
        .stack_start = (uint64_t)(uintptr_t)rank->stack,
        .stack_size = STACK_SIZE,
        .wait_peer = -2,
        .wait_tag = -2,
    });
    rank->record = rank_hooks_rank(index);
    rank_hooks_add_copy(&(struct rank_debug_copy){number, object, rank->copy->l_addr});
}

static void publish(void) {
    rank_hooks_begin();
    struct rank_debug_header *header = rank_hooks_header();
    header->rank_count = RANKS;
    header->entry_function = (uint64_t)(uintptr_t)rank_entry;
    strcpy(header->method, "namespaces");
    strcpy(header->runtime, "two copies");
    describe_contexts();
    waiting_call = rank_hooks_add_call("MPI_Recv");
    /* The first rank's copy is called the original: nothing asks that nobody runs it. */
    uint32_t object =
        rank_hooks_add_program(ranks[0].copy->l_ld, RANK_DEBUG_OBJECT_PRIVATIZED | RANK_DEBUG_OBJECT_PROGRAM);
    for (int number = 0; number < RANKS; number++)
        add_rank(&ranks[number], number, object);
    rank_hooks_commit();
}

int main(int count, char **words) {
    const struct rank_hooks_capacity capacity = {.strings = 4096,
                                                 .objects = 1,
                                                 .segments = 16,
                                                 .ranks = RANKS,
                                                 .copies = RANKS,
                                                 .context_registers = 8,
                                                 .calls = 2,
                                                 .events = 16};
    if (count < 3 || rank_hooks_create(&capacity) != 0)
        return 1;
    turns = atoi(words[2]);
    rank_hooks_event(RANK_DEBUG_EVENT_BEFORE_COPIES, NULL, RANK_DEBUG_NONE);
    for (int number = 0; number < RANKS; number++)
        load(&ranks[number], words[1]);
    publish();
    rank_hooks_event(RANK_DEBUG_EVENT_AFTER_COPIES, NULL, RANK_DEBUG_NONE);
    for (int number = 0; number < RANKS; number++)
        rank_hooks_event(RANK_DEBUG_EVENT_CREATED, ranks[number].record, RANK_DEBUG_NONE);
    for (int turn = 0; turn < turns; turn++)
        for (int number = 0; number < RANKS; number++)
            run(number);
    puts("ready");
    fflush(stdout);
    pause();
    return 0;
}
