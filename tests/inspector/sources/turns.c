/*
 * turns.c: every rank takes turns at some work, between messages; it begins once the file that it is given is there.
 *
 * It returns its rank with a third argument. OWN is what method tls needs before variables that ranks do not share.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef OWN
#define OWN
#endif

OWN int number;
OWN long done;
OWN double level = 0.5;

__attribute__((noinline)) static double weigh(int turn) {
    double sum = level * turn;
    for (int i = 0; i < 3; i++)
        sum += i;
    return sum;
}

__attribute__((noinline)) static void pass_on(int turn) {
    int size, word = turn;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Sendrecv_replace(&word, 1, MPI_INT, (number + 1) % size, 0, (number + size - 1) % size, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
}

__attribute__((noinline)) static long work(int turn) {
    long before = done;
    done += turn + number;
    pass_on(turn);
    level = weigh(turn);
    return done - before;
}

static void wait_for(const char *file) {
    while (access(file, F_OK) != 0) {
        int found;
        MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv) {
    int turns = atoi(argv[1]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &number);
    printf("rank %d is in process %d, %p works\n", number, getpid(), (void *)work);
    fflush(stdout);
    wait_for(argv[2]);
    for (int turn = 0; turn < turns; turn++)
        work(turn);
    printf("rank %d did %ld, level %g\n", number, done, level);
    MPI_Finalize();
    return argc > 3 ? number : 0;
}
