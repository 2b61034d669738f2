// A stack of functions that GCC splits into a hot and a cold part at -O2: the handlers are cold.
#include <cstdio>
#include <mpi.h>
#include <stdexcept>

int started, caught;

__attribute__((noinline)) static int waiting(int rank, int size) {
    int word = 0;
    if (size > 1000)
        throw std::runtime_error("too many");
    if (rank > 0)
        MPI_Recv(&word, 1, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else {
        for (int turn = 0; turn < size; turn++) // the others go on meanwhile, until they wait
            MPI_Iprobe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &word, MPI_STATUS_IGNORE);
        std::puts("ready");
        std::fflush(stdout);
        for (volatile int spin = 1; spin;)
            ;
    }
    return word + rank;
}

__attribute__((noinline)) static int between(int rank, int size) {
    try {
        return waiting(rank, size) + ++started;
    } catch (const std::runtime_error &error) {
        std::puts(error.what());
        return ++caught;
    }
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    int result = between(rank, size);
    MPI_Finalize();
    return result > 1000;
}
