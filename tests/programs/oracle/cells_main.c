/*
 * cells_main.c: the C oracle program.
 *
 * It takes an argument that it keeps, fills its globals with values that depend on its rank, and stops many calls deep:
 * through a recursion whose depth is the rank's, a function pointer, and functions with every kind of argument.
 */
#include "cells.h"
#include "hold.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static PRIVATE int calls = 500;
static PRIVATE int world_size;
static PRIVATE struct {
    int depth;
    const char *reason;
} progress = {0, "none"};

static __attribute__((noinline)) int checkpoint(int rank) {
    static PRIVATE int visits = 30;
    visits += rank;
    calls += visits;
    hold(rank, world_size);
    return visits;
}

static __attribute__((noinline)) double visit(struct cell *cell, struct point shift, const double *scale, int rank) {
    struct point moved = {cell->centre.x + shift.x, cell->centre.y + shift.y, cell->centre.z + shift.z};
    double sum = moved.x * scale[0];
    char note[24] = "";
    snprintf(note, sizeof note, "visit %d", cell->id);
    for (int i = 0; i < 2; i++) {
        int inner = i + rank;
        if (i == 1) {
            const char *where = "inner block";
            inner += checkpoint(rank);
            printf("%s %d\n", where, inner);
        }
        sum += inner;
    }
    printf("%s %f\n", note, moved.y + moved.z);
    return sum;
}

static __attribute__((noinline)) int measure(int count, float factor, char mark, double (*how)(const struct cell *)) {
    int lengths[count];
    for (int i = 0; i < count; i++)
        lengths[i] = 10 * i + count;
    double weighted = how(head) * (double)factor;
    double result = 0;
    result = visit(head->next, (struct point){1, 2, 3}, spacing, lengths[0] - 2);
    printf("%c %f %f %d\n", mark, weighted, result, lengths[0]);
    return (int)result;
}

/* NOLINTNEXTLINE(misc-no-recursion): how deep a rank goes is what the backtraces are to show. */
static __attribute__((noinline)) long descend(int depth, int rank, long path) {
    long here = path * 10 + depth;
    long below = 0;
    progress.depth = depth;
    if (depth > 0)
        below = descend(depth - 1, rank, here);
    else
        below = measure(rank + 2, 0.5F, (char)('A' + rank), chosen);
    return here + below;
}

int main(int argc, char **argv) {
    int rank = -1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    cells_fill(rank);
    progress.reason = argv[argc - 1];
    long sum = 0;
    sum = descend(rank, rank, 1);
    printf("%ld\n", sum);
    MPI_Finalize();
    return EXIT_SUCCESS;
}
