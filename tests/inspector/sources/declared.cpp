// A base class that clang describes in one unit alone, which has no debug information: compiled once with -DHIDDEN,
// without -g, and once without. Each rank has another number in it, and all have the same in the other object.
#include <cstdio>
#include <mpi.h>

extern int target;
struct Base {
    int *where = &target;
    long number = 7;
    virtual void become(long one);
    virtual ~Base() = default;
};

#ifdef HIDDEN
int target;
void Base::become(long one) {
    number = one;
}
#else
struct Derived : Base {
    int own = 5;
};
Derived different, equal;

int main(int argc, char **argv) {
    int rank, word;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    different.become(100 + rank);
    equal.become(100);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        std::puts("ready");
    std::fflush(stdout);
    MPI_Recv(&word, 1, MPI_INT, rank, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}
#endif
