/* errno is a rank's own wherever it goes, also from one kernel thread to another.  Prints how often it was lost. */
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* Asked again each time: a compiler takes the address of errno once for a whole function. */
__attribute__((noipa)) static int last_error(void) {
    return errno;
}

__attribute__((noipa)) static void set_error(int value) {
    errno = value;
}

int main(int argc, char **argv) {
    int rank, at, count, lost = 0, all;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPIX_Process(&at, &count);
    unsigned seed = (unsigned)rank;
    for (int i = 0; i < 100; i++) {
        set_error(1000 + rank);
        MPIX_Migrate_to(rand_r(&seed) % count);
        lost += last_error() != 1000 + rank;
        set_error(1000 + rank);
        if (i % 7 == 0)
            MPI_Barrier(MPI_COMM_WORLD);
        lost += last_error() != 1000 + rank;
    }
    MPI_Allreduce(&lost, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d lost\n", all);
    MPI_Finalize();
    return 0;
}
