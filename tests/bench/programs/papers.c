/*
 * papers.c: what the papers' micro-benchmarks measure; the first word says which.  Times are processor time of the
 * kernel thread, in nanoseconds, but for migrations, of which a part is spent in other threads: those are on the clock.
 *
 *   barrier      a few operations and MPI_Barrier, again and again, on two ranks: nanoseconds for each rank and turn
 *   switch       ranks let one another run: nanoseconds of a switch
 *   apart        the same, but odd ranks in a loop of their own, as ranks with copies of the code are
 *   ring         a message of 100 bytes through all ranks: nanoseconds of a round
 *   migrate      there and back between two processes: nanoseconds of a move
 *   balance N    a front of dense cells moves over CELLS cells: seconds that the busiest process computes, without and
 *                with a migration every N steps
 *   nothing      starts and ends
 *
 * BYTES are in the image, GLOBALS declares more variables and TOUCH uses each; PRIVATE is what a method needs before
 * one.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef PRIVATE
#define PRIVATE
#endif
#ifndef BYTES
#define BYTES 64
#endif
#ifdef MORE
#include MORE
#else
#define TOUCH
#endif

enum { ROUNDS = 5, TURNS = 20000, RINGS = 3, MOVES = 6, CELLS = 256, STEPS = 64, FRONT = 64 };

PRIVATE char image[BYTES] = {1};
PRIVATE double value;

static double now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static double thread_time(void) {
    return now(CLOCK_THREAD_CPUTIME_ID);
}

static void print_best(int rank, double best) {
    if (rank == 0)
        printf("RESULT %.6g\n", best);
    fflush(stdout); /* a rank may have a libc of its own, which does not learn of the end */
}

static void barrier(int rank, int ranks) {
    double best = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        double start = thread_time();
        for (int turn = 0; turn < TURNS; turn++) {
            value = value * 0.5 + turn;
            MPI_Barrier(MPI_COMM_WORLD);
        }
        double time = (thread_time() - start) / TURNS / ranks;
        best = time < best ? time : best;
    }
    print_best(rank, best);
}

static void let_run(void) {
#ifdef AMPI
    AMPI_Yield();
#else
    int found;
    MPI_Iprobe(MPI_ANY_SOURCE, 12345, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
#endif
}

enum { SWITCHES = 100000 };

__attribute__((noinline)) static void take_turns(void) {
    for (int turn = 0; turn < SWITCHES; turn++)
        let_run();
}

__attribute__((noinline)) static void take_turns_apart(void) {
    for (int turn = 0; turn < SWITCHES; turn++)
        let_run();
    __asm__ volatile("nop"); /* so that no compiler makes one function of both */
}

static void switches(int rank, int ranks, int apart) {
    double best = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = thread_time();
        if (apart && rank % 2)
            take_turns_apart();
        else
            take_turns();
        double time = (thread_time() - start) / SWITCHES / ranks;
        best = time < best ? time : best;
    }
    print_best(rank, best);
}

static void ring(int rank, int ranks) {
    char data[100] = {0};
    double best = 1e18;
    for (int round = 0; round < RINGS; round++) {
        double start = thread_time();
        if (rank == 0)
            MPI_Send(data, sizeof data, MPI_CHAR, 1 % ranks, 0, MPI_COMM_WORLD);
        MPI_Recv(data, sizeof data, MPI_CHAR, (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank)
            MPI_Send(data, sizeof data, MPI_CHAR, (rank + 1) % ranks, 0, MPI_COMM_WORLD);
        double time = thread_time() - start;
        best = time < best ? time : best;
    }
    print_best(rank, best);
}

static void move(int turn) {
#ifdef AMPI
    MPI_Info hints;
    (void)turn;
    MPI_Info_create(&hints);
    MPI_Info_set(hints, "ampi_load_balance", "sync");
    AMPI_Migrate(hints);
#elif defined(CAN_MOVE)
    MPIX_Migrate_to((turn + 1) % 2);
#else
    (void)turn;
#endif
}

static void migrate(int rank) {
    double best = 1e18;
    for (int turn = 0; turn < MOVES; turn++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = now(CLOCK_MONOTONIC);
        move(turn);
        double time = now(CLOCK_MONOTONIC) - start;
        best = time < best ? time : best;
        image[BYTES / 2] = (char)turn;
    }
    print_best(rank, best);
}

#ifdef CAN_MOVE
/* Cells within FRONT of the front cost eight times as much; a rank has a block of them. */
static double compute(int rank, int ranks, int step) {
    double start = thread_time();
    int front = step * CELLS / STEPS;
    for (int cell = rank * CELLS / ranks; cell < (rank + 1) * CELLS / ranks; cell++)
        for (int turn = 0; turn < (abs(cell - front) < FRONT / 2 ? 16000 : 2000); turn++)
            value = value * 0.999 + cell;
    return thread_time() - start;
}

static void balance(int rank, int ranks, int every) {
    double total = 0, mine[2], all[2];
    for (int step = 0; step < STEPS; step++) {
        int at, count;
        double time = compute(rank, ranks, step);
        MPIX_Process(&at, &count);
        mine[0] = at == 0 ? time : 0;
        mine[1] = at == 0 ? 0 : time;
        MPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        total += (all[0] > all[1] ? all[0] : all[1]) * 1e-9;
        if (every && step % every == every - 1)
            MPIX_Migrate(MPI_COMM_WORLD);
    }
    print_best(rank, total);
}
#endif

int main(int argc, char **argv) {
    int rank, ranks;
    const char *what = argc > 1 ? argv[1] : "nothing";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    memset(image, rank + 1, sizeof image);
    TOUCH
    if (!strcmp(what, "barrier"))
        barrier(rank, ranks);
    if (!strcmp(what, "switch") || !strcmp(what, "apart"))
        switches(rank, ranks, !strcmp(what, "apart"));
    if (!strcmp(what, "ring"))
        ring(rank, ranks);
    if (!strcmp(what, "migrate"))
        migrate(rank);
#ifdef CAN_MOVE
    if (!strcmp(what, "balance"))
        balance(rank, ranks, atoi(argv[2]));
#endif
    MPI_Finalize();
    return 0;
}
