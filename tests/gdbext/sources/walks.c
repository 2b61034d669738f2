/*
 * walks.c: rank 0 walks from line to line while all others call tick() as often as the argument says.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, size;
static volatile long done;
static long ticks;

__attribute__((noinline)) int work(int amount) {
    for (int i = 0; i < amount; i++)
        done++;
    return amount;
}

__attribute__((noinline)) void tick(void) {
    ticks++;
}

static void let_others_go(void) {
    for (int other = 1; other < size; other++)
        MPI_Send(&rank, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
}

static void walk(void) {
    let_others_go();
    for (int round = 0; round < 10; round++) {
        work(500);
        work(700);
        work(1100);
        work(1300);
    }
}

int main(int argc, char **argv) {
    int turns = argc > 1 ? atoi(argv[1]) : 1, sender;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0) {
        walk();
    } else {
        MPI_Recv(&sender, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < turns; i++) {
            work(200 * rank);
            tick();
        }
    }
    printf("rank %d ticked %ld\n", rank, ticks);
    MPI_Finalize();
    return 0;
}
