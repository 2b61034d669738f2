/* forks.c: a rank's child processes end as processes do, by exit() and by the return of main, and the job goes on. What
 * ranks print lies in one buffer of libc's, which a child would write too: here nothing is left in it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank;

static int ended(pid_t child) {
    int status = -1;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(int argc, char **argv) {
    int sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    pid_t child = fork();
    if (child == 0)
        exit(10 + rank);
    dprintf(1, "%d child that calls exit: %d\n", rank, ended(child));
    if ((child = fork()) == 0) {
        rank += 20;
        return rank;
    }
    dprintf(1, "%d child that returns: %d\n", rank, ended(child));
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    dprintf(1, "%d goes on: %d\n", rank, sum);
    MPI_Finalize();
    return 0;
}
