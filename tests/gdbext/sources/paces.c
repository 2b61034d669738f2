/*
 * paces.c: each rank paces up and down by itself, one rank after the other.
 *
 * With -DALONE=N it is a program without MPI that does the same as N ranks: breakpoints stop both in the same order.
 */
#ifndef ALONE
#include <mpi.h>
#endif
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int pacer;
static long paced;
static volatile long sink;

/* In the code of two functions: a breakpoint has two locations. */
static inline __attribute__((always_inline)) void pace_on(int turn) {
    sink = turn;
}

__attribute__((noinline)) long pace_up(int turn) {
    paced += 1;
    pace_on(turn);
    return turn + pacer;
}

__attribute__((noinline)) long pace_down(int turn) {
    paced += 2;
    sink = pace_up(turn);
    return sink;
}

__attribute__((noinline)) void pace_about(int turn) {
    if (turn % 2)
        pace_down(turn);
    sink = syscall(SYS_getppid);
    pace_on(turn);
    paced += 3;
}

__attribute__((noinline)) void walk(int turns) {
    paced = 0;
    for (int turn = 0; turn < turns; turn++) {
        pace_up(turn);
        pace_down(turn);
        pace_about(turn);
    }
}

int main(int argc, char **argv) {
    int turns = argc > 1 ? atoi(argv[1]) : 3;
#ifdef ALONE
    /* The last rank completes MPI_Init, and goes on first. */
    for (int i = 0; i < ALONE; i++) {
        pacer = -1; /* no rank's: what a watchpoint of one sees now is not its own */
        paced = 0;
        pacer = (ALONE - 1 + i) % ALONE;
        walk(turns);
    }
#else
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &pacer);
    walk(turns);
    MPI_Finalize();
#endif
    return 0;
}
