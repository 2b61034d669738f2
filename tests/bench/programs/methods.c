/*
 * methods.c: what a method of privatization costs a program: a switch, and a loop whose every variable is a global.
 *
 * `methods switch` prints nanoseconds per switch between its two ranks, one line a round; `methods pointer` those per
 * wrfsbase, the instruction that gives a rank its thread pointer, 0 where programs may not use it; `methods jacobi`
 * those per point of a seven-point stencil, best of its rounds.  PRIVATE is what the method needs before a private
 * variable.
 */
#include <immintrin.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#ifndef PRIVATE
#define PRIVATE
#endif

enum { ROUNDS = 15, SWITCHES = 100000, SIZE = 66, SWEEPS = 40, FSGSBASE = 2 /* bit of AT_HWCAP2 */ };

PRIVATE double *before, *after;
PRIVATE int i, j, k, sweep;
PRIVATE double sum;

/* Both ranks ask again and again for a message that never comes: each question lets the other one run. */
static void measure_switch(int rank) {
    int flag;
    for (int round = 0; round < ROUNDS; round++) {
        double start = MPI_Wtime();
        for (int turn = 0; turn < SWITCHES / 2; turn++)
            MPI_Iprobe(MPI_ANY_SOURCE, 12345, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        if (rank == 0)
            printf("%.3f\n", (MPI_Wtime() - start) * 1e9 / SWITCHES);
    }
}

__attribute__((target("fsgsbase"))) static double time_of_writes(void) {
    unsigned long long pointer = _readfsbase_u64();
    double start = MPI_Wtime();
    for (int turn = 0; turn < SWITCHES; turn++)
        _writefsbase_u64(pointer);
    return MPI_Wtime() - start;
}

static void measure_pointer(void) {
    for (int round = 0; round < ROUNDS; round++)
        printf("%.3f\n", getauxval(AT_HWCAP2) & FSGSBASE ? time_of_writes() * 1e9 / SWITCHES : 0);
}

static void sweep_once(void) {
    for (i = 1; i < SIZE - 1; i++)
        for (j = 1; j < SIZE - 1; j++)
            for (k = 1; k < SIZE - 1; k++) {
                sum = before[(i * SIZE + j) * SIZE + k - 1] + before[(i * SIZE + j) * SIZE + k + 1];
                sum += before[(i * SIZE + j - 1) * SIZE + k] + before[(i * SIZE + j + 1) * SIZE + k];
                sum += before[((i - 1) * SIZE + j) * SIZE + k] + before[((i + 1) * SIZE + j) * SIZE + k];
                after[(i * SIZE + j) * SIZE + k] = sum / 6;
            }
}

static void measure_jacobi(void) {
    size_t bytes = sizeof(double) * SIZE * SIZE * SIZE;
    double best = 1e9;
    before = aligned_alloc(64, bytes);
    after = aligned_alloc(64, bytes);
    memset(before, 0, bytes);
    memset(after, 0, bytes);
    before[0] = 1;
    for (int round = 0; round < ROUNDS; round++) {
        double start = MPI_Wtime();
        for (sweep = 0; sweep < SWEEPS; sweep++)
            sweep_once();
        double time = (MPI_Wtime() - start) * 1e9 / SWEEPS / (SIZE - 2) / (SIZE - 2) / (SIZE - 2);
        best = time < best ? time : best;
    }
    printf("%.4f\n", best);
}

int main(int argc, char **argv) {
    int rank; /* no global: it must be right without a method, too */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc > 1 && !strcmp(argv[1], "switch"))
        measure_switch(rank);
    if (argc > 1 && !strcmp(argv[1], "pointer"))
        measure_pointer();
    if (argc > 1 && !strcmp(argv[1], "jacobi"))
        measure_jacobi();
    if (argc > 1 && !strcmp(argv[1], "hold")) {
        int nothing;
        if (rank == 0)
            puts("ready");
        fflush(stdout);
        MPI_Recv(&nothing, 1, MPI_INT, rank, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
