/*
 * Rank 1 asks rank 0 for a large message from another process, and returns while the message is being sent after it.
 * Arguments: rounds, bytes.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong_bytes(const char *data, int size, int round) {
    int wrong = 0;
    for (int i = 0; i < size; i += 4096)
        wrong += data[i] != (char)(round + i / 4096);
    return wrong;
}

int main(int argc, char **argv) {
    int rank, wrong = 0, rounds = argc > 1 ? atoi(argv[1]) : 1, size = argc > 2 ? atoi(argv[2]) : 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *data = calloc(1, (size_t)size);
    for (int round = 0; round < rounds; round++) {
        if (rank == 0) {
            int asked;
            MPI_Recv(&asked, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int i = 0; i < size; i += 4096)
                data[i] = (char)(asked + i / 4096);
            MPI_Send(data, size, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        } else if (rank == 1) {
            MPIX_Migrate_to(1);
            MPI_Send(&round, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
            MPIX_Migrate_to(0);
            MPI_Recv(data, size, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            wrong += wrong_bytes(data, size, round);
        }
    }
    if (rank == 1)
        printf("%d wrong\n", wrong);
    MPI_Finalize();
    return 0;
}
