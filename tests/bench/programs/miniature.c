/*
 * miniature.c: the globals of a small simulation, of every kind there is; SIZE more bytes of them; all ranks wait but
 * the last.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef SIZE
#define SIZE 4096
#endif

struct vector {
    double x, y, z;
};
struct field {
    const char *name;
    struct vector *values;
    int count, step;
    enum { SCALAR, VECTOR } kind;
};
struct settings {
    int size[3], steps;
    double tolerance, origin[3];
    char title[64];
    struct field *chosen;
};

int my_rank, ranks, iteration, left, right, unused = 17;
double residual, started, finished, weights[27] = {[13] = 1.0};
static long counts[16];
static struct vector corner[8];
static const char *names[] = {"density", "pressure", "velocity", "energy"};
struct field fields[4];
struct settings settings = {.size = {32, 32, 32}, .tolerance = 1e-6, .title = "miniature"};
struct field *current = &fields[2];
int *same = &iteration;
unsigned char bulk[SIZE] = {[0 ... SIZE - 1] = 3};

static int next(void) {
    static int numbers = 100;
    return ++numbers;
}

__attribute__((noinline)) static void exchange(int depth) {
    int word;
    if (depth > 0)
        exchange(depth - 1);
    else
        MPI_Recv(&word, 1, MPI_INT, ranks - 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    iteration++;
}

int main(int argc, char **argv) {
    int found;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    left = (my_rank + ranks - 1) % ranks;
    right = (my_rank + 1) % ranks;
    residual = 1.0 / (1 + my_rank);
    corner[my_rank % 8].x = my_rank;
    counts[my_rank % 16] = next();
    bulk[my_rank % SIZE] = 9;
    for (int i = 0; i < 4; i++)
        fields[i] = (struct field){names[i], malloc(40 * sizeof(struct vector)), 40, my_rank % 3, i == 2};
    settings.chosen = &fields[my_rank % 4];
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank < ranks - 1)
        exchange(6);
    for (int i = 0; i < 2 * ranks; i++)
        MPI_Iprobe(MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    puts("ready");
    fflush(stdout);
    for (finished = started + unused + *same + current->count;;)
        pause();
}
