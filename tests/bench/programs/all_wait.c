/* Every rank waits for ever in MPI_Recv, some calls deep. */
#include <mpi.h>

enum { DEPTH = 8, NEVER_SENT = 5 };

int my_rank = -1;

static void deep(int depth) {
    int word;
    if (depth > 0)
        deep(depth - 1);
    else
        MPI_Recv(&word, 1, MPI_INT, my_rank, NEVER_SENT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    my_rank++;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    deep(DEPTH);
    MPI_Finalize();
}
