/*
 * fatal.c: no destructors are run: what they would end has not begun, or is for no rank.  What the program's
 * constructors have printed is not lost.
 */
#include "ranks/fatal.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static const char *host;

void refuse_on(const char *name) {
    host = name;
}

const char *refuse_place(void) {
    static char place[300];
    if (host)
        snprintf(place, sizeof place, " on host %s", host);
    return place;
}

void refuse(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "rankrun%s: ", refuse_place());
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    fflush(NULL);
    _exit(2);
}
