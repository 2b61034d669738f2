/*
 * hosts.c: one loop until all hosts have begun, and what is heard of them afterwards.
 *
 * A host that goes down is noticed by the connection to its agent alone: the agent always answers, while a process may
 * be stopped by a debugger for as long as the user likes.
 */
#define _GNU_SOURCE
#include "job/hosts.h"
#include "job/checkpoint.h"
#include "job/host_list.h"
#include "job/loaded_files.h"
#include "job/remote_shell.h"
#include "job/transport.h"
#include "ranks/fatal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_TEXT (UINT64_C(16) << 20) /* of what is loaded */
#define SHELLS_MAY_TAKE 10             /* seconds to end once their agents have gone */

struct remote {
    const char *name;
    pid_t shell;  /* 0: it has ended */
    pid_t feeder; /* likewise; of the shell's standard input */
    int socket;   /* to the agent; -1: it has not called, or has gone */
    bool is_ready, has_started;
    int first, count, left; /* its processes, and those that have not ended */
    struct wire_place place;
};

static const struct launch_plan *plan;
static struct remote *remotes;
static struct remote_process *processes;
static int connected; /* processes that have called */
static struct job_key key;
static struct tcp_listener listener;
static int agents = -1; /* epoll, of their sockets */
static char token[PATH_MAX + JOB_ID_SIZE + 16];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void remove_token(void) {
    if (*token)
        unlink(token);
    *token = '\0';
}

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("rankrun: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    remove_token();
    hosts_end();
    _exit(2);
}

/* That all hosts share the folder shows by a file in it. */
static void put_token(void) {
    if (!plan->checkpoint)
        return;
    snprintf(token, sizeof token, "%s/.hosts-%s", plan->checkpoint, plan->job_id);
    int file = open(token, O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0)
        fatal("checkpoints can't be written to %s: %s", plan->checkpoint, strerror(errno));
    close(file);
}

/* ---- remote shells ---- */

static void start_shell(int host, const struct orders *orders, const char *addresses) {
    char folder[PATH_MAX];
    if (!getcwd(folder, sizeof folder))
        fail("the folder that the job is started in has no name any more: %s", strerror(errno));
    struct remote_shell shell = {.command = plan->remote_shell,
                                 .host = remotes[host].name,
                                 .orders = *orders,
                                 .strings = {folder, addresses, plan->job_id, token},
                                 .arguments = plan->command,
                                 .has_input = host == 0};
    shell.orders.host = (uint32_t)host;
    int error = remote_shell_start(&shell, &remotes[host].shell, &remotes[host].feeder);
    if (error)
        fail("host %s: the remote shell can't be started: %s", remotes[host].name, strerror(error));
}

static void start_shells(void) {
    struct rlimit stack = {0};
    char addresses[TCP_ADDRESSES];
    struct orders orders = {.version = ORDERS_VERSION, .key = key, .silence = plan->silence, .port = listener.port};
    getrlimit(RLIMIT_STACK, &stack);
    orders.stack_limit = stack.rlim_cur;
    checkpoint_guards(orders.guards);
    tcp_addresses(addresses);
    for (int i = 0; i < plan->hosts->count; i++)
        start_shell(i, &orders, addresses);
}

static void shell_ended(const struct remote *remote, int status) {
    if (WIFSIGNALED(status))
        fail("host %s: the remote shell (%s) was ended by signal %d (%s) before the job began there", remote->name,
             plan->remote_shell, WTERMSIG(status), strsignal(WTERMSIG(status)));
    fail("host %s: the remote shell (%s) ended with status %d before the job began there", remote->name,
         plan->remote_shell, WEXITSTATUS(status));
}

static void reap(int signals) {
    struct signalfd_siginfo ignored;
    while (read(signals, &ignored, sizeof ignored) > 0)
        ;
    for (int i = 0; i < plan->hosts->count; i++) {
        int status;
        if (!remotes[i].shell || waitpid(remotes[i].shell, &status, WNOHANG) != remotes[i].shell)
            continue;
        remotes[i].shell = 0;
        shell_ended(&remotes[i], status);
    }
}

void hosts_end(void) {
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    bool is_over = true;
    for (int i = 0; i < plan->hosts->count; i++) {
        is_over = is_over && remotes[i].has_started && !remotes[i].left;
        if (remotes[i].socket >= 0)
            shutdown(remotes[i].socket, SHUT_RDWR); /* its agent ends its processes, and itself */
        else if (remotes[i].shell && remotes[i].left)
            kill(remotes[i].shell, SIGKILL); /* there is no agent to end, or it can't be reached */
    }
    double end = now() + SHELLS_MAY_TAKE;
    for (int i = 0; i < plan->hosts->count; i++) {
        while (remotes[i].shell && waitpid(remotes[i].shell, NULL, is_over ? 0 : WNOHANG) == 0) {
            double left = end - now();
            struct timespec wait = {left > 1 ? 1 : 0, left > 1 ? 0 : 10000000};
            if (left <= 0)
                kill(remotes[i].shell, SIGKILL);
            sigtimedwait(&ends, NULL, &wait);
        }
        remotes[i].shell = 0;
        if (remotes[i].feeder && kill(remotes[i].feeder, SIGKILL) == 0)
            waitpid(remotes[i].feeder, NULL, 0);
        remotes[i].feeder = 0;
    }
}

/* ---- agents ---- */

static void watch_agent(int host, int socket) {
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)host};
    tcp_limit_silence(socket, plan->silence);
    remotes[host].socket = socket;
    if (epoll_ctl(agents, EPOLL_CTL_ADD, socket, &event))
        fail("host %s can't be watched: %s", remotes[host].name, strerror(errno));
}

static void close_agent(struct remote *remote) {
    close(remote->socket); /* the only one of it: it leaves the set as well */
    remote->socket = -1;
}

static void take_call(void) {
    struct tcp_purpose purpose;
    for (int socket; (socket = tcp_accept(&listener, &purpose)) >= 0;) {
        int most = purpose.kind == PURPOSE_AGENT ? plan->hosts->count : plan->processes;
        int *place = purpose.from < 0 || purpose.from >= most ? NULL
                     : purpose.kind == PURPOSE_AGENT          ? &remotes[purpose.from].socket
                     : purpose.kind == PURPOSE_PROCESS        ? &processes[purpose.from].socket
                                                              : NULL;
        if (!place || *place >= 0) {
            close(socket);
        } else if (purpose.kind == PURPOSE_AGENT) {
            watch_agent(purpose.from, socket);
        } else {
            *place = socket;
            connected++;
        }
    }
}

static bool starts_with(const char *line, const char *word) {
    return strncmp(line, word, strlen(word)) == 0;
}

static void compare_loaded(const struct remote *remote, char *theirs) {
    char *own = strdup(plan->loaded);
    char **own_lines = loaded_lines(own ? own : ""), **their_lines = loaded_lines(theirs);
    const char *line = loaded_difference(own_lines, their_lines);
    line = line ? line : loaded_difference(their_lines, own_lines);
    if (line && starts_with(line, LOADED_PROCESSOR))
        fail("host %s: its processor has other instructions than the one here, so what libc has chosen for ranks "
             "here may not run there",
             remote->name);
    if (line && starts_with(line, "checkpoint "))
        fail("host %s: %s is not the checkpoint that it is here; it has to be on a file system that all hosts share",
             remote->name, loaded_path(line));
    if (line && starts_with(line, "content "))
        fail("host %s: the constructors of %s have left other values than here, so ranks move there only as --migrate "
             "whole",
             remote->name, loaded_path(line));
    if (line)
        fail("host %s: %s is not the same file at the same address as here, which ranks that move have to find",
             remote->name, loaded_path(line));
    free(own_lines);
    free(their_lines);
    free(own);
}

static bool take_ready(struct remote *remote, uint64_t bytes) {
    if (bytes < sizeof remote->place || bytes > MOST_TEXT)
        return false;
    bytes -= sizeof remote->place;
    char *text = calloc(1, bytes + 1);
    bool whole = text && socket_read(remote->socket, &remote->place, sizeof remote->place) &&
                 socket_read(remote->socket, text, bytes);
    if (whole)
        compare_loaded(remote, text);
    free(text);
    return remote->is_ready = whole;
}

static bool take_started(struct remote *remote, uint64_t bytes) {
    pid_t *pids = calloc((size_t)remote->count, sizeof *pids);
    bool whole = pids && bytes == (size_t)remote->count * sizeof *pids && socket_read(remote->socket, pids, bytes);
    for (int i = 0; whole && i < remote->count; i++)
        processes[remote->first + i].pid = pids[i];
    free(pids);
    return remote->has_started = whole;
}

/* Frames of an agent before the job begins; when it has gone, its shell's status says how. */
static void handle_agent(struct remote *remote) {
    struct frame frame;
    bool whole = socket_read(remote->socket, &frame, sizeof frame);
    whole = whole && ((frame.kind == AGENT_READY && take_ready(remote, frame.bytes)) ||
                      (frame.kind == AGENT_STARTED && take_started(remote, frame.bytes)));
    if (!whole)
        close_agent(remote);
}

static void handle_agents(void) {
    struct epoll_event event;
    while (epoll_wait(agents, &event, 1, 0) == 1)
        handle_agent(&remotes[event.data.u32]);
}

/* ---- until all have begun ---- */

static int count_ready(void) {
    int count = 0;
    for (int i = 0; i < plan->hosts->count; i++)
        count += remotes[i].is_ready;
    return count;
}

static int count_started(void) {
    int count = 0;
    for (int i = 0; i < plan->hosts->count; i++)
        count += remotes[i].has_started;
    return count;
}

static void send_places(void) {
    size_t size = (size_t)plan->hosts->count * sizeof(struct wire_place);
    struct wire_place *places = malloc(size);
    if (!places)
        fail("memory for the job can't be had: %s", strerror(errno));
    for (int i = 0; i < plan->hosts->count; i++)
        places[i] = remotes[i].place;
    for (int i = 0; i < plan->hosts->count; i++) {
        struct frame frame = {AGENT_BEGIN, TRANSPORT_LAUNCHER, size};
        struct iovec parts[] = {{&frame, sizeof frame}, {places, size}};
        socket_write(remotes[i].socket, parts, 2); /* one that has gone is seen by reading */
    }
    free(places);
}

/* Each host that the others wait for is named. */
__attribute__((noreturn)) static void report_silence(void) {
    bool begun = count_ready() == plan->hosts->count;
    for (int i = 0; i < plan->hosts->count; i++)
        if (begun ? !remotes[i].has_started : !remotes[i].is_ready)
            fprintf(stderr, "rankrun: host %s has not answered for %g s (--host-timeout)\n", remotes[i].name,
                    plan->silence);
    fail("the job has not begun on all its hosts");
}

static void wait_until_begun(int signals) {
    bool places_are_sent = false;
    for (double end = now() + plan->silence; count_started() < plan->hosts->count || connected < plan->processes;) {
        struct pollfd polled[] = {{listener.events, POLLIN, 0}, {agents, POLLIN, 0}, {signals, POLLIN, 0}};
        double left = (end - now()) * 1e3;
        if (left <= 0)
            report_silence();
        if (poll(polled, 3, left < INT_MAX - 1 ? (int)left + 1 : INT_MAX) < 0)
            continue;
        if (polled[0].revents)
            take_call();
        if (polled[1].revents)
            handle_agents();
        if (polled[2].revents)
            reap(signals);
        if (!places_are_sent && count_ready() == plan->hosts->count) {
            send_places();
            places_are_sent = true;
            end = now() + plan->silence;
        }
    }
}

static void describe(int host) {
    struct remote *remote = &remotes[host];
    *remote = (struct remote){.name = plan->hosts->items[host].name, .socket = -1};
    remote->first = host_list_first(plan->hosts, host, plan->processes);
    remote->left = remote->count = host_list_first(plan->hosts, host + 1, plan->processes) - remote->first;
    for (int i = remote->first; i < remote->first + remote->count; i++)
        processes[i] = (struct remote_process){.socket = -1, .host = remote->name};
}

void hosts_start(const struct launch_plan *launch_plan, struct remote_process *list, int signals) {
    plan = launch_plan;
    processes = list;
    remotes = calloc((size_t)plan->hosts->count, sizeof *remotes);
    agents = epoll_create1(EPOLL_CLOEXEC);
    random_bytes(&key, sizeof key);
    int error = remotes && agents >= 0 ? tcp_listen(&listener, &key) : errno;
    if (error)
        fatal("other hosts can't be connected: %s", strerror(error));
    for (int i = 0; i < plan->hosts->count; i++)
        describe(i);
    put_token();
    start_shells();
    wait_until_begun(signals);
    tcp_close(&listener);
    remove_token();
}

/* ---- while the job runs ---- */

int hosts_events(void) {
    return agents;
}

static void say_lost(const struct remote *remote, int error) {
    if (error)
        fprintf(stderr, "rankrun: host %s is lost (%s), and the job with it\n", remote->name, strerror(error));
    else
        fprintf(stderr, "rankrun: host %s is lost: rankrun there has ended, and the job with it\n", remote->name);
}

bool hosts_next_end(struct wire_ended *ended) {
    struct epoll_event event;
    struct frame frame;
    if (epoll_wait(agents, &event, 1, 0) != 1)
        return false;
    struct remote *remote = &remotes[event.data.u32];
    if (socket_read(remote->socket, &frame, sizeof frame) && frame.kind == AGENT_ENDED &&
        frame.bytes == sizeof *ended && socket_read(remote->socket, ended, sizeof *ended) &&
        ended->process >= remote->first && ended->process < remote->first + remote->count) {
        remote->left--;
        return true;
    }
    *ended = (struct wire_ended){.process = -1};
    int error = errno;
    close_agent(remote);
    if (!remote->left)
        return hosts_next_end(ended); /* it has nothing more to say */
    say_lost(remote, error);
    return true;
}
