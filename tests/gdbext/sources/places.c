/*
 * places.c: a program that says where its variables are, so that a debugger's answers can be held against it.
 *
 * It takes the word "end" to end by itself. Otherwise all ranks but the last end in an MPI_Recv that nobody serves; the
 * last one prints "ready" and runs for ever. Each rank prints `RANK NAME ADDRESS VALUE` for everything it owns.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_ARRIVED = 5, TAG_NEVER_SENT = 6, STEPS = 3 };

struct pair {
    int first;
    int second;
};

int shared_name = 10;
const int constant = 77;
static int file_static = 20;
struct pair pair = {1, 2};
int *pointer = &shared_name;
int table[4];
static volatile int spinning = 1;

static void say(int rank, const char *name, const void *address, long value) {
    printf("%d %s %p %ld\n", rank, name, address, value);
}

__attribute__((noinline)) int move_on(int rank, int number) {
    static int calls = 30;
    calls += number + rank;
    table[number] = 100 * rank + number;
    if (number == STEPS - 1)
        say(rank, "calls", &calls, calls);
    return calls;
}

__attribute__((noinline)) static void spin(int rank) {
    int turns = rank;
    while (spinning)
        turns ^= 1; /* spins here */
    shared_name = turns;
}

__attribute__((noinline)) static void wait_for(int peer) {
    int word = -1;
    MPI_Recv(&word, 1, MPI_INT, peer, TAG_NEVER_SENT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

__attribute__((noinline)) static void stay(int rank, int size) {
    int heard = 0;
    if (rank != size - 1) {
        MPI_Send(&rank, 1, MPI_INT, size - 1, TAG_ARRIVED, MPI_COMM_WORLD);
        wait_for((rank + 1) % size);
    }
    for (int other = 0; other < size - 1; other++)
        MPI_Recv(&heard, 1, MPI_INT, MPI_ANY_SOURCE, TAG_ARRIVED, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int turn = 0; turn < 16; turn++) {
        int found = 0;
        MPI_Iprobe(MPI_ANY_SOURCE, TAG_NEVER_SENT, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    }
    puts("ready");
    fflush(stdout);
    spin(rank);
}

__attribute__((noinline)) static int work(int rank) {
    int local = 1000 + rank;
    int sum = 0;
    for (int number = 0; number < STEPS; number++)
        sum += move_on(rank, number);
    say(rank, "local", &local, local);
    return sum + local;
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    shared_name += rank;
    file_static += 2 * rank;
    pair.second = 50 + rank;
    int sum = work(rank);
    say(rank, "shared_name", &shared_name, shared_name);
    say(rank, "constant", &constant, constant);
    say(rank, "file_static", &file_static, file_static);
    say(rank, "pair", &pair, pair.second);
    say(rank, "pointer", &pointer, *pointer);
    say(rank, "table", table, table[2]);
    say(rank, "move_on", (const void *)move_on, sum);
    fflush(stdout);
    if (argc < 2 || strcmp(argv[1], "end") != 0)
        stay(rank, size);
    MPI_Finalize();
    return EXIT_SUCCESS;
}
