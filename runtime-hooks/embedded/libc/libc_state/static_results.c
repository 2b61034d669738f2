/*
 * static_results.c: strtok() and the calendar functions, with static memory of the program's in place of libc's.
 */
#define _GNU_SOURCE
#include "libc/libc_state/rank_private.h"

#include <string.h>
#include <time.h>

static char *token;
static struct tm calendar;
static char date[64]; /* asctime_r needs 26, and years of more than four digits some more */

#undef strtok

RANK_PRIVATE char *strtok(char *text, const char *delimiters) {
    return strtok_r(text, delimiters, &token);
}

RANK_PRIVATE struct tm *gmtime(const time_t *time) {
    return gmtime_r(time, &calendar);
}

RANK_PRIVATE struct tm *localtime(const time_t *time) {
    tzset(); /* localtime_r need not do it */
    return localtime_r(time, &calendar);
}

RANK_PRIVATE char *asctime(const struct tm *time) {
    return asctime_r(time, date);
}

RANK_PRIVATE char *ctime(const time_t *time) {
    const struct tm *local = localtime(time);
    return local ? asctime(local) : NULL;
}
