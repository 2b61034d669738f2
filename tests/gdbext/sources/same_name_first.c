/*
 * same_name_first.c: each rank calls two static functions of one name, this file's and same_name_second.c's, in turns.
 */
#include <mpi.h>

int second(int turn);

__attribute__((noinline)) static int part(int turn) {
    return turn + 1;
}

__attribute__((noinline)) static int first(int turn) {
    return part(turn) + 1;
}

int main(int argc, char **argv) {
    int total = 0;
    MPI_Init(&argc, &argv);
    for (int turn = 0; turn < 3; turn++) {
        total += first(turn) + second(turn);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return total != 15;
}
