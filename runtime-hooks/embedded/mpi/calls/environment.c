/*
 * environment.c: start, end, time and names.
 */
#include "mpi/calls/environment.h"
#include "mpi/calls/collective_check.h"
#include "mpi/calls/collective_common.h"
#include "mpi/objects/call_names.h"
#include "mpi/objects/communicator.h"
#include "mpi/objects/datatype.h"
#include "mpi/objects/error.h"
#include "mpi/objects/publish.h"
#include "ranks/fatal.h"
#include "ranks/scheduler.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int initialize(enum call call, int level) {
    struct mpi_rank *self = mpi_rank_state();
    if (self->initialized)
        return mpi_fail(self, NULL, call, MPI_ERR_OTHER);
    types_initialize(self);
    comms_initialize(self);
    self->initialized = true;
    self->thread_level = level;
    struct communicator *world = comm_get(self, MPI_COMM_WORLD);
    call_publish(call, MPI_PROC_NULL, PUBLISH_NONE, world);
    world->current = (struct collective_call){CALL_Init, NO_ROOT}; /* for ranks that call MPI_Init_thread, too */
    int code = collective_barrier(self, world);
    rank_call_leave();
    return code;
}

int MPI_Init(int *argc, char ***argv) {
    (void)argc, (void)argv;
    return initialize(CALL_Init, MPI_THREAD_SINGLE);
}

/* Ranks are threads of the runtime's making; a rank's own threads may not call MPI but from its main one. */
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    (void)argc, (void)argv;
    *provided = required < MPI_THREAD_FUNNELED ? required : MPI_THREAD_FUNNELED;
    return initialize(CALL_Init_thread, *provided);
}

int MPI_Query_thread(int *provided) {
    *provided = mpi_self(CALL_Query_thread)->thread_level;
    return MPI_SUCCESS;
}

int MPI_Initialized(int *flag) {
    *flag = mpi_rank_state()->initialized;
    return MPI_SUCCESS;
}

int MPI_Finalized(int *flag) {
    *flag = mpi_rank_state()->finalized;
    return MPI_SUCCESS;
}

bool mpi_is_unfinished(int world) {
    const struct mpi_rank *self = rank_attachment(rank_by_number(world));
    return self && self->initialized && !self->finalized;
}

int mpi_root(int world) {
    const struct mpi_rank *self = rank_attachment(rank_by_number(world));
    return self ? self->root : NO_ROOT;
}

int MPI_Finalize(void) {
    struct mpi_rank *self = mpi_self(CALL_Finalize);
    struct communicator *world = comm_get(self, MPI_COMM_WORLD);
    int code = collective_publish(self, world, CALL_Finalize, NO_ROOT);
    if (!code)
        code = collective_barrier(self, world);
    for (int i = 1; i < self->communicators.size && !code; i++)
        if (comm_get(self, i))
            code = collective_check_last(self, comm_get(self, i), CALL_Finalize);
    rank_call_leave();
    if (code)
        mpi_fail(self, world, CALL_Finalize, code);
    self->finalized = true;
    return code;
}

int MPI_Abort(MPI_Comm comm, int code) {
    (void)comm;
    char line[128];
    snprintf(line, sizeof line, "rank %d: MPI_Abort: the program ends itself with code %d", mpi_rank_state()->world,
             code);
    rank_job_abort(code, line);
}

double MPI_Wtime(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double MPI_Wtick(void) {
    struct timespec tick;
    clock_getres(CLOCK_MONOTONIC, &tick);
    return (double)tick.tv_sec + 1e-9 * (double)tick.tv_nsec;
}

int MPI_Get_processor_name(char *name, int *length) {
    if (gethostname(name, MPI_MAX_PROCESSOR_NAME))
        name[0] = '\0';
    name[MPI_MAX_PROCESSOR_NAME - 1] = '\0'; /* a truncated host name need not be terminated */
    *length = (int)strlen(name);
    return MPI_SUCCESS;
}

int MPI_Get_version(int *version, int *subversion) {
    *version = MPI_VERSION;
    *subversion = MPI_SUBVERSION;
    return MPI_SUCCESS;
}

int MPI_Get_library_version(char *version, int *length) {
    *length = snprintf(version, MPI_MAX_LIBRARY_VERSION_STRING, "embedded rank runtime, MPI %d.%d subset", MPI_VERSION,
                       MPI_SUBVERSION);
    return MPI_SUCCESS;
}

int MPI_Get_address(const void *location, MPI_Aint *address) {
    *address = (MPI_Aint)location;
    return MPI_SUCCESS;
}

int MPI_Address(void *location, MPI_Aint *address) {
    return MPI_Get_address(location, address);
}
