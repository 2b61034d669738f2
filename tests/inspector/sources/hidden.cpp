// Values that differ between ranks where a text leaves something out: behind many members, deep down, in a NaN's bits.
#include <cstdio>
#include <cstring>
#include <mpi.h>

template <int LEVEL> struct Deep {
    Deep<LEVEL - 1> inner;
    int here = LEVEL;
};
template <> struct Deep<0> { int here = 0; };
#define TEN(name) int name##0, name##1, name##2, name##3, name##4, name##5, name##6, name##7, name##8, name##9;
#define HUNDRED(name)                                                                                                  \
    TEN(name##0)                                                                                                       \
    TEN(name##1)                                                                                                       \
    TEN(name##2) TEN(name##3) TEN(name##4) TEN(name##5) TEN(name##6) TEN(name##7) TEN(name##8) TEN(name##9)
struct Many {
    HUNDRED(a)
    HUNDRED(b)
    HUNDRED(c)
};
Deep<26> deep;
Many many;
float none;

int main(int argc, char **argv) {
    int rank, word;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    *reinterpret_cast<int *>(&deep) = 1000 + rank;
    many.c99 = rank;
    unsigned bits = 0x7fc00000 + rank;
    std::memcpy(&none, &bits, sizeof none);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        std::puts("ready");
    std::fflush(stdout);
    MPI_Recv(&word, 1, MPI_INT, rank, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}
