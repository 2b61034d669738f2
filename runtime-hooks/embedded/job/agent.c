/*
 * agent.c: compares this host's loaded files with the first host's, then watches its processes until they or the
 * transport end.
 */
#define _GNU_SOURCE
#include "job/agent.h"
#include "job/checkpoint.h"
#include "job/control_frames.h"
#include "job/hosts.h"
#include "job/loaded_files.h"
#include "job/local_processes.h"
#include "job/process_sockets.h"
#include "ranks/fatal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_TEXT (UINT64_C(16) << 20) /* of what is loaded */

static void tell(enum frame_kind kind, const void *first, size_t first_size, const void *second, size_t second_size) {
    struct frame frame = {
        .kind = kind, .from = TRANSPORT_HOST(site_host()), .to = TRANSPORT_LAUNCHER, .bytes = first_size + second_size};
    struct iovec parts[] = {
        {&frame, sizeof frame}, {(void *)(uintptr_t)first, first_size}, {(void *)(uintptr_t)second, second_size}};
    socket_write(site_control(), parts, second_size ? 3 : 2); /* one that has gone is seen by who reads from it */
}

/* What has to be the same here; ends the process (status 2) with a sentence if it is not. */
static void compare_loaded(const struct launch_plan *plan, char *theirs) {
    char *own = strdup(plan->loaded);
    char **own_lines = loaded_lines(own ? own : ""), **their_lines = loaded_lines(theirs);
    const char *line = loaded_difference(their_lines, own_lines);
    line = line ? line : loaded_difference(own_lines, their_lines);
    if (!line)
        return;
    if (!strncmp(line, LOADED_PROCESSOR, strlen(LOADED_PROCESSOR)))
        fatal("this host's processor has other instructions than the first host's, so what libc has chosen for ranks "
              "there may not run here");
    if (!strncmp(line, "checkpoint ", 11))
        fatal("%s is not the checkpoint that it is on the first host; it has to be on a file system that all hosts "
              "share",
              loaded_path(line));
    if (!strncmp(line, "content ", 8))
        fatal("the constructors of %s have left other values than on the first host, so ranks move here only as "
              "--migrate whole",
              loaded_path(line));
    fatal("%s is not the same file at the same address as on the first host, which ranks that move have to find",
          loaded_path(line));
}

/* The launcher says why. */
__attribute__((noreturn)) static void launcher_has_gone(void) {
    _exit(2);
}

static void wait_to_begin(const struct launch_plan *plan) {
    struct frame frame;
    struct wire_begin begin;
    if (!socket_read(site_control(), &frame, sizeof frame) || frame.kind != FRAME_BEGIN || frame.bytes < sizeof begin ||
        frame.bytes > MOST_TEXT || !socket_read(site_control(), &begin, sizeof begin))
        launcher_has_gone();
    char *text = calloc(1, frame.bytes - sizeof begin + 1);
    if (!text)
        fatal("there is not enough memory for the job: %s", strerror(errno));
    if (!socket_read(site_control(), text, frame.bytes - sizeof begin))
        launcher_has_gone();
    compare_loaded(plan, text);
    free(text);
    if (*begin.token && access(begin.token, F_OK))
        fatal("%s is not the folder that it is on the first host: checkpoints of a job of several hosts need a file "
              "system that all of them share",
              plan->checkpoint);
    checkpoint_set_guards(begin.guards);
    snprintf(plan->job_id, JOB_ID_SIZE, "%s", begin.job_id);
}

__attribute__((noreturn)) static void end_processes(const struct local_processes *processes) {
    for (int i = 0; i < processes->count; i++)
        if (processes->pids[i])
            kill(processes->pids[i], SIGKILL);
    for (int i = 0; i < processes->count; i++)
        if (processes->pids[i])
            waitpid(processes->pids[i], NULL, 0);
    _exit(2);
}

static void reap(struct local_processes *processes, int signals) {
    struct signalfd_siginfo ignored;
    while (read(signals, &ignored, sizeof ignored) > 0)
        ;
    for (int i = 0; i < processes->count; i++) {
        struct wire_ended wire = {.process = processes->first + i};
        if (!processes->pids[i] || waitpid(processes->pids[i], &wire.status, WNOHANG) != processes->pids[i])
            continue;
        processes->pids[i] = 0;
        wire.crashed = processes->crashed[i];
        tell(FRAME_ENDED, &wire, sizeof wire, NULL, 0);
    }
}

/* Until the transport says that the job is over, by closing the socket. */
__attribute__((noreturn)) static void watch(struct local_processes *processes) {
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD); /* blocked by local_processes_fork() */
    int signals = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
    prctl(PR_SET_PDEATHSIG, 0);
    for (;;) {
        struct pollfd polled[] = {{signals, POLLIN, 0}, {site_control(), POLLIN, 0}};
        if (poll(polled, 2, -1) < 0)
            continue;
        if (polled[0].revents)
            reap(processes, signals);
        if (polled[1].revents)
            end_processes(processes);
    }
}

struct job agent_serve(const struct launch_plan *plan) {
    wait_to_begin(plan);
    struct local_processes processes = local_processes_new(plan->processes);
    struct job job;
    if (local_processes_fork(&processes, plan, &job))
        return job;
    struct wire_started started = {.count = processes.count};
    gethostname(started.host, sizeof started.host - 1);
    tell(FRAME_STARTED, &started, sizeof started, processes.pids, (size_t)processes.count * sizeof *processes.pids);
    watch(&processes);
}
