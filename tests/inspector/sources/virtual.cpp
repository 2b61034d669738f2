// Virtual base classes, which lie where only the object says: each rank counts another number in one of them.
#include <cstdio>
#include <mpi.h>

int target;
struct Counted {
    long count = 11;
    int *where = &target;
    virtual ~Counted() = default;
};
struct Left : virtual Counted {
    int left = 1;
    int *mine = &target;
};
struct Both : Left {
    short both = 3;
};
Both both, several[3];

int main(int argc, char **argv) {
    int rank, word;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    both.count = 100 + rank;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        std::puts("ready");
    std::fflush(stdout);
    MPI_Recv(&word, 1, MPI_INT, rank, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}
