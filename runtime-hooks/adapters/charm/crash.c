/*
 * crash.c: the handler, and text without stdio.
 */
#define _GNU_SOURCE
#include "crash.h"
#include "address_lookup.h"
#include "rank_debug.h"
#include "ranks.h"
#include "stack_walk.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK_SIZE (1 << 18)
#define MOST_FRAMES 100

static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
static const char *const NAMES[] = {"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT"};
enum { SIGNAL_COUNT = sizeof SIGNALS / sizeof *SIGNALS };

static struct sigaction previous[SIGNAL_COUNT];
static bool is_prepared;
static _Thread_local bool has_stack;

/* A line of output; what does not fit is left out. */
struct line {
    char text[512];
    size_t length;
};

static void put(struct line *line, const char *text) {
    while (*text && line->length < sizeof line->text - 1)
        line->text[line->length++] = *text++;
}

static void put_number(struct line *line, uint64_t value, unsigned base) {
    char digits[24];
    size_t at = sizeof digits;
    digits[--at] = 0;
    do
        digits[--at] = "0123456789abcdef"[value % base];
    while (value /= base);
    put(line, base == 16 ? "0x" : "");
    put(line, digits + at);
}

static void end(struct line *line) {
    line->text[line->length++] = '\n';
    size_t written = 0;
    while (written < line->length) {
        ssize_t count = write(STDERR_FILENO, line->text + written, line->length - written);
        if (count <= 0)
            return;
        written += (size_t)count;
    }
}

static const char *last_part(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void tell_frame(const struct frame *frame, int number) {
    struct line line = {.length = 0};
    uint64_t pc = frame->values[FRAME_PC], start = 0;
    struct place place = code_at(pc - !frame->is_innermost);
    uint64_t original = place.original + !frame->is_innermost;
    put(&line, "  #");
    put_number(&line, (uint64_t)number, 10);
    put(&line, "  ");
    const char *name = place.code ? code_function(place.code, place.original, &start) : NULL;
    if (name) {
        put(&line, name);
        put(&line, "+");
        put_number(&line, original - start, 16);
        put(&line, "  ");
    }
    if (place.code) {
        put(&line, last_part(place.code->path));
        put(&line, "+");
        put_number(&line, original - place.code->bias, 16);
    } else {
        put_number(&line, pc, 16);
        put(&line, " in no file");
    }
    end(&line);
}

static void tell_head(int signal, const siginfo_t *info, int rank) {
    struct line line = {.length = 0};
    put(&line, "rankdebug: ");
    if (rank >= 0) {
        put(&line, "rank ");
        put_number(&line, (uint64_t)rank, 10);
    } else {
        put(&line, "no rank");
    }
    put(&line, " (process ");
    put_number(&line, (uint64_t)getpid(), 10);
    put(&line, ", thread ");
    put_number(&line, (uint64_t)syscall(SYS_gettid), 10);
    put(&line, "): ");
    for (int i = 0; i < SIGNAL_COUNT; i++)
        put(&line, SIGNALS[i] == signal ? NAMES[i] : "");
    if ((signal == SIGSEGV || signal == SIGBUS) && info->si_code > 0) {
        put(&line, " at address ");
        put_number(&line, (uintptr_t)info->si_addr, 16);
    }
    end(&line);
}

/* The general registers by DWARF number (x86-64 psABI, figure 3.36). */
static struct frame interrupted(const ucontext_t *context) {
    static const int REGISTERS[FRAME_REGISTERS] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                                   REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                                   REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    struct frame frame = {.known = (1u << FRAME_REGISTERS) - 1, .is_innermost = true};
    for (int i = 0; i < FRAME_REGISTERS; i++)
        frame.values[i] = (uint64_t)context->uc_mcontext.gregs[REGISTERS[i]];
    return frame;
}

/* A jump to nowhere has no frame of its own: what it returns to was pushed by the call. */
static bool leave_nowhere(struct frame *frame) {
    uint64_t sp = frame->values[FRAME_SP];
    if (code_at(frame->values[FRAME_PC]).code || !code_read(sp, &frame->values[FRAME_PC], sizeof(uint64_t)))
        return false;
    frame->values[FRAME_SP] = sp + sizeof(uint64_t);
    frame->is_innermost = false;
    return true;
}

static bool is_entry(uint64_t pc) {
    const struct rank_debug_header *header = rank_debug_registry;
    return header && pc - header->entry_function < header->entry_function_size;
}

static void tell_rest(void) {
    struct line line = {.length = 0};
    put(&line, "  and more");
    end(&line);
}

static void tell(int signal, const siginfo_t *info, const ucontext_t *context) {
    struct frame frame = interrupted(context);
    int rank = rank_running(frame.values[FRAME_SP]);
    tell_head(signal, info, rank);
    for (int number = 0; number < MOST_FRAMES; number++) {
        tell_frame(&frame, number);
        if (is_entry(frame.values[FRAME_PC]) || (!(number == 0 && leave_nowhere(&frame)) && !frame_up(&frame)))
            return;
    }
    tell_rest();
}

/* Afterwards a fault happens again when the handler returns; what another process sent has to be sent once more. */
static void on_signal(int signal, siginfo_t *info, void *context) {
    tell(signal, info, context);
    for (int i = 0; i < SIGNAL_COUNT; i++)
        if (SIGNALS[i] == signal)
            sigaction(signal, &previous[i], NULL);
    if (info->si_code <= 0)
        syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signal);
}

void crash_prepare(void) {
    code_prepare();
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigfillset(&action.sa_mask);
    is_prepared = true;
    crash_prepare_thread();
    for (int i = 0; i < SIGNAL_COUNT; i++)
        sigaction(SIGNALS[i], &action, &previous[i]);
}

void crash_prepare_thread(void) {
    if (!is_prepared || has_stack)
        return;
    void *memory = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return;
    stack_t stack = {.ss_sp = memory, .ss_size = STACK_SIZE};
    has_stack = sigaltstack(&stack, NULL) == 0;
}
