/* in_first_rank.c: the main of every program of the suite in a rank. Rank 0 runs the program's own main; all other
 * ranks wait in MPI_Recv until it exits. Started without rankrun, it is an ordinary process, which runs the same main.
 * With HOLD in the environment both stop before it, for a debugger. */
#include <mpi.h>

#include <stdlib.h>

#define HOLD "RANKLENS_SUITE_HOLD"
#define TAG 71

int main(int argc, char **argv, char **environment);

static void release(void) {
    int ranks, word = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int rank = 1; rank < ranks; rank++)
        MPI_Send(&word, 1, MPI_INT, rank, TAG, MPI_COMM_WORLD);
}

__attribute__((noinline)) int main_in_process(int argc, char **argv, char **environment) {
    if (getenv(HOLD))
        __asm__ volatile("int3"); // no function of a library, whose source would be the one to list
    return main(argc, argv, environment);
}

int main_in_first_rank(int argc, char **argv, char **environment) {
    int rank, word;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank > 0) {
        MPI_Recv(&word, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return 0;
    }
    atexit(release);
    return main_in_process(argc, argv, environment);
}

int __libc_start_main(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void),
                      void *);

__attribute__((used, section(".interp"))) static const char loader[] = "/lib64/ld-linux-x86-64.so.2";

__attribute__((used)) static void begin_alone(long *stack, void (*at_exit)(void)) {
    __libc_start_main(main_in_process, (int)stack[0], (char **)(stack + 1), NULL, NULL, at_exit, stack);
}

// What the kernel enters, by the System V ABI for x86-64: the arguments on the stack, the loader's function in %rdx.
__asm__(".text\n.globl begin_in_process\n.type begin_in_process, @function\nbegin_in_process:\n"
        "xor %ebp, %ebp\nmov %rsp, %rdi\nmov %rdx, %rsi\nand $-16, %rsp\ncall begin_alone\nhlt\n");
