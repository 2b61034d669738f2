/*
 * crash.c: the last rank dies, in the way that the first argument names, while the others wait for its message.
 * With a second one it has a handler, which "stays", also "aside" on a stack of its own, "aborts", or sends the signal
 * "again" as libgfortran's does.
 */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void __libc_free(void *block); /* the C library's own free, whatever the rank's is */

int mine = -1;
const int constant = 7;

__attribute__((noinline)) static int deep(int depth) {
    volatile char room[4096];
    room[0] = (char)depth;
    return deep(depth + 1) + room[0];
}

__attribute__((noinline)) static void die(const char *how) {
    int *nowhere = NULL, *block = malloc(100000);
    mine = 7;
    if (strcmp(how, "null") == 0)
        nowhere[1] = mine; /* null */
    else if (strcmp(how, "free") == 0)
        __libc_free(block); /* free */
    else if (strcmp(how, "stack") == 0)
        mine = deep(0);
    else if (strcmp(how, "constant") == 0)
        *(int *)&constant = mine; /* constant */
    else if (strcmp(how, "abort") == 0)
        abort(); /* abort */
}

static void stays(int signal) {
    (void)signal;
    (void)!write(STDOUT_FILENO, "stays\n", 6);
    for (;;)
        pause(); /* stays */
}

static void aborts(int signal, siginfo_t *information, void *context) {
    (void)signal, (void)information, (void)context;
    abort(); /* aborts */
}

static void sends_again(int signal) {
    sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    raise(signal); /* sends_again */
}

static void handle(const char *how) {
    static char room[1 << 16];
    struct sigaction wanted = {.sa_handler = stays};
    if (strcmp(how, "aside") == 0) {
        sigaltstack(&(stack_t){.ss_sp = room, .ss_size = sizeof room}, NULL);
        wanted.sa_flags = SA_ONSTACK;
    } else if (strcmp(how, "aborts") == 0) {
        wanted = (struct sigaction){.sa_sigaction = aborts, .sa_flags = SA_SIGINFO};
    } else if (strcmp(how, "again") == 0) {
        wanted.sa_handler = sends_again;
    }
    sigaction(SIGSEGV, &wanted, NULL);
    if (strcmp(how, "aborts") != 0)
        sigaction(SIGABRT, &wanted, NULL);
}

int main(int argc, char **argv) {
    int rank, size, word = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1 && argc > 2)
        handle(argv[2]);
    if (rank == size - 1)
        die(argc > 1 ? argv[1] : "null");
    MPI_Recv(&word, 1, MPI_INT, size - 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return word;
}
