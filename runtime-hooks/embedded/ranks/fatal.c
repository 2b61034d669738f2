/*
 * fatal.c: ends the process with a sentence, and runs no destructors: what they would end has not begun, or is for
 * no rank.
 *
 * What the program's constructors have printed is not lost.
 */
#define _GNU_SOURCE
#include "ranks/fatal.h"
#include "libc/open_files.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *host;

void fatal_on_host(const char *name) {
    host = name;
}

const char *fatal_place(void) {
    static char place[300];
    if (host)
        snprintf(place, sizeof place, " on host %s", host);
    return place;
}

void fatal(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "rankrun%s: ", fatal_place());
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    fflush(NULL);
    _exit(2);
}

void rank_job_abort(int status, const char *message) {
    fprintf(stderr, "rankrun%s: %s\n", fatal_place(), message);
    open_files_flush();
    syscall(SYS_exit_group, status); /* a rank's _exit() is the end of that rank */
    __builtin_unreachable();
}
