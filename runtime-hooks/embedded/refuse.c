/*
 * refuse.c: no destructors are run: what they would end has not begun, or is for no rank.  What the program's
 * constructors have printed is not lost.
 */
#include "refuse.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

void refuse(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("rankrun: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    fflush(NULL);
    _exit(2);
}
