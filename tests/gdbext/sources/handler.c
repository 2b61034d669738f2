// A rank that is in a signal's handler: its stack goes on after the kernel's frame; with -DALTERNATE on another stack.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>

static void handler(int number) {
    printf("in the handler of %d\n", number);
    fflush(stdout);
    for (volatile int spin = 1; spin;)
        ;
}

static int interrupted(int rank) {
    raise(SIGUSR2);
    return rank;
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#ifdef ALTERNATE
    static char alternate[1 << 16];
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR2, &action, NULL);
#else
    signal(SIGUSR2, handler);
#endif
    int result = interrupted(rank);
    MPI_Finalize();
    return result;
}
