/*
 * places.c: every rank prints where its things are, and what they are called; then all wait for ever.
 *
 * A line is "place RANK KIND NAME OFFSET ADDRESS": ADDRESS lies OFFSET bytes into NAME ("-": it has no name).
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int counter = 5;
int zeros[1000];
static double kept[4] = {1.5};
const char greeting[] = "hello";
int *to_counter = &counter;

static int rank;

static void place(const char *kind, const char *name, long offset, const void *address) {
    printf("place %d %s %s %ld %p\n", rank, kind, name, offset, address);
}

__attribute__((noinline)) static void callee(void) {
    place("code", "main", -1, __builtin_return_address(0));
}

int add(int to, int what) {
    return to + what;
}

static void show(void) {
    static int calls;
    int local = ++calls;
    place("data", "counter", 0, &counter);
    place("data", "counter", 3, (char *)&counter + 3);
    place("data", "zeros", 2000, &zeros[500]);
    place("data", "kept", 8, &kept[1]);
    place("data", "show::calls", 0, &calls);
    place("data", "to_counter", 0, &to_counter);
    place("rodata", "greeting", 2, greeting + 2);
    place("code", "add", 0, (const void *)add);
    place("code", "show", 0, (const void *)show);
    place("stack", "-", 0, &local);
    place("heap", "-", 0, malloc(100));
    place("runtime", "malloc", 0, (const void *)malloc);
    place("runtime", "MPI_Recv", 0, (const void *)MPI_Recv);
}

int main(int argc, char **argv) {
    int unused, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    counter = 100 + rank;
    show();
    callee();
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        puts("ready");
        fflush(stdout);
    }
    MPI_Recv(&unused, 1, MPI_INT, (rank + 1) % ranks, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}
