/* Rank 1 ends the job while rank 0 waits for a line, which never comes.  The argument: a file that is being written. */
#include <mpi.h>
#include <sched.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank;
    char line[99];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        return fgets(line, sizeof line, stdin) == NULL;
    FILE *file = fopen(argv[1], "w");
    fputs("kept back", file);
    while (!ftrylockfile(stdin)) { /* until rank 0 reads */
        funlockfile(stdin);
        sched_yield();
    }
    MPI_Abort(MPI_COMM_WORLD, 7);
    return 0;
}
