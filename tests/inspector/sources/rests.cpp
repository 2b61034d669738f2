// rests.cpp: the last rank is in a function that a template of the C++ library has made, the others wait for it.
#include <chrono>
#include <cstdio>
#include <mpi.h>
#include <thread>

int own_rank = -1;

__attribute__((noinline)) static void rest(int hours) {
    std::this_thread::sleep_for(std::chrono::hours(hours)); /* rests */
    own_rank = hours;
}

int main(int argc, char **argv) {
    int size, word = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    if (own_rank == size - 1) {
        std::puts("rests");
        std::fflush(stdout);
        rest(size);
    }
    MPI_Recv(&word, 1, MPI_INT, size - 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return word;
}
