/*
 * agent.c: orders, links to the other hosts, and a loop until the launcher goes or all processes have ended.
 */
#define _GNU_SOURCE
#include "job/agent.h"
#include "job/checkpoint.h"
#include "job/host_list.h"
#include "job/local_processes.h"
#include "job/transport.h"
#include "ranks/fatal.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define ORDERS_DESCRIPTOR 3 /* where the orders are when the agent has started itself anew */
#define MOST_BYTES (UINT64_C(64) << 20)

static char own_name[256]; /* of this host, "": this is not an agent */
static struct orders orders;
static char *strings, *rest; /* what follows the orders; the part of it without a name here */
static const char *folder, *launcher_addresses, *job_id, *token;
static int launcher = -1; /* socket */
static struct tcp_listener listener;

bool agent_is_one(void) {
    return *own_name;
}

/* ---- orders ---- */

static bool read_whole(int file, void *memory, size_t size) {
    for (char *to = memory; size;) {
        ssize_t got = read(file, to, size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        to += got, size -= (size_t)got;
    }
    return true;
}

static char *next_string(void) {
    if (rest >= strings + orders.bytes)
        fatal("the launcher's orders are cut short");
    char *found = rest;
    rest += strlen(rest) + 1;
    return found;
}

static void read_orders(int file) {
    if (!read_whole(file, &orders, sizeof orders) || orders.version != ORDERS_VERSION || orders.bytes > MOST_BYTES)
        fatal("--agent is for rankrun itself, which has to be of the same version on all hosts of a job");
    strings = rest = malloc(orders.bytes + 1);
    if (!strings || !read_whole(file, strings, orders.bytes))
        fatal("the launcher's orders can't be read");
    strings[orders.bytes] = '\0';
    snprintf(own_name, sizeof own_name, "%s", next_string());
    fatal_on_host(own_name);
    const char **named[] = {&folder, &launcher_addresses, &job_id, &token};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        *named[i] = next_string();
}

/* `more`: a last string, or NULL. */
static char **next_strings(uint32_t count, char *more) {
    char **list = calloc(count + UINT64_C(2), sizeof *list);
    if (!list)
        fatal("memory for the launcher's orders can't be had");
    for (uint32_t i = 0; i < count; i++)
        list[i] = next_string();
    list[count] = more;
    return list;
}

static void keep_orders(void) {
    int file = memfd_create("orders", 0);
    struct iovec parts[] = {{&orders, sizeof orders}, {strings, orders.bytes}};
    if (file < 0 || writev(file, parts, 2) != (ssize_t)(sizeof orders + orders.bytes) ||
        lseek(file, 0, SEEK_SET) != 0 || dup2(file, ORDERS_DESCRIPTOR) < 0)
        fatal("the launcher's orders can't be kept: %s", strerror(errno));
    if (file != ORDERS_DESCRIPTOR)
        close(file);
}

__attribute__((noreturn)) static void follow_orders(void) {
    static char mark[sizeof AGENT_MARK + 256], self[PATH_MAX];
    read_orders(STDIN_FILENO);
    keep_orders();
    if (chdir(folder))
        fatal("the folder that the job was started in, %s, is not here: %s", folder, strerror(errno));
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) == 0) {
        limit.rlim_cur = orders.stack_limit;
        setrlimit(RLIMIT_STACK, &limit);
    }
    snprintf(mark, sizeof mark, AGENT_MARK "=" AGENT_MARK_FORMAT, own_name);
    char **arguments = next_strings(orders.argument_count, NULL);
    char **environment = next_strings(orders.environment_count, mark);
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length < 0 ? 0 : length] = '\0';
    execve(self, arguments, environment);
    fatal("%s can't be started anew: %s", self, strerror(errno));
}

void agent_begin(int argc, char **argv) {
    const char *name = getenv(AGENT_MARK);
    if (argc == 2 && !strcmp(argv[1], "--agent"))
        follow_orders();
    size_t length = name ? strcspn(name, " ") : 0;
    snprintf(own_name, sizeof own_name, "%.*s", (int)length, name ? name : "");
    if (*own_name)
        fatal_on_host(own_name);
}

/* ---- the launcher ---- */

/* The launcher says why. */
__attribute__((noreturn)) static void launcher_has_gone(void) {
    _exit(2);
}

static void tell(enum agent_frame kind, const void *first, size_t first_size, const void *second, size_t second_size) {
    struct frame frame = {kind, (int32_t)orders.host, first_size + second_size};
    struct iovec parts[] = {
        {&frame, sizeof frame}, {(void *)(uintptr_t)first, first_size}, {(void *)(uintptr_t)second, second_size}};
    socket_write(launcher, parts, second_size ? 3 : 2); /* one that has gone is seen by who reads from it */
}

static int call_launcher(enum tcp_purpose_kind kind, int number) {
    struct tcp_purpose purpose = {kind, number, 0};
    int made = tcp_connect(launcher_addresses, (uint16_t)orders.port, &orders.key, &purpose, orders.silence);
    if (made < 0 && errno == EACCES)
        fatal("the job's launcher does not accept this host's key");
    if (made < 0)
        fatal("the job's launcher can't be reached from this host, at %s, port %u: %s", launcher_addresses, orders.port,
              strerror(errno));
    return made;
}

static void get_ready(const struct launch_plan *plan) {
    if (*token && access(token, F_OK))
        fatal("%s is not the folder that it is where the job was started: checkpoints of a job of several hosts need "
              "a file system that all of them share",
              plan->checkpoint);
    int error = tcp_listen(&listener, &orders.key);
    if (error)
        fatal("other hosts can't be connected: %s", strerror(error));
    struct wire_place own = {.port = listener.port};
    tcp_addresses(own.addresses);
    launcher = call_launcher(PURPOSE_AGENT, (int)orders.host);
    tcp_limit_silence(launcher, orders.silence);
    tell(AGENT_READY, &own, sizeof own, plan->loaded, strlen(plan->loaded));
}

static struct wire_place *wait_for_places(int count) {
    struct frame frame;
    size_t size = (size_t)count * sizeof(struct wire_place);
    struct wire_place *places = malloc(size);
    if (!places)
        fatal("memory for the job can't be had: %s", strerror(errno));
    if (!socket_read(launcher, &frame, sizeof frame) || frame.kind != AGENT_BEGIN || frame.bytes != size ||
        !socket_read(launcher, places, size))
        launcher_has_gone();
    return places;
}

/* ---- links to other hosts ---- */

static void call_host(const struct local_processes *processes, const char *name, struct wire_place *place, int first,
                      int end) {
    place->addresses[sizeof place->addresses - 1] = '\0';
    for (int i = processes->first; i < processes->first + processes->count; i++)
        for (int j = first; j < end; j++) {
            struct tcp_purpose purpose = {PURPOSE_PAIR, i, j};
            int made = tcp_connect(place->addresses, (uint16_t)place->port, &orders.key, &purpose, orders.silence);
            if (made < 0)
                fatal("host %s can't be reached from this one, at %s, port %u: %s", name, place->addresses, place->port,
                      strerror(errno));
            *local_processes_socket(processes, i, j) = made;
        }
}

static bool is_expected(const struct local_processes *processes, const struct tcp_purpose *purpose) {
    return purpose->kind == PURPOSE_PAIR && purpose->to >= processes->first &&
           purpose->to < processes->first + processes->count && purpose->from >= processes->first + processes->count &&
           purpose->from < processes->total && *local_processes_socket(processes, purpose->to, purpose->from) < 0;
}

static void wait_to_be_called(const struct local_processes *processes) {
    for (int left = processes->count * (processes->total - processes->first - processes->count); left > 0;) {
        struct pollfd polled[] = {{listener.events, POLLIN, 0}, {launcher, POLLIN, 0}};
        if (poll(polled, 2, -1) < 0)
            continue;
        if (polled[1].revents) /* it has nothing to say */
            launcher_has_gone();
        struct tcp_purpose purpose;
        for (int made; (made = tcp_accept(&listener, &purpose)) >= 0;) {
            if (!is_expected(processes, &purpose))
                fatal("another host of the job calls for a process that is not here, or twice");
            *local_processes_socket(processes, purpose.to, purpose.from) = made;
            left--;
        }
    }
}

/* Each host calls those before it, and is then called by those after it: no two wait for each other. */
static void connect_hosts(const struct local_processes *processes, const struct host_list *hosts,
                          struct wire_place *places) {
    for (int host = 0; host < (int)orders.host; host++)
        call_host(processes, hosts->items[host].name, &places[host], host_list_first(hosts, host, processes->total),
                  host_list_first(hosts, host + 1, processes->total));
    for (int i = processes->first; i < processes->first + processes->count; i++)
        *local_processes_socket(processes, i, processes->total) = call_launcher(PURPOSE_PROCESS, i);
    wait_to_be_called(processes);
}

/* ---- the processes ---- */

__attribute__((noreturn)) static void end_processes(const struct local_processes *processes) {
    for (int i = 0; i < processes->count; i++)
        if (processes->pids[i])
            kill(processes->pids[i], SIGKILL);
    for (int i = 0; i < processes->count; i++)
        if (processes->pids[i])
            waitpid(processes->pids[i], NULL, 0);
    _exit(2);
}

/* How many of them have ended now. */
static int reap(struct local_processes *processes, int signals) {
    struct signalfd_siginfo ignored;
    int ended = 0;
    while (read(signals, &ignored, sizeof ignored) > 0)
        ;
    for (int i = 0; i < processes->count; i++) {
        struct wire_ended wire = {.process = processes->first + i};
        if (!processes->pids[i] || waitpid(processes->pids[i], &wire.status, WNOHANG) != processes->pids[i])
            continue;
        processes->pids[i] = 0;
        wire.crashed = processes->crashed[i];
        tell(AGENT_ENDED, &wire, sizeof wire, NULL, 0);
        ended++;
    }
    return ended;
}

__attribute__((noreturn)) static void watch(struct local_processes *processes) {
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD); /* blocked by local_processes_fork() */
    int signals = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK), left = processes->count;
    while (left > 0) {
        struct pollfd polled[] = {{signals, POLLIN, 0}, {launcher, POLLIN, 0}};
        if (poll(polled, 2, -1) < 0)
            continue;
        if (polled[0].revents)
            left -= reap(processes, signals);
        if (polled[1].revents) /* it has nothing to say, so it has gone */
            end_processes(processes);
    }
    _exit(0);
}

struct job agent_serve(const struct launch_plan *plan) {
    const struct host_list *hosts = plan->hosts;
    read_orders(ORDERS_DESCRIPTOR);
    close(ORDERS_DESCRIPTOR);
    if (orders.host >= (uint32_t)hosts->count)
        fatal("the launcher's orders are for a host that there is not");
    snprintf(plan->job_id, JOB_ID_SIZE, "%s", job_id);
    get_ready(plan);
    struct wire_place *places = wait_for_places(hosts->count);
    int first = host_list_first(hosts, (int)orders.host, plan->processes);
    int end = host_list_first(hosts, (int)orders.host + 1, plan->processes);
    struct local_processes processes = local_processes_new(first, end - first, plan->processes);
    connect_hosts(&processes, hosts, places);
    tcp_close(&listener);
    free(places);
    checkpoint_set_guards(orders.guards);
    struct job job;
    if (local_processes_fork(&processes, plan, &job)) {
        close(launcher);
        return job;
    }
    tell(AGENT_STARTED, processes.pids, (size_t)processes.count * sizeof *processes.pids, NULL, 0);
    watch(&processes);
}
