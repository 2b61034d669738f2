// throws.cpp: every rank throws one exception, and catches it.
#include <cstdio>
#include <mpi.h>
#include <stdexcept>

static int thrown = 40;

__attribute__((noinline)) static void fail(int rank) {
    thrown += rank;
    throw std::runtime_error("on purpose");
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    try {
        fail(rank);
    } catch (const std::exception &error) {
        std::printf("rank %d caught %s\n", rank, error.what());
    }
    MPI_Finalize();
    return 0;
}
