/* collectives.c: every collective, in place and not, with predefined and users' operations, on derived types, and on
 * communicators of all kinds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
static int offset_of_rank; /* differs per rank, and is what the user's operation reads */

/* One printf per line: ranks share standard output. */
static void show(const char *what, int count, const int *values) {
    char line[1024];
    int length = 0;
    for (int i = 0; i < count; i++)
        length += snprintf(line + length, sizeof line - (size_t)length, " %d", values[i]);
    line[length] = 0;
    printf("%d %s:%s\n", rank, what, line);
}

static void moves(MPI_Comm comm) {
    int me, n, all[64], mine[64], counts[16], offsets[16];
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    for (int root = 0; root < n; root++) {
        int value[3] = {rank, root, 9};
        MPI_Bcast(value, 3, MPI_INT, root, comm);
        show("bcast", 3, value);
        memset(all, 0, sizeof all);
        int own[2] = {rank + 1, rank + 2};
        MPI_Gather(own, 2, MPI_INT, all, 2, MPI_INT, root, comm);
        show("gather", 2 * n, all);
        if (me == root)
            all[2 * me] = 77;
        MPI_Gather(me == root ? MPI_IN_PLACE : own, 2, MPI_INT, all, 2, MPI_INT, root, comm);
        show("gather in place", 2 * n, all);
        for (int i = 0; i < 64; i++)
            all[i] = 100 * root + i;
        MPI_Scatter(all, 2, MPI_INT, own, 2, MPI_INT, root, comm);
        show("scatter", 2, own);
        MPI_Scatter(all, 2, MPI_INT, me == root ? MPI_IN_PLACE : (void *)own, 2, MPI_INT, root, comm);
        show("scatter in place", 2, own);
        for (int i = 0; i < n; i++) {
            counts[i] = i % 3;
            offsets[i] = 3 * (n - 1 - i);
        }
        for (int i = 0; i < 4; i++)
            mine[i] = 10 * rank + i;
        memset(all, 0, sizeof all);
        MPI_Gatherv(mine, me % 3, MPI_INT, all, counts, offsets, MPI_INT, root, comm);
        show("gatherv", 3 * n, all);
        for (int i = 0; i < 64; i++)
            all[i] = i;
        MPI_Scatterv(all, counts, offsets, MPI_INT, mine, me % 3, MPI_INT, root, comm);
        show("scatterv", 3, mine);
    }
    memset(all, 0, sizeof all);
    MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, comm);
    show("allgather", n, all);
    MPI_Allgatherv(mine, counts[me], MPI_INT, all, counts, offsets, MPI_INT, comm);
    show("allgatherv", 3 * n, all);
    all[me] = rank + 50;
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, comm);
    show("allgather in place", n, all);
    for (int i = 0; i < 2 * n; i++)
        mine[i] = 1000 * rank + i;
    MPI_Alltoall(mine, 2, MPI_INT, all, 2, MPI_INT, comm);
    show("alltoall", 2 * n, all);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, mine, 2, MPI_INT, comm);
    show("alltoall in place", 2 * n, mine);
    int out_counts[16], out_offsets[16];
    for (int i = 0; i < n; i++) {
        out_counts[i] = i % 2 + 1;
        out_offsets[i] = 2 * i;
        counts[i] = me % 2 + 1;
        offsets[i] = 2 * (n - 1 - i);
    }
    memset(all, 0, sizeof all);
    MPI_Alltoallv(mine, out_counts, out_offsets, MPI_INT, all, counts, offsets, MPI_INT, comm);
    show("alltoallv", 2 * n, all);
    MPI_Barrier(comm);
}

#define FOLD(name, type, mpi_type, format, op)                                                                         \
    do {                                                                                                               \
        type in[2] = {(type)(rank + 1), (type)(rank % 2)}, out[2] = {0, 0};                                            \
        MPI_Allreduce(in, out, 2, mpi_type, op, MPI_COMM_WORLD);                                                       \
        printf("%d " name " " #op " " format " " format "\n", rank, out[0], out[1]);                                   \
    } while (0)
#define FOLD_ALL(name, type, mpi_type, format)                                                                         \
    FOLD(name, type, mpi_type, format, MPI_SUM);                                                                       \
    FOLD(name, type, mpi_type, format, MPI_PROD);                                                                      \
    FOLD(name, type, mpi_type, format, MPI_MIN);                                                                       \
    FOLD(name, type, mpi_type, format, MPI_MAX)
#define FOLD_NUMBERS(type, mpi_type, format) FOLD_ALL(#mpi_type, type, mpi_type, format)
#define FOLD_INTEGERS(type, mpi_type, format)                                                                          \
    FOLD_ALL(#mpi_type, type, mpi_type, format);                                                                       \
    FOLD(#mpi_type, type, mpi_type, format, MPI_LAND);                                                                 \
    FOLD(#mpi_type, type, mpi_type, format, MPI_LOR);                                                                  \
    FOLD(#mpi_type, type, mpi_type, format, MPI_LXOR);                                                                 \
    FOLD(#mpi_type, type, mpi_type, format, MPI_BAND);                                                                 \
    FOLD(#mpi_type, type, mpi_type, format, MPI_BOR);                                                                  \
    FOLD(#mpi_type, type, mpi_type, format, MPI_BXOR)

#define LOCATE(type, mpi_type)                                                                                         \
    do {                                                                                                               \
        struct {                                                                                                       \
            type value;                                                                                                \
            int index;                                                                                                 \
        } in = {(type)((rank * 7) % 3), rank}, low, high;                                                              \
        MPI_Allreduce(&in, &low, 1, mpi_type, MPI_MINLOC, MPI_COMM_WORLD);                                             \
        MPI_Allreduce(&in, &high, 1, mpi_type, MPI_MAXLOC, MPI_COMM_WORLD);                                            \
        printf("%d " #mpi_type " %g %d %g %d\n", rank, (double)low.value, low.index, (double)high.value, high.index);  \
    } while (0)

static void predefined(void) {
    FOLD_INTEGERS(signed char, MPI_SIGNED_CHAR, "%d");
    FOLD_INTEGERS(unsigned char, MPI_UNSIGNED_CHAR, "%d");
    FOLD_INTEGERS(short, MPI_SHORT, "%d");
    FOLD_INTEGERS(unsigned short, MPI_UNSIGNED_SHORT, "%d");
    FOLD_INTEGERS(int, MPI_INT, "%d");
    FOLD_INTEGERS(unsigned, MPI_UNSIGNED, "%u");
    FOLD_INTEGERS(long, MPI_LONG, "%ld");
    FOLD_INTEGERS(unsigned long, MPI_UNSIGNED_LONG, "%lu");
    FOLD_INTEGERS(long long, MPI_LONG_LONG, "%lld");
    FOLD_INTEGERS(int64_t, MPI_INT64_T, "%ld");
    FOLD_INTEGERS(uint16_t, MPI_UINT16_T, "%d");
    FOLD_NUMBERS(float, MPI_FLOAT, "%g");
    FOLD_NUMBERS(double, MPI_DOUBLE, "%g");
    FOLD_NUMBERS(long double, MPI_LONG_DOUBLE, "%Lg");
    LOCATE(float, MPI_FLOAT_INT);
    LOCATE(double, MPI_DOUBLE_INT);
    LOCATE(long, MPI_LONG_INT);
    LOCATE(int, MPI_2INT);
    LOCATE(short, MPI_SHORT_INT);
    LOCATE(long double, MPI_LONG_DOUBLE_INT);
}

/* 2 x 2 matrices multiply: the order of the operands shows. */
static void multiply(void *in, void *inout, int *count, MPI_Datatype *type) {
    int *a = in, *b = inout;
    (void)type;
    for (int i = 0; i < *count; i++, a += 4, b += 4) {
        int c[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
                    a[2] * b[1] + a[3] * b[3]};
        memcpy(b, c, sizeof c);
    }
    if (offset_of_rank != rank * 11)
        printf("%d the operation sees another rank's variables\n", rank);
}

static void users(void) {
    MPI_Op op;
    MPI_Datatype matrix;
    int mine[4] = {1, rank + 1, rank % 2, 1}, out[4] = {0, 0, 0, 0};
    MPI_Type_contiguous(4, MPI_INT, &matrix);
    MPI_Type_commit(&matrix);
    MPI_Op_create(multiply, 0, &op);
    for (int root = 0; root < size; root++) {
        MPI_Reduce(mine, out, 1, matrix, op, root, MPI_COMM_WORLD);
        show("user reduce", 4, out);
    }
    MPI_Allreduce(mine, out, 1, matrix, op, MPI_COMM_WORLD);
    show("user allreduce", 4, out);
    MPI_Scan(mine, out, 1, matrix, op, MPI_COMM_WORLD);
    show("user scan", 4, out);
    memset(out, 0, sizeof out);
    MPI_Exscan(mine, out, 1, matrix, op, MPI_COMM_WORLD);
    if (rank)
        show("user exscan", 4, out);
    MPI_Op_free(&op);
    MPI_Type_free(&matrix);
    printf("%d freed %d %d\n", rank, op == MPI_OP_NULL, matrix == MPI_DATATYPE_NULL);
}

static void reductions(void) {
    int values[16], out[16], counts[8];
    for (int root = 0; root < size; root++) {
        int value = rank + 1;
        MPI_Reduce(rank == root ? MPI_IN_PLACE : &value, rank == root ? &value : NULL, 1, MPI_INT, MPI_SUM, root,
                   MPI_COMM_WORLD);
        show("reduce in place", 1, &value);
    }
    int total = 0;
    for (int i = 0; i < size; i++) {
        counts[i] = i % 2 + 1;
        total += counts[i];
    }
    for (int i = 0; i < 16; i++)
        values[i] = rank * 16 + i;
    MPI_Reduce_scatter(values, out, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    show("reduce_scatter", counts[rank], out);
    MPI_Reduce_scatter_block(values, out, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    show("reduce_scatter_block", 2, out);
    MPI_Scan(MPI_IN_PLACE, values, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    show("scan in place", 3, values);
    MPI_Exscan(MPI_IN_PLACE, values, 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank)
        show("exscan in place", 3, values);
    MPI_Allreduce(MPI_IN_PLACE, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    show("allreduce in place", 1, &total);
}

static void communicators(void) {
    MPI_Comm copy, part, none, made;
    MPI_Group group, some, rest;
    int same[3], place, ranks[2] = {size - 1, 0}, translated[2];
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &part);
    MPI_Comm_split(copy, rank ? MPI_UNDEFINED : 0, 0, &none);
    MPI_Comm_compare(MPI_COMM_WORLD, copy, &same[0]);
    MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_WORLD, &same[1]);
    MPI_Comm_compare(MPI_COMM_WORLD, part, &same[2]);
    printf("%d compare %d %d %d none %d\n", rank, same[0] == MPI_CONGRUENT, same[1] == MPI_IDENT,
           same[2] == MPI_UNEQUAL, none == MPI_COMM_NULL);
    moves(copy);
    moves(part);
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Group_incl(group, 2, ranks, &some);
    MPI_Group_excl(group, 2, ranks, &rest);
    MPI_Group_rank(some, &place);
    MPI_Group_size(rest, &same[0]);
    printf("%d group %d %d\n", rank, place == MPI_UNDEFINED ? -1 : place, same[0]);
    MPI_Group no_member, none_left;
    int every[64];
    for (int i = 0; i < size; i++)
        every[i] = i;
    MPI_Group_incl(group, 0, NULL, &no_member);
    MPI_Group_excl(group, size, every, &none_left);
    printf("%d empty %d %d\n", rank, no_member == MPI_GROUP_EMPTY, none_left == MPI_GROUP_EMPTY);
    MPI_Group_free(&no_member);
    printf("%d freed %d\n", rank, no_member == MPI_GROUP_NULL);
    MPI_Group_size(MPI_GROUP_EMPTY, &same[0]);
    printf("%d none %d\n", rank, same[0]);
    int zero_one[2] = {0, 1};
    MPI_Group_translate_ranks(some, 2, zero_one, group, translated);
    show("translated", 2, translated);
    MPI_Group_compare(some, rest, &same[1]);
    printf("%d group compare %d\n", rank, same[1] == MPI_UNEQUAL);
    MPI_Comm_create(MPI_COMM_WORLD, some, &made);
    if (made != MPI_COMM_NULL) {
        moves(made);
        MPI_Comm_free(&made);
    }
    MPI_Group_free(&group);
    MPI_Group_free(&some);
    MPI_Group_free(&rest);
    /* The same tag in two communicators: each message goes where it belongs. */
    int first = rank, second = rank + 100, next = (rank + 1) % size;
    MPI_Send(&first, 1, MPI_INT, next, 1, MPI_COMM_WORLD);
    MPI_Send(&second, 1, MPI_INT, next, 1, copy);
    MPI_Recv(&second, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, copy, MPI_STATUS_IGNORE);
    MPI_Recv(&first, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("%d apart %d %d\n", rank, first, second);
    MPI_Comm_free(&part);
    MPI_Comm_free(&copy);
    moves(MPI_COMM_SELF);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    offset_of_rank = rank * 11;
    moves(MPI_COMM_WORLD);
    predefined();
    users();
    reductions();
    communicators();
    MPI_Finalize();
    return 0;
}
