/*
 * Ranks that go from process to process while messages are on their way to them.  Prints only what does not depend on
 * where they are, so that the same program prints the same under an MPI that can't move them (-DSTAY).  An argument: a
 * file that has to be there before it begins.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef STAY
#define MPIX_Migrate_to(process) ((void)(process))
#define MPIX_Process(process, count) (*(process) = 0, *(count) = 1)
#endif

struct item {
    struct item *next;
    int value;
};

static int my_rank, size;
static double table[5000];
static const char *text = "private";
static struct item *list;
int (*function)(int);

static int twice(int value) {
    return 2 * value + my_rank;
}

/* Goes away from deep in the stack, whose variables have to be there afterwards. */
static int move(int depth, int process) {
    volatile int here = 100 * depth + my_rank;
    if (depth > 0)
        return move(depth - 1, process) + (here != 100 * depth + my_rank);
    MPIX_Migrate_to(process);
    return here != my_rank;
}

static int wrong_values(void) {
    int wrong = strcmp(text, "private") != 0, count = 0;
    for (int i = 0; i < 5000; i++)
        wrong += table[i] != my_rank + 0.5 * i;
    for (struct item *one = list; one; one = one->next)
        wrong += one->value != 49 - count++;
    return wrong + (count != 50) + (function(21) != 42 + my_rank);
}

static int exchange(int round) {
    int left = (my_rank + size - 1) % size, right = (my_rank + 1) % size, wrong = 0, sum, got;
    for (int i = 0; i < 20; i++) {
        int value = 1000 * round + 100 * my_rank + i;
        MPI_Send(&value, 1, MPI_INT, right, 7, MPI_COMM_WORLD);
    }
    int at, count;
    MPIX_Process(&at, &count);
    wrong += move(6, (at + 1 + (round * my_rank) % 2) % count);
    for (int i = 0; i < 20; i++) { /* in the order in which they were sent, wherever they had to be sent on to */
        MPI_Recv(&got, 1, MPI_INT, left, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        wrong += got != 1000 * round + 100 * left + i;
    }
    MPI_Allreduce(&my_rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return wrong + (sum != size * (size - 1) / 2);
}

/* A synchronous send and a receive that were begun before the rank moves. */
static int pending(int round) {
    MPI_Request requests[2];
    int left = (my_rank + size - 1) % size, right = (my_rank + 1) % size, in = -1, out = my_rank + round, at, count;
    MPI_Irecv(&in, 1, MPI_INT, left, 8, MPI_COMM_WORLD, &requests[0]);
    MPI_Issend(&out, 1, MPI_INT, right, 8, MPI_COMM_WORLD, &requests[1]);
    MPIX_Process(&at, &count);
    int wrong = move(2, (at + 1) % count);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    return wrong + (in != left + round);
}

int main(int argc, char **argv) {
    int wrong = 0;
    while (argc > 1 && access(argv[1], F_OK) != 0)
        usleep(1000);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    function = twice;
    for (int i = 0; i < 5000; i++)
        table[i] = my_rank + 0.5 * i;
    for (int i = 0; i < 50; i++) {
        struct item *one = malloc(sizeof *one);
        *one = (struct item){list, i};
        list = one;
    }
    for (int round = 0; round < 6; round++) {
        wrong += exchange(round) + pending(round) + wrong_values();
        MPI_Comm other;
        MPI_Comm_split(MPI_COMM_WORLD, my_rank % 2, my_rank, &other);
        int sum;
        MPI_Allreduce(&my_rank, &sum, 1, MPI_INT, MPI_SUM, other);
        printf("rank %d, round %d: %d wrong, sum %d\n", my_rank, round, wrong, sum);
        MPI_Comm_free(&other);
    }
    MPI_Finalize();
    return wrong != 0;
}
