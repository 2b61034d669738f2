/*
 * crash.c: handlers that say their sentence and let the signal do what it would have done.
 *
 * They are gone once they run (SA_RESETHAND): a fault happens again when the handler returns, with the registers as
 * they were, and abort() raises its signal a second time.  So cores and debuggers see the fault itself, and a handler
 * of the program's own takes the place of these.
 */
#define _GNU_SOURCE
#include "ranks/crash.h"
#include "ranks/scheduler.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int *crashed_rank; /* in memory that the reporting process sees */

/* ---- a sentence, by calls that a signal handler may make ---- */

static char *put(char *to, const char *text) {
    while (*text)
        *to++ = *text++;
    return to;
}

static char *put_number(char *to, int number) {
    char digits[12];
    int count = 0;
    do
        digits[count++] = (char)('0' + number % 10);
    while (number /= 10);
    while (count)
        *to++ = digits[--count];
    return to;
}

static void report(int rank, int signal) {
    char line[160], *end = put(line, "rankrun: rank ");
    const char *name = sigdescr_np(signal);
    end = put(put_number(end, rank), " was ended by signal ");
    end = put(put(put_number(end, signal), " ("), name ? name : "?");
    end = put(end, "), and the job with it\n");
    (void)!write(STDERR_FILENO, line, (size_t)(end - line));
}

static void on_fault(int signal, siginfo_t *information, void *context) {
    (void)context;
    const struct rank *rank = rank_current();
    if (rank && !rank_was_forked()) {
        if (crashed_rank)
            *crashed_rank = rank_number(rank) + 1;
        else
            report(rank_number(rank), signal);
    }
    if (information->si_code <= 0) /* sent by a process, so it does not happen again by itself */
        syscall(SYS_tgkill, getpid(), gettid(), signal);
}

void crash_watch(int *reporter) {
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    struct sigaction now, wanted = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_RESETHAND | SA_ONSTACK};
    crashed_rank = reporter;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (sigaction(signals[i], NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL)
            sigaction(signals[i], &wanted, NULL);
}

int crash_noted(void) {
    return crashed_rank ? *crashed_rank - 1 : -1;
}

void crash_watch_thread(void) {
    size_t size = 4 * (size_t)sysconf(_SC_MINSIGSTKSZ);
    stack_t own;
    if (sigaltstack(NULL, &own) || !(own.ss_flags & SS_DISABLE))
        return;
    void *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack != MAP_FAILED)
        sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = size}, NULL);
}
