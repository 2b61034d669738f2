/*
 * descriptor_owners.c: the calls that open a descriptor, in front of libc's, which note the rank that calls.
 *
 * close() is not among them: what is noted is the file as well, so that a number that stands for another file by now is
 * known for it.  What libc opens for itself (a stream, a database) does not come by here.
 */
#define _GNU_SOURCE
#include "libc/descriptor_owners.h"
#include "image/heap.h"
#include "image/ranges.h"
#include "libc/current_rank.h"
#include "libc/process_allocations.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* What a descriptor stood for when it was opened. */
struct opened {
    int rank; /* one more than the rank's number; 0: not a rank's */
    dev_t device;
    ino_t file;
};

static struct opened *opened; /* by descriptor */
static int room_for;          /* descriptors */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool make_room(int descriptor) {
    if (descriptor < room_for)
        return true;
    int room_wanted = descriptor + 64;
    struct rank_heap *heap = heap_here;
    heap_here = NULL;
    struct opened *grown = realloc(opened, (size_t)room_wanted * sizeof *grown);
    heap_here = heap;
    if (!grown)
        return false;
    for (opened = grown; room_for < room_wanted; room_for++)
        opened[room_for] = (struct opened){0};
    return true;
}

static int noted(int descriptor) {
    struct stat state;
    int rank = ranges_are_mobile() ? current_rank() : -1;
    if (descriptor <= STDERR_FILENO || rank < 0 || fstat(descriptor, &state)) /* the first three are the process's */
        return descriptor;
    pthread_mutex_lock(&lock);
    if (make_room(descriptor))
        opened[descriptor] = (struct opened){rank + 1, state.st_dev, state.st_ino};
    pthread_mutex_unlock(&lock);
    return descriptor;
}

static int noted_pair(int error, const int pair[2]) {
    for (int i = 0; !error && i < 2; i++)
        noted(pair[i]);
    return error;
}

bool descriptors_of(int rank, char *text, size_t room) {
    struct stat state;
    int descriptor = -1;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < room_for && descriptor < 0; i++)
        if (opened[i].rank == rank + 1 && !fstat(i, &state) && state.st_dev == opened[i].device &&
            state.st_ino == opened[i].file)
            descriptor = i;
    pthread_mutex_unlock(&lock);
    if (descriptor < 0)
        return false;
    char link[32], path[128];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = '\0';
    snprintf(text, room, "descriptor %d (%s)", descriptor, path);
    return true;
}

/* ---- in front of libc's ---- */

#define REAL(name)                                                                                                     \
    static __typeof__(&name) real;                                                                                     \
    if (!real)                                                                                                         \
    *(void **)&real = dlsym(RTLD_NEXT, #name)

#define OPENS(name, parameters, arguments)                                                                             \
    PROCESS_HEAP_SECTION int name parameters {                                                                         \
        REAL(name);                                                                                                    \
        return noted(real arguments);                                                                                  \
    }

#define OPENS_PAIR(name, parameters, arguments)                                                                        \
    PROCESS_HEAP_SECTION int name parameters {                                                                         \
        REAL(name);                                                                                                    \
        return noted_pair(real arguments, pair);                                                                       \
    }

/* The mode stands there only if the call can make a file. */
#define OPENS_WITH_MODE(name, parameters, ...)                                                                         \
    PROCESS_HEAP_SECTION int name parameters {                                                                         \
        REAL(name);                                                                                                    \
        va_list more;                                                                                                  \
        va_start(more, how);                                                                                           \
        mode_t mode = how & (O_CREAT | __O_TMPFILE) ? va_arg(more, mode_t) : 0;                                        \
        va_end(more);                                                                                                  \
        return noted(real(__VA_ARGS__, mode));                                                                         \
    }

OPENS_WITH_MODE(open, (const char *path, int how, ...), path, how)
OPENS_WITH_MODE(open64, (const char *path, int how, ...), path, how)
OPENS_WITH_MODE(openat, (int folder, const char *path, int how, ...), folder, path, how)
OPENS_WITH_MODE(openat64, (int folder, const char *path, int how, ...), folder, path, how)

/* What <fcntl.h> calls under _FORTIFY_SOURCE. */
extern int __open_2(const char *path, int how);
extern int __open64_2(const char *path, int how);
extern int __openat_2(int folder, const char *path, int how);
extern int __openat64_2(int folder, const char *path, int how);

OPENS(__open_2, (const char *path, int how), (path, how))
OPENS(__open64_2, (const char *path, int how), (path, how))
OPENS(__openat_2, (int folder, const char *path, int how), (folder, path, how))
OPENS(__openat64_2, (int folder, const char *path, int how), (folder, path, how))
OPENS(creat, (const char *path, mode_t mode), (path, mode))
OPENS(creat64, (const char *path, mode_t mode), (path, mode))
OPENS(mkstemp, (char *path), (path))
OPENS(mkstemp64, (char *path), (path))
OPENS(mkostemp, (char *path, int how), (path, how))
OPENS(mkostemp64, (char *path, int how), (path, how))
OPENS(memfd_create, (const char *name, unsigned int how), (name, how))
OPENS(socket, (int domain, int type, int protocol), (domain, type, protocol))
OPENS(accept, (int socket, struct sockaddr *address, socklen_t *size), (socket, address, size))
OPENS(accept4, (int socket, struct sockaddr *address, socklen_t *size, int how), (socket, address, size, how))
OPENS(dup, (int descriptor), (descriptor))
OPENS(dup2, (int descriptor, int wanted), (descriptor, wanted))
OPENS(dup3, (int descriptor, int wanted, int how), (descriptor, wanted, how))
OPENS(epoll_create, (int size), (size))
OPENS(epoll_create1, (int how), (how))
OPENS(eventfd, (unsigned int count, int how), (count, how))
OPENS(timerfd_create, (clockid_t clock, int how), (clock, how))
OPENS(signalfd, (int descriptor, const sigset_t *signals, int how), (descriptor, signals, how))
OPENS(inotify_init, (void), ())
OPENS(inotify_init1, (int how), (how))
OPENS_PAIR(pipe, (int pair[2]), (pair))
OPENS_PAIR(pipe2, (int pair[2], int how), (pair, how))
OPENS_PAIR(socketpair, (int domain, int type, int protocol, int pair[2]), (domain, type, protocol, pair))

PROCESS_HEAP_SECTION DIR *opendir(const char *path) {
    REAL(opendir);
    DIR *folder = real(path);
    if (folder)
        noted(dirfd(folder));
    return folder;
}

/* The one argument that may follow is an integer or a pointer, which are passed alike. */
#define DUPLICATES(name)                                                                                               \
    PROCESS_HEAP_SECTION int name(int descriptor, int command, ...) {                                                  \
        REAL(name);                                                                                                    \
        va_list more;                                                                                                  \
        va_start(more, command);                                                                                       \
        void *argument = va_arg(more, void *);                                                                         \
        va_end(more);                                                                                                  \
        int result = real(descriptor, command, argument);                                                              \
        return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? noted(result) : result;                              \
    }
DUPLICATES(fcntl)
DUPLICATES(fcntl64)
