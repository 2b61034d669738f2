/* Rank 1 leaves as its arguments say; the others go on. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int depth(volatile int *below) {
    volatile int own[1024];
    own[0] = below ? below[0] + 1 : 0;
    return depth(own) + own[0];
}

static void of_the_program(int number) {
    static const char text[] = "the program's own handler\n";
    (void)!write(2, text, sizeof text - 1);
    signal(number, SIG_DFL);
    raise(number);
}

static void leave(const char *how, int status) {
    if (!strcmp(how, "finalized")) {
        MPI_Finalize();
        _exit(status);
    }
    if (!strcmp(how, "_exit"))
        _exit(status);
    if (!strcmp(how, "exit"))
        exit(status);
    if (!strcmp(how, "abort"))
        abort();
    if (!strcmp(how, "full"))
        depth(NULL);
    if (!strcmp(how, "handled"))
        signal(SIGSEGV, of_the_program);
    *(volatile int *)8 = 1;
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1 && strcmp(argv[1], "deadlock"))
        leave(argv[1], argc > 2 ? atoi(argv[2]) : 0);
    if (!strcmp(argv[1], "deadlock") && rank % 7)
        MPI_Recv(&rank, 1, MPI_INT, atoi(argv[2]) ? rank / 2 : 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    printf("rank %d goes on\n", rank);
    return 0;
}
