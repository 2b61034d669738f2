/* Every kind of wait, once rank 0 sleeps for good. 1 and 2 wait for one another, so do 12 and 13; 6 ends. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
static int word, words[2];
static void ask_two(int first, int second, MPI_Request *requests) {
    MPI_Irecv(&words[0], 1, MPI_INT, first, 7, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&words[1], 1, MPI_INT, second, 8, MPI_COMM_WORLD, &requests[1]);
}
int main(int count, char **arguments) {
    int me, which;
    MPI_Comm part;
    MPI_Request requests[2];
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_split(MPI_COMM_WORLD, me == 3 || me == 0, -me, &part);
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 1)
        MPI_Recv(&word, 1, MPI_INT, 2, 41, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (me == 2)
        MPI_Ssend(&word, 1, MPI_INT, 1, 43, MPI_COMM_WORLD);
    if (me == 3)
        MPI_Recv(&word, 1, MPI_INT, 1, 9, part, MPI_STATUS_IGNORE);
    if (me == 4 || me == 5)
        ask_two(me == 4 ? 5 : 4, 0, requests);
    if (me == 4)
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    if (me == 5)
        MPI_Waitany(2, requests, &which, MPI_STATUS_IGNORE);
    if (me == 7)
        MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (me == 8) {
        MPI_Irecv(&word, 1, MPI_INT, 0, 77, MPI_COMM_WORLD, requests);
        MPI_Wait(requests, MPI_STATUS_IGNORE);
    }
    if (me == 9)
        MPI_Probe(4, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (me == 10)
        MPI_Barrier(MPI_COMM_WORLD);
    if (me == 11)
        MPI_Sendrecv(&word, 1, MPI_INT, 8, 99, &words, 1, MPI_INT, 0, 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (me == 12 || me == 13) {
        MPI_Irecv(&words[0], 1, MPI_INT, 0, 60, MPI_COMM_WORLD, &requests[0]);
        MPI_Issend(&words[1], 1, MPI_INT, 25 - me, 61, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    if (me == 14) {
        MPI_Issend(&word, 1, MPI_INT, 0, 62, MPI_COMM_WORLD, requests);
        MPI_Wait(requests, MPI_STATUS_IGNORE);
    }
    if (me == 0) {
        sleep(1);
        printf("ready\n");
        fflush(stdout);
        for (;;)
            pause();
    }
    MPI_Finalize();
    return 0;
}
