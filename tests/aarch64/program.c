/* Variables of each storage that differ in each rank; ranks but the first wait below four frames of `deep`. */
#include <mpi.h>
#include <stdio.h>

int exported = 5;
static double inner = 1.5;
int grid[4] = {1, 2, 3, 4};

static int *counted(void) {
    static int calls = 40;
    return &calls;
}

__attribute__((noinline)) static void deep(int depth, int rank) {
    int got;
    if (depth)
        deep(depth - 1, rank);
    else
        MPI_Recv(&got, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    exported++; /* so that no call is a jump */
}

int main(int argc, char **argv) {
    int rank, found;
    (void)argv;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    exported += 100 * rank, inner += rank, grid[3] += 10 * rank, *counted() += rank;
    MPI_Barrier(MPI_COMM_WORLD);
    printf("%d %p %d %g %d %d\n", rank, (void *)&exported, exported, inner, grid[3], *counted());
    fflush(stdout);
    if (argc > 1 && rank)
        deep(3, rank);
    while (argc > 1)
        MPI_Iprobe(0, 99, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    MPI_Finalize();
}
