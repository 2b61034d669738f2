// Every kind of variable that a method of privatization may treat differently; each rank prints the address and the
// value that its own code uses: the truth that tools are compared with. With "spin", rank 0 keeps running at the end.
// WITHOUT_THREAD_LOCAL is for the methods that refuse such variables.
#include <mpi.h>

#include <cstdio>
#include <cstring>

int exported;           // external linkage: reached through the global offset table if its name is left open
static int file_static; // one name, one file
#ifdef WITHOUT_THREAD_LOCAL
int per_thread;
#else
thread_local int per_thread;
#endif
namespace simulation {
inline int inlined; // C++17: STB_GNU_UNIQUE, unless built otherwise
}
int *pointer = &exported; // by an initializer

static __attribute__((noinline)) int &function_static() {
    static int counter;
    return counter;
}

static volatile int never;

extern "C" void show(int rank, const char *name, const void *address, int value) {
    std::printf("rank %d %s %p %d\n", rank, name, address, value);
}

extern "C" void hold(int rank, bool spin) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        std::puts("ready");
        std::fflush(stdout);
    }
    while (spin && rank == 0 && !never)
        ;
    int nothing;
    MPI_Recv(&nothing, 1, MPI_INT, rank, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    exported = 100 + rank;
    file_static = 200 + rank;
    function_static() = 300 + rank;
    per_thread = 400 + rank;
    simulation::inlined = 500 + rank;
    MPI_Barrier(MPI_COMM_WORLD);
    show(rank, "exported", &exported, exported);
    show(rank, "file_static", &file_static, file_static);
    show(rank, "counter", &function_static(), function_static());
    show(rank, "per_thread", &per_thread, per_thread);
    show(rank, "inlined", &simulation::inlined, simulation::inlined);
    show(rank, "pointee", pointer, *pointer);
    std::fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    hold(rank, argc > 1 && !std::strcmp(argv[1], "spin"));
    MPI_Finalize();
}
