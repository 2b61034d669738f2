/*
 * one_of.c: ranks 0 and 1 wait for one another, each for one of several requests; rank 2 waits for either of them.
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, done, words[2], indices[2];
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        puts("ready");
        fflush(stdout);
        MPI_Irecv(&words[0], 1, MPI_INT, 1, 5, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&words[1], 1, MPI_INT, 1, 6, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitany(2, requests, &done, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        MPI_Irecv(&words[0], 1, MPI_INT, 0, 3, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitsome(2, requests, &done, indices, MPI_STATUSES_IGNORE);
    } else {
        MPI_Irecv(&words[0], 1, MPI_INT, 0, 3, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&words[1], 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitany(2, requests, &done, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
