/*
 * What a rank takes along to another host: pointers to arguments and to the environment, which it got where it began.
 * Before that rank 0 reads all of standard input.  With -DCONSTRUCTOR the program has a constructor whose result is
 * another one in every process that loads it.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int loaded_by;

#ifdef CONSTRUCTOR
__attribute__((constructor)) static void note(void) {
    loaded_by = getpid();
}
#endif

int main(int argc, char **argv) {
    int rank, at, count, loaded_before = loaded_by;
    long bytes = 0, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const char *setting = getenv("GUEST");
    for (int one; rank == 0 && (one = getchar()) != EOF; bytes++)
        sum += one;
    MPIX_Process(&at, &count);
    MPIX_Migrate_to((at + 1) % count);
    MPIX_Process(&at, &count);
    printf("rank %d in process %d: '%s' '%s' '%s' %ld bytes, sum %ld, constructor %s\n", rank, at, argv[1], argv[2],
           setting ? setting : "nothing", bytes, sum, loaded_by == loaded_before ? "kept" : "changed");
    MPI_Finalize();
    return 0;
}
