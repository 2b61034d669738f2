/* persistent.c: requests that are begun again and again, and ready sends; prints what MPI defines, nothing else. */
#include <mpi.h>
#include <stdio.h>

enum { TURNS = 4 };

static int rank, size;

/* A ring whose four requests are made once. */
static void ring(void) {
    int left = (rank - 1 + size) % size, right = (rank + 1) % size, in[2], out[2];
    MPI_Request requests[4];
    MPI_Status statuses[4];
    MPI_Recv_init(&in[0], 1, MPI_INT, left, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(&in[1], 1, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Send_init(&out[0], 1, MPI_INT, right, 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Ssend_init(&out[1], 1, MPI_INT, right, 2, MPI_COMM_WORLD, &requests[3]);
    for (int turn = 0; turn < TURNS; turn++) {
        out[0] = 100 * rank + turn;
        out[1] = -out[0];
        MPI_Startall(4, requests);
        MPI_Waitall(4, requests, statuses);
        printf("%d ring %d %d from %d\n", rank, in[0], in[1], statuses[1].MPI_SOURCE);
    }
    for (int i = 0; i < 4; i++)
        MPI_Request_free(&requests[i]);
    printf("%d freed %d\n", rank, requests[0] == MPI_REQUEST_NULL);
}

/* Waiting for what is not begun is waiting for nothing, and completing it leaves the handle. */
static void inactive(void) {
    int flag = 0, index = 7, done = 7, indices[2], value = rank, copy = -1;
    MPI_Request requests[2];
    MPI_Status status;
    MPI_Send_init(&value, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &requests[0]);
    MPI_Recv_init(&copy, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &requests[1]);
    MPI_Wait(&requests[1], &status);
    printf("%d empty %d %d\n", rank, status.MPI_SOURCE == MPI_ANY_SOURCE, status.MPI_TAG == MPI_ANY_TAG);
    MPI_Test(&requests[1], &flag, &status);
    MPI_Waitany(2, requests, &index, &status);
    MPI_Waitsome(2, requests, &done, indices, MPI_STATUSES_IGNORE);
    printf("%d nothing %d %d %d\n", rank, flag, index == MPI_UNDEFINED, done == MPI_UNDEFINED);
    MPI_Startall(2, requests);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Waitany(2, requests, &index, &status);
    printf("%d second %d %d %d %d\n", rank, index, copy, status.MPI_TAG, requests[1] != MPI_REQUEST_NULL);
    MPI_Startall(2, requests);
    for (flag = 0; !flag;)
        MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
    printf("%d both %d\n", rank, copy);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

/* A request that is freed while it is under way completes all the same. */
static void freed_under_way(void) {
    int out = 5 * rank, in = -1;
    MPI_Request request;
    MPI_Send_init(&out, 1, MPI_INT, (rank + 1) % size, 3, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    MPI_Request_free(&request);
    MPI_Recv(&in, 1, MPI_INT, (rank - 1 + size) % size, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("%d freed under way %d\n", rank, in);
}

/* Ready sends: the receives have been posted before the barrier. */
static void ready(void) {
    int in[3] = {0}, out[3] = {rank, 10 + rank, 20 + rank}, right = (rank + 1) % size;
    MPI_Request receives[3], sends[2];
    for (int i = 0; i < 3; i++)
        MPI_Irecv(&in[i], 1, MPI_INT, (rank - 1 + size) % size, 4 + i, MPI_COMM_WORLD, &receives[i]);
    MPI_Rsend_init(&out[2], 1, MPI_INT, right, 6, MPI_COMM_WORLD, &sends[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Rsend(&out[0], 1, MPI_INT, right, 4, MPI_COMM_WORLD);
    MPI_Irsend(&out[1], 1, MPI_INT, right, 5, MPI_COMM_WORLD, &sends[0]);
    MPI_Start(&sends[1]);
    MPI_Waitall(2, sends, MPI_STATUSES_IGNORE);
    MPI_Waitall(3, receives, MPI_STATUSES_IGNORE);
    printf("%d ready %d %d %d\n", rank, in[0], in[1], in[2]);
    MPI_Request_free(&sends[1]);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    ring();
    inactive();
    freed_under_way();
    ready();
    MPI_Finalize();
    return 0;
}
