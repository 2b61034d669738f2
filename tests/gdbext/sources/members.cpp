// members.cpp: every rank adds to what a class and its objects have, and to variables of a namespace and of the file.
#include <mpi.h>

#include <cstdio>

namespace space {
int seen = 0;

struct Box {
    static int total;
    int own = 3;
    void add(int n);
};

int Box::total = 0;
} // namespace space

static int hidden = 5;

__attribute__((noinline)) void space::Box::add(int n) {
    seen += n;
    total += 1;
    own += n;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    space::Box box;
    hidden += rank;
    for (int i = 0; i < 6; i++) {
        box.add(rank);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    std::printf("rank %d saw %d in %d turns\n", rank, space::seen, space::Box::total);
    MPI_Finalize();
}
