/* point_to_point.c: every call that sends, receives, waits, tests or probes; prints what MPI defines, nothing else. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

static void print_status(const char *what, MPI_Status *status) {
    int count;
    MPI_Get_count(status, MPI_INT, &count);
    printf("%d %s: source %d tag %d count %d\n", rank, what, status->MPI_SOURCE, status->MPI_TAG, count);
}

static void order(void) {
    int left = (rank - 1 + size) % size, right = (rank + 1) % size, in[4];
    MPI_Status status;
    for (int i = 0; i < 20; i++) {
        int out[3] = {rank, i, 7 * i};
        MPI_Send(out, 1 + i % 3, MPI_INT, right, i % 2, MPI_COMM_WORLD);
    }
    for (int tag = 1; tag >= 0; tag--)
        for (int i = 0; i < 10; i++) {
            MPI_Recv(in, 4, MPI_INT, left, tag, MPI_COMM_WORLD, &status);
            printf("%d order %d %d\n", rank, in[0], tag);
            print_status("order", &status);
        }
}

static void synchronous(void) {
    int value = rank * 3, other = -1;
    MPI_Request request;
    MPI_Status status;
    if (rank % 2 == 0 && rank + 1 < size) {
        MPI_Ssend(&value, 1, MPI_INT, rank + 1, 5, MPI_COMM_WORLD);
        MPI_Issend(&value, 1, MPI_INT, rank + 1, 6, MPI_COMM_WORLD, &request);
        MPI_Send(&value, 1, MPI_INT, rank + 1, 7, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (rank % 2) {
        MPI_Recv(&other, 1, MPI_INT, rank - 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&other, 1, MPI_INT, rank - 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&other, 1, MPI_INT, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &status);
        print_status("synchronous", &status);
    }
    printf("%d synchronous %d\n", rank, other);
}

/* An unmatched synchronous send isn't complete. */
static void unmatched(void) {
    int flag = 1, value = 1;
    MPI_Request request;
    if (rank == 0) {
        MPI_Issend(&value, 1, MPI_INT, 1, 40, MPI_COMM_WORLD, &request);
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        printf("0 unmatched %d\n", flag);
        MPI_Send(&value, 1, MPI_INT, 1, 41, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        MPI_Recv(&value, 1, MPI_INT, 0, 41, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&value, 1, MPI_INT, 0, 40, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void exchange(void) {
    int left = (rank - 1 + size) % size, right = (rank + 1) % size, value = rank + 100, in = -1;
    MPI_Status status;
    MPI_Sendrecv(&value, 1, MPI_INT, right, 8, &in, 1, MPI_INT, left, 8, MPI_COMM_WORLD, &status);
    print_status("sendrecv", &status);
    MPI_Sendrecv_replace(&value, 1, MPI_INT, left, 9, right, 9, MPI_COMM_WORLD, &status);
    print_status("replace", &status);
    printf("%d exchange %d %d\n", rank, in, value);
    MPI_Recv(&in, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status);
    printf("%d null %d %d\n", rank, status.MPI_SOURCE == MPI_PROC_NULL, status.MPI_TAG == MPI_ANY_TAG);
    MPI_Send(&in, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD);
}

static void wildcards(void) {
    if (rank) {
        int value[2] = {rank, rank * rank};
        MPI_Send(value, 2, MPI_INT, 0, 10 + rank, MPI_COMM_WORLD);
        return;
    }
    for (int i = 1; i < size; i++) {
        MPI_Status status;
        int in[2], flag = 0;
        MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        while (!flag)
            MPI_Iprobe(status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &flag, &status);
        print_status("probe", &status);
        MPI_Recv(in, 2, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &status);
        printf("0 wildcard %d %d\n", in[0], in[1]);
    }
}

enum way { WAITALL, WAITANY, WAITSOME, TESTALL, TESTANY, TEST, WAYS };

static void finish(enum way way, int count, MPI_Request *requests, MPI_Status *statuses) {
    int left = count, index, done, flag, indices[64];
    MPI_Status some[64];
    switch (way) {
    case WAITALL:
        MPI_Waitall(count, requests, statuses);
        return;
    case TESTALL:
        do
            MPI_Testall(count, requests, &flag, statuses);
        while (!flag);
        return;
    case TEST:
        for (int i = 0; i < count; i++)
            do
                MPI_Test(&requests[i], &flag, &statuses[i]);
            while (!flag);
        return;
    case WAITSOME:
        for (; left > 0; left -= done) {
            MPI_Waitsome(count, requests, &done, indices, some);
            for (int i = 0; i < done; i++)
                statuses[indices[i]] = some[i];
        }
        return;
    default:
        while (left > 0) {
            flag = 1;
            if (way == WAITANY)
                MPI_Waitany(count, requests, &index, some);
            else
                MPI_Testany(count, requests, &index, &flag, some);
            if (flag) {
                statuses[index] = some[0];
                left--;
            }
        }
    }
}

static void requests(enum way way) {
    MPI_Request made[64];
    MPI_Status statuses[64];
    int in[32], out[32];
    for (int i = 0; i < size; i++)
        MPI_Irecv(&in[i], 1, MPI_INT, i, 20 + (int)way, MPI_COMM_WORLD, &made[i]);
    for (int i = 0; i < size; i++) {
        out[i] = 1000 * rank + i;
        MPI_Isend(&out[i], 1, MPI_INT, i, 20 + (int)way, MPI_COMM_WORLD, &made[size + i]);
    }
    finish(way, 2 * size, made, statuses);
    for (int i = 0; i < size; i++) {
        printf("%d requests %d: %d null %d\n", rank, (int)way, in[i], made[i] == MPI_REQUEST_NULL);
        print_status("requests", &statuses[i]);
    }
    int index = 0, done = 0;
    MPI_Waitany(size, made, &index, MPI_STATUS_IGNORE);
    MPI_Waitsome(size, made, &done, in, MPI_STATUSES_IGNORE);
    printf("%d none left %d %d\n", rank, index == MPI_UNDEFINED, done == MPI_UNDEFINED);
}

static void freed(void) {
    MPI_Request request;
    int value = rank;
    MPI_Isend(&value, 1, MPI_INT, (rank + 1) % size, 50, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 50, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("%d freed %d %d\n", rank, value, request == MPI_REQUEST_NULL);
}

static void errors(void) {
    int in[2] = {0, 0}, out[4] = {1, 2, 3, 4}, class, length;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Send(out, 1, MPI_INT, size, 1, MPI_COMM_WORLD), &class);
    printf("%d bad rank %d\n", rank, class == MPI_ERR_RANK);
    MPI_Error_class(MPI_Send(out, -1, MPI_INT, 0, 1, MPI_COMM_WORLD), &class);
    printf("%d bad count %d\n", rank, class == MPI_ERR_COUNT);
    MPI_Error_class(MPI_Send(out, 1, MPI_INT, 0, -5, MPI_COMM_WORLD), &class);
    printf("%d bad tag %d\n", rank, class == MPI_ERR_TAG);
    MPI_Send(out, 4, MPI_INT, rank, 60, MPI_COMM_WORLD);
    MPI_Error_class(MPI_Recv(in, 2, MPI_INT, rank, 60, MPI_COMM_WORLD, MPI_STATUS_IGNORE), &class);
    printf("%d truncated %d\n", rank, class == MPI_ERR_TRUNCATE);
    MPI_Error_string(class, text, &length);
    printf("%d text %d\n", rank, length == (int)strlen(text) && length > 0);
    MPI_Errhandler_set(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static int handled;

static void handler(MPI_Comm *comm, int *code, ...) {
    int class;
    MPI_Error_class(*code, &class);
    handled += *comm == MPI_COMM_WORLD && class == MPI_ERR_RANK;
}

static void handlers(void) {
    MPI_Errhandler mine, before, now;
    int value = 0;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
    MPI_Comm_create_errhandler(handler, &mine);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, mine);
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &now);
    int same = now == mine;
    MPI_Errhandler_free(&mine);
    MPI_Send(&value, 1, MPI_INT, size + 3, 0, MPI_COMM_WORLD);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, before);
    printf("%d handlers %d %d %d %d\n", rank, before == MPI_ERRORS_ARE_FATAL, same, mine == MPI_ERRHANDLER_NULL,
           handled);
}

static void library(void) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length, provided;
    MPI_Get_library_version(version, &length);
    MPI_Query_thread(&provided);
    printf("%d library %d %d\n", rank, length == (int)strlen(version), provided);
}

static void environment(void) {
    char name[MPI_MAX_PROCESSOR_NAME];
    int length, initialized, finalized, version, subversion;
    MPI_Get_processor_name(name, &length);
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    MPI_Get_version(&version, &subversion);
    double start = MPI_Wtime();
    printf("%d environment %s %d %d %d\n", rank, name, length == (int)strlen(name), initialized, finalized);
    printf("%d time %d %d\n", rank, MPI_Wtime() >= start, MPI_Wtick() > 0);
}

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    printf("%d of %d provided %d\n", rank, size, provided);
    order();
    synchronous();
    unmatched();
    exchange();
    wildcards();
    MPI_Barrier(MPI_COMM_WORLD);
    for (int way = 0; way < WAYS; way++)
        requests((enum way)way);
    freed();
    errors();
    handlers();
    library();
    environment();
    MPI_Finalize();
    return 0;
}
