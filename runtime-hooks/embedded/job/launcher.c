/*
 * launcher.c: handles the processes' messages and their ends, in one loop.
 */
#define _GNU_SOURCE
#include "job/launcher.h"
#include "file_limit.h"
#include "job/agent.h"
#include "job/checkpoint.h"
#include "job/control_frames.h"
#include "job/hosts.h"
#include "job/local_processes.h"
#include "job/process_sockets.h"
#include "mpir.h"
#include "ranks/fatal.h"
#include "ranks/scheduler.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COUNT_EVERY 100 /* milliseconds between two looks at whether the job is deadlocked */

/* What the launcher knows of a process. */
struct child {
    pid_t pid;        /* on its host */
    const char *host; /* NULL: this one */
    int socket;
    bool has_ended, has_answered;
    struct frame_counts counts, before;
};

enum phase { PHASE_RUNNING, PHASE_PAUSING, PHASE_SAVING, PHASE_DEADLOCKED, PHASE_ENDING };

static const struct launch_plan *plan;
static struct child *children;
static int *statuses; /* by rank; -1: it has not exited */
static int
    *crashed; /* by process: the rank that a signal ended it in, plus one; own_crashed: of those here, which write it */
static const int *own_crashed;
static int left; /* ranks that have not */
static enum phase phase;
static int reporting;     /* which process says where its ranks wait */
static int saved, number; /* processes that have saved, checkpoints so far */
static int save_error;
static double next_checkpoint, next_count;
static int waiting_hosts; /* of which the processes are not yet there */
static char token[sizeof(((struct wire_begin *)0)->token)];

/* Or on another host, where rankrun forks it. */
static bool is_here(const struct child *child) {
    return site_hosts() == 1 || child->socket != site_control();
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void send_frame(struct child *child, enum frame_kind kind, const void *bytes, size_t size) {
    struct frame frame = {.kind = kind, .from = TRANSPORT_LAUNCHER, .to = (int32_t)(child - children), .bytes = size};
    struct iovec parts[2] = {{&frame, sizeof frame}, {(void *)(uintptr_t)bytes, size}};
    socket_write(child->socket, parts, size ? 2 : 1); /* one that has ended is waited for below */
}

static void send_to_all(enum frame_kind kind) {
    for (int i = 0; i < plan->processes; i++)
        send_frame(&children[i], kind, NULL, 0);
}

static void remove_token(void) {
    if (*token)
        unlink(token);
    *token = '\0';
}

__attribute__((noreturn)) static void end_job(int status) {
    for (int i = 0; i < plan->processes; i++)
        if (!children[i].has_ended && is_here(&children[i]))
            kill(children[i].pid, SIGKILL);
    checkpoint_give_up();
    remove_token();
    _exit(status); /* the transport sees it, and has the other hosts end theirs */
}

/* ---- whether the job is quiet ---- */

static void ask_all(void) {
    for (int i = 0; i < plan->processes; i++) {
        children[i].has_answered = false;
        children[i].before = children[i].counts;
    }
    send_to_all(FRAME_COUNT);
}

static bool all_have_answered(void) {
    for (int i = 0; i < plan->processes; i++)
        if (!children[i].has_answered)
            return false;
    return true;
}

/*
 * Nothing runs and nothing is on its way, if two rounds in a row find all processes idle, as many frames handled as
 * sent, and no count changed (Mattern's four counters, "Algorithms for distributed termination detection", 1987).
 */
static bool is_quiet(void) {
    uint64_t sent = 0, handled = 0;
    for (int i = 0; i < plan->processes; i++) {
        const struct child *child = &children[i];
        if (!child->counts.idle || !child->before.idle || child->counts.sent != child->before.sent ||
            child->counts.handled != child->before.handled)
            return false;
        sent += child->counts.sent;
        handled += child->counts.handled;
    }
    return sent == handled;
}

static void forget_counts(void) {
    for (int i = 0; i < plan->processes; i++)
        children[i].counts = (struct frame_counts){0};
}

static void begin_deadlock(void) {
    phase = PHASE_DEADLOCKED;
    fprintf(stderr, "rankrun: deadlock: no rank can continue\n");
    reporting = 0;
    send_frame(&children[0], FRAME_DEADLOCK, NULL, 0);
}

static void end_saving(void) {
    if (!save_error)
        save_error = checkpoint_end(plan->checkpoint, number + 1, plan->description, statuses, plan->processes);
    if (save_error) {
        checkpoint_give_up();
        fprintf(stderr, "rankrun: checkpoint %d can't be written to %s: %s; the job continues\n", number + 1,
                plan->checkpoint, strerror(save_error));
    }
    number++;
    next_checkpoint = now() + plan->every;
    phase = PHASE_RUNNING;
    forget_counts();
    send_to_all(FRAME_RESUME);
    next_count = now() + COUNT_EVERY / 1e3;
}

static void begin_saving(void) {
    struct wire_save save = {.number = number + 1};
    save_error = checkpoint_begin(plan->checkpoint, save.number, &save);
    if (save_error) {
        end_saving();
        return;
    }
    phase = PHASE_SAVING;
    saved = 0;
    for (int i = 0; i < plan->processes; i++)
        send_frame(&children[i], FRAME_SAVE, &save, sizeof save);
}

static void begin_pause(void) {
    phase = PHASE_PAUSING;
    forget_counts();
    send_to_all(FRAME_PAUSE);
    ask_all();
}

static void all_answered(void) {
    if (is_quiet() && phase == PHASE_RUNNING)
        begin_deadlock();
    else if (is_quiet() && phase == PHASE_PAUSING)
        begin_saving();
    else if (phase == PHASE_PAUSING)
        next_count = now() + 0.001;
    else
        next_count = now() + COUNT_EVERY / 1e3;
}

/* ---- what a process says ---- */

union body {
    struct frame_counts counts;
    struct wire_exited exited;
    struct wire_saved saved;
    struct wire_ended ended;
    int host_status;
};

static void take_exited(const struct wire_exited *exited) {
    if (exited->rank < 0 || exited->rank >= plan->ranks || statuses[exited->rank] >= 0)
        return;
    statuses[exited->rank] = exited->status & 0xff;
    if (--left == 0) {
        phase = PHASE_ENDING;
        send_to_all(FRAME_END);
    }
}

static void take_reported(void) {
    if (++reporting < plan->processes) {
        send_frame(&children[reporting], FRAME_DEADLOCK, NULL, 0);
        return;
    }
    if (plan->exit_on_deadlock)
        end_job(3);
}

/* What a process says; its bytes are read. */
static void take_frame(struct child *child, enum frame_kind kind, const union body *body) {
    switch (kind) {
    case FRAME_COUNTS:
        child->counts = body->counts;
        child->has_answered = true;
        if (all_have_answered())
            all_answered();
        break;
    case FRAME_EXITED:
        take_exited(&body->exited);
        break;
    case FRAME_REPORTED:
        take_reported();
        break;
    case FRAME_SAVED:
        save_error = save_error ? save_error : body->saved.error;
        if (++saved == plan->processes)
            end_saving();
        break;
    default:
        break;
    }
}

static void handle_frame(struct child *child) {
    struct frame frame;
    union body body = {0};
    if (!socket_read(child->socket, &frame, sizeof frame) || frame.bytes > sizeof body ||
        !socket_read(child->socket, &body, frame.bytes)) {
        child->socket = -1; /* it has ended */
        return;
    }
    take_frame(child, frame.kind, &body);
}

/* ---- processes that end ---- */

static int job_status(void) {
    int status = 0;
    for (int i = 0; i < plan->ranks; i++)
        status = statuses[i] > status ? statuses[i] : status;
    return status;
}

static void report_signal(int index, int signal) {
    const struct child *child = &children[index];
    char who[64] = "";
    if (crashed[index])
        snprintf(who, sizeof who, "rank %d in ", crashed[index] - 1);
    fprintf(stderr, "rankrun: %sprocess %d of the job (pid %d%s%s) was ended by signal %d (%s), and the job with it\n",
            who, index, child->pid, child->host ? " on host " : "", child->host ? child->host : "", signal,
            strsignal(signal));
}

static void process_ended(int index, int status) {
    children[index].has_ended = true;
    if (phase == PHASE_ENDING && WIFEXITED(status)) {
        for (int i = 0; i < plan->processes; i++)
            if (!children[i].has_ended)
                return;
        end_job(job_status());
    }
    if (WIFSIGNALED(status))
        report_signal(index, WTERMSIG(status));
    end_job(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

static void reap(int signals) {
    struct signalfd_siginfo ignored;
    while (read(signals, &ignored, sizeof ignored) > 0)
        ;
    for (int i = 0; i < plan->processes; i++) {
        int status;
        if (!children[i].has_ended && is_here(&children[i]) &&
            waitpid(children[i].pid, &status, WNOHANG) == children[i].pid) {
            crashed[i] = own_crashed[i];
            process_ended(i, status);
        }
    }
}

/* ---- other hosts ---- */

static struct child *remote_child(int process) {
    if (process < 0 || process >= plan->processes || children[process].socket != site_control())
        end_job(2);
    return &children[process];
}

/* What the transport or rankrun on that host has not already said. */
__attribute__((noreturn)) static void host_ended(int host, int status) {
    const struct child *first = &children[frame_first_of(host, plan->processes, site_hosts())];
    if (WIFEXITED(status) && !first->pid)
        end_job(WEXITSTATUS(status));
    fprintf(stderr, "rankrun: host %s is lost: rankrun there has ended, and the job with it\n",
            first->host ? first->host : "(no name yet)");
    end_job(2);
}

static void take_started(int host, uint64_t bytes) {
    struct wire_started started;
    int first = frame_first_of(host, plan->processes, site_hosts());
    int count = frame_first_of(host + 1, plan->processes, site_hosts()) - first;
    pid_t *pids = calloc((size_t)count, sizeof *pids);
    if (!pids || bytes != sizeof started + (size_t)count * sizeof *pids ||
        !socket_read(site_control(), &started, sizeof started) ||
        !socket_read(site_control(), pids, (size_t)count * sizeof *pids))
        end_job(2);
    started.host[sizeof started.host - 1] = '\0';
    const char *name = strdup(started.host);
    for (int i = 0; i < count; i++) {
        children[first + i].pid = pids[i];
        children[first + i].host = name;
    }
    free(pids);
    waiting_hosts--;
}

static void handle_hosts(void) {
    struct frame frame;
    union body body = {0};
    if (!socket_read(site_control(), &frame, sizeof frame)) {
        fprintf(stderr, "rankrun: the transport between the hosts has ended, and the job with it\n");
        end_job(2);
    }
    if (frame.kind == FRAME_STARTED && TRANSPORT_HOST(frame.from) > 0 && TRANSPORT_HOST(frame.from) < site_hosts()) {
        take_started(TRANSPORT_HOST(frame.from), frame.bytes);
        return;
    }
    if (frame.bytes > sizeof body || !socket_read(site_control(), &body, frame.bytes))
        end_job(2);
    if (frame.kind == FRAME_HOST_ENDED)
        host_ended(TRANSPORT_HOST(frame.from), body.host_status);
    if (frame.kind == FRAME_ENDED) {
        const struct child *child = remote_child(body.ended.process);
        crashed[child - children] = body.ended.crashed;
        process_ended((int)(child - children), body.ended.status);
        return;
    }
    take_frame(remote_child(frame.from), frame.kind, &body);
}

/* ---- the loop ---- */

/* In milliseconds; what is too far off for poll() is waited for again. */
static int until(double time) {
    double wait = (time - now()) * 1e3;
    return wait < 0 ? 0 : wait < INT_MAX - 1 ? (int)wait + 1 : INT_MAX;
}

static int wait_for(void) {
    int wait = -1;
    if ((phase == PHASE_RUNNING || phase == PHASE_PAUSING) && all_have_answered())
        wait = until(next_count);
    if (phase == PHASE_RUNNING && plan->checkpoint) {
        int later = until(next_checkpoint);
        wait = wait < 0 || later < wait ? later : wait;
    }
    return wait;
}

static void handle_timers(void) {
    if (!all_have_answered())
        return;
    if (phase == PHASE_RUNNING && plan->checkpoint && now() >= next_checkpoint)
        begin_pause();
    else if ((phase == PHASE_RUNNING || phase == PHASE_PAUSING) && now() >= next_count)
        ask_all();
}

__attribute__((noreturn)) static void watch(int signals) {
    struct pollfd *polled = calloc((size_t)plan->processes + 2, sizeof *polled), *others = polled + plan->processes;
    if (!polled)
        end_job(2);
    for (;;) {
        for (int i = 0; i < plan->processes; i++)
            polled[i] = (struct pollfd){is_here(&children[i]) ? children[i].socket : -1, POLLIN, 0};
        others[0] = (struct pollfd){signals, POLLIN, 0};
        others[1] = (struct pollfd){site_hosts() > 1 ? site_control() : -1, POLLIN, 0};
        if (poll(polled, (nfds_t)plan->processes + 2, wait_for()) < 0 && errno != EINTR)
            end_job(2);
        for (int i = 0; i < plan->processes; i++)
            if (polled[i].revents)
                handle_frame(&children[i]);
        if (others[0].revents)
            reap(signals);
        if (others[1].revents)
            handle_hosts();
        handle_timers();
    }
}

/* ---- making the processes ---- */

/* Returns true in the processes, false in the launcher. */
static bool fork_here(struct job *job) {
    struct local_processes processes = local_processes_new(plan->processes);
    for (int i = 0; i < processes.count; i++) {
        int ends[2];
        local_processes_link(ends);
        *local_processes_socket(&processes, i, plan->processes) = ends[0];
        children[i].socket = ends[1];
    }
    for (int i = processes.count; i < plan->processes; i++)
        children[i].socket = site_control();
    bool is_process = local_processes_fork(&processes, plan, job);
    for (int i = 0; i < processes.count; i++) {
        if (is_process)
            close(children[i].socket);
        else
            children[i].pid = processes.pids[i];
    }
    crashed = calloc((size_t)plan->processes, sizeof *crashed);
    own_crashed = processes.crashed;
    if (!crashed)
        fatal("there is not enough memory for the job: %s", strerror(errno));
    return is_process;
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

/* Has rankrun on the other hosts fork its processes, and waits until they are there. */
static void start_elsewhere(void) {
    struct wire_begin begin = {0};
    if (site_hosts() == 1)
        return;
    put_token();
    checkpoint_guards(begin.guards);
    snprintf(begin.job_id, sizeof begin.job_id, "%s", plan->job_id);
    memcpy(begin.token, token, sizeof begin.token);
    for (int host = 1; host < site_hosts(); host++) {
        struct frame frame = {.kind = FRAME_BEGIN,
                              .from = TRANSPORT_LAUNCHER,
                              .to = TRANSPORT_HOST(host),
                              .bytes = sizeof begin + strlen(plan->loaded)};
        struct iovec parts[] = {
            {&frame, sizeof frame}, {&begin, sizeof begin}, {(void *)(uintptr_t)plan->loaded, strlen(plan->loaded)}};
        socket_write(site_control(), parts, 3);
    }
    for (waiting_hosts = site_hosts() - 1; waiting_hosts > 0;)
        handle_hosts();
    remove_token();
}

static int watch_for_ends(void) {
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    return signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
}

struct job launch(const struct launch_plan *launch_plan) {
    struct job job;
    if (site_host() > 0)
        return agent_serve(launch_plan);
    plan = launch_plan;
    raise_file_limit();
    children = calloc((size_t)plan->processes, sizeof *children);
    statuses = malloc((size_t)plan->ranks * sizeof *statuses);
    if (!children || !statuses)
        fatal("there is not enough memory for the job: %s", strerror(errno));
    if (fork_here(&job))
        return job;
    int signals = watch_for_ends();
    prctl(PR_SET_PDEATHSIG, 0); /* the transport's end is seen by its socket */
    start_elsewhere();
    for (int i = 0; i < plan->ranks; i++)
        left += (statuses[i] = checkpoint_status(plan->restart, i)) < 0;
    for (int i = 0; i < plan->processes; i++)
        if (is_here(&children[i]))
            mpir_add(children[i].pid);
        else
            mpir_add_remote(children[i].host, NULL, children[i].pid);
    mpir_publish();
    for (int i = 0; i < plan->processes; i++)
        children[i].has_answered = true;
    number = plan->checkpoint ? checkpoint_last(plan->checkpoint) : 0;
    next_checkpoint = now() + plan->every;
    next_count = now() + COUNT_EVERY / 1e3;
    send_to_all(FRAME_START);
    watch(signals);
}
