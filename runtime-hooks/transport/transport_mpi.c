/*
 * transport_mpi.c: the hosts of a job by the site's MPI: start, size, rank, send, probe, receive, abort, end.
 *
 * All that is compiled against that MPI, by `rankcc --with-mpi mpicc`, is here and in mpi_kind.c.
 */
#include "transport_mpi.h"

#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

struct transport_sending {
    int count;
    MPI_Request requests[];
};

void transport_start(int *argc, char ***argv, int *host, int *hosts) {
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, host);
    MPI_Comm_size(MPI_COMM_WORLD, hosts);
}

void transport_share(void *memory, int size) {
    MPI_Bcast(memory, size, MPI_BYTE, 0, MPI_COMM_WORLD);
}

struct transport_sending *transport_send(int to, int tag, const char *bytes, uint64_t size) {
    int count = (int)((size + TRANSPORT_PIECE - 1) / TRANSPORT_PIECE);
    struct transport_sending *sending = malloc(sizeof *sending + (size_t)count * sizeof *sending->requests);
    if (!sending)
        return NULL;
    sending->count = count;
    for (int i = 0; i < count; i++) {
        uint64_t start = (uint64_t)i * TRANSPORT_PIECE, rest = size - start;
        MPI_Isend(bytes + start, rest < TRANSPORT_PIECE ? (int)rest : TRANSPORT_PIECE, MPI_BYTE, to, tag,
                  MPI_COMM_WORLD, &sending->requests[i]);
    }
    return sending;
}

bool transport_is_sent(struct transport_sending *sending) {
    int is_sent = 1;
    for (int i = 0; is_sent && i < sending->count; i++) /* a request that is done is none, and done */
        MPI_Test(&sending->requests[i], &is_sent, MPI_STATUS_IGNORE);
    if (is_sent)
        free(sending);
    return is_sent;
}

void transport_notify(int to, int tag, bool waits) {
    MPI_Request request;
    if (waits) {
        MPI_Send(NULL, 0, MPI_BYTE, to, tag, MPI_COMM_WORLD);
        return;
    }
    MPI_Isend(NULL, 0, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
}

bool transport_receive(struct transport_message *message) {
    static char bytes[TRANSPORT_PIECE];
    MPI_Status found;
    int is_there;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &is_there, &found);
    if (!is_there)
        return false;
    *message = (struct transport_message){.from = found.MPI_SOURCE, .tag = found.MPI_TAG, .bytes = bytes};
    MPI_Get_count(&found, MPI_BYTE, &message->size);
    MPI_Recv(bytes, message->size, MPI_BYTE, message->from, message->tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return true;
}

bool transport_all_are_done(void) {
    static MPI_Request all = MPI_REQUEST_NULL;
    static bool has_begun;
    int is_done;
    if (!has_begun)
        MPI_Ibarrier(MPI_COMM_WORLD, &all);
    has_begun = true;
    MPI_Test(&all, &is_done, MPI_STATUS_IGNORE);
    return is_done;
}

__attribute__((noreturn)) void transport_abort(int status) {
    MPI_Abort(MPI_COMM_WORLD, status);
    _exit(status);
}

void transport_end(void) {
    MPI_Finalize();
}
