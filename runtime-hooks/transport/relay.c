/*
 * relay.c: one process on each host of a job, which the site's launcher has started, and which alone speaks MPI
 * (transport_mpi.c).
 *
 * `rankrun` becomes this program when `mpiexec` or `srun` has started several of it: HOSTS PROCESSES RANKRUN
 * ARGUMENT...  It starts RANKRUN once more, with the arguments, environment, working folder and stack limit of
 * host 0, so that addresses are the same on all hosts; then it carries frames (frame.h) between the sockets of the
 * processes here and the other hosts, and ends with the job's status.
 *
 * A plain MPI program, built by `rankcc --with-mpi mpicc` with the site's own compiler: no rank and no part of the
 * runtime is in it, so the site's MPI_ names and the runtime's never meet.
 */
#define _GNU_SOURCE
#include "frame.h"
#include "transport_mpi.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FIRST_DESCRIPTOR 3 /* of rankrun: its control socket, and then one for each process of this host */
#define IDLE 1             /* milliseconds between two looks at MPI, which has no descriptor to wait for */
#define SILENCE 60         /* seconds after which a host is lost, unless RANK_SILENCE says how many */
#define ENDING 10          /* seconds for rankrun's end, and for MPI_Finalize */
/*
 * Milliseconds in which no host calls MPI before all end it.  MPICH 4.0 over UCX's TCP hung in MPI_Finalize in 4 of 30
 * jobs without, in none of 30 with them: one host ends its connections while another still answers.
 */
#define QUIET 300

enum { TAG_FRAME, TAG_END, TAG_ALIVE };

/* A whole frame, on its way to a socket or to a host. */
struct parcel {
    struct parcel *next;
    uint64_t size, done;
    struct transport_sending *sending; /* to a host */
    char bytes[];
};

struct queue {
    struct parcel *first, **last;
};

struct link {
    int socket; /* -1: its other end has gone */
    struct frame head;
    uint64_t got;
    struct parcel *incoming;
    struct queue outgoing;
};

static int host, hosts, processes, own_first, own_count;
static struct link *links;         /* rankrun's control, then those of the processes here */
static struct parcel **assembling; /* by host: the frame of which not all pieces have come */
static struct queue sending;       /* to hosts */
static int *silent;                /* by host: seconds in which this process ran and heard nothing of it */
static pid_t child;                /* rankrun */
static int status;                 /* as waitpid() has it */
static bool has_ended, is_over;    /* rankrun here; the job */

__attribute__((noreturn)) static void fail(const char *what) {
    fprintf(stderr, "rankrun: the hosts of the job can't be connected: %s\n", what);
    transport_abort(2);
}

static void *allocate(size_t size) {
    void *memory = calloc(1, size);
    if (!memory)
        fail("memory can't be had");
    return memory;
}

static void append(struct queue *queue, struct parcel *parcel) {
    parcel->next = NULL;
    *queue->last = parcel;
    queue->last = &parcel->next;
}

static void remove_first(struct queue *queue) {
    struct parcel *parcel = queue->first;
    if (!(queue->first = parcel->next))
        queue->last = &queue->first;
    free(parcel);
}

static struct parcel *parcel_new(const struct frame *head) {
    if (head->bytes > UINT64_C(1) << 44)
        fail("a frame is damaged");
    struct parcel *parcel = malloc(sizeof *parcel + sizeof *head + head->bytes);
    if (!parcel)
        fail("memory can't be had");
    *parcel = (struct parcel){.size = sizeof *head + head->bytes, .done = sizeof *head};
    memcpy(parcel->bytes, head, sizeof *head);
    return parcel;
}

/* ---- ways ---- */

static int host_of(int to) {
    return to >= 0 ? frame_host_of(to, processes, hosts) : to == TRANSPORT_LAUNCHER ? 0 : TRANSPORT_HOST(to);
}

static void send_to_host(int to, struct parcel *parcel) {
    parcel->sending = transport_send(to, TAG_FRAME, parcel->bytes, parcel->size);
    if (!parcel->sending)
        fail("memory can't be had");
    append(&sending, parcel);
}

static void deliver(struct parcel *parcel) {
    struct frame head;
    memcpy(&head, parcel->bytes, sizeof head);
    int to = host_of(head.to);
    if (head.to >= processes || to < 0 || to >= hosts)
        fail("a frame names no host of the job");
    if (to != host) {
        send_to_host(to, parcel);
        return;
    }
    parcel->done = 0;
    append(&links[head.to >= 0 ? head.to - own_first + 1 : 0].outgoing, parcel);
}

static void rankrun_has_ended(void) {
    struct frame head = {FRAME_HOST_ENDED, TRANSPORT_HOST(host), TRANSPORT_LAUNCHER, 0, sizeof status};
    waitpid(child, &status, 0);
    has_ended = true;
    if (host == 0 || is_over)
        return;
    struct parcel *parcel = parcel_new(&head);
    memcpy(parcel->bytes + sizeof head, &status, sizeof status);
    deliver(parcel);
}

/* ---- sockets ---- */

static void close_link(struct link *link) {
    close(link->socket);
    link->socket = -1;
    if (link == links)
        rankrun_has_ended();
}

/* Whether more may be there. */
static bool read_some(struct link *link) {
    struct parcel *parcel = link->incoming;
    char *to = parcel ? parcel->bytes + parcel->done : (char *)&link->head + link->got;
    uint64_t wanted = parcel ? parcel->size - parcel->done : sizeof link->head - link->got;
    ssize_t got = recv(link->socket, to, wanted, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (got <= 0) {
        close_link(link);
        return false;
    }
    if (!parcel) {
        link->got += (uint64_t)got;
        if (link->got == sizeof link->head) {
            link->incoming = parcel = parcel_new(&link->head);
            link->got = 0;
        }
    } else {
        parcel->done += (uint64_t)got;
    }
    if (parcel && parcel->done == parcel->size) {
        link->incoming = NULL;
        deliver(parcel);
    }
    return true;
}

static void write_some(struct link *link) {
    while (link->outgoing.first && link->socket >= 0) {
        struct parcel *parcel = link->outgoing.first;
        ssize_t done =
            send(link->socket, parcel->bytes + parcel->done, parcel->size - parcel->done, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (done < 0) /* an end that has gone is seen by reading */
            return;
        parcel->done += (uint64_t)done;
        if (parcel->done == parcel->size)
            remove_first(&link->outgoing);
    }
}

static bool handle_sockets(int wait) {
    struct pollfd polled[own_count + 1];
    for (int i = 0; i <= own_count; i++)
        polled[i] = (struct pollfd){links[i].socket, POLLIN | (links[i].outgoing.first ? POLLOUT : 0), 0};
    if (poll(polled, (nfds_t)own_count + 1, wait) <= 0)
        return false;
    for (int i = 0; i <= own_count; i++) {
        while (polled[i].revents & ~POLLOUT && links[i].socket >= 0 && read_some(&links[i]))
            ;
        write_some(&links[i]);
    }
    return true;
}

/* ---- hosts ---- */

static void take_piece(int from, const char *bytes, uint64_t size) {
    struct parcel *parcel = assembling[from];
    if (!parcel) {
        struct frame head;
        if (size < sizeof head)
            fail("a frame is damaged");
        memcpy(&head, bytes, sizeof head);
        assembling[from] = parcel = parcel_new(&head);
        bytes += sizeof head, size -= sizeof head;
    }
    if (size > parcel->size - parcel->done)
        fail("a frame is damaged");
    memcpy(parcel->bytes + parcel->done, bytes, size);
    parcel->done += size;
    if (parcel->done < parcel->size)
        return;
    assembling[from] = NULL;
    if (is_over)
        free(parcel);
    else
        deliver(parcel);
}

static bool handle_hosts(void) {
    struct transport_message message;
    bool any = false;
    while (transport_receive(&message)) {
        silent[message.from] = 0;
        any = any || message.tag != TAG_ALIVE;
        if (message.tag == TAG_END)
            is_over = true;
        else if (message.tag == TAG_FRAME)
            take_piece(message.from, message.bytes, (uint64_t)message.size);
    }
    while (sending.first && transport_is_sent(sending.first->sending)) {
        remove_first(&sending);
        any = true;
    }
    return any;
}

/*
 * Not every launcher ends a job whose host has gone, so the first host and each other one hear of one another every
 * second.  Seconds in which this process was stopped, as by a parallel debugger, don't count.
 */
static void check_other(int other, int limit) {
    if (++silent[other] > limit) {
        fprintf(stderr, "rankrun: host %d of the job has not answered for %d s (RANK_SILENCE), and the job ends\n",
                other, limit);
        transport_abort(2);
    }
    transport_notify(other, TAG_ALIVE, false);
}

static void check_others(void) {
    static time_t last;
    const char *set = getenv("RANK_SILENCE");
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec == last)
        return;
    last = now.tv_sec;
    for (int i = host ? 0 : 1; i < (host ? 1 : hosts); i++)
        check_other(i, set && atoi(set) > 0 ? atoi(set) : SILENCE);
}

/* ---- rankrun ---- */

/* Strings of host 0, ended by NULL, after which there is room for one more. */
static char **share_strings(char **strings) {
    int count = 0, size = 0;
    while (!host && strings[count])
        size += (int)strlen(strings[count++]) + 1;
    transport_share(&count, sizeof count);
    transport_share(&size, sizeof size);
    char *text = allocate((size_t)size + 1), **list = allocate(((size_t)count + 2) * sizeof *list), *at = text;
    for (int i = 0; !host && i < count; i++)
        at = stpcpy(at, strings[i]) + 1;
    transport_share(text, size);
    at = text;
    for (int i = 0; i < count; i++, at += strlen(at) + 1)
        list[i] = at;
    return list;
}

static void share_surroundings(void) {
    static char folder[PATH_MAX];
    struct rlimit limit, own;
    if (!host && !getcwd(folder, sizeof folder))
        fail("the folder in which the job was started no longer exists");
    getrlimit(RLIMIT_STACK, &limit);
    own = limit;
    transport_share(folder, sizeof folder);
    transport_share(&limit.rlim_cur, sizeof limit.rlim_cur); /* where libraries are placed depends on it */
    own.rlim_cur = limit.rlim_cur;
    setrlimit(RLIMIT_STACK, &own);
    if (chdir(folder)) {
        fprintf(stderr, "rankrun: the folder that the job was started in, %s, is not on host %d: %s\n", folder, host,
                strerror(errno));
        transport_abort(2);
    }
}

/* MPI's own descriptors stay here. */
static void keep_descriptors(void) {
    for (int i = FIRST_DESCRIPTOR; i < (int)sysconf(_SC_OPEN_MAX) && i < 4096; i++)
        fcntl(i, F_SETFD, FD_CLOEXEC);
}

static void start_rankrun(char **arguments, char **environment) {
    static char mark[80];
    int count = 0;
    while (environment[count])
        count++;
    snprintf(mark, sizeof mark, "RANKRUN_HOST=%-31d%-32d", host, hosts);
    environment[count] = mark;
    keep_descriptors();
    posix_spawn_file_actions_t actions;
    int far[own_count + 1];
    posix_spawn_file_actions_init(&actions);
    for (int i = 0; i <= own_count; i++) {
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) ||
            (far[i] = fcntl(ends[1], F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR + own_count + 1)) < 0)
            fail(strerror(errno));
        close(ends[1]);
        links[i] = (struct link){.socket = ends[0]};
        links[i].outgoing.last = &links[i].outgoing.first;
        posix_spawn_file_actions_adddup2(&actions, far[i], FIRST_DESCRIPTOR + i);
    }
    int error = posix_spawn(&child, arguments[0], &actions, NULL, arguments, environment);
    if (error) {
        fprintf(stderr, "rankrun: host %d has no %s: %s\n", host, arguments[0], strerror(error));
        transport_abort(2);
    }
    for (int i = 0; i <= own_count; i++)
        close(far[i]); /* so that its end is seen */
    posix_spawn_file_actions_destroy(&actions);
}

/* ---- the end ---- */

__attribute__((noreturn)) static void leave(int signal) {
    (void)signal;
    _exit(host ? 0 : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

/* Rankrun ends when its control socket does. */
static void end_rankrun(void) {
    for (int i = 0; i <= own_count; i++)
        if (links[i].socket >= 0)
            shutdown(links[i].socket, SHUT_RDWR);
    for (int waited = 0; !has_ended && waitpid(child, &status, WNOHANG) == 0; waited++) {
        if (waited == ENDING * 100)
            kill(child, SIGKILL);
        usleep(10000);
    }
}

/* What others still send is received until all have nothing more to send. */
static void wait_for_all(void) {
    while (sending.first)
        if (!handle_hosts())
            usleep(IDLE * 1000);
    while (!transport_all_are_done())
        if (!handle_hosts())
            usleep(IDLE * 1000);
}

__attribute__((noreturn)) static void end(void) {
    is_over = true;
    for (int i = 1; !host && i < hosts; i++)
        transport_notify(i, TAG_END, true);
    end_rankrun();
    signal(SIGALRM, leave);
    alarm(ENDING);
    wait_for_all();
    usleep(QUIET * 1000);
    transport_end();
    leave(0);
}

int main(int argc, char **argv) {
    extern char **environ;
    int wanted;
    transport_start(&argc, &argv, &host, &hosts);
    if (argc < 4 || (wanted = atoi(argv[1])) < 1 || (processes = atoi(argv[2])) < wanted)
        fail("this program is for rankrun, not for users");
    if (hosts != wanted) {
        fprintf(stderr,
                "rankrun: the launcher has started %d, but its MPI is not the one that %s was built with, which counts "
                "%d: build the transport with that launcher's mpicc (rankcc --with-mpi MPICC)\n",
                wanted, argv[0], hosts);
        transport_abort(2);
    }
    transport_share(&processes, sizeof processes);
    own_first = frame_first_of(host, processes, hosts);
    own_count = frame_first_of(host + 1, processes, hosts) - own_first;
    links = allocate(((size_t)own_count + 1) * sizeof *links);
    assembling = allocate((size_t)hosts * sizeof(struct parcel *));
    silent = allocate((size_t)hosts * sizeof *silent);
    sending.last = &sending.first;
    char **arguments = share_strings(argv + 3), **environment = share_strings(environ);
    share_surroundings();
    start_rankrun(arguments, environment);
    for (int wait = 0; !is_over && !(host == 0 && has_ended);) {
        bool sockets = handle_sockets(wait), others = handle_hosts();
        wait = sockets || others ? 0 : IDLE;
        check_others();
    }
    end();
}
