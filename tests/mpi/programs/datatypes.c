/* datatypes.c: every constructor of datatypes: sizes, extents, and what arrives. */
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct particle {
    char kind;
    double position[3];
    int id;
    short flags;
};

static int rank, size;

static void describe(const char *what, MPI_Datatype type) {
    int bytes;
    MPI_Aint lower, extent;
    MPI_Type_size(type, &bytes);
    MPI_Type_get_extent(type, &lower, &extent);
    printf("%d %s: size %d lower %ld extent %ld\n", rank, what, bytes, (long)lower, (long)extent);
}

/* Sends `count` of the type to the next rank, which receives it as the type and shows the whole buffer. */
static void pass(const char *what, MPI_Datatype type, int count) {
    int out[64], in[64], elements;
    MPI_Status status;
    MPI_Type_commit(&type);
    describe(what, type);
    for (int i = 0; i < 64; i++) {
        out[i] = 100 * rank + i;
        in[i] = -1;
    }
    MPI_Sendrecv(out, count, type, (rank + 1) % size, 0, in, count, type, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, type, &elements);
    char line[1024]; /* one printf per line: ranks share standard output */
    int length = 0;
    for (int i = 0; i < 64; i++)
        length += snprintf(line + length, sizeof line - (size_t)length, " %d", in[i]);
    MPI_Bcast(out, count, type, 0, MPI_COMM_WORLD);
    printf("%d %s: %d elements:%s bcast %d %d %d\n", rank, what, elements, line, out[0], out[1], out[5]);
    MPI_Type_free(&type);
}

static void structs(void) {
    int lengths[4] = {1, 3, 1, 1};
    MPI_Aint offsets[4] = {offsetof(struct particle, kind), offsetof(struct particle, position),
                           offsetof(struct particle, id), offsetof(struct particle, flags)};
    MPI_Datatype types[4] = {MPI_CHAR, MPI_DOUBLE, MPI_INT, MPI_SHORT}, type, resized;
    MPI_Type_create_struct(4, lengths, offsets, types, &type);
    MPI_Type_create_resized(type, 0, sizeof(struct particle), &resized);
    MPI_Type_commit(&resized);
    describe("struct", type);
    describe("resized", resized);
    struct particle out[3], in[3];
    memset(in, 0, sizeof in);
    for (int i = 0; i < 3; i++)
        out[i] = (struct particle){(char)('a' + rank), {i, i + 0.5, rank}, rank * 10 + i, (short)i};
    MPI_Sendrecv(out, 3, resized, (rank + 1) % size, 1, in, 3, resized, (rank - 1 + size) % size, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (int i = 0; i < 3; i++)
        printf("%d particle %c %g %g %g %d %d\n", rank, in[i].kind, in[i].position[0], in[i].position[1],
               in[i].position[2], in[i].id, in[i].flags);
    MPI_Type_free(&type);
    MPI_Type_free(&resized);
}

/* Absolute addresses: MPI_BOTTOM. */
static void bottom(void) {
    int number = rank, lengths[2] = {1, 1};
    double real = rank + 0.25;
    MPI_Aint offsets[2];
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE}, type;
    MPI_Get_address(&number, &offsets[0]);
    MPI_Get_address(&real, &offsets[1]);
    MPI_Type_create_struct(2, lengths, offsets, types, &type);
    MPI_Type_commit(&type);
    MPI_Bcast(MPI_BOTTOM, 1, type, size - 1, MPI_COMM_WORLD);
    printf("%d bottom %d %g\n", rank, number, real);
    MPI_Type_free(&type);
}

/* Both buffers are MPI_BOTTOM, and the elements are elsewhere all the same. */
static void both_at_bottom(void) {
    int in = 10 + rank, out[16], one = 1, length = 0;
    char line[256] = "";
    MPI_Aint offset;
    MPI_Datatype from, at, to;
    memset(out, -1, sizeof out);
    MPI_Get_address(&in, &offset);
    MPI_Type_create_hindexed(1, &one, &offset, MPI_INT, &from);
    MPI_Type_commit(&from);
    MPI_Get_address(out, &offset);
    MPI_Type_create_hindexed(1, &one, &offset, MPI_INT, &at);
    MPI_Type_create_resized(at, offset, sizeof *out, &to);
    MPI_Type_commit(&to);
    MPI_Allgather(MPI_BOTTOM, 1, from, MPI_BOTTOM, 1, to, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++)
        length += snprintf(line + length, sizeof line - (size_t)length, " %d", out[i]);
    printf("%d both at bottom%s\n", rank, line);
    MPI_Type_free(&from);
    MPI_Type_free(&at);
    MPI_Type_free(&to);
}

/* The names that MPI-1 had for them. */
static void old_names(void) {
    int number = rank, lengths[1] = {1};
    MPI_Aint offsets[1], extent;
    MPI_Datatype types[1] = {MPI_INT}, type, spread;
    MPI_Address(&number, &offsets[0]);
    MPI_Type_struct(1, lengths, offsets, types, &type);
    MPI_Type_commit(&type);
    MPI_Bcast(MPI_BOTTOM, 1, type, 0, MPI_COMM_WORLD);
    MPI_Type_hvector(3, 1, 12, MPI_INT, &spread);
    MPI_Type_extent(spread, &extent);
    printf("%d old names %d %ld\n", rank, number, (long)extent);
    MPI_Type_free(&type);
    MPI_Type_free(&spread);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Datatype type, vector;
    int lengths[3] = {2, 0, 3}, offsets[3] = {5, 1, 0};
    MPI_Aint byte_offsets[3] = {20, 4, 0};
    MPI_Type_contiguous(3, MPI_INT, &type);
    pass("contiguous", type, 2);
    MPI_Type_vector(3, 2, 4, MPI_INT, &type);
    pass("vector", type, 2);
    MPI_Type_vector(3, 1, 2, MPI_INT, &vector);
    MPI_Type_create_hvector(2, 1, 28, vector, &type);
    pass("hvector", type, 1);
    MPI_Type_contiguous(2, vector, &type);
    pass("nested", type, 2);
    MPI_Type_free(&vector);
    MPI_Type_indexed(3, lengths, offsets, MPI_INT, &type);
    pass("indexed", type, 2);
    MPI_Type_create_hindexed(3, lengths, byte_offsets, MPI_INT, &type);
    pass("hindexed", type, 2);
    MPI_Type_vector(4, 1, 4, MPI_INT, &vector);
    MPI_Type_create_resized(vector, 0, sizeof(int), &type);
    MPI_Type_free(&vector);
    pass("column", type, 3);
    structs();
    bottom();
    both_at_bottom();
    old_names();
    describe("double int", MPI_DOUBLE_INT);
    describe("short int", MPI_SHORT_INT);
    describe("long double int", MPI_LONG_DOUBLE_INT);
    MPI_Finalize();
    return 0;
}
