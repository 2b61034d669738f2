/* Each rank suspends a fiber of its own, on a stack in its own globals; then the last rank is held, the others wait. */
#include <mpi.h>
#include <stdio.h>
#include <ucontext.h>
#include <unistd.h>

static ucontext_t rank_context, fiber;
static char stack[64 * 1024];
static int my_rank;

static void leaf(int number) {
    int local = 10 * number;
    swapcontext(&fiber, &rank_context);
    printf("%d\n", local);
}

static void enter(void) {
    leaf(my_rank);
}

int main(int count, char **words) {
    int size, never;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    getcontext(&fiber);
    fiber.uc_stack.ss_sp = stack;
    fiber.uc_stack.ss_size = sizeof stack;
    makecontext(&fiber, enter, 0);
    swapcontext(&rank_context, &fiber);
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == size - 1)
        printf("held\n"), fflush(stdout), pause();
    MPI_Recv(&never, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
