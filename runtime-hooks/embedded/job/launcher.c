/*
 * launcher.c: sockets, forks, and one loop over what the processes say and whether they live.
 */
#define _GNU_SOURCE
#include "launcher.h"
#include "file_limit.h"
#include "mpir.h"
#include "refuse.h"
#include "scheduler.h"
#include "transport.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FIRST_DESCRIPTOR 1024 /* of the job's own, where so many are allowed: select() knows those below */
#define COUNT_EVERY 100       /* milliseconds between two looks at whether the job is deadlocked */

/* What the launcher knows of a process. */
struct child {
    pid_t pid;
    int socket;
    bool has_ended, has_answered;
    struct standing standing, before;
};

enum phase { PHASE_RUNNING, PHASE_PAUSING, PHASE_SAVING, PHASE_DEADLOCKED, PHASE_ENDING };

static const struct launch *plan;
static struct child *children;
static int *statuses; /* by rank; -1: it has not exited */
static int *crashed;  /* by process: the rank that a signal ended it in, plus one; in memory that it shares */
static int left;      /* ranks that have not */
static enum phase phase;
static int reporting;     /* which process says where its ranks wait */
static int saved, number; /* processes that have saved, checkpoints so far */
static int save_error;
static double next_checkpoint, next_count;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void tell(struct child *child, enum frame_kind kind, const void *bytes, size_t size) {
    struct frame frame = {kind, TRANSPORT_LAUNCHER, size};
    struct iovec parts[2] = {{&frame, sizeof frame}, {(void *)(uintptr_t)bytes, size}};
    socket_write(child->socket, parts, size ? 2 : 1); /* one that has ended is waited for below */
}

static void tell_all(enum frame_kind kind) {
    for (int i = 0; i < plan->processes; i++)
        tell(&children[i], kind, NULL, 0);
}

__attribute__((noreturn)) static void end_job(int status) {
    for (int i = 0; i < plan->processes; i++)
        if (!children[i].has_ended)
            kill(children[i].pid, SIGKILL);
    checkpoint_give_up();
    _exit(status);
}

/* ---- how the job stands ---- */

static void ask_all(void) {
    for (int i = 0; i < plan->processes; i++) {
        children[i].has_answered = false;
        children[i].before = children[i].standing;
    }
    tell_all(FRAME_COUNT);
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
        if (!child->standing.idle || !child->before.idle || child->standing.sent != child->before.sent ||
            child->standing.handled != child->before.handled)
            return false;
        sent += child->standing.sent;
        handled += child->standing.handled;
    }
    return sent == handled;
}

static void forget_standings(void) {
    for (int i = 0; i < plan->processes; i++)
        children[i].standing = (struct standing){0};
}

static void begin_deadlock(void) {
    phase = PHASE_DEADLOCKED;
    fprintf(stderr, "rankrun: deadlock: no rank can go on\n");
    reporting = 0;
    tell(&children[0], FRAME_DEADLOCK, NULL, 0);
}

static void end_saving(void) {
    if (!save_error)
        save_error = checkpoint_end(plan->checkpoint, number + 1, plan->description, statuses, plan->processes);
    if (save_error) {
        checkpoint_give_up();
        fprintf(stderr, "rankrun: checkpoint %d can't be written to %s: %s; the job goes on\n", number + 1,
                plan->checkpoint, strerror(save_error));
    }
    number++;
    next_checkpoint = now() + plan->every;
    phase = PHASE_RUNNING;
    forget_standings();
    tell_all(FRAME_RESUME);
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
        tell(&children[i], FRAME_SAVE, &save, sizeof save);
}

static void begin_pause(void) {
    phase = PHASE_PAUSING;
    forget_standings();
    tell_all(FRAME_PAUSE);
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

static void take_exited(const struct wire_exited *exited) {
    if (exited->rank < 0 || exited->rank >= plan->ranks || statuses[exited->rank] >= 0)
        return;
    statuses[exited->rank] = exited->status & 0xff;
    if (--left == 0) {
        phase = PHASE_ENDING;
        tell_all(FRAME_END);
    }
}

static void take_reported(void) {
    if (++reporting < plan->processes) {
        tell(&children[reporting], FRAME_DEADLOCK, NULL, 0);
        return;
    }
    if (plan->exit_on_deadlock)
        end_job(3);
}

static void take(struct child *child) {
    struct frame frame;
    union {
        struct standing standing;
        struct wire_exited exited;
        struct wire_saved saved;
    } body = {0};
    if (!socket_read(child->socket, &frame, sizeof frame) || frame.bytes > sizeof body ||
        !socket_read(child->socket, &body, frame.bytes)) {
        child->socket = -1; /* it has ended */
        return;
    }
    switch (frame.kind) {
    case FRAME_STANDING:
        child->standing = body.standing;
        child->has_answered = true;
        if (all_have_answered())
            all_answered();
        break;
    case FRAME_EXITED:
        take_exited(&body.exited);
        break;
    case FRAME_REPORTED:
        take_reported();
        break;
    case FRAME_SAVED:
        save_error = save_error ? save_error : body.saved.error;
        if (++saved == plan->processes)
            end_saving();
        break;
    default:
        break;
    }
}

/* ---- processes that end ---- */

static int job_status(void) {
    int status = 0;
    for (int i = 0; i < plan->ranks; i++)
        status = statuses[i] > status ? statuses[i] : status;
    return status;
}

static void report_signal(int index, int signal) {
    char who[64] = "";
    if (crashed[index])
        snprintf(who, sizeof who, "rank %d in ", crashed[index] - 1);
    fprintf(stderr, "rankrun: %sprocess %d of the job (pid %d) was ended by signal %d (%s), and the job with it\n", who,
            index, children[index].pid, signal, strsignal(signal));
}

static void process_ended(int index, int status) {
    children[index].has_ended = true;
    if (phase == PHASE_ENDING && WIFEXITED(status)) {
        for (int i = 0; i < plan->processes; i++)
            if (!children[i].has_ended)
                return;
        _exit(job_status());
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
        if (!children[i].has_ended && waitpid(children[i].pid, &status, WNOHANG) == children[i].pid)
            process_ended(i, status);
    }
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

static void on_time(void) {
    if (!all_have_answered())
        return;
    if (phase == PHASE_RUNNING && plan->checkpoint && now() >= next_checkpoint)
        begin_pause();
    else if ((phase == PHASE_RUNNING || phase == PHASE_PAUSING) && now() >= next_count)
        ask_all();
}

__attribute__((noreturn)) static void watch(int signals) {
    struct pollfd *polled = calloc((size_t)plan->processes + 1, sizeof *polled);
    if (!polled)
        end_job(2);
    for (;;) {
        for (int i = 0; i < plan->processes; i++)
            polled[i] = (struct pollfd){children[i].socket, POLLIN, 0};
        polled[plan->processes] = (struct pollfd){signals, POLLIN, 0};
        if (poll(polled, (nfds_t)plan->processes + 1, wait_for()) < 0 && errno != EINTR)
            end_job(2);
        for (int i = 0; i < plan->processes; i++)
            if (polled[i].revents)
                take(&children[i]);
        if (polled[plan->processes].revents)
            reap(signals);
        on_time();
    }
}

/* ---- making the processes ---- */

/* sockets[i * (processes + 1) + j]: process i's end of its link to j; j == processes: the launcher's own links. */
static int *connect_all(int processes) {
    int width = processes + 1;
    int *sockets = malloc((size_t)width * (size_t)width * sizeof *sockets);
    if (!sockets)
        refuse("memory for the job can't be had: %s", strerror(errno));
    for (int i = 0; i < width; i++) {
        sockets[i * width + i] = -1;
        for (int j = 0; j < i; j++) {
            int pair[2];
            if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
                refuse("the job's processes can't be connected: %s", strerror(errno));
            sockets[i * width + j] = pair[0];
            sockets[j * width + i] = pair[1];
        }
    }
    return sockets;
}

/* To where a program that counts on low numbers, as dup2(file, 3) does, does not meet it. */
static int out_of_the_way(int descriptor) {
    int higher = descriptor < 0 ? -1 : fcntl(descriptor, F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR);
    if (higher < 0)
        return descriptor;
    close(descriptor);
    return higher;
}

static void close_others(const int *sockets, int width, int own) {
    for (int i = 0; i < width; i++)
        for (int j = 0; i != own && j < width; j++)
            if (i != j)
                close(sockets[i * width + j]);
}

/* Standard input is the first process's, as under other launchers. */
static void leave_input(int index) {
    int nothing = index ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
    if (nothing >= 0) {
        dup2(nothing, STDIN_FILENO);
        close(nothing);
    }
}

struct job launch(const struct launch *wanted) {
    int width = wanted->processes + 1;
    pid_t launcher = getpid();
    plan = wanted;
    raise_file_limit();
    int *sockets = connect_all(plan->processes);
    children = calloc((size_t)plan->processes, sizeof *children);
    statuses = malloc((size_t)plan->ranks * sizeof *statuses);
    crashed = mmap(NULL, (size_t)plan->processes * sizeof *crashed, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                   -1, 0);
    if (!children || !statuses || crashed == MAP_FAILED)
        refuse("memory for the job can't be had: %s", strerror(errno));
    sigset_t ends, before;
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ends, &before);
    fflush(NULL);
    for (int i = 0; i < plan->processes; i++) {
        pid_t pid = fork();
        if (pid < 0)
            refuse("a process of the job can't be made: %s", strerror(errno));
        children[i].pid = pid;
        children[i].socket = sockets[plan->processes * width + i];
        if (pid)
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != launcher)
            _exit(2);
        sigprocmask(SIG_SETMASK, &before, NULL);
        close_others(sockets, width, i);
        for (int j = 0; j < width; j++)
            sockets[i * width + j] = out_of_the_way(sockets[i * width + j]);
        leave_input(i);
        return (struct job){plan->ranks,
                            plan->processes,
                            i,
                            sockets[i * width + plan->processes],
                            &sockets[i * width],
                            plan->ranks_can_move,
                            plan->exit_on_deadlock,
                            &crashed[i]};
    }
    close_others(sockets, width, plan->processes);
    for (int i = 0; i < plan->ranks; i++)
        left += (statuses[i] = checkpoint_status(plan->restart, i)) < 0;
    for (int i = 0; i < plan->processes; i++)
        mpir_add(children[i].pid);
    mpir_publish();
    for (int i = 0; i < plan->processes; i++)
        children[i].has_answered = true;
    number = plan->checkpoint ? checkpoint_last(plan->checkpoint) : 0;
    next_checkpoint = now() + plan->every;
    next_count = now() + COUNT_EVERY / 1e3;
    tell_all(FRAME_START);
    watch(signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK));
}
