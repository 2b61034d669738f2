/*
 * beside.c: rank 0 makes children that have its process's memory for a while, or waits in the kernel, while rank 1, on
 * another processing element, calls functions where a debugger has breakpoints. Arguments: how often, and a file at
 * which both begin.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const struct timespec a_while = {0, 4000000}, long_enough = {0, 300000000};
static int number, calls;
extern char nap_here[];

__attribute__((noinline)) static int work(int turn) {
    return calls += turn;
}

static long nap(const struct timespec *time) {
    long result;
    __asm__ volatile(".globl nap_here\nnap_here: syscall"
                     : "=a"(result)
                     : "a"(SYS_nanosleep), "D"(time), "S"(0)
                     : "rcx", "r11", "memory");
    return result;
}

static int lend(void) {
    int status = 1;
    pid_t child = vfork();
    if (child == 0) {
        nap(&a_while);
        _exit(0);
    }
    return waitpid(child, &status, 0) != child || status != 0;
}

int main(int argc, char **argv) {
    int failed = 0, turns = atoi(argv[1]), done = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &number);
    printf("rank %d is in process %d, %p %p %p\n", number, getpid(), (void *)work, (void *)nap_here, (void *)getppid);
    fflush(stdout);
    while (access(argv[2], F_OK) != 0) {
        int found;
        MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    }
    if (number == 0) {
        nap(&long_enough);
        for (int turn = 0; turn < turns; turn++)
            failed += lend();
        MPI_Send(&failed, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
    } else {
        MPI_Request request;
        MPI_Irecv(&failed, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, &request);
        for (int turn = 0; turn < turns || !done; turn++) {
            if (turn < turns)
                work(turn);
            for (int i = 0; i < 20; i++)
                getppid();
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        }
    }
    printf("rank %d did %d, %d failed\n", number, calls, failed);
    MPI_Finalize();
    return 0;
}
