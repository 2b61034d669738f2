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

static const char usage[] = "usage: rankmpir PID...\n"
                            "Publishes a job's processes, in the order of their indices, to debuggers that know the\n"
                            "MPIR interface, until all have ended.  `inspector mpir JOB` finds them by itself.\n";

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
    int ends = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 1; i < count; i++) {
        pid_t pid = pid_of(words[i]);
        if (!pid) {
            fprintf(stderr, "rankmpir: '%s' is not a pid\n", words[i]);
            return 2;
        }
        if (watch(ends, pid)) {
            fprintf(stderr, "rankmpir: process %d can't be watched: %s\n", pid, strerror(errno));
            return 2;
        }
        if (!mpir_add(pid)) {
            fprintf(stderr, "rankmpir: process %d has ended, or is another user's\n", pid);
            return 2;
        }
    }
    printf("rankmpir: a debugger that attaches to process %d finds %d process%s\n", getpid(), count - 1,
           count == 2 ? "" : "es");
    fflush(stdout);
    mpir_publish();
    wait_for(ends, count - 1);
    return 0;
}
