/*
 * jacobi3d.c: a 3-D heat problem solved by Jacobi's method with a 7-point stencil; an ordinary MPI program.
 *
 * jacobi3d [--seconds S] [--size N] [--iterations K] [--tolerance T]: each rank has N x N x N points, the ranks a grid
 * of three dimensions.  It iterates until S seconds have passed, or else K times, or, with K = 0, until the residual is
 * below T.  Its state is in globals and statics on purpose: it is what a program that knows nothing of virtual ranks
 * looks like.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FACES 6

/* One neighbour: who it is, and the planes exchanged with it. */
struct face {
    int neighbor;
    double *outgoing;
    double *incoming;
};

int my_rank;
int rank_count;
int grid[3];
int place[3];
int size = 24;
int iteration;
double residual;       /* of this rank's points: the sum of their squared changes */
double total_residual; /* of all ranks, equal on each */

static int iterations = 100;
static double seconds;
static double tolerance = 1e-4;
static double *values;
static double *next_values;
static struct face faces[FACES];
static const char *const usage = "usage: jacobi3d [--seconds S] [--size N] [--iterations K] [--tolerance T]";

static size_t at(int x, int y, int z) {
    size_t side = (size_t)size + 2;
    return ((size_t)z * side + (size_t)y) * side + (size_t)x;
}

static void fail(const char *text) {
    if (my_rank == 0)
        fprintf(stderr, "jacobi3d: %s\n", text);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

static double number(const char *text) {
    char *end;
    double value = strtod(text, &end);
    if (*end || end == text || !(value >= 0 && value <= 1e6))
        fail(usage);
    return value;
}

static void read_options(int argc, char **argv) {
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc)
            fail(usage);
        if (!strcmp(argv[i], "--seconds"))
            seconds = number(argv[i + 1]);
        else if (!strcmp(argv[i], "--size"))
            size = (int)number(argv[i + 1]);
        else if (!strcmp(argv[i], "--iterations"))
            iterations = (int)number(argv[i + 1]);
        else if (!strcmp(argv[i], "--tolerance"))
            tolerance = number(argv[i + 1]);
        else
            fail(usage);
    }
    if (size < 1 || size > 512)
        fail("--size must be 1 to 512");
}

/* The three factors of the number of ranks that are nearest to each other. */
static void choose_grid(void) {
    int best = rank_count * 3 + 1;
    for (int a = 1; a <= rank_count; a++)
        for (int b = 1; a * b <= rank_count; b++) {
            int c = rank_count / (a * b);
            if (a * b * c != rank_count || a + b + c >= best)
                continue;
            best = a + b + c;
            grid[0] = a, grid[1] = b, grid[2] = c;
        }
    place[0] = my_rank % grid[0];
    place[1] = my_rank / grid[0] % grid[1];
    place[2] = my_rank / (grid[0] * grid[1]);
}

static int neighbor(int dimension, int step) {
    int there[3] = {place[0], place[1], place[2]};
    there[dimension] += step;
    if (there[dimension] < 0 || there[dimension] >= grid[dimension])
        return MPI_PROC_NULL;
    return (there[2] * grid[1] + there[1]) * grid[0] + there[0];
}

static double *numbers(size_t count) {
    double *made = calloc(count, sizeof *made);
    if (!made)
        fail("out of memory");
    return made;
}

static void set_up(void) {
    size_t side = (size_t)size + 2, plane = (size_t)size * (size_t)size;
    values = numbers(side * side * side);
    next_values = numbers(side * side * side);
    for (int i = 0; i < FACES; i++) {
        faces[i].neighbor = neighbor(i / 2, i % 2 ? 1 : -1);
        faces[i].outgoing = numbers(plane);
        faces[i].incoming = numbers(plane);
    }
    /* The bottom of the whole body is hot: its boundary planes are never written again. */
    if (place[2] == 0)
        for (int y = 0; y < size + 2; y++)
            for (int x = 0; x < size + 2; x++)
                values[at(x, y, 0)] = next_values[at(x, y, 0)] = 1.0;
}

static size_t face_point(int face, int layer, int a, int b) {
    switch (face / 2) {
    case 0:
        return at(layer, a, b);
    case 1:
        return at(a, layer, b);
    default:
        return at(a, b, layer);
    }
}

static void pack(int face) {
    int layer = face % 2 ? size : 1;
    for (int b = 0; b < size; b++)
        for (int a = 0; a < size; a++)
            faces[face].outgoing[b * size + a] = values[face_point(face, layer, a + 1, b + 1)];
}

static void unpack(int face) {
    int layer = face % 2 ? size + 1 : 0;
    if (faces[face].neighbor == MPI_PROC_NULL)
        return;
    for (int b = 0; b < size; b++)
        for (int a = 0; a < size; a++)
            values[face_point(face, layer, a + 1, b + 1)] = faces[face].incoming[b * size + a];
}

static void exchange(void) {
    static int exchanges; /* also the tag, so that an iteration never meets another's planes */
    MPI_Request requests[2 * FACES];
    int plane = size * size;
    exchanges = (exchanges + 1) % 1000;
    for (int i = 0; i < FACES; i++)
        MPI_Irecv(faces[i].incoming, plane, MPI_DOUBLE, faces[i].neighbor, exchanges, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < FACES; i++) {
        pack(i);
        MPI_Isend(faces[i].outgoing, plane, MPI_DOUBLE, faces[i].neighbor, exchanges, MPI_COMM_WORLD,
                  &requests[FACES + i]);
    }
    MPI_Waitall(2 * FACES, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < FACES; i++)
        unpack(i);
}

/* One step over this rank's points. */
static void relax(void) {
    residual = 0;
    for (int z = 1; z <= size; z++)
        for (int y = 1; y <= size; y++)
            for (int x = 1; x <= size; x++) {
                double around = values[at(x - 1, y, z)] + values[at(x + 1, y, z)] + values[at(x, y - 1, z)] +
                                values[at(x, y + 1, z)] + values[at(x, y, z - 1)] + values[at(x, y, z + 1)];
                double value = (values[at(x, y, z)] + around) / 7.0;
                double change = value - values[at(x, y, z)];
                next_values[at(x, y, z)] = value;
                residual += change * change;
            }
    double *swap = values;
    values = next_values;
    next_values = swap;
}

/* Adds up the residuals.  All ranks must leave the loop together, but their clocks differ: time is up for all at once.
 */
static int time_is_up(double start) {
    double mine[2] = {residual, seconds > 0 && MPI_Wtime() - start >= seconds}, all[2];
    MPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    total_residual = sqrt(all[0]);
    return all[1] > 0;
}

static int is_over(double start) {
    int late = time_is_up(start);
    if (seconds > 0)
        return late;
    return iterations > 0 ? iteration >= iterations : total_residual < tolerance;
}

static void report(int last) {
    static int next_report = 10;
    if (my_rank != 0 || (iteration < next_report && !last))
        return;
    next_report *= 10;
    printf("jacobi3d: residual %.6e after %d iterations\n", total_residual, iteration);
    fflush(stdout);
}

static void iterate(void) {
    double start = MPI_Wtime();
    int over = 0;
    while (!over) {
        exchange();
        relax();
        iteration++;
        over = is_over(start);
        report(over);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &rank_count);
    read_options(argc, argv);
    choose_grid();
    set_up();
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0) {
        printf("jacobi3d: %d ranks, grid %d x %d x %d, %d^3 points each\n", rank_count, grid[0], grid[1], grid[2],
               size);
        fflush(stdout);
    }
    iterate();
    for (int i = 0; i < FACES; i++) {
        free(faces[i].outgoing);
        free(faces[i].incoming);
    }
    free(values);
    free(next_values);
    MPI_Finalize();
    return 0;
}
