/*
 * forks.c: ranks that make processes, which run the same function as they do; a debugger's breakpoint there must not
 * end these. It begins once the file that it is given is there.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int number, calls;

__attribute__((noinline)) static int work(int turn) {
    return calls += turn;
}

static void *elsewhere(void *turn) {
    return (void *)(long)work(*(int *)turn);
}

int main(int argc, char **argv) {
    int status = 0, failed = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &number);
    printf("rank %d is in process %d\n", number, getpid());
    fflush(stdout);
    while (access(argv[2], F_OK) != 0) {
        int found;
        MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    }
    for (int turn = 0; turn < atoi(argv[1]); turn++) {
        work(turn);
        pid_t child = fork();
        if (child == 0)
            _exit(work(turn) < 0);
        failed += waitpid(child, &status, 0) != child || status != 0;
        failed += system("true") != 0;
        pthread_t thread; /* it runs no rank: it stops at nothing */
        failed += pthread_create(&thread, NULL, elsewhere, &turn) != 0 || pthread_join(thread, NULL) != 0;
    }
    printf("rank %d did %d, %d failed\n", number, calls, failed);
    MPI_Finalize();
    return 0;
}
