/* Rank 1 opens something that is not a stream, by each of the ways there are, and asks to move before and after it
 * closes it; with an argument, it keeps it while the job is saved. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int of_pipe(void) {
    int pair[2];
    if (pipe(pair))
        return -1;
    close(pair[0]);
    return pair[1];
}

static int of_duplicate(void) {
    return fcntl(1, F_DUPFD_CLOEXEC, 3);
}

static int at_a_number(void) {
    return dup2(1, 3); /* not a socket of the job's own */
}

static int of_file(void) {
    return open("/dev/null", O_WRONLY);
}

static int of_socket(void) {
    return socket(AF_UNIX, SOCK_STREAM, 0);
}

static int of_events(void) {
    return eventfd(0, 0);
}

static int of_folder(void) {
    return dirfd(opendir("/"));
}

static const struct {
    const char *name;
    int (*open)(void);
} ways[] = {{"pipe", of_pipe},     {"fcntl", of_duplicate}, {"dup2", at_a_number}, {"open", of_file},
            {"socket", of_socket}, {"eventfd", of_events},  {"opendir", of_folder}};

int main(int argc, char **argv) {
    int rank, process, count;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int kept = argc > 1 && rank == 1 ? of_file() : -1;
    for (int wait = argc > 1; wait; MPI_Bcast(&wait, 1, MPI_INT, 0, MPI_COMM_WORLD)) {
        wait = access(argv[1], F_OK) != 0;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    for (size_t i = 0; i < sizeof ways / sizeof *ways && rank == 1 && kept < 0; i++) {
        MPIX_Process(&process, &count);
        int descriptor = ways[i].open();
        int with = MPIX_Migrate_to(1 - process);
        errno = 0;
        int error = close(descriptor);
        int without = MPIX_Migrate_to(1 - process);
        printf("%s: %s, then %s\n", ways[i].name,
               with == MPI_SUCCESS ? "moved"
               : error             ? "lost"
                                   : "refused",
               without == MPI_SUCCESS ? "moved" : "refused");
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
