/*
 * process_sockets.c: stream sockets, a queue of what is to be written, a thread that writes and one that reads.
 *
 * The reading thread never writes, so two processes that send each other much at once can't wait for each other.
 * Plain sockets and no messaging library: whatever is loaded here is loaded beside every program.  Between hosts the
 * site's MPI carries the frames, in a process of its own (transport/relay.c).
 */
#define _GNU_SOURCE
#include "job/process_sockets.h"
#include "ranks/fatal.h"
#include "ranks/scheduler.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void __libc_free(void *memory);

/* What waits to be written. */
struct parcel {
    struct parcel *next;
    int socket;
    struct frame frame;
    frame_sent *sent;
    void *argument;
    size_t count;
    struct iovec parts[]; /* the frame itself first */
};

static int own_index, process_count;
static int *sockets; /* by process, the launcher's last */
static int reading = -1;
static frame_handler *handlers[FRAME_KINDS];
static atomic_uint_fast64_t sent_frames, handled_frames;

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_filled = PTHREAD_COND_INITIALIZER;
static struct parcel *first, **last = &first;

int64_t socket_write(int socket, struct iovec *parts, size_t count) {
    int64_t written = 0;
    while (count) {
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = count < IOV_MAX ? count : IOV_MAX};
        ssize_t done = sendmsg(socket, &message, MSG_NOSIGNAL);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -1;
        written += done;
        while (count && (size_t)done >= parts->iov_len) {
            done -= (ssize_t)parts->iov_len;
            parts++, count--;
        }
        if (count) {
            parts->iov_base = (char *)parts->iov_base + done;
            parts->iov_len -= (size_t)done;
        }
    }
    return written;
}

bool socket_read(int socket, void *memory, size_t size) {
    char *to = memory;
    while (size) {
        ssize_t got = recv(socket, to, size, MSG_WAITALL);
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            errno = 0;
        if (got <= 0)
            return false;
        to += got, size -= (size_t)got;
    }
    return true;
}

/* The launcher sees the other process's end as well, says so, and ends this one. */
__attribute__((noreturn)) static void wait_for_the_end(void) {
    for (;;)
        pause();
}

void transport_open(int index, int count, const int *process_sockets, int launcher) {
    own_index = index;
    process_count = count;
    sockets = __libc_malloc(((size_t)count + 1) * sizeof *sockets);
    if (!sockets)
        rank_job_abort(2, "there is not enough memory for the sockets of the job");
    memcpy(sockets, process_sockets, (size_t)count * sizeof *sockets);
    sockets[count] = launcher;
}

void transport_handle(enum frame_kind kind, frame_handler *handler) {
    handlers[kind] = handler;
}

void transport_counts(uint64_t *sent, uint64_t *handled) {
    *handled = atomic_load(&handled_frames);
    *sent = atomic_load(&sent_frames);
}

static bool is_counted(uint32_t kind) {
    return kind < FRAME_START;
}

/* ---- writing ---- */

static void *write_parcels(void *nothing) {
    (void)nothing;
    for (;;) {
        pthread_mutex_lock(&queue_lock);
        while (!first)
            pthread_cond_wait(&queue_filled, &queue_lock);
        struct parcel *parcel = first;
        if (!(first = parcel->next))
            last = &first;
        pthread_mutex_unlock(&queue_lock);
        int64_t written = socket_write(parcel->socket, parcel->parts, parcel->count);
        if (written < 0) {
            if (errno == EPIPE || errno == ECONNRESET)
                wait_for_the_end();
            rank_job_abort(2, "a message can't be sent to another process of the job");
        }
        if (parcel->sent)
            parcel->sent(parcel->argument, (uint64_t)written);
        __libc_free(parcel);
    }
    return NULL;
}

static void enqueue(struct parcel *parcel, int to, enum frame_kind kind, uint64_t bytes) {
    parcel->next = NULL;
    parcel->socket = sockets[to == TRANSPORT_LAUNCHER ? process_count : to];
    parcel->frame = (struct frame){.kind = kind, .from = own_index, .to = to, .bytes = bytes};
    parcel->parts[0] = (struct iovec){&parcel->frame, sizeof parcel->frame};
    if (is_counted(kind))
        atomic_fetch_add(&sent_frames, 1);
    pthread_mutex_lock(&queue_lock);
    *last = parcel;
    last = &parcel->next;
    pthread_cond_signal(&queue_filled);
    pthread_mutex_unlock(&queue_lock);
}

static struct parcel *parcel_new(size_t parts, size_t bytes) {
    struct parcel *parcel = __libc_malloc(sizeof *parcel + parts * sizeof(struct iovec) + bytes);
    if (!parcel)
        rank_job_abort(2, "there is not enough memory for a message to another process");
    parcel->sent = NULL;
    parcel->count = parts;
    return parcel;
}

void transport_send(int to, enum frame_kind kind, const void *bytes, size_t size) {
    struct parcel *parcel = parcel_new(2, size);
    parcel->parts[1] = (struct iovec){&parcel->parts[2], size};
    if (size)
        memcpy(&parcel->parts[2], bytes, size);
    enqueue(parcel, to, kind, size);
}

void transport_send_parts(int to, enum frame_kind kind, const struct iovec *parts, size_t count, frame_sent *sent,
                          void *argument) {
    struct parcel *parcel = parcel_new(count + 1, 0);
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += parts[i].iov_len;
    memcpy(&parcel->parts[1], parts, count * sizeof *parts);
    parcel->sent = sent;
    parcel->argument = argument;
    enqueue(parcel, to, kind, bytes);
}

/* ---- reading ---- */

void transport_read(void *memory, size_t size) {
    if (socket_read(reading, memory, size))
        return;
    wait_for_the_end();
}

/* False: the other end has gone, which is the launcher's to judge. */
static bool take_frame(int socket) {
    struct frame frame;
    reading = socket;
    if (!socket_read(socket, &frame, sizeof frame))
        return false;
    if (frame.kind >= FRAME_KINDS || !handlers[frame.kind])
        rank_job_abort(2, "another process of the job sent a message of unknown kind");
    handlers[frame.kind](frame.from, frame.bytes);
    if (is_counted(frame.kind))
        atomic_fetch_add(&handled_frames, 1);
    return true;
}

/* The processes of other hosts share a socket. */
static bool is_first_of_its_kind(int place) {
    for (int i = 0; i < place; i++)
        if (sockets[i] == sockets[place])
            return false;
    return true;
}

static void *read_frames(void *nothing) {
    (void)nothing;
    struct pollfd *polled = __libc_malloc(((size_t)process_count + 1) * sizeof *polled);
    if (!polled)
        rank_job_abort(2, "there is not enough memory for the sockets of the job");
    for (int i = 0; i <= process_count; i++)
        polled[i] = (struct pollfd){is_first_of_its_kind(i) ? sockets[i] : -1, POLLIN, 0};
    for (;;) {
        if (poll(polled, (nfds_t)process_count + 1, -1) < 0)
            continue;
        for (int i = 0; i <= process_count; i++)
            if (polled[i].fd >= 0 && polled[i].revents && !take_frame(polled[i].fd))
                polled[i].fd = -1;
    }
    return NULL;
}

void transport_start(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, write_parcels, NULL) || pthread_detach(thread) ||
        pthread_create(&thread, NULL, read_frames, NULL) || pthread_detach(thread))
        rank_job_abort(2, "the kernel thread for the job's messages cannot be started");
}
