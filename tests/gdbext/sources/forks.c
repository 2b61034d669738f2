/*
 * forks.c: the first rank forks a process that ends at once, and waits for it.
 */
#include <mpi.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) static void begin(void) {
    __asm__ volatile("");
}

int main(int argc, char **argv) {
    int rank, child = -1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        begin();
        child = fork();
        if (child == 0) /* after the fork */
            _exit(0);
        waitpid(child, NULL, 0);
    }
    MPI_Finalize();
    return 0;
}
