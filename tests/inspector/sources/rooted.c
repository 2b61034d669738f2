/*
 * rooted.c: ranks that wait for one another through collectives that don't need something of all, each part in a
 * communicator of its own, and parts that only look as if they did.  a, b, ... are a part's ranks in their order.
 */
#include <mpi.h>
#include <stdio.h>

enum { PARTS = 6 };
static const int sizes[PARTS] = {3, 3, 3, 4, 4, 2};

static void receive(int from, MPI_Comm comm) {
    int word;
    MPI_Recv(&word, 1, MPI_INT, from, 5, comm, MPI_STATUS_IGNORE);
}

/* a needs b's, and b waits for a.  c has given its own and left: a does not wait for c, though c waits for a. */
static void gather(int me, MPI_Comm comm) {
    int word = me, all[3];
    if (me != 1)
        MPI_Gather(&word, 1, MPI_INT, all, 1, MPI_INT, 0, comm);
    receive(0, comm);
}

/* b has given its own and waits for a; a needs c's, and c may still be sent something by anybody. */
static void like_gather(int me, MPI_Comm comm) {
    int word = me, all[3];
    if (me == 2)
        receive(MPI_ANY_SOURCE, comm);
    MPI_Gather(&word, 1, MPI_INT, all, 1, MPI_INT, 0, comm);
    receive(0, comm);
}

/* c needs b's, which needs a's, and a waits for c. */
static void scan(int me, MPI_Comm comm) {
    int word = me, sum;
    if (me == 0)
        receive(2, comm);
    MPI_Scan(&word, &sum, 1, MPI_INT, MPI_SUM, comm);
}

/* The root is b, which waits for what a adds up; c, which is not the root, adds d's to its own, and d waits for c. */
static void reduce(int me, MPI_Comm comm) {
    int word = me, sum;
    if (me == 3)
        receive(2, comm);
    MPI_Reduce(&word, &sum, 1, MPI_INT, MPI_SUM, 1, comm);
    receive(MPI_ANY_SOURCE, comm);
}

/* d gets what a sends from c, which is not in it but waits for d.  a and b have left: nothing holds them up. */
static void bcast(int me, MPI_Comm comm) {
    int word = me;
    if (me == 2)
        receive(3, comm);
    MPI_Bcast(&word, 1, MPI_INT, 0, comm);
    receive(MPI_ANY_SOURCE, comm);
}

/* b needs a's, which waits for b. */
static void scatter(int me, MPI_Comm comm) {
    int word = me, all[2] = {0, 1};
    if (me == 0)
        receive(1, comm);
    MPI_Scatter(all, 1, MPI_INT, &word, 1, MPI_INT, 0, comm);
}

static void (*const parts[PARTS])(int me, MPI_Comm comm) = {gather, like_gather, scan, reduce, bcast, scatter};

int main(int argc, char **argv) {
    int rank, size, me, part = 0;
    MPI_Comm comm;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int first = 0; part < PARTS - 1 && rank >= first + sizes[part]; part++)
        first += sizes[part];
    MPI_Comm_split(MPI_COMM_WORLD, part, -rank, &comm); /* a is the last of its part */
    MPI_Comm_rank(comm, &me);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        puts("ready");
        fflush(stdout);
    }
    parts[part](me, comm);
    MPI_Finalize();
    return 0;
}
