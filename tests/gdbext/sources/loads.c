/*
 * loads.c: loads a library while a debugger watches, and has a global of the same name as one of the host's library.
 *
 * It takes a library's path; the last rank loads it, then prints "ready" and runs for ever.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

int before = 5;
int optind = 4000; /* libc has one, too */
static volatile int spinning = 1;

__attribute__((noinline)) static void load(const char *path) {
    if (dlopen(path, RTLD_NOW) == NULL)
        puts(dlerror());
    before++;
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    before += 10 * rank;
    optind += rank;
    if (rank == size - 1) {
        load(argv[1]);
        puts("ready");
        fflush(stdout);
        while (spinning) { /* spins here */
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
