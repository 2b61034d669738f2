/*
 * migrate.c: ranks that move, at their own wish or to even out the load.
 */
#include "job/migration.h"
#include "job/process.h"
#include "mpi/calls/collective_common.h"
#include "mpi/objects/call_names.h"
#include "mpi/objects/communicator.h"
#include "mpi/objects/datatype.h"
#include "mpi/objects/error.h"
#include "mpi/objects/library_memory.h"
#include "mpi/objects/publish.h"
#include "mpi/objects/rank_state.h"
#include "ranks/fatal.h"
#include "ranks/scheduler.h"

#include <stdio.h>
#include <stdlib.h>

/* A member of the communicator, as all members know it. */
struct member {
    double load; /* cycles since the last time */
    int process;
    int place; /* where it stands in the communicator */
};

static int move(struct mpi_rank *self, struct communicator *comm, enum call call, int process) {
    char why[256], line[384];
    if (migration_start(process, why, sizeof why))
        return MPI_SUCCESS;
    snprintf(line, sizeof line, "rank %d: %s: %s", self->world, call_name(call), why);
    return mpi_fail(self, comm, call, mpi_end_if_fatal(self, comm, MPI_ERR_OTHER, line));
}

int MPIX_Process(int *process, int *count) {
    *process = process_index();
    *count = process_count();
    return MPI_SUCCESS;
}

int MPIX_Migrate_to(int process) {
    struct mpi_rank *self = mpi_self(CALL_Migrate_to);
    call_publish(CALL_Migrate_to, MPI_PROC_NULL, PUBLISH_NONE, NULL);
    int code = move(self, NULL, CALL_Migrate_to, process);
    rank_call_leave();
    return code;
}

static int by_load(const void *first, const void *second) {
    const struct member *a = first, *b = second;
    if (a->load != b->load)
        return a->load > b->load ? -1 : 1;
    return a->place - b->place;
}

/*
 * Moves a member from the fullest process to the emptiest while that makes the fullest less full: few move, and the
 * greatest load falls.  Every member computes the same.
 */
static void balance(struct member *members, int count, int processes) {
    double *loads = calloc((size_t)processes, sizeof *loads);
    if (!loads)
        rank_job_abort(MPI_ERR_OTHER, "MPI: out of memory");
    for (int i = 0; i < count; i++)
        loads[members[i].process] += members[i].load;
    qsort(members, (size_t)count, sizeof *members, by_load);
    for (int moved = 0, rounds = 0; rounds < count; rounds++, moved = 0) {
        int fullest = 0, emptiest = 0;
        for (int i = 1; i < processes; i++) {
            fullest = loads[i] > loads[fullest] ? i : fullest;
            emptiest = loads[i] < loads[emptiest] ? i : emptiest;
        }
        for (int i = 0; i < count && !moved; i++) {
            struct member *member = &members[i];
            if (member->process != fullest || loads[emptiest] + member->load >= loads[fullest] * 0.98)
                continue;
            loads[fullest] -= member->load;
            loads[emptiest] += member->load;
            member->process = emptiest;
            moved = 1;
        }
        if (!moved)
            break;
    }
    free(loads);
}

/* *wanted: where this rank shall go; all members must call it. */
static int choose(struct mpi_rank *self, struct communicator *comm, double load, int *wanted) {
    int size = comm_size(comm), tag = collective_begin(comm), code = MPI_SUCCESS;
    struct datatype *type = type_get(self, MPI_BYTE);
    struct member *members = host_allocate((size_t)size * sizeof *members);
    struct member mine = {load, process_index(), comm->rank};
    members[comm->rank] = mine;
    if (comm->rank != 0)
        code = collective_send(self, comm, &mine, sizeof mine, type, 0, tag);
    for (int i = 1; comm->rank == 0 && i < size && !code; i++)
        code = collective_recv(self, comm, &members[i], sizeof mine, type, i, tag);
    if (!code)
        code = collective_broadcast(self, comm, members, size * (int)sizeof mine, type, 0);
    if (!code)
        balance(members, size, process_count());
    for (int i = 0; i < size && !code; i++)
        if (members[i].place == comm->rank)
            *wanted = members[i].process;
    host_release(members);
    return code;
}

int MPIX_Migrate(MPI_Comm comm) {
    struct mpi_rank *self = mpi_self(CALL_Migrate);
    struct communicator *communicator = comm_get(self, comm);
    if (!communicator)
        return mpi_fail(self, NULL, CALL_Migrate, MPI_ERR_COMM);
    int process = process_index(), code = collective_publish(self, communicator, CALL_Migrate, NO_ROOT);
    uint64_t cycles = rank_cycles(self->rank);
    if (!code)
        code = choose(self, communicator, (double)(cycles - self->cycles_before), &process);
    self->cycles_before = cycles;
    if (code)
        mpi_fail(self, communicator, CALL_Migrate, code);
    else
        code = move(self, communicator, CALL_Migrate, process);
    if (!code)
        code = collective_barrier(self, communicator);
    rank_call_leave();
    return code;
}
