/* Ends, or does not, as its argument says; of what rank 3 does, the whole job has to hear. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    int rank, value = 0;
    FILE *file = NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!strcmp(how, "file") && rank == 3) {
        file = fopen("/dev/null", "w");
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        value = MPIX_Migrate_to(0);
        fclose(file);
        printf("with a file: %s\n", value == MPI_SUCCESS ? "moved" : "refused");
        value = MPIX_Migrate_to(0);
        printf("without: %s\n", value == MPI_SUCCESS ? "moved" : "refused");
    }
    if (!strcmp(how, "file") || !strcmp(how, "status")) {
        MPI_Finalize();
        return !strcmp(how, "status") ? rank : 0;
    }
    if (rank == 3 && !strcmp(how, "signal"))
        raise(SIGSEGV);
    if (rank == 3 && !strcmp(how, "abort"))
        MPI_Abort(MPI_COMM_WORLD, 7);
    if (rank == 3 && !strcmp(how, "nowhere"))
        MPIX_Migrate_to(9);
    printf("rank %d waits\n", rank);
    fflush(stdout);
    MPI_Recv(&value, 1, MPI_INT, (rank + 1) % 4, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
