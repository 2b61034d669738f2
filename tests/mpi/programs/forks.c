/* forks.c: a rank's child processes end as processes do, by exit() and by the return of main, and the job goes on. What
 * ranks print lies in buffers of libc's, which a child of another kernel thread's would write too, even those of
 * dprintf() while it runs: here there are none. */
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

static void say(const char *what, int value) {
    char line[64];
    int length = snprintf(line, sizeof line, "%d %s: %d\n", rank, what, value);
    if (write(STDOUT_FILENO, line, (size_t)length) != length)
        abort();
}

int main(int argc, char **argv) {
    int sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    pid_t child = fork();
    if (child == 0)
        exit(10 + rank);
    say("child that calls exit", ended(child));
    if ((child = fork()) == 0) {
        rank += 20;
        return rank;
    }
    say("child that returns", ended(child));
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    say("goes on", sum);
    MPI_Finalize();
    return 0;
}
