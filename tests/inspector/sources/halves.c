/*
 * halves.c: ranks that can never go on because of a collective call, in communicators that number them backwards.
 *
 * 0, 1 and 2 are in a barrier of 0 to 3, and 3 waits for 0.  4 and 5 are in an MPI_Allreduce of 4 to 7, 6 waits for 5
 * and 7 for any.  8 is in a barrier with 9, which has exited.  10 waits for 11 as the receiver of a broadcast, and 11
 * for 10.  With fewer than 12 ranks all but 0 are in a barrier of all, and 0 waits for the last.
 */
#include <mpi.h>
#include <stdio.h>

static void receive(int from, MPI_Comm comm) {
    int word;
    MPI_Recv(&word, 1, MPI_INT, from, 7, comm, MPI_STATUS_IGNORE);
}

static void wait_in(int rank, MPI_Comm comm) {
    int word = rank;
    if (rank == 3)
        receive(3, comm); /* which is 0 */
    else if (rank == 6)
        receive(2, comm); /* which is 5 */
    else if (rank == 7)
        receive(MPI_ANY_SOURCE, comm);
    else if (rank == 4 || rank == 5)
        MPI_Allreduce(MPI_IN_PLACE, &word, 1, MPI_INT, MPI_SUM, comm);
    else if (rank == 10)
        MPI_Bcast(&word, 1, MPI_INT, 0, comm);
    else if (rank == 11)
        receive(1, comm); /* which is 10 */
    else
        MPI_Barrier(comm);
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Comm part;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank < 8 ? rank / 4 : rank / 2, -rank, &part);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1) {
        puts("ready");
        fflush(stdout);
    }
    if (size == 12 && rank == 9)
        return 0;
    if (size == 12)
        wait_in(rank, part);
    else if (rank == 0)
        receive(size - 1, MPI_COMM_WORLD);
    else
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
