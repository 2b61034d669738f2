/*
 * local_processes.c: makes the sockets of all processes, then forks these.
 */
#define _GNU_SOURCE
#include "job/local_processes.h"
#include "frame.h"
#include "job/hosts.h"
#include "ranks/fatal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define FIRST_DESCRIPTOR 1024 /* of the job's own, where so many are allowed: select() knows those below */

int *local_processes_socket(const struct local_processes *processes, int process, int to) {
    return &processes->sockets[(size_t)(process - processes->first) * ((size_t)processes->total + 1) + (size_t)to];
}

void local_processes_link(int ends[2]) {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        fatal("the job's processes can't be connected: %s", strerror(errno));
}

struct local_processes local_processes_new(int total) {
    int first = frame_first_of(site_host(), total, site_hosts());
    int count = frame_first_of(site_host() + 1, total, site_hosts()) - first;
    size_t links = (size_t)count * ((size_t)total + 1);
    struct local_processes processes = {
        first, count, total, malloc(links * sizeof *processes.sockets), calloc((size_t)count, sizeof *processes.pids),
        NULL};
    processes.crashed = mmap(NULL, (size_t)count * sizeof *processes.crashed, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!processes.sockets || !processes.pids || processes.crashed == MAP_FAILED)
        fatal("there is not enough memory for the job: %s", strerror(errno));
    memset(processes.sockets, -1, links * sizeof *processes.sockets);
    for (int i = first; i < first + count; i++)
        for (int j = first; j < i; j++) {
            int ends[2];
            local_processes_link(ends);
            *local_processes_socket(&processes, i, j) = ends[0];
            *local_processes_socket(&processes, j, i) = ends[1];
        }
    return processes;
}

/* To where a program that counts on low numbers, as dup2(file, 3) does, does not meet it. */
static int out_of_the_way(int descriptor) {
    int higher = descriptor < 0 ? -1 : fcntl(descriptor, F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR);
    if (higher < 0)
        return descriptor;
    close(descriptor);
    return higher;
}

/* Those of all processes but `kept`; -1: of all. */
static void close_sockets(const struct local_processes *processes, int kept) {
    for (int i = processes->first; i < processes->first + processes->count; i++)
        for (int j = 0; i != kept && j <= processes->total; j++)
            if (*local_processes_socket(processes, i, j) >= 0)
                close(*local_processes_socket(processes, i, j));
    for (int i = 0; site_hosts() > 1 && i < processes->count; i++)
        if (processes->first + i != kept)
            close(site_uplink(i));
}

/* Standard input is the first process's, as under other launchers. */
static void leave_input(int process) {
    int nothing = process ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
    if (nothing >= 0) {
        dup2(nothing, STDIN_FILENO);
        close(nothing);
    }
}

static struct job become(const struct local_processes *processes, int process, const struct launch_plan *plan) {
    int *sockets = local_processes_socket(processes, process, 0);
    close_sockets(processes, process);
    int uplink = -1;
    if (site_hosts() > 1) {
        close(site_control());
        uplink = out_of_the_way(site_uplink(process - processes->first));
    }
    for (int j = 0; j <= processes->total; j++)
        sockets[j] = sockets[j] >= 0 ? out_of_the_way(sockets[j]) : j == process ? -1 : uplink;
    leave_input(process);
    return (struct job){
        .ranks = plan->ranks,
        .processes = processes->total,
        .index = process,
        .launcher = sockets[processes->total],
        .sockets = sockets,
        .ranks_can_move = plan->ranks_can_move,
        .exit_on_deadlock = plan->exit_on_deadlock,
        .crashed = &processes->crashed[process - processes->first],
    };
}

bool local_processes_fork(struct local_processes *processes, const struct launch_plan *plan, struct job *job) {
    pid_t parent = getpid();
    sigset_t ends, before;
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ends, &before);
    fflush(NULL);
    for (int i = 0; i < processes->count; i++) {
        processes->pids[i] = fork();
        if (processes->pids[i] < 0)
            fatal("a process of the job can't be made: %s", strerror(errno));
        if (processes->pids[i])
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(2);
        sigprocmask(SIG_SETMASK, &before, NULL);
        *job = become(processes, processes->first + i, plan);
        return true;
    }
    close_sockets(processes, -1);
    return false;
}
