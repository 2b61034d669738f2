/* ring.c: every rank waits for its right neighbour's message, which it sends after its own has come: none ever does. */
#include <mpi.h>
#include <stdio.h>

int my_rank = -1;
double load[3];
const char *phase = "start";
static struct cell {
    int row;
    float heat;
} cells[2], *cell;

static void exchange(int from) {
    int word;
    MPI_Recv(&word, 1, MPI_INT, from, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&word, 1, MPI_INT, from, 7, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    load[1] = my_rank + 0.5;
    cells[1].row = 10 * my_rank;
    cell = &cells[1];
    phase = "exchange";
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0) {
        puts("ready");
        fflush(stdout);
    }
    exchange((my_rank + 1) % size);
    MPI_Finalize();
    return 0;
}
