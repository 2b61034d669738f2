/*
 * publish.c: a call's arguments as the registry has them.
 */
#include "mpi/objects/publish.h"
#include "mpi.h"
#include "mpi/objects/communicator.h"
#include "mpi/objects/group.h"
#include "ranks/scheduler.h"

void call_publish(enum call call, int peer, int tag, const struct communicator *comm) {
    if (peer == MPI_ANY_SOURCE)
        peer = PUBLISH_ANY;
    else if (peer == MPI_PROC_NULL)
        peer = PUBLISH_NONE;
    struct rank_members members = {0};
    if (comm)
        members = (struct rank_members){comm->context, comm->group->size, comm->group->members};
    rank_call_enter(call_index(call), peer, tag, &members);
}
