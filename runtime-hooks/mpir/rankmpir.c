/*
 * rankmpir.c: stands for the launcher of a job that publishes no table of its processes, such as charmrun: a parallel
 * debugger that attaches to it, or starts it, finds them here.  It ends when all of them have.
 */
#define _GNU_SOURCE
#include "file_limit.h"
#include "mpir.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char usage[] = "usage: rankmpir [--while PID] PID|PID@HOST:PROGRAM...\n"
                            "Publishes a job's processes, in the order of their indices, to debuggers that know the\n"
                            "MPIR interface, until all of this host have ended, and process --while (a launcher) too.\n"
                            "`inspector mpir JOB` finds them by itself.\n";

/* A positive number and nothing else; 0 if it is none. */
static pid_t pid_of(const char *word) {
    char *end;
    errno = 0;
    long number = strtol(word, &end, 10);
    return errno || *end || *word < '0' || *word > '9' || number > INT_MAX ? 0 : (pid_t)number;
}

/* Has `ends` tell when the process does.  From here on its pid can't come to mean another process unnoticed. */
static int watch(int ends, pid_t pid) {
    int process = (int)syscall(SYS_pidfd_open, pid, 0);
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.fd = process};
    return process < 0 || epoll_ctl(ends, EPOLL_CTL_ADD, process, &event) ? -1 : 0;
}

static void wait_for(int ends, int processes) {
    struct epoll_event event;
    while (processes > 0)
        if (epoll_wait(ends, &event, 1, -1) == 1) {
            close(event.data.fd);
            processes--;
        }
}

/* Adds PID@HOST:PROGRAM, which is cut into its parts.  False if it is none. */
static bool add_remote(char *word) {
    char *host = strchr(word, '@'), *program = host ? strchr(host, ':') : NULL;
    if (!program)
        return false;
    *host++ = *program++ = 0;
    pid_t pid = pid_of(word);
    return pid && *host && *program && mpir_add_remote(host, program, pid);
}

/* Watches and adds a process of this host, or says why not. */
static bool add_local(int ends, const char *word, bool is_published) {
    pid_t pid = pid_of(word);
    if (!pid)
        fprintf(stderr, "rankmpir: '%s' is not a pid\n", word);
    else if (watch(ends, pid))
        fprintf(stderr, "rankmpir: process %d can't be watched: %s\n", pid, strerror(errno));
    else if (is_published && !mpir_add(pid))
        fprintf(stderr, "rankmpir: process %d has ended, or belongs to another user\n", pid);
    else
        return true;
    return false;
}

int main(int count, char **words) {
    if (count < 2 || !strcmp(words[1], "--help") || !strcmp(words[1], "-h")) {
        fputs(usage, count < 2 ? stderr : stdout);
        return count < 2 ? 2 : 0;
    }
    if (!strcmp(words[1], "--version")) {
        puts("rankmpir " RANKLENS_VERSION);
        return 0;
    }
    raise_file_limit();
    int ends = epoll_create1(EPOLL_CLOEXEC), watched = 0, published = 0, first = 1;
    if (count > 2 && !strcmp(words[1], "--while")) {
        if (!add_local(ends, words[2], false))
            return 2;
        watched++;
        first = 3;
    }
    for (int i = first; i < count; i++, published++) {
        bool is_remote = strchr(words[i], '@');
        if (is_remote && !add_remote(words[i])) {
            fprintf(stderr, "rankmpir: '%s' is not a process of a host: type PID@HOST:PROGRAM\n", words[i]);
            return 2;
        }
        if (!is_remote && !add_local(ends, words[i], true))
            return 2;
        watched += !is_remote;
    }
    printf("rankmpir: a debugger that attaches to process %d finds %d process%s\n", getpid(), published,
           published == 1 ? "" : "es");
    fflush(stdout);
    mpir_publish();
    wait_for(ends, watched);
    return 0;
}
